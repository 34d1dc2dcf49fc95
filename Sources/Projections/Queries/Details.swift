// Details of receipts, uploads, verifications, sales and other objects, for display: plain values with their positions.
package import Ledger
package import Revenue

/// The current state of a receipt.
package struct ReceiptDetail: Equatable, Sendable {
  package var receiptID: String
  package var appFamilyID: String
  package var bundleID: String
  package var style: String
  package var environment: String?
  package var state: String
  package var fraudReason: String?
  package var countryCode: String?
  package var userIdentifier: String?
  package var firstPosition: Position
  package var lastPosition: Position
  /// The verification whose reply shows the receipt's current content.
  package var replyPosition: Position?
  package var createdAtMs: Int64
  package var updatedAtMs: Int64
}

/// One upload.
package struct UploadDetail: Equatable, Sendable {
  package var position: Position
  /// Nil for an upload of signed transactions.
  package var receiptID: String?
  /// The id of an upload of signed transactions, and how many there are; nil for an upload of a receipt.
  package var uploadID: String?
  package var transactionCount: Int?
  package var fraudReason: String?
  package var occurredAtMs: Int64
  package var countryCode: String?
  package var userIdentifier: String?
  /// The line of the import file that the upload came from.
  package var line: Int64?
}

/// One server notification.
package struct NotificationDetail: Equatable, Sendable {
  package var position: Position
  /// Nil for a notification of version 1.
  package var notificationUUID: String?
  package var type: String
  package var subtype: String?
  package var environment: String
  package var bundleID: String
  package var originalTransactionID: String?
  package var transactionID: String?
  package var signedAtMs: Int64?
  package var occurredAtMs: Int64
  /// When it was signed; for version 1, which is not signed, when it arrived.
  package var atMs: Int64 { signedAtMs ?? occurredAtMs }
}

/// One reply of the App Store Server API.
package struct FetchDetail: Equatable, Sendable {
  package var position: Position
  package var call: String
  package var environment: String
  package var bundleID: String
  /// The transaction that was asked about.
  package var transactionID: String?
  /// The range of a notification history.
  package var fromMs: Int64?
  package var toMs: Int64?
  package var revision: String?
  package var errorCode: Int64?
  package var hasMore: Bool
  package var occurredAtMs: Int64
}

/// What one event states about a sale (rules R8, R12).
package struct StatementDetail: Equatable, Sendable {
  /// Where it came from.
  package enum Source: String, Sendable {
    case reply = "receipt.verified"
    case upload = "transactions.received"
    case notification = "notification.received"
    case fetch = "transactions.fetched"
    case acceptance = "signatures.accepted"
  }

  /// The reply's `receipt.request_date_ms` or the transaction's `signedDate`; nil if it has none.
  package var atMs: Int64?
  package var position: Position
  package var source: Source
  package var transactionID: String?
  package var quantity: String?
  /// What was paid for the whole quantity according to a signed transaction, in thousandths of the currency's unit.
  package var priceMilliunits: Int64?
  package var currency: String?
  package var storefront: String?
  /// The date of its cancellation or revocation.
  package var revokedAtMs: Int64?
  package var revocationReason: String?
  /// 100,000 is all; nil if not stated.
  package var revocationPercentage: Int64?
  package var isUpgraded: Bool
}

/// The result of one verification.
package struct VerificationDetail: Equatable, Sendable {
  package var position: Position
  package var upload: Position
  package var receiptID: String
  package var authority: String
  package var outcome: String
  package var environment: String
  package var status: Int64?
  package var reason: String?
  package var occurredAtMs: Int64
  /// The verification whose reply the result is based on: this one, unless it reused an earlier reply.
  package var replyPosition: Position?
}

/// A sale, with the positions of the events that determined its values.
package struct SaleDetail: Equatable, Sendable {
  package var environment: String
  package var bundleID: String
  package var saleKey: String
  package var productID: String
  package var kind: String
  package var quantity: Int64
  package var saleDateMs: Int64
  package var transactionID: String
  package var originalTransactionID: String
  /// Sorted as bytes.
  package var transactionIDs: [String]
  package var firstPosition: Position
  /// `ZZ` if no upload has named a country.
  package var countryCode: String
  package var countryPosition: Position?
  package var userIdentifier: String?
  package var userPosition: Position?
  /// How the user is known; empty if there is none.
  package var userBasis: String
  package var currency: Currency?
  /// Rounded where Apple signed a price for several units.
  package var unitPriceMicros: Int64?
  /// Of the whole quantity.
  package var amountMicros: Int64?
  /// Empty if sales of this kind have no price.
  package var priceBasis: String
  package var pricePosition: Position?
  /// Why an unpriced sale has no price; nil for other sales.
  package var priceProblem: String?
  package var isUpgraded: Bool
  package var isCancelled: Bool
  package var isPending: Bool
  package var lines: [LineDetail]

  package init(
    environment: String, bundleID: String, saleKey: String, productID: String, kind: String,
    quantity: Int64, saleDateMs: Int64, transactionID: String, originalTransactionID: String,
    transactionIDs: [String], firstPosition: Position, countryCode: String,
    countryPosition: Position? = nil, userIdentifier: String? = nil, userPosition: Position? = nil,
    userBasis: String, currency: Currency? = nil, unitPriceMicros: Int64? = nil,
    amountMicros: Int64? = nil, priceBasis: String, pricePosition: Position? = nil,
    priceProblem: String? = nil, isUpgraded: Bool, isCancelled: Bool, isPending: Bool,
    lines: [LineDetail]
  ) {
    self.environment = environment
    self.bundleID = bundleID
    self.saleKey = saleKey
    self.productID = productID
    self.kind = kind
    self.quantity = quantity
    self.saleDateMs = saleDateMs
    self.transactionID = transactionID
    self.originalTransactionID = originalTransactionID
    self.transactionIDs = transactionIDs
    self.firstPosition = firstPosition
    self.countryCode = countryCode
    self.countryPosition = countryPosition
    self.userIdentifier = userIdentifier
    self.userPosition = userPosition
    self.userBasis = userBasis
    self.currency = currency
    self.unitPriceMicros = unitPriceMicros
    self.amountMicros = amountMicros
    self.priceBasis = priceBasis
    self.pricePosition = pricePosition
    self.priceProblem = priceProblem
    self.isUpgraded = isUpgraded
    self.isCancelled = isCancelled
    self.isPending = isPending
    self.lines = lines
  }
}

/// A line of the journal.
package struct LineDetail: Equatable, Sendable {
  /// Sale, Return or Reversal.
  package var line: String
  package var dateMs: Int64
  package var quantity: Int64
  package var amountMicros: Int64?
  package var reason: String?
  package var position: Position

  package init(
    line: String, dateMs: Int64, quantity: Int64, amountMicros: Int64? = nil, reason: String? = nil,
    position: Position
  ) {
    self.line = line
    self.dateMs = dateMs
    self.quantity = quantity
    self.amountMicros = amountMicros
    self.reason = reason
    self.position = position
  }
}

/// An exception found at a position.
package struct ExceptionDetail: Equatable, Sendable {
  package var exception: String
  package var saleKey: String?
  package var productID: String?
  package var transactionID: String?
  package var detail: String
  package var position: Position

  /// Whether it reports a malformed event.
  package var isOfMalformedEvent: Bool { exception == ExceptionType.malformedEvent.word }
}

/// Everything known about a user.
package struct UserDetail: Equatable, Sendable {
  package var userIdentifier: String
  /// Nil if no upload names the user, only a signed transaction. So is `lastSeenAtMs`.
  package var firstSeenAtMs: Int64?
  package var lastSeenAtMs: Int64?
  package var uploads: [UploadDetail]
  package var verifications: [VerificationDetail]
  /// About the user's sales.
  package var notifications: [NotificationDetail]
  package var sales: [SaleDetail]
}

/// The effect of a registration or declaration.
package enum DeclarationDetail: Equatable, Sendable {
  /// The number of receipts that the family has.
  case app(receipts: Int)
  /// The number of entries in the list, of sales priced from it, and the event that withdrew it.
  case prices(entries: Int, pricedSales: Int, withdrawnBy: Position?)
  /// The number of rates, the number of days they cover, the first and last of these days, and the event that withdrew
  /// them; withdrawn rates have no days.
  case rates(rates: Int, days: Int, firstDay: String?, lastDay: String?, withdrawnBy: Position?)
  /// The declaration that is withdrawn, and how many entries it has.
  case withdrawal(of: Position, entries: Int)
  case mapping(sku: String, productID: String?)
  case settlement(kind: String, SettlementIdentity, part: Int, parts: Int)
}
