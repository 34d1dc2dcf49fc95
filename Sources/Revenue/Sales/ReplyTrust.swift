// The source of the reply behind a sale.

/// The source of the reply in which a sale was first observed.
public enum ReplyTrust: Int8, CaseIterable, BitwiseCopyable, Sendable {
  /// A program version that did not record the source wrote the event.
  case notRecorded
  /// One of Apple's hosts answered.
  case appStore
  /// A host configured by an operator answered.
  case configured
  /// The reply was imported.
  case imported
  /// There is no reply yet: the sale is pending (rule R1).
  case unconfirmed

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .notRecorded: "not_recorded"
    case .appStore: "app_store"
    case .configured: "configured"
    case .imported: "imported"
    case .unconfirmed: "unconfirmed"
    }
  }
}
