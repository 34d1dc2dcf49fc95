// Shared by tests of redacted lines: an erasure of some positions, step by step.
import Base
import Ledger
import TestSupport
import Testing

/// Erases the data of events, in a ledger whose events each hold a secret.
struct RedactionRig {
  let directory: LedgerDirectory
  let options: WriterOptions
  /// Whether the segments' new files are made before the redacted lines are committed.
  let isRewrittenEarly: Bool

  init(_ directory: LedgerDirectory, options: WriterOptions? = nil, isRewrittenEarly: Bool = false)
  {
    self.directory = directory
    self.isRewrittenEarly = isRewrittenEarly
    self.options = options ?? LedgerFixture.smallOptions(block: 700, segment: 1200)
  }

  static let reason = "request"

  static func secret(_ index: Int) -> String { "secret-\(index)-" }

  static func draft(_ index: Int) -> EventDraft {
    let data = "{\"n\":\(index),\"who\":\"\(secret(index))\(String(repeating: "z", count: 60))\"}"
    return EventDraft(type: "test.person", version: 1, data: Array(data.utf8))
  }

  static func kept(_ position: Position) -> [UInt8] { Array("{\"n\":\(position)}".utf8) }

  static func draft(_ event: DataRedacted) -> EventDraft {
    EventDraft(
      type: EventType.dataRedacted.rawValue, version: EventType.dataRedacted.currentVersion,
      data: event.data)
  }

  /// Appends events one by one and closes.
  func fill(_ count: Int) throws {
    let writer = try LedgerWriter.open(directory, options: options)
    for index in 0..<count { _ = try writer.append([Self.draft(index)]) }
    try writer.close()
  }

  // MARK: The steps

  func open(_ writer: LedgerWriter) throws -> Position {
    _ = try directory.allowingRedactions()
    let opening = DataRedacted.Opening(request: .random(), scope: .user, reason: Self.reason)
    return try writer.append([Self.draft(.opening(opening))]).firstPosition
  }

  /// The lines of these positions after redaction.
  func redacted(_ positions: [Position], by erasure: Position) throws -> [[UInt8]] {
    let reader = try LogReader(directory)
    let hasher = SHA256()
    return try positions.map { position in
      try reader.event(at: position).withUnsafeBytes { bytes in
        let line = try #require(EventLine(bytes))
        return line.redacted(by: erasure, kept: Self.kept(position), hasher)
      }
    }
  }

  func writeFile(_ lines: [[UInt8]]) throws {
    let file = try RedactionFileWriter(directory, pass: .random())
    for line in lines { try file.append(line: line) }
    try file.finish()
    try file.commit()
  }

  /// The event that lists what the file of redacted lines holds.
  func list(_ lines: RedactedLines, by erasure: Position) throws -> EventDraft {
    var listed: [DataRedacted.Line] = []
    var reader = try lines.reader()
    let hasher = SHA256()
    while let line = try reader.next() {
      listed.append(.init(position: line.position, digest: line.contentDigest(hasher)))
    }
    return Self.draft(
      .listing(
        .init(erasure: erasure, part: 1, partCount: 1, reason: Self.reason, lines: listed)))
  }

  /// Finishes an erasure whose file of redacted lines is committed; returns its position.
  func finish(
    _ writer: LedgerWriter, _ rewritten: RewrittenSegments? = nil
  ) throws -> Position {
    let lines = try #require(try RedactedLines.ifPresent(directory))
    var reader = try lines.reader()
    let erasure = try #require(try reader.next()?.redactedBy)
    if try !isListed(erasure) { _ = try writer.append([try list(lines, by: erasure)]) }
    try writer.sealAll()
    try writer.rewriteSegments(lines, rewritten: rewritten)
    try RedactionFile.remove(from: directory)
    return erasure
  }

  private func isListed(_ erasure: Position) throws -> Bool {
    let reader = try LogReader(directory)
    var isListed = false
    try reader.read(from: erasure, workers: 0) { chunk in
      try chunk.forEachEvent { line in
        guard EventType(line.type) == .dataRedacted,
          case .listing(let listing) = try DataRedacted(data: line.data)
        else { return }
        isListed = isListed || listing.erasure == erasure
      }
      return true
    }
    return isListed
  }

  /// All steps.
  /// - Parameter committed: called once the redacted lines are committed.
  @discardableResult
  func erase(
    _ positions: [Position], with writer: LedgerWriter, committed: () -> Void = {}
  ) throws -> Position {
    let erasure = try open(writer)
    try writer.sealAll()
    let lines = try redacted(positions, by: erasure)
    guard isRewrittenEarly else {
      try writeFile(lines)
      committed()
      return try finish(writer)
    }
    let file = try RedactionFileWriter(directory, pass: .random())
    for line in lines { try file.append(line: line) }
    try file.finish()
    let rewritten = try rewritten(writer)
    try file.commit()
    committed()
    return try finish(writer, rewritten)
  }

  /// New files of the segments for the lines that are finished but not committed.
  /// - Parameter from: the first block that is read for them.
  func rewritten(
    _ writer: LedgerWriter, workers: Int = 0, from: Position = 0
  ) throws -> RewrittenSegments {
    let lines = try RedactedLines.uncommitted(directory)
    let rewritten = try writer.prepareRewriting(lines)
    let reader = try LogReader(directory, redactedLines: lines)
    reader.rewritten = rewritten
    try reader.read(from: from, workers: workers) { _ in true }
    return rewritten
  }

  @discardableResult
  func erase(_ positions: [Position]) throws -> Position {
    let writer = try LedgerWriter.open(directory, options: options)
    let erasure = try erase(positions, with: writer)
    try writer.close()
    return erasure
  }

  // MARK: Expectations

  /// Whether a reader shows no secret at these positions.
  func isFree(_ positions: [Position], reader: LogReader? = nil) throws -> Bool {
    let reader = try reader ?? LogReader(directory)
    for position in positions {
      if String(decoding: try reader.event(at: position), as: UTF8.self).contains("secret-") {
        return false
      }
    }
    var isFree = true
    try reader.read(from: 0, workers: 0) { chunk in
      try chunk.forEachEvent { line in
        if positions.contains(line.position), !line.isRedacted { isFree = false }
      }
      return true
    }
    return isFree
  }

  func audit() throws -> AuditReport { try LogAudit(directory, workers: 0).run() }
}
