// Which of Apple's files are declared: sets of parts, and which file of an identity is current (settlement rule S5).
package import Ledger
package import Revenue

/// A declared file.
package struct SettlementFile: Sendable {
  package let identity: SettlementIdentity
  package let kind: SettlementDeclared.Kind
  package let source: String
  package let sha256Hex: String
  package let partCount: Int
  /// The events with its parts so far.
  package fileprivate(set) var positions: [Position]
  /// The file that replaced it, by the position from which that counts.
  package fileprivate(set) var replacedFrom: Position?

  /// An unfinished file counts for nothing.
  package var isWhole: Bool { positions.count == partCount }
  package var isCurrent: Bool { isWhole && replacedFrom == nil }
  /// The position from which it counts.
  package var lastPosition: Position { positions.last ?? 0 }
  /// How files are named in reports: the first digits of their digest.
  package var name: String { String(sha256Hex.prefix(8)) }
}

/// All declared files, in the order in which they began.
package struct SettlementFiles {
  package private(set) var files: [SettlementFile] = []
  private let database: Database

  package init(_ database: Database) throws(ProjectionError) {
    self.database = database
    do throws(DatabaseError) { try load() } catch { throw .database(error) }
  }

  private mutating func load() throws(DatabaseError) {
    var current: [SettlementIdentity: Int] = [:]
    let rows = try database.prepare(
      """
      SELECT position, kind, month, region, source, source_sha256, part, parts
      FROM settlement_files ORDER BY position
      """)
    while try rows.step() {
      // Declarations are checked before they are stored.
      guard let kind = SettlementDeclared.Kind(rawValue: rows.text(1)) else { continue }
      let identity = SettlementIdentity(month: rows.text(2), region: rows.optionalText(3))
      let part = SettlementFile(
        identity: identity, kind: kind, source: rows.text(4), sha256Hex: rows.text(5),
        partCount: try rows.ordinal(7), positions: [try rows.ordinal(0)])
      guard let index = add(part, number: try rows.ordinal(6)) else { continue }
      guard files[index].isWhole else { continue }
      if let replaced = current[identity] {
        files[replaced].replacedFrom = files[index].lastPosition
      }
      current[identity] = index
    }
  }

  /// Adds a part to its set. A first part begins one; any other that is not the next counts for nothing.
  /// - Returns: the index of the file.
  private mutating func add(_ part: SettlementFile, number: Int) -> Int? {
    let open = unfinished(part.identity, part.sha256Hex)
    if number == 1 {
      if let open {
        files[open] = part
        return open
      }
      files.append(part)
      return files.count - 1
    }
    guard let open, files[open].positions.count == number - 1,
      files[open].partCount == part.partCount, files[open].kind == part.kind
    else { return nil }
    files[open].positions += part.positions
    return open
  }

  private func unfinished(_ identity: SettlementIdentity, _ sha256Hex: String) -> Int? {
    files.lastIndex {
      !$0.isWhole && $0.identity == identity && $0.sha256Hex == sha256Hex
    }
  }

  /// The file that an interrupted import left without its last parts.
  package func unfinishedFile(
    _ identity: SettlementIdentity, sha256Hex: String
  ) -> SettlementFile? {
    unfinished(identity, sha256Hex).map { files[$0] }
  }

  /// The current file of an identity.
  package func current(_ identity: SettlementIdentity) -> SettlementFile? {
    files.last { $0.isCurrent && $0.identity == identity }
  }

  /// A current file with this content.
  package func current(sha256Hex: String) -> SettlementFile? {
    files.last { $0.isCurrent && $0.sha256Hex == sha256Hex }
  }

  /// Reads and checks a whole file again; nil if it is not what its events say it is.
  package func report(
    _ file: SettlementFile, _ symbols: StringInterner
  ) throws(ProjectionError) -> AppleReport? {
    var text: [UInt8] = []
    do throws(DatabaseError) {
      let row = try database.prepare("SELECT data FROM settlement_files WHERE position = ?")
      for position in file.positions {
        row.reset()
        row.bind(1, position)
        guard try row.step(), let part = try? SettlementDeclared(data: row.bytes(0))
        else { return nil }
        text += part.lines.head + part.lines.rows + part.lines.totals
      }
    } catch { throw .database(error) }
    let parsed = text.withUnsafeBytes { text in
      try? AppleReport(parsing: UnsafeRawBufferPointer(text), symbols: symbols)
    }
    guard let report = parsed, report.kind.rawValue == file.kind.rawValue,
      report.month.map({ $0.name == file.identity.month }) ?? (file.kind == .overview),
      FiscalMonth(parsing: file.identity.month) != nil
    else { return nil }
    return report
  }
}
