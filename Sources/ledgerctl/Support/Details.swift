// Receipts, uploads, verifications and exceptions as JSON and as table rows.
import JSON
import Ledger
import Projections

extension JSONWriter {
  mutating func member(_ key: StaticString, _ value: String?) {
    self.key(key)
    if let value { string(value) } else { null() }
  }

  mutating func member(_ key: StaticString, _ value: Int?) {
    self.key(key)
    if let value { integer(value) } else { null() }
  }

  mutating func member(_ key: StaticString, _ value: Bool) {
    self.key(key)
    boolean(value)
  }

  mutating func member(_ key: StaticString, atMs epochMs: Int64) {
    member(key, timeText(epochMs))
  }

  mutating func object(_ body: (inout JSONWriter) -> Void) {
    beginObject()
    body(&self)
    endObject()
  }

  mutating func array<Element>(
    _ key: StaticString, _ elements: [Element], _ body: (Element, inout JSONWriter) -> Void
  ) {
    self.key(key)
    beginArray()
    for element in elements { body(element, &self) }
    endArray()
  }
}

extension Output {
  /// Writes one JSON object and a line feed.
  func writeObject(_ body: (inout JSONWriter) -> Void) throws(OutputError) {
    var writer = JSONWriter()
    writer.object(body)
    try write(writer.bytes)
    try writeLine()
  }

  /// Writes a JSON array with an object for each element, and a line feed.
  func writeArray<Element>(
    _ elements: [Element], _ body: (Element, inout JSONWriter) -> Void
  ) throws(OutputError) {
    var writer = JSONWriter()
    writer.beginArray()
    for element in elements { writer.object { body(element, &$0) } }
    writer.endArray()
    try write(writer.bytes)
    try writeLine()
  }
}

extension ReceiptDetail {
  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("receipt_id", receiptID)
      writer.member("app_family_id", appFamilyID)
      writer.member("bundle_id", bundleID)
      writer.member("style", style)
      writer.member("environment", environment)
      writer.member("state", state)
      writer.member("is_fraud", fraudReason != nil)
      writer.member("fraud_reason", fraudReason)
      writer.member("country_code", countryCode)
      writer.member("user_identifier", userIdentifier)
      writer.member("first_position", firstPosition)
      writer.member("last_position", lastPosition)
      writer.member("reply_position", replyPosition)
      writer.member("created_at", atMs: createdAtMs)
      writer.member("updated_at", atMs: updatedAtMs)
    }
  }

  var fields: [(name: String, value: String)] {
    [
      ("receipt", receiptID), ("app family", appFamilyID), ("bundle id", bundleID),
      ("style", style), ("environment", environment ?? "unknown"),
      ("state", fraudReason.map { "\(state), fraud: \($0)" } ?? state),
      ("country", countryCode ?? "unknown"), ("user", userIdentifier ?? "unknown"),
      ("first seen", "\(timeText(createdAtMs)) at position \(firstPosition)"),
      ("last changed", "\(timeText(updatedAtMs)) at position \(lastPosition)"),
    ]
  }
}

extension UploadDetail {
  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("position", position)
      writer.member("receipt_id", receiptID)
      writer.member("occurred_at", atMs: occurredAtMs)
      writer.member("country_code", countryCode)
      writer.member("user_identifier", userIdentifier)
      writer.member("line", line.map { Int($0) })
    }
  }

  static func table(_ uploads: [UploadDetail]) -> TextTable {
    var table = TextTable([
      .init("position", isNumber: true), .init("occurred_at"), .init("country_code"),
      .init("user_identifier"), .init("line", isNumber: true),
    ])
    for upload in uploads {
      table.append([
        "\(upload.position)", timeText(upload.occurredAtMs), upload.countryCode ?? "",
        upload.userIdentifier ?? "", upload.line.map { "\($0)" } ?? "",
      ])
    }
    return table
  }
}

extension VerificationDetail {
  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("position", position)
      writer.member("upload", upload)
      writer.member("receipt_id", receiptID)
      writer.member("authority", authority)
      writer.member("outcome", outcome)
      writer.member("environment", environment)
      writer.member("status", status.map { Int($0) })
      writer.member("reason", reason)
      writer.member("occurred_at", atMs: occurredAtMs)
      writer.member("reply_position", replyPosition)
    }
  }

  static func table(_ verifications: [VerificationDetail]) -> TextTable {
    var table = TextTable([
      .init("position", isNumber: true), .init("upload", isNumber: true), .init("occurred_at"),
      .init("authority"), .init("outcome"), .init("status", isNumber: true), .init("environment"),
      .init("reason"),
    ])
    for entry in verifications {
      table.append([
        "\(entry.position)", "\(entry.upload)", timeText(entry.occurredAtMs),
        entry.authority, entry.outcome, entry.status.map { "\($0)" } ?? "", entry.environment,
        entry.reason ?? "",
      ])
    }
    return table
  }
}

extension ExceptionDetail {
  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("exception", exception)
      writer.member("sale_key", saleKey)
      writer.member("product_id", productID)
      writer.member("transaction_id", transactionID)
      writer.member("detail", detail)
      writer.member("position", position)
    }
  }

  static func table(_ exceptions: [ExceptionDetail]) -> TextTable {
    var table = TextTable([
      .init("exception"), .init("sale_key"), .init("product_id"), .init("transaction_id"),
      .init("position", isNumber: true), .init("detail"),
    ])
    for entry in exceptions {
      table.append([
        entry.exception, entry.saleKey ?? "", entry.productID ?? "", entry.transactionID ?? "",
        "\(entry.position)", entry.detail,
      ])
    }
    return table
  }
}
