// Which columns of the views a copy for analysts has, and which of them an anonymous one may have.

/// A column of a view, in a copy.
package struct CopiedColumn: Sendable {
  enum Kind: String, Sendable { case integer = "INTEGER", text = "TEXT" }

  /// Why a column may stand in an anonymous copy, or may not.
  package enum Reason: Sendable {
    // It may.
    /// Names an app, as the company itself does.
    case app
    /// Names what was sold.
    case product
    /// Names a country, and no place within it.
    case country
    /// A figure of the reports, and how it came about.
    case figure
    /// When something happened.
    case time
    /// Numbers sales or events of this ledger; means nothing outside of it.
    case number
    /// One of a few words, or a flag.
    case word

    // It may not.
    /// Names a user, or was written by one.
    case user
    /// Names a device, an address or a server.
    case address
    /// Names a purchase at the App Store.
    case purchase
    /// Follows from the content of a receipt, an upload or a file.
    case digest
    /// May hold any text that a client, a receipt or an operator wrote.
    case anyText

    package var isShared: Bool {
      switch self {
      case .app, .product, .country, .figure, .time, .number, .word: true
      case .user, .address, .purchase, .digest, .anyText: false
      }
    }
  }

  package let name: String
  let kind: Kind
  package let reason: Reason
  /// What an anonymous copy has instead of the column's own value; nil for the value.
  let anonymous: String?
}

/// A column, or the two of an instant.
extension [CopiedColumn] {
  static func integer(_ name: String, _ reason: CopiedColumn.Reason) -> Self {
    [CopiedColumn(name: name, kind: .integer, reason: reason, anonymous: nil)]
  }

  static func text(_ name: String, _ reason: CopiedColumn.Reason) -> Self {
    [CopiedColumn(name: name, kind: .text, reason: reason, anonymous: nil)]
  }

  /// An instant: milliseconds, and text.
  static func time(_ name: String) -> Self {
    integer(name + "_ms", .time) + text(name, .time)
  }

  /// A text of which an anonymous copy has only these values: before its verification, a receipt may claim anything.
  static func word(_ name: String, of words: [String]) -> Self {
    let list = words.map { "'\($0)'" }.joined(separator: ", ")
    return [
      CopiedColumn(
        name: name, kind: .text, reason: .word,
        anonymous: "CASE WHEN \(name) IN (\(list)) THEN \(name) END")
    ]
  }

  /// A country as a client wrote it.
  static func country(_ name: String) -> Self {
    [
      CopiedColumn(
        name: name, kind: .text, reason: .country,
        anonymous: "CASE WHEN \(name) GLOB '[A-Z][A-Z]' THEN \(name) END")
    ]
  }

  static let environment = word(
    "environment", of: ["Production", "Sandbox", "Xcode", "LocalTesting", "Unknown"])
  /// The App Store's reasons of refunds.
  static let refundReason = word("reason", of: ["0", "1"])
  static let expirationIntent = word("expiration_intent", of: ["1", "2", "3", "4", "5"])
}

/// A view, as a table of a copy.
package struct CopiedView: Sendable {
  package let name: String
  /// The columns that tell its rows apart, which are their order; an integer alone is the table's primary key.
  package let key: [String]
  /// Columns that get an index.
  package let indexes: [String]
  package let columns: [CopiedColumn]

  init(_ name: String, key: [String], indexes: [String] = [], _ columns: [[CopiedColumn]]) {
    self.name = name
    self.key = key
    self.indexes = indexes
    self.columns = columns.flatMap(\.self)
  }
}

extension CopiedView {
  /// Every view with every column, in the order of docs/projections.md. A test fails for a column that is missing
  /// here: nothing enters an anonymous copy before somebody has decided about it.
  package static let all = [
    app, receipt, upload, verification, notification, fetch, user, sale, journal, subscription,
    exception, price, rate, trust,
  ]

  private static let app = CopiedView(
    "app_view", key: ["app_family_id"],
    [
      .text("app_family_id", .app), .text("name", .app), .text("bundle_ids", .app),
      .integer("position", .number),
    ])

  private static let receipt = CopiedView(
    "receipt_view", key: ["first_position"],
    [
      .text("receipt_id", .digest), .text("app_family_id", .app), .text("bundle_id", .anyText),
      .text("style", .word), .environment, .text("state", .word),
      .integer("is_fraud", .word), .text("fraud_reason", .word),
      .country("country_code"), .text("user_identifier", .user),
      .integer("uploads", .figure), .integer("purchases", .figure),
      .integer("first_position", .number), .integer("last_position", .number),
      .integer("reply_position", .number), .time("created_at"), .time("updated_at"),
    ])

  private static let upload = CopiedView(
    "upload_view", key: ["position"], indexes: ["receipt_id", "user_identifier"],
    [
      .integer("position", .number), .text("receipt_id", .digest), .text("upload_id", .digest),
      .integer("transactions", .figure), .text("bundle_id", .anyText),
      .country("country_code"), .text("user_identifier", .user),
      .text("ip_address", .address), .text("identifier_for_vendor", .address),
      .text("metadata", .user), .integer("line", .digest), .integer("is_fraud", .word),
      .text("fraud_reason", .word), .integer("fraud_position", .number), .time("occurred_at"),
      .time("recorded_at"),
    ])

  private static let verification = CopiedView(
    "verification_view", key: ["position"], indexes: ["upload_position"],
    [
      .integer("position", .number), .integer("upload_position", .number),
      .text("receipt_id", .digest), .text("authority", .word), .text("outcome", .word),
      .integer("status", .word), .environment, .text("reason", .anyText),
      .integer("attempt", .figure), .text("endpoint", .word), .text("host", .address),
      .text("trust", .word), .time("occurred_at"), .time("request_date"),
      .integer("reply_position", .number),
    ])

  private static let notification = CopiedView(
    "notification_view", key: ["position"],
    [
      .integer("position", .number), .text("notification_uuid", .purchase), .text("type", .word),
      .text("subtype", .word), .environment, .text("app_family_id", .app),
      .text("bundle_id", .app), .text("original_transaction_id", .purchase),
      .text("transaction_id", .purchase), .integer("line", .digest), .time("signed_at"),
      .time("occurred_at"), .time("recorded_at"),
    ])

  private static let fetch = CopiedView(
    "fetch_view", key: ["position"],
    [
      .integer("position", .number), .text("app_family_id", .app), .text("bundle_id", .app),
      .environment, .text("call", .word), .text("transaction_id", .purchase),
      .time("range_start"), .time("range_end"), .text("revision", .anyText),
      .integer("error_code", .word), .integer("has_more", .word), .time("occurred_at"),
    ])

  private static let user = CopiedView(
    "user_view", key: ["user_identifier"],
    [
      .text("user_identifier", .user), .integer("uploads", .user), .integer("receipts", .user),
      .integer("first_seen_at_ms", .user), .text("first_seen_at", .user),
      .integer("last_seen_at_ms", .user), .text("last_seen_at", .user),
    ])

  private static let sale = CopiedView(
    "sale_view", key: ["sale"],
    indexes: ["sale_date_ms", "product_id", "user_identifier", "sale_key"],
    [
      .integer("sale", .number), .environment, .text("bundle_id", .app),
      .text("sale_key", .purchase), .text("product_id", .product), .text("kind", .word),
      .integer("quantity", .figure), .time("sale_date"), .time("period_end"),
      .text("original_transaction_id", .purchase), .text("transaction_id", .purchase),
      .text("transaction_ids", .purchase), .integer("first_position", .number),
      .country("country_code"), .integer("country_position", .number),
      .text("user_identifier", .user), .integer("user_position", .user),
      .text("user_basis", .word), .text("currency", .figure),
      .integer("unit_price_micros", .figure),
      .integer("amount_micros", .figure), .text("price_basis", .word),
      .integer("price_position", .number), .text("price_problem", .word),
      .integer("is_upgraded", .word), .integer("cancelled", .word), .text("trust", .word),
    ])

  private static let journal = CopiedView(
    "journal_view", key: ["sale", "ordinal"],
    indexes: ["date_ms", "product_id", "user_identifier"],
    [
      .integer("sale", .number), .integer("ordinal", .number), .time("date"), .text("line", .word),
      .environment, .text("bundle_id", .app), .text("sale_key", .purchase),
      .text("transaction_id", .purchase), .text("product_id", .product),
      .country("country_code"), .text("user_identifier", .user), .text("kind", .word),
      .integer("quantity", .figure), .text("currency", .figure),
      .integer("unit_price_micros", .figure), .integer("amount_micros", .figure),
      .text("price_basis", .word), .refundReason, .integer("position", .number),
      .time("sale_date"),
    ])

  private static let subscription = CopiedView(
    // One sale may be a period of two subscriptions: of statements under one line item with two original ids.
    "subscription_view", key: ["sale", "original_transaction_id"],
    indexes: ["original_transaction_id", "user_identifier", "sale"],
    [
      .environment, .text("bundle_id", .app),
      .text("original_transaction_id", .purchase), .text("product_id", .product),
      .text("user_identifier", .user), .country("country_code"), .time("started_at"),
      .time("current_period_start_at"), .time("expires_at"), .time("grace_period_expires_at"),
      .integer("auto_renew", .word), .text("auto_renew_product_id", .product),
      .expirationIntent, .integer("in_billing_retry", .word),
      .integer("unit_price_micros", .figure), .text("currency", .figure), .text("offer", .word),
      .time("revoked_at"), .integer("is_upgraded", .word), .integer("sale", .number),
      .integer("statement_position", .number), .time("renewal_at"),
      .integer("renewal_position", .number), .integer("position", .number),
    ])

  private static let exception = CopiedView(
    "exception_view",
    key: [
      "position", "exception", "sale", "detail", "environment", "bundle_id", "product_id",
      "transaction_id",
    ], indexes: ["sale"],
    [
      .text("exception", .word), .environment, .text("bundle_id", .anyText),
      .integer("sale", .number), .text("sale_key", .purchase), .text("product_id", .anyText),
      .text("transaction_id", .purchase), .integer("position", .number),
      .text("detail", .anyText),
    ])

  private static let price = CopiedView(
    "price_view", key: ["position", "ordinal"],
    [
      .integer("position", .number), .integer("ordinal", .number), .text("source", .anyText),
      .text("source_sha256", .digest), .text("product_id", .product),
      .country("country_code"), .text("currency", .figure),
      .integer("price_micros", .figure), .time("effective_from"),
    ])

  private static let rate = CopiedView(
    "rate_view", key: ["position", "ordinal"],
    [
      .integer("position", .number), .integer("ordinal", .number), .text("source", .anyText),
      .text("source_sha256", .digest), .text("date", .time), .text("base", .figure),
      .text("quote", .figure), .text("rate", .figure),
    ])

  private static let trust = CopiedView(
    "trust_view", key: ["position"],
    [
      .integer("position", .number), .text("production_host", .address),
      .text("sandbox_host", .address), .integer("is_apple", .word), .text("data", .anyText),
    ])
}
