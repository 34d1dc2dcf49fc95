// The App Store's replies for tests, as short as possible.
private import Base

/// Members of a JSON object, in order; a later one replaces an earlier one of the same key.
package typealias Members = KeyValuePairs<String, JSONText>

/// Epoch milliseconds of a day, or of an RFC 3339 time.
package func ms(_ time: String) -> Int64 {
  guard let epochMs = try? Timestamp.parse(time.contains("T") ? time : time + "T00:00:00Z") else {
    preconditionFailure("no time: \(time)")
  }
  return epochMs
}

/// A row with the usual values: one `coins`, bought on 5 January 2026 for the first time.
package func row(
  _ transaction: String, of original: String? = nil, line: String? = nil,
  product: String = "coins", on time: String = "2026-01-05", _ members: Members = [:]
) -> JSONText {
  row(
    transaction, of: original, line: line, product: product, on: time,
    merging: members.map { ($0.key, $0.value) })
}

/// The same with members in an array.
package func row(
  _ transaction: String, of original: String? = nil, line: String? = nil,
  product: String = "coins", on time: String = "2026-01-05", merging members: [(String, JSONText)]
) -> JSONText {
  let dateMs = String(ms(time))
  var all: [(String, JSONText)] = [
    ("quantity", "1"), ("product_id", JSONText(stringLiteral: product)),
    ("transaction_id", JSONText(stringLiteral: transaction)),
    ("original_transaction_id", JSONText(stringLiteral: original ?? transaction)),
    ("purchase_date_ms", JSONText(stringLiteral: dateMs)),
    ("original_purchase_date_ms", JSONText(stringLiteral: dateMs)),
  ]
  if let line { all.append(("web_order_line_item_id", JSONText(stringLiteral: line))) }
  return .object(all + members)
}

/// The milliseconds of a time, as replies write them.
package func date(_ time: String) -> JSONText { JSONText(stringLiteral: String(ms(time))) }

/// A unified reply: Production, bundle `app`, with these rows in `receipt.in_app`.
/// - Parameter requested: the receipt's `request_date_ms`.
package func reply(
  _ rows: JSONText..., latest: JSONText = .absent, requested: String? = nil,
  environment: JSONText = "Production", status: JSONText = 0, receipt: Members = [:],
  also members: Members = [:]
) -> JSONText {
  reply(
    rows: rows, latest: latest, requested: requested, environment: environment, status: status,
    receipt: receipt, also: members)
}

/// The same with rows in an array.
package func reply(
  rows: [JSONText], latest: JSONText = .absent, requested: String? = nil,
  environment: JSONText = "Production", status: JSONText = 0, receipt: Members = [:],
  also members: Members = [:]
) -> JSONText {
  let receiptMembers: [(String, JSONText)] =
    [
      ("bundle_id", "app"), ("request_date_ms", requested.map(date) ?? .absent),
      ("in_app", .array(rows)),
    ] + receipt.map { ($0.key, $0.value) }
  return .object(
    [
      ("status", status), ("environment", environment), ("receipt", .object(receiptMembers)),
      ("latest_receipt_info", latest),
    ] + members.map { ($0.key, $0.value) })
}
