// A verifyReceipt reply, unified or legacy, decoded by its form; statuses, mismatches, frauds, environments.
package import Base

/// The content of a reply. Source: `responseBody` in Apple's documentation of verifyReceipt, and recorded replies.
package struct Reply {
  package private(set) var status: Int64?
  /// As the reply names it; legacy replies have none.
  package private(set) var environment: JSONBytes?
  /// Nil if the value is neither yes nor no. If both spellings are present, one yes is enough: asking again does no
  /// harm.
  package private(set) var isRetryable: Bool?
  /// The `bid` of its version 1 notification, `receipt.bundle_id`, otherwise `receipt.bid`.
  package private(set) var bundleID: JSONBytes?
  /// `receipt.request_date_ms`, else `request_date`, else `request_date_pst`.
  package var requestDateMs: Int64? { requestDate.epochMs }
  /// Whether the receipt is flat: it has the fields of a purchase itself.
  package private(set) var isLegacy = false
  /// The rows in the order of rule R2: by source, then by array order.
  package private(set) var rows: [ReplyRow] = []
  /// In the order of the reply. The renewal of a legacy reply's outermost members comes last; that of a version 1
  /// notification comes first, because `pending_renewal_info` contains more.
  package private(set) var renewals: [RenewalInfo] = []

  private var bid: JSONBytes?
  private var requestDate = WrittenDate()

  /// Decodes one JSON value. A value that is not an object has neither status nor rows.
  /// - Parameters:
  ///   - keeper: keeps unescaped strings; the reply's content is valid as long as `keeper` and `bytes`.
  ///   - notification: the version 1 notification that contains the reply.
  package init(
    _ bytes: JSONBytes, _ keeper: TextKeeper, notification: JSONBytes? = nil
  ) throws(JSONError) {
    if let notification { bundleID = try LegacyNotification(notification, keeper).bundleID }
    let notifiedBundleID = bundleID
    var cursor = JSONCursor(bytes)
    guard try cursor.kind() == .object else {
      try cursor.skipValue()
      try cursor.expectEnd()
      return
    }
    var isOrdered = true
    var outermost = RenewalInfo()
    rows.reserveCapacity(8)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let before = rows.last?.source
      let count = rows.count
      if key == "status" {
        status = try keeper.read(&cursor).integer
      } else if key == "environment" {
        if case .string(let text) = try keeper.read(&cursor), !text.isEmpty { environment = text }
      } else if key == "is_retryable" || key == "is-retryable" {
        if let isSaid = try keeper.read(&cursor).spokenFlag {
          isRetryable = isRetryable == true || isSaid
        }
      } else if key == "latest_receipt_info" {
        try readRows(.latestReceiptInfo, &cursor, keeper)
      } else if key == "latest_expired_receipt_info" {
        try readRows(.latestExpiredReceiptInfo, &cursor, keeper)
      } else if key == "receipt" {
        try readReceipt(&cursor, keeper)
      } else if key == "pending_renewal_info" {
        try readRenewals(&cursor, keeper)
      } else if try !outermost.readOutermost(key, &cursor, keeper) {
        try cursor.skipValue()
      }
      if let before, rows.count > count, rows[count].source.rawValue < before.rawValue {
        isOrdered = false
      }
    }
    try cursor.expectEnd()
    if outermost.isOutermost, isLegacy { renewals.append(outermost) }
    if bundleID == nil { bundleID = bid }
    if !isOrdered { orderRows() }
    guard let notification else { return }
    if let renewal = try RenewalInfo(ofNotification: notification, keeper) {
      renewals.insert(renewal, at: 0)
    }
    bundleID = notifiedBundleID ?? bundleID
  }

  /// Rows are in an array or, in the legacy form, a single object. Only objects are rows.
  private mutating func readRows(
    _ source: ReplyRow.Source, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    switch try cursor.kind() {
    case .object: rows.append(try ReplyRow(source: source, &cursor, keeper))
    case .array where source != .latestExpiredReceiptInfo:
      try cursor.beginArray()
      while try cursor.nextElement() {
        if try cursor.kind() == .object {
          rows.append(try ReplyRow(source: source, &cursor, keeper))
        } else {
          try cursor.skipValue()
        }
      }
    default: try cursor.skipValue()
    }
  }

  private mutating func readRenewals(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .array else { return try cursor.skipValue() }
    try cursor.beginArray()
    while try cursor.nextElement() {
      if try cursor.kind() == .object {
        renewals.append(try RenewalInfo(&cursor, keeper))
      } else {
        try cursor.skipValue()
      }
    }
  }

  private mutating func readReceipt(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    var flat = ReplyRow(source: .flatReceipt)
    var hasInApp = false
    try cursor.beginObject()
    let first = cursor.offset - 1
    while let key = try cursor.nextKey() {
      // Only the flat legacy receipt has the fields of a purchase itself; most receipts do not.
      if key == "in_app" {
        if try cursor.consumeNull() { continue }
        hasInApp = true
        if try cursor.kind() == .array {
          try readRows(.inApp, &cursor, keeper)
        } else {
          try cursor.skipValue()
        }
      } else if key == "bundle_id" {
        bundleID = try keeper.read(&cursor).id
      } else if key == "bid" {
        bid = try keeper.read(&cursor).id
      } else if key == "request_date_ms" {
        requestDate.update(try keeper.read(&cursor), .milliseconds)
      } else if key == "request_date" {
        requestDate.update(try keeper.read(&cursor), .readable)
      } else if key == "request_date_pst" {
        requestDate.update(try keeper.read(&cursor), .pacific)
      } else {
        try flat.read(key, &cursor, keeper)
      }
    }
    let object = cursor.passed(since: first)
    isLegacy =
      !hasInApp
      && (bid != nil || flat.productID != nil || flat.transactionID != nil
        || flat.originalTransactionID != nil)
    if isLegacy {
      try flat.end(with: object, keeper)
      rows.append(flat)
    }
  }

  private mutating func orderRows() {
    var ordered: [ReplyRow] = []
    ordered.reserveCapacity(rows.count)
    let sources: [ReplyRow.Source] = [
      .latestReceiptInfo, .inApp, .flatReceipt, .latestExpiredReceiptInfo,
    ]
    for source in sources { ordered += rows.filter { $0.source == source } }
    rows = ordered
  }
}

// MARK: - Statuses

/// The statuses of verifyReceipt.
package enum ReplyStatus {
  package static let valid: Int64 = 0
  package static let notAuthenticated: Int64 = 21003
  package static let wrongSharedSecret: Int64 = 21004
  package static let expiredSubscription: Int64 = 21006
  package static let isFromSandbox: Int64 = 21007
  package static let isFromProduction: Int64 = 21008
  package static let accountNotFound: Int64 = 21010
  /// Failures within the App Store.
  package static let internalFailures: ClosedRange<Int64> = 21100...21199

  /// Rule R1: whether the status is final, so no further reply is expected.
  package static func isFinal(_ status: Int64?) -> Bool {
    status == valid || status == notAuthenticated || status == expiredSubscription
      || status == accountNotFound
  }

  /// The meaning of a status; nil for an undocumented one.
  package static func meaning(_ status: Int64) -> String? {
    switch status {
    case valid: "the receipt is valid"
    case 21000: "the request was not made correctly"
    case 21001: "the request is of a kind that is no longer supported"
    case 21002: "the receipt is malformed, or the service failed temporarily"
    case notAuthenticated: "the receipt could not be authenticated"
    case wrongSharedSecret: "the shared secret does not match the app's account"
    case 21005: "the receipt server was not available"
    case expiredSubscription: "the receipt is valid, and its subscription has expired"
    case isFromSandbox: "the receipt is from the sandbox"
    case isFromProduction: "the receipt is from production"
    case 21009: "the service failed temporarily"
    case accountNotFound: "the account was not found, or has been deleted"
    case internalFailures: "the service had an internal error"
    default: nil
    }
  }
}

// MARK: - Mismatches

/// Why a reply belongs to another receipt than the one it was given for. The raw value is stored in events and
/// exceptions.
package enum ReplyMismatch: String, Sendable {
  /// The reply is about an app outside the receipt's app family, or names no app and shows nothing of the receipt.
  case bundle
  /// Receipt and reply both show purchases but have none in common.
  case transactions
}

/// The content of a receipt that can be compared with a reply.
package struct ReceiptSubject {
  private let isReadable: Bool
  private var transactionIDs: Set<String> = []
  private var lineItems: Set<String> = []

  /// - Parameter receipt: nil if its file cannot be read; any purchase may then belong to it.
  package init(_ receipt: Receipt?) {
    isReadable = receipt != nil
    for purchase in receipt?.purchases ?? [] {
      if let id = purchase.transactionID { transactionIDs.insert(id) }
      if let id = purchase.originalTransactionID { transactionIDs.insert(id) }
      if let id = purchase.webOrderLineItemID, id != "0" { lineItems.insert(id) }
    }
  }

  /// Why the reply does not fit; nil if it fits.
  /// - Parameter isOwnBundle: whether the receipt's app family has this bundle id.
  package func mismatch(
    of reply: Reply, isOwnBundle: (JSONBytes) -> Bool
  ) -> ReplyMismatch? {
    guard let bundleID = reply.bundleID else { return mismatchOfNameless(reply) }
    guard isOwnBundle(bundleID) else { return .bundle }
    return showsOtherTransactions(reply.rows) ? .transactions : nil
  }

  /// As `mismatch`, for a reply that names no bundle. It belongs to a readable receipt only if it shows something of it
  /// (rule R2), and to an unreadable one if it shows no purchases.
  package func mismatchOfNameless(_ reply: Reply) -> ReplyMismatch? {
    if isReadable { return shares(reply.rows) ? nil : .bundle }
    return reply.rows.isEmpty ? nil : .bundle
  }

  /// Whether a transaction id, original transaction id or line item of the rows is the receipt's.
  package func shares(_ rows: [ReplyRow]) -> Bool {
    rows.contains { row in
      [row.transactionID, row.originalTransactionID].contains { id in
        id.map { transactionIDs.contains(String(decoding: $0, as: UTF8.self)) } ?? false
      }
        || row.webOrderLineItemID.map { lineItems.contains(String(decoding: $0, as: UTF8.self)) }
          ?? false
    }
  }

  /// Whether receipt and rows both have purchases with ids, but no transaction id, original transaction id or
  /// line item in common.
  package func showsOtherTransactions(_ rows: [ReplyRow]) -> Bool {
    if transactionIDs.isEmpty, lineItems.isEmpty { return false }
    let hasIDs = rows.contains {
      $0.transactionID != nil || $0.originalTransactionID != nil || $0.webOrderLineItemID != nil
    }
    return hasIDs && !shares(rows)
  }
}

// MARK: - Frauds

/// Why an upload is a fraud. The raw values are stored in events and shown in responses and reports.
package enum FraudReason: String, Sendable {
  case signatureInvalid = "signature_invalid"
  case notAuthenticated = "not_authenticated"
  /// The app family declares its products, and a row shows a product that is not among them.
  case productUnknown = "product_unknown"
  /// A declared consumable's transaction belongs to another user.
  case transactionReplayed = "transaction_replayed"
}

// MARK: - Environments

/// The App Store's names of its environments in receipts and replies. Other names occur; they are kept unchanged.
package enum EnvironmentName {
  package static let production: StaticString = "Production"
  package static let sandbox: StaticString = "Sandbox"

  /// Whether the name is exactly one of the two.
  package static func isKnown(_ name: String) -> Bool {
    name == production.description || name == sandbox.description
  }

  /// The name that an operator means, who may write these two in any case.
  package static func meant(by text: String) -> String {
    switch text.lowercased() {
    case production.description.lowercased(): production.description
    case sandbox.description.lowercased(): sandbox.description
    default: text
    }
  }
}

// MARK: - Endpoints

/// The two endpoints of verifyReceipt: for purchases, and for tests.
package enum AppStoreEndpoint: String, Sendable, CaseIterable {
  case production, sandbox

  /// The endpoint that statuses 21007 and 21008 point to.
  package var other: AppStoreEndpoint { self == .production ? .sandbox : .production }
}
