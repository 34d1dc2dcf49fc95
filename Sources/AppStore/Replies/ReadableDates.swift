// The human-readable dates in a reply's row, for replies without milliseconds.
private import Base
import JSON

/// Epoch milliseconds of a row's readable dates: `2011-08-02 15:08:02 Etc/GMT` under the plain name,
/// otherwise `2011-08-02 08:08:02 America/Los_Angeles` under the name with `_pst`.
struct ReadableDates {
  private(set) var purchase = WrittenDate()
  private(set) var originalPurchase = WrittenDate()
  private(set) var cancellation = WrittenDate()

  /// Reads one object.
  init(_ object: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var cursor = JSONCursor(object)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let value = try keeper.read(&cursor)
      if key == "purchase_date" {
        purchase.take(value, .readable)
      } else if key == "purchase_date_pst" {
        purchase.take(value, .pacific)
      } else if key == "original_purchase_date" {
        originalPurchase.take(value, .readable)
      } else if key == "original_purchase_date_pst" {
        originalPurchase.take(value, .pacific)
      } else if key == "cancellation_date" {
        cancellation.take(value, .readable)
      } else if key == "cancellation_date_pst" {
        cancellation.take(value, .pacific)
      }
    }
  }
}

/// A date that a reply writes as `NAME_ms`, as `NAME` or as `NAME_pst`; the first of them that can be read counts.
struct WrittenDate {
  /// The forms, the best last.
  enum Form: UInt8 { case pacific, readable, milliseconds }

  private(set) var epochMs: Int64?
  private(set) var form: Form = .pacific

  mutating func take(_ value: LenientValue, _ form: Form) {
    let instantMs = form == .milliseconds ? value.instantMs : value.readableInstantMs
    guard let instantMs, form.rawValue >= self.form.rawValue else { return }
    (epochMs, self.form) = (instantMs, form)
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
