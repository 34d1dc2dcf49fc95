// Reads the body of a version 1 notification: its reply, its receipt, and the other members that are kept.
import AppStore
import Base
import Ledger

/// A body within a line. Everything else in it is dropped, above all `password`.
struct LegacyNotificationReader {
  static let field = "notification_v1"
  static let replyField = "notification_v1.unified_receipt"
  static let receiptField = "notification_v1.unified_receipt.latest_receipt"

  private let keeper: TextKeeper
  private var replyBytes: JSONBytes?
  private var endpoint: Endpoint?
  private var statusChangedAtMs: Int64?
  /// The members that are kept, one JSON object.
  private(set) var kept: [UInt8] = []
  /// Whether it has a type that can be kept.
  private var hasType = false

  /// Reads a body without white space between tokens.
  init(_ body: JSONBytes, _ keeper: TextKeeper, _ client: inout ClientFieldReader)
    throws(JSONError)
  {
    self.keeper = keeper
    var writer = JSONWriter()
    writer.beginObject()
    var cursor = JSONCursor(body)
    guard try cursor.kind() == .object else {
      client.add(FieldProblem(Self.field, .wrongType, "is not an object"))
      return
    }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "unified_receipt" {
        try readReply(&cursor, &client)
      } else if let name = LegacyNotification.members.first(where: { key == $0 }) {
        try readKept(name, &cursor, &writer)
      } else {
        try cursor.skipValue()
      }
    }
    writer.endObject()
    kept = writer.bytes
    if !hasType {
      client.add(
        FieldProblem("\(Self.field).notification_type", .invalidValue, "is missing or not a name"))
    }
    if replyBytes == nil, !client.problems.contains(where: { $0.field == Self.replyField }) {
      client.add(FieldProblem(Self.replyField, .missing, "is missing"))
    }
  }

  /// Keeps a text, number or boolean that is not too long, as sent.
  private mutating func readKept(
    _ name: StaticString, _ cursor: inout JSONCursor, _ writer: inout JSONWriter
  ) throws(JSONError) {
    var look = cursor
    let value = try keeper.read(&look)
    let raw = try cursor.readRaw()
    if case .container = value { return }
    if case .missing = value { return }
    guard raw.count <= LegacyNotification.memberBytesMax else { return }
    if name.description == "notification_type" {
      guard let type = value.id, type.allSatisfy(Self.isNameByte) else { return }
      hasType = true
    } else if name.description == "environment" {
      endpoint = Self.endpoint(value.text)
    } else if name.description == "auto_renew_status_change_date_ms" {
      statusChangedAtMs = value.instantMs
    }
    writer.key(name)
    writer.raw(raw)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Bodies contain `PROD` where replies contain `Production`.
  private static func endpoint(_ name: String) -> Endpoint? {
    switch name.lowercased() {
    case "prod", "production": .production
    case "sandbox": .sandbox
    default: nil
    }
  }

  private mutating func readReply(
    _ cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    let isObject = try cursor.kind() == .object
    let raw = try cursor.readRaw()
    guard isObject else {
      return client.add(FieldProblem(Self.replyField, .wrongType, "is not an object"))
    }
    // The secret does not belong in a reply, but a program that assembled bodies may have put it there.
    let reply = try Self.withoutPassword(raw)
    replyBytes = reply.count == raw.count ? raw : keeper.keep(reply)
  }

  /// A line, body or reply without the secret that bodies have.
  static func withoutPassword(_ object: JSONBytes) throws(JSONError) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    var cursor = JSONCursor(object)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let isObject = try cursor.kind() == .object
      let value = try cursor.readRaw()
      if key == "password" { continue }
      writer.key(key.string)
      if isObject, key == "unified_receipt" || key == "notification_v1" {
        let inner = try withoutPassword(value)
        inner.withUnsafeBytes { writer.raw($0) }
      } else {
        writer.raw(value)
      }
    }
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply, if there is one, and its receipt.
  func read(
    into receipt: inout ReceiptReader, _ client: inout ClientFieldReader
  ) throws(JSONError) -> (bytes: JSONBytes, endpoint: Endpoint?)? {
    guard let replyBytes else { return nil }
    var isGiven = false
    var cursor = JSONCursor(replyBytes)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "latest_receipt" {
        try receipt.read(from: &cursor, &client)
        isGiven = receipt.isGiven
      } else {
        try cursor.skipValue()
      }
    }
    if !isGiven { client.add(FieldProblem(Self.receiptField, .missing, "is missing")) }
    return (replyBytes, endpoint)
  }

  /// The latest moment that a body names of something that had already happened when it was sent: purchases,
  /// cancellations, and the change of automatic renewal. A body itself has no time.
  func latestMs(in reply: Reply) -> Int64? {
    let shown = reply.rows.flatMap { [$0.purchaseDateMs, $0.cancellationDateMs] }
    return (shown + [statusChangedAtMs]).compactMap(\.self).max()
  }
}
