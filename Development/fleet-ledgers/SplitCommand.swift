// `split`: deals the events of one ledger out to several.
import Base
import Glibc
import Ledger
import ProgramSupport

struct SplitCommand {
  private let path: String
  private let folder: String
  private let ledgerCount: Int
  private let strayPercent: Int
  private let spreadMs: Int?
  private let sizes: LedgerSizes
  private let seed: UInt64

  /// A number of the random sources that are drawn from one seed.
  private enum Stream {
    static let (assignment, times, ids, strays): (UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4)
  }

  init(_ paths: [String], _ options: [String]) throws(UsageError) {
    let arguments = try Arguments(
      options,
      valued: LedgerSizes.optionNames.union([
        "--into", "--seed", "-o", "--spread-ms", "--stray-percent",
      ]))
    guard let path = paths.first, paths.count == 1 else {
      throw UsageError(message: "split takes one ledger")
    }
    self.path = path
    folder = try arguments.required("-o")
    ledgerCount = try arguments.required("--into", 1...64)
    seed = try arguments.required("--seed", 0...UInt64(Int64.max))
    spreadMs = try arguments.integer("--spread-ms", 1...86_400_000)
    strayPercent = try arguments.integer("--stray-percent", 0...100) ?? 1
    sizes = try LedgerSizes(arguments)
  }

  func run() throws {
    let source = try EventSource(path: path)
    var random = RandomSource(seed: seed, Stream.assignment)
    let assignment = try Assignment(
      source, into: ledgerCount, strayPercent: strayPercent, random: &random)
    if mkdir(folder, 0o700) != 0, errno != EEXIST {
      throw OutputError("can't create", folder, errno)
    }
    let outputs = try makeOutputs(createdAtMs: source.directory.identity.createdAtMs)
    var times = EventTimes(spreadMs: spreadMs, RandomSource(seed: seed, Stream.times))
    var strays = RandomSource(seed: seed, Stream.strays)
    try source.forEach { position, line in
      var event = StoredEvent(line)
      let ledger = assignment.ledger(of: position)
      try adapt(&event, at: position, of: source, assignment, &strays)
      try outputs[ledger].append(event, atMs: times.time(of: event))
    }
    for output in outputs { try output.finish() }
    try writeFleet()
  }

  private var names: [String] { (1...ledgerCount).map { "shop-\($0)" } }

  private func makeOutputs(createdAtMs: Int64) throws -> [LedgerOutput] {
    var random = RandomSource(seed: seed, Stream.ids)
    return try names.map { name in
      guard let id = LedgerID(random: random.bytes(16)) else {
        preconditionFailure("an id is made of 16 bytes")
      }
      return try LedgerOutput(
        path: "\(folder)/\(name)", id: id, createdAtMs: createdAtMs, sizes: sizes)
    }
  }

  /// Makes the positions that an event names those of its new ledger.
  private func adapt(
    _ event: inout StoredEvent, at position: Position, of source: EventSource,
    _ assignment: Assignment,
    _ random: inout RandomSource
  ) throws {
    let ledger = assignment.ledger(of: position)
    func isThere(_ reference: Reference) -> Bool {
      reference.position < assignment.eventCount
        && assignment.ledger(of: reference.position) == ledger
    }
    var references = event.references
    if let last = references.last, last.isOfReply, last.position < position, !isThere(last),
      let other = try source.earlierEvent(at: last.position),
      event.insertReply(of: other, at: last)
    {
      references.removeLast()
    }
    event.replace(references) { reference in
      if isThere(reference) { return assignment.newPosition(of: reference.position) }
      if reference.position >= assignment.eventCount { return reference.position }
      // What it names is in another ledger: here it names nothing, or some event that it is not about.
      let isBeyond = assignment.count(of: ledger) == 0 || random.chance(500)
      return isBeyond
        ? assignment.eventCount + reference.position : random.below(assignment.count(of: ledger))
    }
  }

  /// fleet.json: the ledgers by their names.
  private func writeFleet() throws {
    guard let resolved = realpath(folder, nil) else {
      throw OutputError("can't resolve", folder, errno)
    }
    defer { free(resolved) }
    let root = String(cString: resolved)
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("ledgers")
    writer.beginArray()
    for name in names {
      writer.beginObject()
      writer.member("name", name)
      writer.member("path", "\(root)/\(name)")
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    try fill(Output(path: "\(folder)/fleet.json")) { output in
      try output.write(line: writer.bytes)
    }
  }
}

/// The times that events get: their own, or ones that rise by chance.
struct EventTimes {
  private let spreadMs: Int?
  private var random: RandomSource
  private var nowMs: Int64?

  init(spreadMs: Int?, _ random: RandomSource) {
    (self.spreadMs, self.random) = (spreadMs, random)
  }

  mutating func time(of event: StoredEvent) -> Int64 {
    guard let spreadMs else { return event.atMs }
    var ms = nowMs ?? event.atMs
    // Some events keep the time of the one before: then the ledgers' ids decide the order.
    if random.chance(400) { ms += Int64(random.within(1...spreadMs)) }
    nowMs = ms
    return ms
  }
}
