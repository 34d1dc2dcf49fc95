// Makes the redacted lines of one or more plans, in one pass over the blocks that contain them.
import Base
import Ledger
import Projections

/// Applies plans to the events that they name. Used once, by one thread.
struct LineRedaction {
  private struct Target {
    let position: Position
    let plan: Int
    let extent: ErasureExtent
  }

  private let erasures: [Position]
  private var targets: [Target] = []
  private var reducers: [LineRedactor] = []
  private var counts: [[EventType: Int]]

  /// - Parameters:
  ///   - plans: each with its erasure's position; later plans apply to the result of earlier ones.
  ///   - lineDigest: replaces an import line's SHA-256.
  init(
    _ plans: [(erasure: Position, plan: ErasurePlan)], _ database: Database,
    lineDigest: @escaping (SHA256Digest) -> SHA256Digest
  ) throws {
    erasures = plans.map(\.erasure)
    counts = plans.map { _ in [:] }
    for (index, entry) in plans.enumerated() {
      targets += entry.plan.targets.map {
        Target(position: $0.position, plan: index, extent: $0.extent)
      }
      reducers.append(
        try LineRedactor(
          erasure: entry.erasure, entry.plan.ownership, database,
          waitsUntilMs: entry.plan.waitsUntilMs, lineDigest: lineDigest))
    }
    targets.sort {
      ($0.position, $0.plan, $0.extent.rawValue) < ($1.position, $1.plan, $1.extent.rawValue)
    }
  }

  /// How many events of a plan lost data, by type.
  func events(of plan: Int) -> [(type: EventType, count: Int)] {
    EventType.allCases.compactMap { type in counts[plan][type].map { (type, $0) } }
  }

  /// Reads the events and passes on the redacted lines, by position.
  mutating func run(
    _ reader: LogReader, isCancelled: () -> Bool,
    _ body: ([UInt8]) throws -> Void
  ) throws {
    if targets.isEmpty { return }
    let wanted = targets.map(\.position)
    var next = 0
    // Reads whole blocks, including events before the first target and after the last.
    try reader.read(
      from: 0, to: reader.head.size,
      isWanted: { range in
        let index = lowerBound(0..<wanted.count) { wanted[$0] < range.lowerBound }
        return index < wanted.count && wanted[index] < range.upperBound
      }
    ) { chunk in
      if isCancelled() { throw ErasureError.interrupted }
      try chunk.forEachEvent(where: { next < wanted.count && wanted[next] == $0 }) { event in
        let end = lowerBound(next..<targets.count) { targets[$0].position <= event.position }
        defer { next = end }
        if let line = try line(of: event, next..<end) { try body(line) }
      }
      return true
    }
    precondition(next == targets.count, "an event that an erasure wants was not read")
  }

  /// The redacted line of an event; nil if nothing of it is redacted.
  private mutating func line(of event: EventLine, _ range: Range<Int>) throws -> [UInt8]? {
    var index = range.lowerBound
    var kept: [UInt8]?
    var redactor: Int?
    while index < range.upperBound {
      // A plan's extents of an event are applied together.
      let plan = targets[index].plan
      var extents: [ErasureExtent] = []
      while index < range.upperBound, targets[index].plan == plan {
        extents.append(targets[index].extent)
        index += 1
      }
      guard let less = try less(than: kept, redactor, event, plan, extents) else { continue }
      (kept, redactor) = (less, plan)
      if let type = EventType(event.type) { counts[plan][type, default: 0] += 1 }
    }
    guard let kept, let redactor else { return nil }
    return event.redacted(by: erasures[redactor], kept: kept, SHA256())
  }

  /// What a plan keeps of an event, or of an earlier plan's result; nil if it redacts nothing.
  private func less(
    than kept: [UInt8]?, _ redactor: Int?, _ event: EventLine, _ plan: Int,
    _ extents: [ErasureExtent]
  ) throws -> [UInt8]? {
    guard let kept, let redactor else { return try reducers[plan].kept(of: event, extents) }
    let line = event.redacted(by: erasures[redactor], kept: kept, SHA256())
    return try line.withUnsafeBytes { bytes in
      guard let line = EventLine(bytes) else { preconditionFailure("a redacted line is malformed") }
      return try reducers[plan].kept(of: line, extents)
    }
  }
}
