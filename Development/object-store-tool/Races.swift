// Two writers that create the same key at the same moment, again and again.
import Base
import Replication

struct RaceError: Error, CustomStringConvertible {
  let description: String
}

/// Pairs of writers. Of each race exactly one writer must win, and its bytes must be what is read.
final class Races: Sendable {
  private let options: StoreOptions
  private let raceCount: Int
  private let pairCount: Int
  private let folder = "race/\(UUID16.random())"
  private let tally = Monitor(Tally())

  private struct Tally {
    var decided = 0
    var retries = 0
    var wins = [0, 0]
    var fault: String?
  }

  /// What the two writers of a pair share: where each is, and what came of its put.
  private struct Meeting {
    var arrived = 0
    var round = 0
    var hasWon = [false, false]
  }

  init(_ options: StoreOptions, raceCount: Int, pairCount: Int) {
    (self.options, self.raceCount, self.pairCount) = (options, raceCount, pairCount)
  }

  /// Runs all, and says how they ended.
  func run() throws -> String {
    let startMs = MonotonicClock.nowMs()
    var threads: [WorkerThread] = []
    for pair in 0..<pairCount {
      let meeting = Monitor(Meeting(), conditionCount: 1)
      for side in 0..<2 {
        let store = try options.store()
        threads.append(
          try WorkerThread { [self] in
            do { try write(store, meeting, pair: pair, side: side) } catch {
              tally.withLock { $0.fault = $0.fault ?? "\(error)" }
              // The other one would wait for this one's arrival forever.
              meeting.withLock { $0.round = Int.max }
              meeting.broadcast(0)
            }
          })
      }
    }
    for thread in threads { thread.join() }
    let result = tally.withLock { $0 }
    if let fault = result.fault { throw RaceError(description: fault) }
    return
      "\(result.decided) races, each won by one writer (\(result.wins[0]) and \(result.wins[1]) times), "
      + "\(result.retries) retries, \(MonotonicClock.nowMs() - startMs) ms"
  }

  private func write(
    _ store: any ObjectStore, _ meeting: Monitor<Meeting>, pair: Int, side: Int
  ) throws {
    for number in stride(from: pair, to: raceCount, by: pairCount) {
      let key = "\(folder)/\(number)"
      let bytes = Array("\(UUID16.random()) of side \(side)".utf8)
      guard meet(meeting) else { return }
      let hasWon = try create(store, key, bytes)
      meeting.withLock { $0.hasWon[side] = hasWon }
      guard meet(meeting) else { return }
      let hasOtherWon = meeting.withLock { $0.hasWon[1 - side] }
      guard hasWon != hasOtherWon else {
        throw RaceError(
          description: "race \(number): \(hasWon ? "both writers won" : "nobody won")")
      }
      guard hasWon else { continue }
      let read = try again { () throws(ObjectStoreError) in try store.get(key, byteCountMax: 100) }
      guard read == bytes else {
        throw RaceError(description: "race \(number): the winner's bytes are not what is read")
      }
      tally.withLock { tally in
        tally.decided += 1
        tally.wins[side] += 1
      }
    }
  }

  /// As a writer of a copy does it: what it does not know, it asks again; its own bytes mean that it has won.
  private func create(
    _ store: any ObjectStore, _ key: String, _ bytes: [UInt8]
  ) throws(ObjectStoreError) -> Bool {
    try again { () throws(ObjectStoreError) in
      if try store.create(key, .bytes(bytes)) == .stored { return true }
      return try store.get(key, byteCountMax: 100) == bytes
    }
  }

  private func again<Value>(
    _ body: () throws(ObjectStoreError) -> Value
  ) throws(ObjectStoreError) -> Value {
    let pause = Monitor((), conditionCount: 1)
    var backoff = Backoff()
    for _ in 0..<10 {
      do throws(ObjectStoreError) { return try body() } catch {
        guard error.isTransient else { throw error }
        tally.withLock { $0.retries += 1 }
        let waitMs = backoff.next(retryAfterMs: error.retryAfterMs)
        _ = pause.wait(on: 0, limitMs: Int64(waitMs)) { _ in nil as Void? }
      }
    }
    return try body()
  }

  /// Waits until both writers of a pair are here; false if the other one has given up.
  private func meet(_ meeting: Monitor<Meeting>) -> Bool {
    let round = meeting.withLock { meeting in
      if meeting.round == Int.max { return Int.max }
      meeting.arrived += 1
      if meeting.arrived == 2 {
        meeting.arrived = 0
        meeting.round += 1
        return meeting.round - 1
      }
      return meeting.round
    }
    meeting.broadcast(0)
    return meeting.wait(on: 0) { meeting in
      if meeting.round == Int.max { return false }
      return meeting.round > round ? true : nil
    }
  }
}
