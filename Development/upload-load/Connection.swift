// One keep-alive connection: sends a request, reads its answer, without an allocation.
import CEpoll
import Glibc

/// What reading or writing led to.
enum Step {
  /// More is to come; epoll says when.
  case waiting
  /// The answer is whole.
  case answered
  /// The connection ended, or is of no more use.
  case broken(BreakCause)
}

/// Why a connection is of no more use.
enum BreakCause {
  /// The server closed it.
  case closed
  /// Sending or receiving failed, with `errno`.
  case failed(Int32)
  /// What came is no answer that can be read.
  case unreadable
}

struct Connection {
  enum State {
    case closed, connecting, idle, busy
  }

  var descriptor: Int32 = -1
  var state = State.closed
  /// Of the upload under way.
  var number = 0
  var intendedNs: UInt64 = 0
  /// When a closed one may connect again.
  var retryAtNs: UInt64 = 0
  /// Whether the server wants the connection closed after the answer.
  private(set) var closesAfter = false
  private(set) var status = 0

  private var sentBytes = 0
  private var received = 0
  /// Bytes of head and body; 0 while the head isn't whole.
  private var answerBytes = 0
  private var headBytes = 0
  private let buffer: UnsafeMutablePointer<UInt8>
  private let digits: UnsafeMutablePointer<UInt8>

  /// Of an answer's beginning; a longer body is read and forgotten.
  private static let bufferBytes = 65_536

  init() {
    buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.bufferBytes)
    digits = UnsafeMutablePointer<UInt8>.allocate(capacity: RequestSet.markerDigits)
  }

  func deallocate() {
    if descriptor >= 0 { close(descriptor) }
    buffer.deallocate()
    digits.deallocate()
  }

  mutating func begin(_ number: Int, intendedNs: UInt64) {
    self.number = number
    self.intendedNs = intendedNs
    state = .busy
    sentBytes = 0
    received = 0
    answerBytes = 0
    headBytes = 0
    closesAfter = false
    var rest = number
    for place in (0..<RequestSet.markerDigits).reversed() {
      digits[place] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
  }

  // MARK: Sending

  /// Sends what is left of the request. `.answered`: all of it is on its way.
  mutating func send(_ entry: RequestSet.Entry) -> Step {
    let totalBytes = entry.head.count + entry.body.count
    while sentBytes < totalBytes {
      let count = write(entry, from: sentBytes)
      if count > 0 {
        sentBytes += count
        continue
      }
      let code = errno
      if code == EINTR { continue }
      return code == EAGAIN ? .waiting : .broken(.failed(code))
    }
    return .answered
  }

  private func write(_ entry: RequestSet.Entry, from offset: Int) -> Int {
    withUnsafeTemporaryAllocation(of: iovec.self, capacity: 4) { pieces in
      var count = 0
      var skip = offset
      func add(_ start: UnsafeRawPointer?, _ length: Int) {
        if skip >= length {
          skip -= length
        } else if let start {
          pieces[count] = iovec(
            iov_base: UnsafeMutableRawPointer(mutating: start + skip), iov_len: length - skip)
          count += 1
          skip = 0
        }
      }
      add(entry.head.baseAddress, entry.head.count)
      let body = entry.body.baseAddress
      if entry.markerOffset >= 0 {
        let after = entry.markerOffset + RequestSet.markerDigits
        add(body, entry.markerOffset)
        add(UnsafeRawPointer(digits), RequestSet.markerDigits)
        add(body.map { $0 + after }, entry.body.count - after)
      } else {
        add(body, entry.body.count)
      }
      return writev(descriptor, pieces.baseAddress, Int32(count))
    }
  }

  // MARK: Receiving

  mutating func receive() -> Step {
    while true {
      // A body beyond the buffer overwrites its own end: only its length matters.
      let place = min(received, Self.bufferBytes - 16_384)
      let count = read(descriptor, buffer + place, Self.bufferBytes - place)
      if count < 0 {
        let code = errno
        if code == EINTR { continue }
        return code == EAGAIN ? .waiting : .broken(.failed(code))
      }
      if count == 0 { return .broken(.closed) }
      guard state == .busy else { return .broken(.unreadable) }
      received += count
      if answerBytes == 0, !readHead() {
        if received > Self.bufferBytes - 16_384 { return .broken(.unreadable) }
        continue
      }
      if answerBytes < 0 || received > answerBytes { return .broken(.unreadable) }
      if received == answerBytes { return .answered }
    }
  }

  /// Whether the head is whole. One that gives no length makes the answer unreadable.
  private mutating func readHead() -> Bool {
    guard let end = headEnd() else { return false }
    headBytes = end
    answerBytes = -1
    guard end > 12, buffer[0] == UInt8(ascii: "H"), buffer[8] == UInt8(ascii: " ") else {
      return true
    }
    status = (9..<12).reduce(0) { $0 * 10 + Int(buffer[$1]) - 48 }
    guard let length = value(of: "content-length:", within: end).flatMap(integer) else {
      return true
    }
    answerBytes = end + length
    if let place = value(of: "connection:", within: end) {
      closesAfter = buffer[place] | 0x20 == UInt8(ascii: "c")
    }
    return true
  }

  private func headEnd() -> Int? {
    var place = 3
    while place < received {
      if buffer[place] == 0x0A, buffer[place - 1] == 0x0D, buffer[place - 2] == 0x0A {
        return place + 1
      }
      place += 1
    }
    return nil
  }

  /// Where the value of a header begins; `name` is in lower case.
  private func value(of name: StaticString, within end: Int) -> Int? {
    let count = name.utf8CodeUnitCount
    var line = 0
    while line + count < end {
      var matched = 0
      while matched < count, buffer[line + matched] | 0x20 == name.utf8Start[matched] | 0x20 {
        matched += 1
      }
      if matched == count {
        var place = line + count
        while place < end, buffer[place] == 0x20 { place += 1 }
        return place
      }
      while line < end, buffer[line] != 0x0A { line += 1 }
      line += 1
    }
    return nil
  }

  private func integer(at start: Int) -> Int? {
    var place = start
    var value = 0
    while (0x30...0x39).contains(buffer[place]), value < 1 << 40 {
      value = value * 10 + Int(buffer[place]) - 48
      place += 1
    }
    return place > start ? value : nil
  }

  /// The receipt's id in the answer: the first `"id":"…"` of 36 characters.
  func receiptID() -> UnsafeBufferPointer<UInt8>? {
    let length = 36
    let last = min(received, Self.bufferBytes - 16_384) - 6 - length
    var place = headBytes
    while place <= last {
      if buffer[place] == 0x22, buffer[place + 1] == UInt8(ascii: "i"),
        buffer[place + 2] == UInt8(ascii: "d"), buffer[place + 3] == 0x22,
        buffer[place + 4] == 0x3A, buffer[place + 5] == 0x22
      {
        return UnsafeBufferPointer(start: buffer + place + 6, count: length)
      }
      place += 1
    }
    return nil
  }
}
