// Payloads of signed transactions for tests, as short as possible.

/// The milliseconds of a time, as signed payloads write them.
package func instant(_ time: String) -> JSONText { JSONText(raw: String(ms(time))) }

/// An app account token of its own for each number.
package func accountToken(_ number: Int) -> String {
  "3f2a7c11-aaaa-4bbb-8ccc-00000000000\(number)"
}

/// A transaction's payload with the usual values: one `coins` of the app `app` in Production, bought on 5 January 2026.
/// - Parameter signed: the day or time of its signature.
package func signed(
  _ transaction: String, of original: String? = nil, line: String? = nil,
  product: String = "coins", on time: String = "2026-01-05", signed: String = "2026-01-06",
  _ members: Members = [:]
) -> JSONText {
  TestSupport.signed(
    transaction, of: original, line: line, product: product, on: time, signed: signed,
    merging: members.map { ($0.key, $0.value) })
}

/// The same with members in an array.
package func signed(
  _ transaction: String, of original: String? = nil, line: String? = nil,
  product: String = "coins", on time: String = "2026-01-05", signed: String = "2026-01-06",
  merging members: [(String, JSONText)]
) -> JSONText {
  var all: [(String, JSONText)] = [
    ("transactionId", JSONText(stringLiteral: transaction)),
    ("originalTransactionId", JSONText(stringLiteral: original ?? transaction)),
    ("bundleId", "app"), ("productId", JSONText(stringLiteral: product)),
    ("purchaseDate", instant(time)), ("originalPurchaseDate", instant(time)), ("quantity", 1),
    ("inAppOwnershipType", "PURCHASED"), ("environment", "Production"),
    ("signedDate", instant(signed)),
  ]
  if let line { all.append(("webOrderLineItemId", JSONText(stringLiteral: line))) }
  return .object(all + members)
}
