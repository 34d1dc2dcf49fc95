// Archives: their options, their files, and the conversion of single items into lines of an import file.
import AppStore
import Base
import Glibc

/// Why an item of an archive gives no line, as a clause that continues its place: "is not JSON".
struct ArchiveFault: Error {
  let code: FieldProblem.Code
  let message: String

  init(_ code: FieldProblem.Code, _ message: String) { (self.code, self.message) = (code, message) }
}

/// Makes lines. It reads the form alone: the content of a line is judged like that of any import.
struct ArchiveItem {
  let environment: String?

  /// A receipt's file: base64, or the binary file or property list itself.
  func receipt(_ file: [UInt8]) throws(ArchiveFault) -> [UInt8] {
    let text = try Self.base64(ofReceipt: file)
    return Self.line { writer in
      writer.key("receipt")
      text.withUnsafeBytes { writer.string($0) }
    }
  }

  static func base64(ofReceipt file: [UInt8]) throws(ArchiveFault) -> [UInt8] {
    let trimmed = ArraySlice(file).trimmed
    guard let first = trimmed.first else { throw ArchiveFault(.missing, "is empty") }
    // DER, or the property list of a transaction receipt.
    let isDER = first == 0x30 && file.contains { $0 >= 0x80 || $0 == 0 }
    if isDER || first == UInt8(ascii: "{") { return Base64.encode(file) }
    guard trimmed.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 })
    else { throw ArchiveFault(.notBase64, "is neither base64 text nor a receipt file") }
    return trimmed.filter { $0 > 0x20 }
  }

  /// A reply of verifyReceipt, which must contain its receipt.
  func reply(_ value: JSONBytes) throws(ArchiveFault) -> [UInt8] {
    let members = try Self.members(of: value)
    guard members.contains(where: { $0.name == "status" }) else {
      throw ArchiveFault(.invalidValue, "is not a reply of verifyReceipt: it has no status")
    }
    guard let receipt = members.first(where: { $0.name == "latest_receipt" }) else {
      throw ArchiveFault(
        .missing,
        "has no latest_receipt, and a reply is imported with its receipt: --from json --map "
          + "receipt=…,reply=… takes both from a table")
    }
    return Self.line { writer in
      writer.key("receipt")
      writer.raw(receipt.value)
      write(
        verification: value, to: &writer, isNamed: members.contains { $0.name == "environment" })
    }
  }

  /// Writes a reply as recorded.
  /// - Parameter isNamed: whether the reply names its environment.
  func write(
    verification reply: JSONBytes, to writer: inout JSONWriter, isNamed: Bool,
    endpoint: String? = nil, occurredAt: [UInt8]? = nil
  ) {
    writer.key("verification")
    writer.beginObject()
    if let occurredAt {
      writer.key("occurred_at")
      occurredAt.withUnsafeBytes { writer.raw($0) }
    }
    if let endpoint = endpoint ?? (isNamed ? nil : environment?.lowercased()) {
      writer.member("endpoint", endpoint)
    }
    writer.key("reply")
    writer.raw(reply)
    writer.endObject()
  }

  /// A signed transaction: its text, or a JSON value that contains some.
  func transactions(_ value: JSONBytes) throws(ArchiveFault) -> [[UInt8]] {
    try signedTexts(value, ["signedTransactions", "signedTransactionInfo", "signed_transactions"])
      .map { text in
        Self.line { writer in
          writer.key("signed_transactions")
          writer.beginArray()
          text.withUnsafeBytes { writer.string($0) }
          writer.endArray()
          if let environment, Self.namesNone(text) { writer.member("environment", environment) }
        }
      }
  }

  static func namesNone(_ text: [UInt8]) -> Bool {
    (try? SignedObject(text)).map { !$0.namesEnvironment } ?? false
  }

  /// A notification of either version: a JWS, its request, a body, or a page of a notification history.
  func notifications(_ value: JSONBytes) throws(ArchiveFault) -> [[UInt8]] {
    if value.first == UInt8(ascii: "{") {
      let members = try Self.members(of: value)
      func has(_ name: String) -> Bool { members.contains { $0.name == name } }
      if has("notification_v1") || has("notification") || has("notification_type") {
        return [try Self.withoutPassword(value)]
      }
      if let list = members.first(where: { $0.name == "notificationHistory" }) {
        var lines: [[UInt8]] = []
        for element in try Self.elements(of: list.value) { lines += try notifications(element) }
        return lines
      }
    }
    return try signedTexts(value, ["signedPayload"]).map { text in
      Self.line { writer in
        writer.key("notification")
        text.withUnsafeBytes { writer.string($0) }
      }
    }
  }

  /// The texts of signed objects: the value itself, a string, or an object's members with one of the names.
  private func signedTexts(
    _ value: JSONBytes, _ names: [String]
  ) throws(ArchiveFault) -> [[UInt8]] {
    switch value.first {
    case UInt8(ascii: "\""): return [Self.text(value)]
    case UInt8(ascii: "["):
      var texts: [[UInt8]] = []
      for element in try Self.elements(of: value) { texts += try signedTexts(element, names) }
      return texts
    case UInt8(ascii: "{"):
      let members = try Self.members(of: value)
      guard let member = members.first(where: { names.contains($0.name) }) else {
        throw ArchiveFault(.missing, "has none of \(names.joined(separator: ", "))")
      }
      return try signedTexts(member.value, names)
    default:
      guard SignedObject.looksLike(value) else {
        throw ArchiveFault(.signedObjectMalformed, "is neither JSON nor a signed object (JWS)")
      }
      return [Array(value)]
    }
  }

  /// A JSON object without the secret of version 1 notifications. An object that can't be searched for it is rejected.
  static func withoutPassword(_ object: JSONBytes) throws(ArchiveFault) -> [UInt8] {
    do throws(JSONError) { return try LegacyNotificationReader.withoutPassword(object) } catch {
      throw ArchiveFault(.wrongType, "is not a JSON object")
    }
  }

  // MARK: JSON

  typealias Member = (name: String, value: JSONBytes)

  static func members(of value: JSONBytes) throws(ArchiveFault) -> [Member] {
    do throws(JSONError) {
      var cursor = JSONCursor(value)
      guard try cursor.kind() == .object else {
        throw JSONError(.wrongKind, at: 0)
      }
      var members: [Member] = []
      try cursor.beginObject()
      while let key = try cursor.nextKey() { members.append((key.string, try cursor.readRaw())) }
      return members
    } catch { throw ArchiveFault(.wrongType, "is not a JSON object") }
  }

  static func elements(of value: JSONBytes) throws(ArchiveFault) -> [JSONBytes] {
    do throws(JSONError) {
      var cursor = JSONCursor(value)
      var elements: [JSONBytes] = []
      try cursor.beginArray()
      while try cursor.nextElement() { elements.append(try cursor.readRaw()) }
      return elements
    } catch { throw ArchiveFault(.wrongType, "is not a JSON array") }
  }

  /// The content of a JSON string.
  static func text(_ value: JSONBytes) -> [UInt8] {
    var cursor = JSONCursor(value)
    return (try? cursor.readString())?.bytes ?? []
  }

  static func line(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("marketplace", "itunes")
    body(&writer)
    writer.endObject()
    return writer.bytes
  }
}

extension ArraySlice<UInt8> {
  /// Without white space at both ends.
  var trimmed: ArraySlice<UInt8> {
    var rest = drop { $0 <= 0x20 }
    while let last = rest.last, last <= 0x20 { rest.removeLast() }
    return rest
  }
}

// MARK: - Files

/// Finds and opens the files below some paths without following links, in the order of the paths and of their names as
/// bytes.
struct ArchiveFiles {
  /// What a path leads to.
  enum Entry {
    case file(String)
    case skipped(String, cause: String)
  }

  /// The limits on the depth of folders and on the number of files.
  static let depthMax = 16
  static let countMax = 4_000_000

  /// Throws if a path itself cannot be read, or there are too many files. Names that begin with a dot are ignored.
  static func entries(_ paths: [String]) throws(Failure) -> [Entry] {
    var entries: [Entry] = []
    for path in paths {
      switch try kind(path) {
      case S_IFDIR: try addFolder(path, depth: 1, to: &entries)
      case S_IFREG: entries.append(.file(path))
      default:
        throw Failure(
          operation: "open", object: path,
          cause: "is neither a file nor a folder (links are not followed)")
      }
    }
    return entries
  }

  private static func kind(_ path: String) throws(Failure) -> mode_t {
    guard !path.utf8.contains(0) else {
      throw Failure(
        operation: "open", object: "input", cause: "the path contains a NUL")
    }
    var status = stat()
    guard lstat(path, &status) == 0 else { throw FileSource.fault("open", path, errno) }
    return status.st_mode & S_IFMT
  }

  private static func addFolder(
    _ path: String, depth: Int, to entries: inout [Entry]
  ) throws(Failure) {
    guard depth <= depthMax else {
      throw Failure(
        operation: "read", object: path, cause: "folders are nested more than \(depthMax) deep")
    }
    for name in try names(in: path) {
      let child = path.hasSuffix("/") ? path + name : "\(path)/\(name)"
      switch try kind(child) {
      case S_IFDIR: try addFolder(child, depth: depth + 1, to: &entries)
      case S_IFREG: entries.append(.file(child))
      case S_IFLNK: entries.append(.skipped(child, cause: "is a link, which is not followed"))
      default: entries.append(.skipped(child, cause: "is not a regular file"))
      }
      guard entries.count <= countMax else {
        throw Failure(
          operation: "read", object: path, cause: "has more than \(countMax) files")
      }
    }
  }

  private static func names(in path: String) throws(Failure) -> [String] {
    let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileSource.fault("open", path, errno) }
    guard let stream = fdopendir(descriptor) else {
      let code = errno
      close(descriptor)
      throw FileSource.fault("read", path, code)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw FileSource.fault("read", path, errno) }
        break
      }
      let name = withUnsafePointer(to: entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
  }

  /// Opens a file that was found; also returns its size.
  static func open(_ path: String, _ stop: StopFlag) throws(Failure) -> (FileSource, Int) {
    let descriptor = Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileSource.fault("open", path, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw Failure(
        operation: "open", object: path, cause: "is not a regular file")
    }
    let size = Int(status.st_size)
    return (FileSource(spool: descriptor, name: path, sizeBytes: size, stop: stop), size)
  }
}

// MARK: - Formats and options

/// The formats of archives that an import reads in addition to its own.
package enum ArchiveFormat: String, CaseIterable, Sendable {
  /// Receipts, one per file: base64 text, or the binary file.
  case receipts
  /// Replies of verifyReceipt.
  case replies
  /// Signed transactions (JWS).
  case transactions
  /// Bodies of notifications, version 1 or 2.
  case notifications
  /// A table with a header line.
  case csv
  /// A table as JSON objects: one array, or one object per line.
  case json
}

/// How an archive is read.
package struct ArchiveOptions: Equatable, Sendable {
  package var format: ArchiveFormat
  /// For tables: which column provides which part of a line.
  package var columns: TableMap?
  /// `Production` or `Sandbox`: stated by an operator for replies and signed objects that name none.
  package var environment: String?

  package init(
    _ format: ArchiveFormat, columns: TableMap? = nil, environment: String? = nil
  ) {
    (self.format, self.columns, self.environment) = (format, columns, environment)
  }

  /// The largest file that is read as a whole; larger ones are read line by line.
  static let wholeBytesMax = 16 << 20
}
