// The App Store's replies, read leniently by their shape.
@testable import AppStore
@testable import Intake
@testable import Base

extension FuzzTarget {
  static let reply = FuzzTarget(
    name: "reply", inputByteCountMax: 3072,
    words: [
      "{\"status\":", "\"environment\":", "\"receipt\":{", "\"in_app\":[{", "\"bundle_id\":",
      "\"latest_receipt_info\":[{", "\"latest_expired_receipt_info\":{", "\"is_retryable\":",
      "\"is-retryable\":", "\"bid\":", "\"request_date_ms\":", "\"quantity\":", "\"product_id\":",
      "\"transaction_id\":", "\"original_transaction_id\":", "\"purchase_date_ms\":",
      "\"web_order_line_item_id\":", "\"cancellation_date_ms\":", "\"is_trial_period\":",
      "\"expires_date\":", "\"in_app_ownership_type\":\"FAMILY_SHARED\"", "\"true\"", "null",
      "\"\\u0069n_app\":", "1519641347834", "\"0\"", "21003", "21199",
    ],
    seeds: {
      let row =
        "{\"quantity\":\"1\",\"product_id\":\"coins\",\"transaction_id\":\"7\","
        + "\"original_transaction_id\":\"7\",\"purchase_date_ms\":\"1767225600000\","
        + "\"web_order_line_item_id\":\"0\",\"is_trial_period\":\"false\"}"
      let texts = [
        "{\"status\":0,\"environment\":\"Production\",\"receipt\":{\"bundle_id\":\"app\","
          + "\"request_date_ms\":\"1767225600001\",\"in_app\":[\(row),\(row)]},"
          + "\"latest_receipt_info\":[\(row)],\"pending_renewal_info\":[{}]}",
        "{\"latest_receipt_info\":\(row),\"receipt\":{\"bid\":\"app\",\"quantity\":1,"
          + "\"transaction_id\":7,\"expires_date_ms\":1,\"\\u0070roduct_id\":\"c\\u00f6ins\"},"
          + "\"latest_expired_receipt_info\":\(row),\"status\":21006}",
        "{\"status\":21003}", "{\"status\":\"21199\",\"is-retryable\":\"true\"}", "[]", "\"\"",
        "{\"receipt\":{\"in_app\":null,\"in_app_ownership_type\":\"FAMILY_SHARED\"}}",
      ]
      let seeds = texts.map { Array($0.utf8) }
      return seeds + seeds.flatMap { BoundaryNumbers.variants(of: $0) }
    },
    check: { input in
      var compact: [UInt8] = []
      do throws(JSONError) { try JSONValidator.compact(input, to: &compact) } catch {
        // Not validated: the reader may refuse it or not, but keeps to its bytes.
        let keeper = TextKeeper()
        _ = try? Reply(input, keeper)
        return
      }
      let written = ReplyCheck.description(input)
      require(written != nil, "a reply that is JSON is read")
      require(
        compact.withUnsafeBytes { ReplyCheck.description($0) } == written, "space means nothing")
    })
}

private enum ReplyCheck {
  /// All that was read, as text; nil where it was refused.
  static func description(_ bytes: JSONBytes) -> String? {
    let keeper = TextKeeper()
    guard let reply = try? Reply(bytes, keeper) else { return nil }
    var sources: [Int8] = []
    var lines = [
      "\(String(describing: reply.status)) \(String(describing: reply.isRetryable))",
      "\(text(reply.environment)) \(text(reply.bundleID)) \(reply.isLegacy)",
      "\(reply.outcome) \(reply.fraudReason ?? "-") \(reply.likelyEndpoint)",
    ]
    for row in reply.rows {
      sources.append(row.source.rawValue)
      for id in [row.productID, row.transactionID, row.originalTransactionID] {
        require(id?.isEmpty != true, "an id is not empty")
      }
      lines.append("\(text(row.productID)) \(text(row.transactionID)) \(row.quantity.text)")
      lines.append("\(text(row.originalTransactionID)) \(text(row.webOrderLineItemID))")
      lines.append(
        "\(row.purchaseDateMs ?? -1) \(row.cancellationDateMs ?? -1) \(row.isTrialPeriod) "
          + "\(row.expiresAtMs ?? -1) \(row.isFamilyShared) \(text(row.cancellationReason))")
    }
    require(sources == sources.sorted(), "rows stand in the order of their sources")
    require(sources.count { $0 == ReplyRow.Source.flatReceipt.rawValue } <= 1, "one flat receipt")
    return lines.joined(separator: "\n")
  }

  private static func text(_ bytes: JSONBytes?) -> String {
    bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-"
  }
}
