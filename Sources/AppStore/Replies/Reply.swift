// A verifyReceipt reply, unified or legacy, decoded by its shape and regardless of the receipt's style.
package import JSON

/// The content of a reply. Source: `responseBody` in Apple's documentation of verifyReceipt, and recorded replies.
package struct Reply {
  package private(set) var status: Int64?
  /// As the reply names it; legacy replies have none.
  package private(set) var environment: JSONBytes?
  /// Nil if the value is neither yes nor no. If both spellings are present, one yes is enough: asking again
  /// does no harm.
  package private(set) var isRetryable: Bool?
  /// The `bid` of its version 1 notification, `receipt.bundle_id`, otherwise `receipt.bid`.
  package private(set) var bundleID: JSONBytes?
  /// `receipt.request_date_ms`, else `request_date`, else `request_date_pst`.
  package var requestDateMs: Int64? { requestDate.epochMs }
  /// Whether the receipt is flat: it has the fields of a purchase itself.
  package private(set) var isLegacy = false
  /// The rows in the order of rule R2: by source, then by array order.
  package private(set) var rows: [ReplyRow] = []
  /// In the order of the reply; that of the outermost members of a legacy reply comes last, and that of a version 1
  /// notification first, because `pending_renewal_info` says more.
  package private(set) var renewals: [RenewalInfo] = []

  private var bid: JSONBytes?
  private var requestDate = WrittenDate()

  /// Decodes one JSON value. A value that is not an object has neither status nor rows.
  /// - Parameters:
  ///   - keeper: keeps unescaped strings; the reply's content is valid as long as `keeper` and `bytes`.
  ///   - notification: the version 1 notification with which it came.
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

  /// Rows are in an array or, in the legacy shape, a single object. Only objects are rows.
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
        if try cursor.takeNull() { continue }
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
        requestDate.take(try keeper.read(&cursor), .milliseconds)
      } else if key == "request_date" {
        requestDate.take(try keeper.read(&cursor), .readable)
      } else if key == "request_date_pst" {
        requestDate.take(try keeper.read(&cursor), .pacific)
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
