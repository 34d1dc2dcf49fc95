// Exceptions in words for finance (what happened, what it means for the figures, what to do), and words for codes.
package import Revenue

/// The words for one type of exception.
package struct ExceptionWords: Equatable, Sendable {
  /// What happened, as a heading next to the count.
  package let title: String
  /// What it means for the figures.
  package let meaning: String
  /// What to do about it.
  package let action: String

  private init(_ title: String, _ meaning: String, _ action: String) {
    (self.title, self.meaning, self.action) = (title, meaning, action)
  }

  private static let nothing = "Nothing to do."
  private static let tellDevelopers = "Tell the developers of the app: it sends these prices."
  private static let askOperator = "Ask whoever runs the ledger to look at them."

  /// The words for a type.
  package init(_ type: ExceptionType) {
    switch type {
    case .unpriced, .multiSeatPrice, .upgradeCreditUnknown, .unconverted, .staleRate,
      .refundAmountUnknown, .refundExceedsAmount:
      self = Self.amounts(type)
    case .priceConflict, .priceAmbiguous, .priceObservedLate, .priceUnmatched, .priceUnreadable,
      .priceFormsDisagree, .priceZero, .currencyMissing, .currencyUnknown:
      self = Self.prices(type)
    case .replyNotValid, .replyMismatch, .signatureRefused, .malformedEvent,
      .malformedTransaction, .pendingSale, .renewalWithoutLineItem, .conflictingObservation,
      .badQuantity:
      self = Self.evidence(type)
    case .claimedByOtherUser, .productUnknown, .transactionReplayed, .countryConflict:
      self = Self.customers(type)
    }
  }

  /// Amounts that are missing or uncertain.
  private static func amounts(_ type: ExceptionType) -> ExceptionWords {
    switch type {
    case .unpriced:
      .init(
        "Sales without a known price",
        "They count as units and add nothing to gross or net: both are too low by what these "
          + "customers paid.",
        "Declare the prices (ledgerctl prices import); the sales are then priced by the list.")
    case .multiSeatPrice:
      .init(
        "Sales for several seats",
        "The App Store names only an average for each seat, which is not used as a price.",
        "Declare the price if the sale is also listed as one without a known price.")
    case .upgradeCreditUnknown:
      .init(
        "Upgrades whose credit is not known",
        "Apple gave customers money back for the unused part of an earlier subscription and does "
          + "not say how much: returns are too low, and net is too high, by that.",
        "Compare with Apple’s own financial reports.")
    case .unconverted:
      .init(
        "Entries without an exchange rate",
        "They keep their own currencies and are missing from the sums in the currency of this page.",
        "Declare rates for these days (ledgerctl rates import) and make the page again.")
    case .staleRate:
      .init(
        "Entries whose exchange rate is too old",
        "There is a rate, but from too long before. The entries keep their own currencies.",
        "Declare newer rates, or allow older ones with --rates-max-age.")
    case .refundAmountUnknown:
      .init(
        "Refunds of an unknown amount",
        "They are not in returns: net is too high by these refunds.",
        "Compare with Apple’s own financial reports.")
    default:
      .init(
        "Refunds of more than was paid",
        "They count only up to what the sale brought in.",
        "Look at the sale: its price may be wrong (ledgerctl show --sale).")
    }
  }

  /// Prices that were not used.
  private static func prices(_ type: ExceptionType) -> ExceptionWords {
    switch type {
    case .priceConflict:
      .init(
        "Sales with two different prices",
        "The price with the better evidence counts; the other changes nothing.",
        "Look at a few of them: if the app shows old prices, tell its developers.")
    case .priceAmbiguous:
      .init(
        "One price for several sales",
        "The price does not say which of them it belongs to, so it was used for none. They are priced in "
          + "another way, or are sales without a known price.", tellDevelopers)
    case .priceObservedLate:
      .init(
        "Prices that came too late",
        "The app sent them more than 30 days after the sale, when they may have changed. They were "
          + "not used.", nothing)
    case .priceUnmatched:
      .init(
        "Prices of unknown transactions",
        "No sale has the transaction id that the app sent, and the product does not show which sale is "
          + "meant. They were not used.", tellDevelopers)
    case .priceUnreadable:
      .init(
        "Prices that cannot be read",
        "They are not numbers, or not plausible, and were not used.", tellDevelopers)
    case .priceFormsDisagree:
      .init(
        "Prices that contradict themselves",
        "The app sent a price in two forms with different values. Neither was used.",
        tellDevelopers)
    case .priceZero:
      .init(
        "Prices of 0 for a paid product", "A sale is not free, so they were not used.",
        tellDevelopers)
    case .currencyMissing:
      .init(
        "Prices without a currency", "An amount alone has no meaning, so they were not used.",
        tellDevelopers)
    default:
      .init(
        "Prices in an unknown currency", "Their currency code does not exist. They were not used.",
        tellDevelopers)
    }
  }

  /// What the App Store stated, or failed to state.
  private static func evidence(_ type: ExceptionType) -> ExceptionWords {
    switch type {
    case .replyNotValid:
      .init(
        "Receipts that the App Store did not confirm", "They gave no sale and are in no figure.",
        "Usually nothing: such receipts are forged, or of another environment. Look into it if "
          + "there are many more than in other months.")
    case .replyMismatch:
      .init(
        "Answers about another receipt",
        "The App Store’s answer did not belong to the receipt that was sent. They are in no figure.",
        askOperator)
    case .signatureRefused:
      .init(
        "Signed purchases that were refused",
        "They came from the App Store, but their signatures could not be accepted. They are in no "
          + "figure, unless the App Store confirmed them later.",
        "Ask whoever runs the ledger: the check may have failed for a reason of its own, and "
          + "ledgerctl app-store sync --again repeats it.")
    case .malformedEvent:
      .init(
        "Records that cannot be read",
        "They were skipped: what they would have shown is missing from the figures.",
        "Ask whoever runs the ledger: this should not happen.")
    case .malformedTransaction:
      .init(
        "Purchases with missing data",
        "Without a product, an id or a date they are not sales, and are in no figure.",
        "Nothing, unless there are many: then ask whoever runs the ledger.")
    case .pendingSale:
      .init(
        "Sales that the App Store has not confirmed yet",
        "They are in no figure of this page. They appear once they are confirmed.",
        "Nothing, unless they stay for days: then ask whoever runs the ledger.")
    case .renewalWithoutLineItem:
      .init(
        "Renewals that cannot be distinguished",
        "The App Store gave them no number of their own, so each does not count as another sale: gross "
          + "may be too low.",
        "Compare with Apple’s own financial reports.")
    case .conflictingObservation:
      .init(
        "Sales with two descriptions",
        "The App Store later named another product or quantity. What it said first counts.", nothing
      )
    default:
      .init(
        "Sales with an impossible quantity", "They count as one unit.",
        "Look at the sales, if there are many.")
    }
  }

  /// About the customer, the country and the product.
  private static func customers(_ type: ExceptionType) -> ExceptionWords {
    switch type {
    case .claimedByOtherUser:
      .init(
        "Sales that a second user sent as well",
        "Each counts once, for its first user. Revenue does not change.",
        "Usually nothing: people share devices. A user with many of them may copy receipts.")
    case .productUnknown:
      .init(
        "Purchases of products that the app does not declare",
        "The receipt is marked as fraud. Its sales count, because the App Store confirmed them.",
        "Declare the product if it exists (ledgerctl app edit); otherwise look at the user.")
    case .transactionReplayed:
      .init(
        "Purchases that another user sent again",
        "The receipt is marked as fraud. The sale counts once, for its first user.",
        "Look at the user who sent it again.")
    default:
      .init(
        "Sales with two countries",
        "The App Store named another country than the app. The App Store’s counts.", nothing)
    }
  }
}

// MARK: - Words for codes

/// The words for a code of a report.
package struct CodeWords: Equatable {
  package let title: String
  package let meaning: String

  init(_ title: String, _ meaning: String) {
    (self.title, self.meaning) = (title, meaning)
  }

  /// The basis of a price, by the code in the column `price_basis`.
  package init(basis code: String) {
    let basis = PriceBasis.allCases.first { "\($0.word)" == code }
    switch basis {
    case .signedTransaction:
      self.init("Signed by Apple", "The price is part of what Apple signed.")
    case .clientTransaction:
      self.init("App, for this purchase", "The app sent the price of exactly this purchase.")
    case .clientProduct:
      self.init("App, for this product", "The app sent the product’s price when it was bought.")
    case .clientSingle:
      self.init(
        "App, one price", "The app sent one price, and only one new sale could be meant.")
    case .carriedForward:
      self.init("Earlier period", "A renewal, at the price of the period before it.")
    case .priceList: self.init("Price list", "A declared price of the product and country.")
    case .some(.none): self.init("No known price", "These units add nothing to gross and net.")
    case .notApplicable:
      self.init("Free", "Trials and family sharing: nothing is charged.")
    case nil: self.init(code, "")
    }
  }

  /// The source of the evidence, by the code in the column `trust`.
  package init(trust code: String) {
    switch ReplyTrust.allCases.first(where: { "\($0.word)" == code }) {
    case .appStore: self.init("App Store", "Apple itself confirmed or signed it.")
    case .configured:
      self.init(
        "Another server",
        "Confirmed by a server or certificate other than Apple’s that was set up here.")
    case .imported:
      self.init("Imported", "From an import file: the word of whoever made the file.")
    case .notRecorded:
      self.init("Not recorded", "An earlier version of the program did not record the source.")
    case .unconfirmed: self.init("Unconfirmed", "The App Store has not answered yet.")
    case nil: self.init(code, "")
    }
  }

  /// Why something was refunded, by the App Store’s code.
  static func reason(_ code: String) -> String {
    switch code {
    case "": "No reason given"
    case "0": "Another reason"
    case "1": "A problem with the app"
    default: code
    }
  }

  /// The status of a subscription, by the code in the column `status`.
  init(status code: String) {
    switch code {
    case "active": self.init("Active", "Paid, or in a trial.")
    case "grace_period": self.init("Grace period", "Unpaid, but still usable.")
    case "billing_retry": self.init("Billing retry", "Apple is trying to charge the customer.")
    case "expired": self.init("Expired", "Ended, and not renewed.")
    case "revoked": self.init("Revoked", "The current period was refunded.")
    default: self.init(code, "")
    }
  }
}
