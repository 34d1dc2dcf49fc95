// Words for what a price rests on, where its evidence came from, why something was refunded, and how a subscription
// stands.
import Revenue

/// The words for a code of a report.
package struct CodeWords: Equatable {
  package let title: String
  package let meaning: String

  init(_ title: String, _ meaning: String) {
    (self.title, self.meaning) = (title, meaning)
  }

  /// What a price rests on, by the code in the column `price_basis`.
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

  /// Where the evidence came from, by the code in the column `trust`.
  package init(trust code: String) {
    switch ReplyTrust.allCases.first(where: { "\($0.word)" == code }) {
    case .appStore: self.init("App Store", "Apple answered, or signed, itself.")
    case .configured:
      self.init("Configured host", "A host or certificate that an operator set up answered.")
    case .imported:
      self.init("Imported", "From an import file: the word of whoever made the file.")
    case .notRecorded:
      self.init("Not recorded", "An earlier version of the program kept no note of the source.")
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

  /// How a subscription stands, by the code in the column `status`.
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
