// Makes lines of an import file from the rows of a table; and the map of its columns.
import AppStore
import Base

/// A non-empty cell of a table.
enum TableCell {
  case text([UInt8])
  /// A JSON value other than a string, as written.
  case json([UInt8])

  var bytes: [UInt8] {
    switch self {
    case .text(let bytes), .json(let bytes): bytes
    }
  }
}

/// One row: its cells by the names of their columns.
protocol TableRow {
  /// Nil if the cell is empty, or there is no such column.
  subscript(_ column: String) -> TableCell? { get }
}

/// A row that is a JSON object.
struct JSONRow: TableRow {
  private var cells: [String: TableCell] = [:]

  init(_ value: JSONBytes) throws(ArchiveFault) {
    for member in try ArchiveItem.members(of: value) {
      switch member.value.first {
      case UInt8(ascii: "\""):
        let text = ArchiveItem.text(member.value)
        if !text.isEmpty { cells[member.name] = .text(text) }
      case UInt8(ascii: "n"): continue
      default: cells[member.name] = .json(Array(member.value))
      }
    }
  }

  subscript(_ column: String) -> TableCell? { cells[column] }
}

/// A row of a CSV file.
struct CSVRow: TableRow {
  let indexes: [String: Int]
  let cells: [String]

  subscript(_ column: String) -> TableCell? {
    guard let index = indexes[column], index < cells.count, !cells[index].isEmpty else {
      return nil
    }
    return .text(Array(cells[index].utf8))
  }
}

/// Makes the line of a row.
struct TableLines {
  let map: TableMap
  let item: ArchiveItem

  func line(_ row: some TableRow) throws(ArchiveFault) -> [UInt8] {
    func cell(_ part: MappedPart) -> TableCell? { map.columns[part].flatMap { row[$0] } }
    guard MappedPart.subjects.contains(where: { cell($0) != nil }) else {
      throw ArchiveFault(.missing, "has nothing in \(subjectColumns)")
    }
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("marketplace", "itunes")
    let reply = try cell(.reply).map { (cell) throws(ArchiveFault) in try Self.object(cell, "reply")
    }
    if let receipt = cell(.receipt) {
      writer.key("receipt")
      Self.string(try Self.receipt(receipt), to: &writer)
    } else if let reply {
      try writeReceipt(of: reply, to: &writer)
    }
    if let reply { try write(reply, cell(.verifiedAt), cell(.endpoint), to: &writer) }
    if let signed = cell(.signedTransaction) { try write(signed, cell(.environment), to: &writer) }
    if let notification = cell(.notification) {
      writer.key("notification")
      Self.string(notification.bytes, to: &writer)
    }
    if let body = cell(.notificationV1) {
      writer.key("notification_v1")
      let object = try Self.object(body, "notification_v1")
      let kept: Result<[UInt8], ArchiveFault> = object.withUnsafeBytes { bytes in
        do throws(ArchiveFault) { return .success(try ArchiveItem.withoutPassword(bytes)) } catch {
          return .failure(error)
        }
      }
      try kept.get().withUnsafeBytes { writer.raw($0) }
    }
    for (part, key) in Self.texts {
      guard let cell = cell(part) else { continue }
      writer.key(key)
      Self.string(cell.bytes, to: &writer)
    }
    if let at = cell(.occurredAt) {
      writer.key("occurred_at")
      Self.time(at).withUnsafeBytes { writer.raw($0) }
    }
    if let metadata = cell(.metadata) {
      writer.key("metadata")
      try Self.object(metadata, "metadata").withUnsafeBytes { writer.raw($0) }
    } else if let price = cell(.price) {
      writePrice(price, cell, to: &writer)
    }
    writer.endObject()
    return writer.bytes
  }

  private static let texts: [(MappedPart, StaticString)] = [
    (.userIdentifier, "user_identifier"), (.countryCode, "country_code"),
    (.identifierForVendor, "identifier_for_vendor"), (.ipAddress, "ip_address"),
  ]

  private var subjectColumns: String {
    MappedPart.subjects.compactMap { map.columns[$0] }.joined(separator: ", ")
  }

  private func writeReceipt(
    of reply: [UInt8], to writer: inout JSONWriter
  ) throws(ArchiveFault) {
    let result: Result<[UInt8]?, ArchiveFault> = reply.withUnsafeBytes { bytes in
      do throws(ArchiveFault) {
        let members = try ArchiveItem.members(of: bytes)
        return .success(members.first { $0.name == "latest_receipt" }.map { Array($0.value) })
      } catch { return .failure(error) }
    }
    guard let receipt = try result.get() else {
      throw ArchiveFault(.missing, "has neither a receipt nor a reply with latest_receipt")
    }
    writer.key("receipt")
    receipt.withUnsafeBytes { writer.raw($0) }
  }

  private func write(
    _ reply: [UInt8], _ at: TableCell?, _ endpoint: TableCell?, to writer: inout JSONWriter
  ) throws(ArchiveFault) {
    reply.withUnsafeBytes { bytes in
      let isNamed =
        (try? ArchiveItem.members(of: bytes))?.contains { $0.name == "environment" } ?? false
      item.write(
        verification: bytes, to: &writer, isNamed: isNamed,
        endpoint: endpoint.map { String(decoding: $0.bytes, as: UTF8.self).lowercased() },
        occurredAt: at.map { Self.time($0) })
    }
  }

  private func write(
    _ signed: TableCell, _ environment: TableCell?, to writer: inout JSONWriter
  ) throws(ArchiveFault) {
    writer.key("signed_transactions")
    if signed.bytes.first == UInt8(ascii: "[") {
      let list = try Self.value(signed, "signed_transaction")
      list.withUnsafeBytes { writer.raw($0) }
    } else {
      writer.beginArray()
      Self.string(signed.bytes, to: &writer)
      writer.endArray()
    }
    if let environment {
      writer.member("environment", String(decoding: environment.bytes, as: UTF8.self))
    } else if let stated = item.environment, ArchiveItem.namesNone(signed.bytes) {
      writer.member("environment", stated)
    }
  }

  /// A price next to a product or a transaction is an entry of `prices`; a price alone is the shorthand.
  private func writePrice(
    _ price: TableCell, _ cell: (MappedPart) -> TableCell?, to writer: inout JSONWriter
  ) {
    let named = [(MappedPart.productID, "product_id"), (.transactionID, "transaction_id")]
      .compactMap { (part, key) in cell(part).map { (key, $0) } }
    writer.key("metadata")
    writer.beginObject()
    if !named.isEmpty {
      writer.key("prices")
      writer.beginArray()
      writer.beginObject()
    }
    for (key, value) in named {
      writer.key(key)
      Self.string(value.bytes, to: &writer)
    }
    writer.key("price")
    Self.string(price.bytes, to: &writer)
    if let currency = cell(.currency) {
      writer.key("currency")
      Self.string(currency.bytes, to: &writer)
    }
    if !named.isEmpty {
      writer.endObject()
      writer.endArray()
    }
    writer.endObject()
  }

  // MARK: Cells

  private static func string(_ bytes: [UInt8], to writer: inout JSONWriter) {
    bytes.withUnsafeBytes { writer.string($0) }
  }

  /// Base64, or the hexadecimal form in which databases write bytes (`\\x3082…`).
  private static func receipt(_ cell: TableCell) throws(ArchiveFault) -> [UInt8] {
    let text = cell.bytes
    guard text.starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "x")]) else {
      return try ArchiveItem.base64(ofReceipt: text)
    }
    var file: [UInt8] = []
    var rest = text.dropFirst(2)
    while let high = rest.popFirst(), let low = rest.popFirst() {
      guard let high = Hex.value(anyCase: high), let low = Hex.value(anyCase: low) else {
        throw ArchiveFault(.notBase64, "receipt is not hexadecimal after \\x")
      }
      file.append(high << 4 | low)
    }
    return Base64.encode(file)
  }

  private static func value(_ cell: TableCell, _ name: String) throws(ArchiveFault) -> [UInt8] {
    var compact: [UInt8] = []
    do { try cell.bytes.withUnsafeBytes { try JSONValidator.compact($0, to: &compact) } } catch {
      throw ArchiveFault(.notJSON, "\(name) is not JSON: \(error)")
    }
    return compact
  }

  private static func object(_ cell: TableCell, _ name: String) throws(ArchiveFault) -> [UInt8] {
    let value = try value(cell, name)
    guard value.first == UInt8(ascii: "{") else {
      throw ArchiveFault(.wrongType, "\(name) is not a JSON object")
    }
    return value
  }

  /// A time in the form of import lines. Databases write a space for the `T`, more than three decimals, a zone without
  /// minutes or none (then it is UTC), and seconds: a number of at most ten digits would be of early 1970 in
  /// milliseconds.
  static func time(_ cell: TableCell) -> [UInt8] {
    let text = Array(ArraySlice(cell.bytes).trimmed)
    if !text.isEmpty, text.allSatisfy({ (0x30...0x39).contains($0) }) {
      return text.count <= 10 ? text + Array("000".utf8) : text
    }
    var time = String(decoding: text, as: UTF8.self)
    if text.count >= 19, text[10] == UInt8(ascii: " ") {
      let rest = time.dropFirst(11)
      let clock = rest.prefix(8)
      var tail = rest.dropFirst(8)
      var decimals = ""
      if tail.first == "." {
        decimals = String(tail.dropFirst().prefix { $0.isNumber }.prefix(3))
        tail = tail.dropFirst().drop { $0.isNumber }
      }
      var zone = tail.filter { $0 != " " }
      if zone.isEmpty || zone == "UTC" { zone = "Z" }
      if zone.count == 3, zone.first == "+" || zone.first == "-" { zone += ":00" }
      time = "\(time.prefix(10))T\(clock)\(decimals.isEmpty ? "" : "." + decimals)\(zone)"
    }
    var writer = JSONWriter()
    writer.string(time)
    return writer.bytes
  }
}

/// The rows of a CSV file, whose first record names the columns. A quoted cell may have line ends.
final class CSVRows: ArchiveFileReader {
  private let reader: LineReader
  private let lines: TableLines
  private var indexes: [String: Int] = [:]
  private(set) var record = 0
  private(set) var isAtFault = false

  /// Throws if a column of the map is missing.
  init(_ reader: LineReader, _ lines: TableLines) throws(ArchiveFault) {
    (self.reader, self.lines) = (reader, lines)
    for (index, name) in (try nextRecord() ?? []).enumerated() where indexes[name] == nil {
      indexes[name] = index
    }
    let missing = lines.map.columns.values.filter { indexes[$0] == nil }.sorted()
    if !missing.isEmpty {
      throw ArchiveFault(.missing, "has no column \(missing.joined(separator: ", "))")
    }
  }

  func next() throws(ArchiveFault) -> (record: Int, lines: [[UInt8]])? {
    guard let cells = try nextRecord() else { return nil }
    return (record, [try lines.line(CSVRow(indexes: indexes, cells: cells))])
  }

  /// The cells of the next record; `record` is then the line on which it begins.
  private func nextRecord() throws(ArchiveFault) -> [String]? {
    var text: [UInt8] = []
    var quotes = 0
    while let (number, line) = try nextLine() {
      if text.isEmpty { record = number } else { text.append(0x0A) }
      text += line
      quotes += line.count { $0 == UInt8(ascii: "\"") }
      guard text.count <= LineReader.lineBytesMax else {
        isAtFault = true
        throw ArchiveFault(.tooLarge, "is longer than 16 MiB")
      }
      if quotes.isMultiple(of: 2) { break }
    }
    if text.isEmpty { return nil }
    var csv = CSVReader(text)
    do throws(CSVError) { return try csv.next()?.cells ?? [] } catch {
      throw ArchiveFault(.invalidValue, "is not CSV: \(error)")
    }
  }

  private func nextLine() throws(ArchiveFault) -> (Int, [UInt8])? {
    do throws(Failure) {
      switch try reader.next() {
      case nil: return nil
      case .whole(let number, let bytes): return (number, Array(bytes))
      case .tooLong(let number), .unreadable(let number, _): record = number
      }
    } catch {
      isAtFault = true
      throw ArchiveFault(.unreadable, "cannot be read: \(error.cause)")
    }
    isAtFault = true
    throw ArchiveFault(.tooLarge, "is longer than 16 MiB")
  }
}

// MARK: - Column map

/// A part of an import line that a column can provide.
package enum MappedPart: String, CaseIterable, Sendable {
  case receipt, reply
  case signedTransaction = "signed_transaction"
  case notification
  case notificationV1 = "notification_v1"
  case occurredAt = "occurred_at"
  case verifiedAt = "verified_at"
  case endpoint, environment
  case userIdentifier = "user_identifier"
  case countryCode = "country_code"
  case identifierForVendor = "identifier_for_vendor"
  case ipAddress = "ip_address"
  case metadata
  case price, currency
  case productID = "product_id"
  case transactionID = "transaction_id"

  /// The parts of which a line needs one.
  static let subjects: [MappedPart] = [
    .receipt, .reply, .signedTransaction, .notification, .notificationV1,
  ]
  /// The parts that together make an entry of `metadata.prices`.
  static let ofPrice: [MappedPart] = [.price, .currency, .productID, .transactionID]
}

/// Columns by the parts that they provide.
package struct TableMap: Equatable, Sendable {
  package private(set) var columns: [MappedPart: String] = [:]

  /// Parses `receipt=blob,user_identifier=uid`. A part without a column is in the column of its name. For an invalid
  /// map, returns what is wrong, as a clause that follows the text.
  package static func parse(_ text: String) -> Result<TableMap, TableMapError> {
    var map = TableMap()
    for item in text.split(separator: ",", omittingEmptySubsequences: false) {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = pair.first.map(String.init), let part = MappedPart(rawValue: name) else {
        let known = MappedPart.allCases.map(\.rawValue).joined(separator: ", ")
        return .failure(TableMapError("must name parts of a line: \(known)"))
      }
      let column = pair.count == 2 ? String(pair[1]) : name
      guard !column.isEmpty else {
        return .failure(TableMapError("names no column for \(name)"))
      }
      guard map.columns.updateValue(column, forKey: part) == nil else {
        return .failure(TableMapError("names \(name) twice"))
      }
    }
    guard MappedPart.subjects.contains(where: { map.columns[$0] != nil }) else {
      let subjects = MappedPart.subjects.map(\.rawValue).joined(separator: ", ")
      return .failure(TableMapError("names none of \(subjects)"))
    }
    if map.columns[.metadata] != nil, MappedPart.ofPrice.contains(where: { map.columns[$0] != nil })
    {
      return .failure(TableMapError("gives both metadata and parts of a price"))
    }
    return .success(map)
  }
}

/// What is wrong with a map, as a clause that follows it.
package struct TableMapError: Error, Equatable, Sendable {
  package let clause: String

  init(_ clause: String) { self.clause = clause }
}
