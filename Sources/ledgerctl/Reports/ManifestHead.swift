// The events behind a report, as its manifest names them, and whether they are the first of a log.
import Base
import Ledger

/// The ledger and the head that a manifest names. Reads manifests of every report and every version.
struct ManifestHead: Equatable, Sendable {
  /// The version of manifests that this program reads.
  static let version = 1

  let origin: String
  let id: String
  /// The number of events.
  let size: Int
  let root: SHA256Digest

  /// Reads the head of a manifest; throws an error that says why the file is not one.
  init(_ json: JSONValue, path: String) throws(Failure) {
    func refusal(_ cause: String) -> Failure {
      Failure(.mismatch, operation: "read manifest", object: path, cause: cause)
    }
    func text(_ object: String, _ name: String) throws(Failure) -> String {
      guard let text = json[object]?[name]?.stringValue
      else { throw refusal("'\(object).\(name)' is missing or not text") }
      return text
    }
    guard let version = json["manifest"]?.integerValue
    else { throw refusal("'manifest' is missing or not a number") }
    guard version == Self.version else { throw refusal("its version is not \(Self.version)") }
    origin = try text("ledger", "origin")
    id = try text("ledger", "id")
    guard let size = json["head"]?["size"]?.integerValue, size >= 0
    else { throw refusal("'head.size' is missing or not a number") }
    self.size = Int(size)
    let rootBytes = try? Base64.decode(Array(try text("head", "root").utf8))
    guard let root = rootBytes?.withUnsafeBytes({ SHA256Digest($0) })
    else { throw refusal("'head.root' is not base64 of 32 bytes") }
    self.root = root
  }

  /// Reads the head of the manifest at a path.
  init(path: String) throws(Failure) {
    let bytes = try readSmallFile(path)
    let json: JSONValue
    do throws(JSONError) { json = try JSONValue(bytes) } catch {
      throw Failure(
        .mismatch, operation: "read manifest", object: path, cause: "it is not JSON: \(error)")
    }
    try self.init(json, path: path)
  }

  /// Throws unless the events are the first ones of a log.
  /// - Parameters:
  ///   - reader: the ledger's log, looked at just now.
  ///   - object: what the message names.
  func check(
    _ identity: LedgerIdentity, _ reader: LogReader, operation: String, object: String
  ) throws {
    func failure(_ code: ExitCode, _ cause: String) -> Failure {
      Failure(code, operation: operation, object: object, cause: cause)
    }
    guard origin.hasSameBytes(as: identity.origin), id == "\(identity.id)"
    else { throw failure(.mismatch, "it belongs to another ledger") }
    guard size <= reader.head.size else {
      if let damage = reader.damage { throw damage }
      throw failure(
        .corrupted,
        "it is based on \(counted(size, "event")), the log has \(reader.head.size)")
    }
    guard try reader.frontier(at: size).root == root else {
      throw failure(
        .corrupted, "the log's first \(counted(size, "event")) are not those behind the report")
    }
  }
}
