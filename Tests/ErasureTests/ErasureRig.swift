// Shared by tests of kept data: ledgers whose lines are redacted, and reports without names.
import Base
import Erasure
import Ledger
import Projections
import TestSupport
import Testing

/// How much of an event is erased, and by which of several erasures.
struct Taking {
  var erasure = 0
  var extents: [ErasureExtent] = [.whole]
}

extension LedgerFixture {
  /// Redacts lines as a pass does, and leaves the file of redacted lines in place, so that readers use it.
  /// - Parameters:
  ///   - erasureCount: how many erasures are opened, one event after another.
  ///   - choose: what is erased of an event; nil to keep all of it.
  /// - Returns: what was kept, by position.
  @discardableResult
  func redact(
    erasures erasureCount: Int = 1, ownership: Ownership = Ownership(),
    _ choose: (EventLine) throws -> Taking?
  ) throws -> [Position: [UInt8]] {
    let database = try current()
    _ = try directory.allowingRedactions()
    let openings = (0..<erasureCount).map { _ in
      let opening = DataRedacted.Opening(request: .random(), scope: .user, reason: "test")
      return EventDraft(
        type: EventType.dataRedacted.rawValue, version: 1,
        data: DataRedacted.opening(opening).data)
    }
    let first = try append(drafts: openings)
    let writer = try LedgerWriter.open(directory, options: WriterOptions())
    try writer.sealAll()
    try writer.close()
    let reducers = try (0..<erasureCount).map { index in
      try LineRedactor(
        erasure: first + index, ownership, database, lineDigest: { KeptLine.hidden($0) })
    }
    let file = try RedactionFileWriter(directory, pass: .random())
    var kept: [Position: [UInt8]] = [:]
    let hasher = SHA256()
    try LogReader(directory).read(from: 0, to: first) { chunk in
      try chunk.forEachEvent { event in
        guard let taking = try choose(event),
          let less = try reducers[taking.erasure].kept(of: event, taking.extents)
        else { return }
        kept[event.position] = less
        try file.append(
          line: event.redacted(by: first + taking.erasure, kept: less, hasher))
      }
      return true
    }
    try file.finish()
    try file.commit()
    return kept
  }

  /// The rows of a report, each without the members in which an erasure may show, sorted.
  func figures(_ line: String, at size: Int) throws -> [String] {
    let words = try ReportWords(line)
    let database = try projector().booksFromNothing(at: size)
    let text = try ndjson(words.request, from: database)
    return try text.split(separator: "\n").map { row in
      guard case .object(let members) = try JSONValue(Array(row.utf8)) else { return String(row) }
      var figures = members.filter { !Self.namingMembers.contains($0.key) }
      for place in figures.indices where Self.codeMembers.contains(figures[place].key) {
        if let text = figures[place].value.stringValue, text.contains(" ") || text.hasPrefix("?") {
          figures[place].value = .string("?")
        }
      }
      return String(decoding: JSONValue.object(figures).bytes, as: UTF8.self)
    }.sorted()
  }

  private static let namingMembers: Set = ["user_identifier", "receipt_id", "detail"]
  /// The App Store's codes; any other text becomes a mark.
  private static let codeMembers: Set = ["reason", "expiration_intent"]
}

/// Replaces a line's digest in tests.
enum KeptLine {
  static func hidden(_ digest: SHA256Digest) -> SHA256Digest {
    digest.withUnsafeBytes { SHA256.hash($0) }
  }
}

/// Reports that show every figure.
let everyReport = [
  "revenue --by period,app,product,country,environment,basis --environment all",
  "revenue --by period --period week --include-pending --environment all",
  "revenue --in EUR --refunds sale-date --environment all",
  "journal --environment all --include-pending", "sales --environment all --include-pending",
  "exceptions --environment all", "exceptions --in EUR --include-pending --environment all",
  "receipts --environment all", "users --environment all --include-pending",
  "subscriptions --environment all --at 2026-02-10",
  "subscriptions --by month --environment all --at 2026-02-10",
]
