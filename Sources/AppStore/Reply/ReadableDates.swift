// The human-readable dates in a reply's row, for replies without milliseconds.
private import Base
import JSON

/// Epoch milliseconds of a row's readable dates: `2011-08-02 15:08:02 Etc/GMT` under the plain name,
/// otherwise `2011-08-02 08:08:02 America/Los_Angeles` under the name with `_pst`.
struct ReadableDates {
  private(set) var purchaseMs: Int64?
  private(set) var originalPurchaseMs: Int64?
  private(set) var cancellationMs: Int64?

  /// Reads one object.
  init(_ object: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var pacificPurchaseMs: Int64?
    var pacificOriginalPurchaseMs: Int64?
    var pacificCancellationMs: Int64?
    var cursor = JSONCursor(object)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let value = try keeper.read(&cursor)
      if key == "purchase_date" {
        purchaseMs = value.readableInstantMs
      } else if key == "purchase_date_pst" {
        pacificPurchaseMs = value.readableInstantMs
      } else if key == "original_purchase_date" {
        originalPurchaseMs = value.readableInstantMs
      } else if key == "original_purchase_date_pst" {
        pacificOriginalPurchaseMs = value.readableInstantMs
      } else if key == "cancellation_date" {
        cancellationMs = value.readableInstantMs
      } else if key == "cancellation_date_pst" {
        pacificCancellationMs = value.readableInstantMs
      }
    }
    purchaseMs = purchaseMs ?? pacificPurchaseMs
    originalPurchaseMs = originalPurchaseMs ?? pacificOriginalPurchaseMs
    cancellationMs = cancellationMs ?? pacificCancellationMs
  }
}

extension LenientValue {
  /// Epoch milliseconds of a readable date, between the years 0001 and 9999.
  var readableInstantMs: Int64? {
    guard case .string(let text) = self, text.count > 10, text[10] == UInt8(ascii: " "),
      let value = ReceiptDate.parse(text), Timestamp.rangeMs.contains(value)
    else { return nil }
    return value
  }
}
