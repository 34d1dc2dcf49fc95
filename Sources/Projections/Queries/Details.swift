// Details of a receipt, an upload, a verification, a sale, for display: plain values with their positions.
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
  package var receiptID: String
  package var occurredAtMs: Int64
  package var countryCode: String?
  package var userIdentifier: String?
  /// The line of the import file that it came from.
  package var line: Int64?
}

/// One result of one verification.
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
  /// The verification whose reply it rests on: its own position, unless an earlier reply was used again.
  package var replyPosition: Position?
}

/// A sale, with the positions of the events that gave it what it has.
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
  /// `ZZ` where no upload has named one.
  package var countryCode: String
  package var countryPosition: Position?
  package var userIdentifier: String?
  package var userPosition: Position?
  package var currency: Currency?
  package var unitPriceMicros: Int64?
  /// Empty where the sale has no price by its kind.
  package var priceBasis: String
  package var pricePosition: Position?
  /// Why an unpriced sale has no price.
  package var priceProblem: String?
  package var isUpgraded: Bool
  package var isCancelled: Bool
  package var isPending: Bool
  package var lines: [LineDetail]
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
}

/// An exception that was met at a position.
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

/// What is known of a user.
package struct UserDetail: Equatable, Sendable {
  package var userIdentifier: String
  package var firstSeenAtMs: Int64
  package var lastSeenAtMs: Int64
  package var uploads: [UploadDetail]
  package var verifications: [VerificationDetail]
  package var sales: [SaleDetail]
}

/// What became of a declaration.
package enum DeclarationDetail: Equatable, Sendable {
  /// How many receipts the family has.
  case app(receipts: Int)
  /// How many entries the list has, and how many sales have their price from it.
  case prices(entries: Int, pricedSales: Int)
  /// How many rates there are, of how many days.
  case rates(rates: Int, days: Int, firstDay: String?, lastDay: String?)
}
