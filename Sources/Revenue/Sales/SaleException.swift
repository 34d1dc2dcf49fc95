// Exceptions: what the finance department must know in addition to the figures (rules R1–R12).
import AppStore

/// The types of exceptions.
package enum ExceptionType: Int8, CaseIterable {
  case replyNotValid, malformedTransaction, renewalWithoutLineItem, conflictingObservation
  case badQuantity, claimedByOtherUser, priceConflict, priceAmbiguous, priceObservedLate
  case priceUnreadable, priceFormsDisagree, priceZero, currencyMissing, currencyUnknown
  case upgradeCreditUnknown
  case productUnknown, transactionReplayed
  case malformedEvent
  case replyMismatch
  case countryConflict, multiSeatPrice, refundAmountUnknown
  case signatureRefused
  case priceUnmatched
  // Derived from sales at the time of a report.
  case unpriced, pendingSale, unconverted, staleRate, refundExceedsAmount

  /// Its name in reports.
  package var word: String {
    switch self {
    case .replyNotValid: "reply_not_valid"
    case .malformedTransaction: "malformed_transaction"
    case .renewalWithoutLineItem: "renewal_without_line_item"
    case .conflictingObservation: "conflicting_observation"
    case .badQuantity: "bad_quantity"
    case .claimedByOtherUser: "claimed_by_other_user"
    case .priceConflict: "price_conflict"
    case .priceAmbiguous: "price_ambiguous"
    case .priceObservedLate: "price_observed_late"
    case .priceUnmatched: "price_unmatched"
    case .priceUnreadable: "price_unreadable"
    case .priceFormsDisagree: "price_forms_disagree"
    case .priceZero: "price_zero"
    case .currencyMissing: "currency_missing"
    case .currencyUnknown: "currency_unknown"
    case .upgradeCreditUnknown: "upgrade_credit_unknown"
    case .productUnknown: FraudReason.productUnknown.rawValue
    case .transactionReplayed: FraudReason.transactionReplayed.rawValue
    case .malformedEvent: "malformed_event"
    case .replyMismatch: "reply_mismatch"
    case .countryConflict: "country_conflict"
    case .multiSeatPrice: PriceProblem.multiSeat.word.description
    case .refundAmountUnknown: "refund_amount_unknown"
    case .signatureRefused: "signature_refused"
    case .unpriced: "unpriced"
    case .pendingSale: "pending_sale"
    case .unconverted: "unconverted"
    case .staleRate: "stale_rate"
    case .refundExceedsAmount: "refund_exceeds_amount"
    }
  }

  /// Whether exceptions of this type have no sale and are kept once for the whole history, not once for each event:
  /// the same texts at a later position are the same exception.
  package var isOncePerText: Bool {
    self == .malformedTransaction || self == .productUnknown || self == .malformedEvent
  }

  /// The exception type for a price problem.
  init(_ problem: PriceProblem) {
    switch problem {
    case .noPrice: self = .unpriced
    case .unreadable, .tooLarge: self = .priceUnreadable
    case .formsDisagree: self = .priceFormsDisagree
    case .zero: self = .priceZero
    case .currencyMissing: self = .currencyMissing
    case .currencyUnknown: self = .currencyUnknown
    case .multiSeat: self = .multiSeatPrice
    }
  }
}

/// Collects exceptions. Each is kept once per type, subject and detail, with its first position.
package protocol ExceptionSink: AnyObject {
  /// An exception of a sale.
  func add(
    _ type: ExceptionType, sale: Sale, detail: Text, position: Int
  ) throws
  /// An exception of a row that does not give a sale.
  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, product: Text, transaction: Text,
    detail: Text, position: Int
  ) throws
  /// An exception about an upload's content, kept once per upload.
  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: Text, upload: Int,
    position: Int
  ) throws
  /// An exception of a whole verification. The caller must not add the same one twice.
  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: String, position: Int
  ) throws
}
