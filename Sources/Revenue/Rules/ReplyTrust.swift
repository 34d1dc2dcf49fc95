// What vouches for the reply that a sale rests on.

/// Where the reply came from in which a sale was first observed.
public enum ReplyTrust: Int8, CaseIterable, BitwiseCopyable, Sendable {
  /// Its event is of a program that did not record it.
  case notRecorded
  /// A host of Apple's answered.
  case appStore
  /// A host answered that an operator has configured.
  case configured
  /// An import brought it.
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
