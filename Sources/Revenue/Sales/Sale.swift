// A sale as the rules keep it: what the customer was charged for once; and its journal lines. The parts that reports
// read for each line are public, because `package` functions do not inline across modules.
import AppStore

/// The kinds of sales (rule R5).
public enum SaleKind: Int8, CaseIterable, BitwiseCopyable, Sendable {
  case regular, offer, trial, familyShared

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .regular: "regular"
    case .offer: "offer"
    case .trial: "trial"
    case .familyShared: "family_shared"
    }
  }

  /// Whether the customer paid for it.
  @inlinable public var isPaid: Bool { self == .regular || self == .offer }
}

/// The kind of a sale's key (rule R3).
public enum KeyKind: Int8, BitwiseCopyable, Sendable { case lineItem, transaction }

/// The source of a price (rule R7).
public enum PriceBasis: Int8, CaseIterable, BitwiseCopyable, Sendable {
  /// A trial or family-shared sale, which has no price.
  case notApplicable
  /// Signed by Apple (rule R12).
  case signedTransaction
  case clientTransaction, clientProduct, clientSingle, carriedForward, priceList
  /// Unpriced.
  case none

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .notApplicable: ""
    case .signedTransaction: "signed_transaction"
    case .clientTransaction: "client_transaction"
    case .clientProduct: "client_product"
    case .clientSingle: "client_single"
    case .carriedForward: "carried_forward"
    case .priceList: "price_list"
    case .none: "none"
    }
  }

  /// Whether the price came with an upload (R7, 1–3). Such a price is final.
  @inlinable public var isFromClient: Bool {
    self == .clientTransaction || self == .clientProduct || self == .clientSingle
  }

  /// Whether the price was stated for the sale itself. Prices derived from elsewhere never replace it.
  @inlinable public var isOwn: Bool { isFromClient || self == .signedTransaction }
}

/// What can be wrong with a price (rules R7 and R12).
public enum PriceProblem: Int8, CaseIterable, BitwiseCopyable, Sendable {
  case noPrice, unreadable, formsDisagree, zero, currencyMissing, currencyUnknown
  /// A signed price is an average per seat.
  case multiSeat
  /// The amount by a carried or listed price exceeds 64 bits. Like the price, it follows from the report's position.
  case tooLarge

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .noPrice: "no_price"
    case .unreadable, .tooLarge: "price_unreadable"
    case .formsDisagree: "price_forms_disagree"
    case .zero: "price_zero"
    case .currencyMissing: "currency_missing"
    case .currencyUnknown: "currency_unknown"
    case .multiSeat: "multi_seat_price"
    }
  }

  /// Whether no event has shown a problem.
  var isOpen: Bool { self == .noPrice || self == .tooLarge }
}

/// The price of one unit.
package struct UnitPrice: Equatable, BitwiseCopyable {
  package var micros: Int64
  package var currency: Currency

  package init(micros: Int64, currency: Currency) {
    self.micros = micros
    self.currency = currency
  }

  /// The amount of a number of units; nil if it exceeds 64 bits. Such a price is not accepted.
  func amountMicros(of quantity: Int64) -> Int64? {
    let (amount, overflow) = micros.multipliedReportingOverflow(by: quantity)
    return overflow ? nil : amount
  }
}

/// Whether any of a sale is refunded, or was (rules R8 and R12).
public enum CancellationState: Int8, BitwiseCopyable, Sendable { case none, returned, reversed }

/// The lines of the journal (rule R8), in their order at one position.
public enum LineType: Int8, CaseIterable, BitwiseCopyable, Sendable {
  case sale, `return`, reversal

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .sale: "Sale"
    case .return: "Return"
    case .reversal: "Reversal"
    }
  }

  /// +1 or −1, the factor for quantity and amount.
  @inlinable public var sign: Int64 { self == .return ? -1 : 1 }
}

/// A Return or Reversal of a sale. The Sale line is derived from the sale itself.
package struct SaleLine: BitwiseCopyable {
  package var type: LineType
  package var dateMs: Int64
  package var position: Int
  /// The time of the statement that caused the line; the minimum if it has none.
  package var statementMs: Int64
  package var reason: Text
  /// The share of the sale that is refunded after this line (rule R12).
  package var share: RefundShare
  /// What Advanced Commerce has refunded after this line, in micros.
  package var advancedMicros: Int64
  /// Whether a reply's cancellation was taken for a full refund, because no signed share is known.
  package var isAssumed: Bool
  /// Index of the sale's next line, or −1.
  var next: Int32 = -1

  package init(
    type: LineType, dateMs: Int64, position: Int, statementMs: Int64, reason: Text,
    share: RefundShare, advancedMicros: Int64 = 0, isAssumed: Bool = false
  ) {
    self.type = type
    self.dateMs = dateMs
    self.position = position
    self.statementMs = statementMs
    self.reason = reason
    self.share = share
    self.advancedMicros = advancedMicros
    self.isAssumed = isAssumed
  }
}

/// The owner of a sale for the check of replays after its user was erased (rule R6).
package struct SaleClaim: BitwiseCopyable {
  package var user: Int32
  /// The upload that claimed it.
  package var position: Int

  package init(user: Int32, position: Int) {
    self.user = user
    self.position = position
  }
}

/// What the rules must remember about a sale in addition to its figures (rule R12).
package struct SaleFlags: OptionSet, BitwiseCopyable, Sendable {
  package let rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The quantity is 1 because the first observation had an invalid one.
  package static let isQuantityAssumed = SaleFlags(rawValue: 1)
  /// An offer of type 1 that may turn out to be a trial.
  package static let mayBecomeTrial = SaleFlags(rawValue: 2)
  /// An upload has shown the sale.
  package static let hasUpload = SaleFlags(rawValue: 4)
  /// The country is that of a storefront.
  package static let isCountrySigned = SaleFlags(rawValue: 8)
  /// An upload has named another user than the first, when the sale's Apple Account was not known.
  package static let hasOtherUser = SaleFlags(rawValue: 16)
  /// The store has a history of the sale's refunds.
  package static let hasRefundStatements = SaleFlags(rawValue: 64)
  /// The offer flags of the first observation (rule R4), which decide what prices of products fit (rule R7.2).
  package static let isIntroductory = SaleFlags(rawValue: 128)
  package static let isPromotional = SaleFlags(rawValue: 256)
  package static let isByOfferCode = SaleFlags(rawValue: 512)
  /// What a signed statement gave as the transaction's reason.
  package static let isSignedRenewal = SaleFlags(rawValue: 1024)
  package static let isSignedPurchase = SaleFlags(rawValue: 2048)

  // The newest product type that a signed statement named; at most one of them is set. No rule reads it.
  package static let isConsumable = SaleFlags(rawValue: 4096)
  package static let isNonConsumable = SaleFlags(rawValue: 8192)
  package static let isNonRenewing = SaleFlags(rawValue: 16384)
  package static let isAutoRenewable = SaleFlags(rawValue: 32768)
  private static let types: SaleFlags = [
    .isConsumable, .isNonConsumable, .isNonRenewing, .isAutoRenewable,
  ]

  /// These flags, with the type of a product in place of any other type.
  func replacingType(_ type: SignedProductType) -> SaleFlags {
    let flag: SaleFlags =
      switch type {
      case .consumable: .isConsumable
      case .nonConsumable: .isNonConsumable
      case .nonRenewing: .isNonRenewing
      case .autoRenewable: .isAutoRenewable
      }
    return subtracting(Self.types).union(flag)
  }

  /// Every flag that this program knows.
  static let all = SaleFlags(rawValue: .max)
}

/// A sale. Its texts belong to the store's arena.
package struct Sale: BitwiseCopyable {
  /// The sale's number, from 0 in the order of first observation.
  package var id: Int
  package var environment: Symbol
  package var bundle: Symbol
  package var keyKind: KeyKind
  package var key: Text

  // Set by the first observation (rules R3–R5).
  package var product: Symbol = .none
  /// From 1 to `quantityMax`.
  package var quantity: Int64 = 1
  package var saleDateMs: Int64 = 0
  package var kind: SaleKind = .regular
  package var transactionID = Text(start: nil, count: 0)
  package var originalTransactionID = Text(start: nil, count: 0)
  package var firstPosition = 0
  package var trust: ReplyTrust = .notRecorded

  // Later observations may add these (rules R6 and R12).
  package var flags: SaleFlags = []
  /// The first country that an upload named.
  package var clientCountry: Symbol = .none
  package var country: Symbol = .none
  package var countryPosition = -1
  package var user: Int32 = -1
  package var userPosition = -1
  package var userBasis: UserBasis = .none
  /// The number of its Apple Account; −1 if no statement has named one.
  package var account: Int32 = -1
  /// The key of its first app account token; 0 if no statement had one.
  package var token: Int64 = 0
  /// The user whom the token names, and the position of its statement; −1 if an upload had named one before.
  package var tokenUser: Int32 = -1
  package var tokenPosition = -1

  // Rules R7 and R12.
  package var price: UnitPrice?
  /// The signed amount for the whole quantity; 0 for any other basis.
  package var signedAmountMicros: Int64 = 0
  package var priceBasis: PriceBasis = .none
  package var pricePosition = -1
  package var priceProblem: PriceProblem = .noPrice

  // Rule R13.
  /// The end of the period that the sale paid for, in epoch milliseconds; nil if no statement has an expiry.
  package var periodEndMs: Int64?
  /// The time of the statement with that end; the minimum if it has none.
  package var periodEndStatementMs = Int64.min

  // Rules R8 and R12.
  /// The times of the newest reply and of the newest signed statement before the first one about a refund or an
  /// upgrade, in epoch milliseconds; the minimum if there is none.
  package var newestReplyMs = Int64.min
  package var newestSignedMs = Int64.min
  /// The time of the event with that reply.
  package var newestReplyEventMs = Int64.min
  package var isUpgraded = false
  package var cancellationState: CancellationState = .none
  /// Indexes of the first and the last line other than the Sale line, or −1.
  package var firstLine: Int32 = -1
  var lastLine: Int32 = -1
  /// Index of the first alias, or −1.
  var firstAlias: Int32 = -1

  /// The number of verifications that changed the sale.
  package var version = 0
  package var createdAtMs: Int64 = 0
  package var updatedAtMs: Int64 = 0
  /// The most recent verification in this run that changed the sale.
  package var updatedPosition = -1

  /// Whether the database has no state or another state of the sale.
  package var isChanged = true
  /// Whether the database has no state or another state of the times of statements.
  package var isTimeChanged = false
  /// Whether the sale is based on receipts that the App Store has not confirmed (rule R1).
  package var isPending = false
  /// Whether the current event is the first with an upload that shows the sale.
  package var isFirstObservation = true

  /// The highest quantity; replies have at most 10.
  package static let quantityMax: Int64 = 1_000_000

  /// Whether the store has a history of the sale's refunds.
  @inline(__always)
  var hasRefundStatements: Bool { flags.contains(.hasRefundStatements) }

  /// The price that a client sent. It replaces a derived price.
  var clientPrice: UnitPrice? { priceBasis.isFromClient ? price : nil }

  /// The amount of the Sale line; 0 for trials and family-shared sales, nil for unpriced sales.
  package var amountMicros: Int64? {
    guard let price else { return kind.isPaid ? nil : 0 }
    if priceBasis == .signedTransaction { return signedAmountMicros }
    guard let amount = price.amountMicros(of: quantity) else {
      preconditionFailure("an amount exceeds 64 bits")
    }
    return amount
  }

  package init(id: Int, environment: Symbol, bundle: Symbol, keyKind: KeyKind, key: Text) {
    (self.id, self.environment, self.bundle) = (id, environment, bundle)
    (self.keyKind, self.key) = (keyKind, key)
  }

  /// Whether this sale has the given key.
  @inline(__always)
  func isOf(_ other: SaleKey) -> Bool {
    environment == other.environment && bundle == other.bundle && keyKind == other.kind
      && key.equals(other.text)
  }
}

/// What identifies a sale (rule R3).
package struct SaleKey: Hashable {
  package var environment: Symbol
  package var bundle: Symbol
  package var kind: KeyKind
  package var text: Text

  package init(environment: Symbol, bundle: Symbol, kind: KeyKind, text: Text) {
    self.environment = environment
    self.bundle = bundle
    self.kind = kind
    self.text = text
  }

  @inline(__always)
  package static func == (left: SaleKey, right: SaleKey) -> Bool {
    left.environment == right.environment && left.bundle == right.bundle
      && left.kind == right.kind && left.text.equals(right.text)
  }

  /// A hash for tables in memory.
  package var placeHash: UInt64 {
    let numbers = UInt64(UInt32(bitPattern: environment)) << 32 | UInt64(UInt32(bitPattern: bundle))
    return text.placeHash(numbers ^ UInt64(UInt8(bitPattern: kind.rawValue)) << 63)
  }

  @inline(__always)
  package func hash(into hasher: inout Hasher) {
    hasher.combine(environment)
    hasher.combine(bundle)
    hasher.combine(kind.rawValue)
    hasher.combine(bytes: text)
  }
}

// MARK: - Journal lines

/// One dated, signed entry of the sales journal.
public struct JournalLine {
  package var type: LineType
  package var dateMs: Int64
  /// Signed. Trials and family-shared sales also have a quantity.
  package var quantity: Int64
  /// Signed; 0 for trials and family-shared sales, nil for unpriced sales.
  package var amountMicros: Int64?
  package var position: Int
  package var reason: Text

  package init(
    _ type: LineType, dateMs: Int64, quantity: Int64, amountMicros: Int64?, position: Int,
    reason: Text
  ) {
    self.type = type
    self.dateMs = dateMs
    self.quantity = quantity
    self.amountMicros = amountMicros
    self.position = position
    self.reason = reason
  }

  /// R8: the signed amount for a signed quantity.
  @inlinable @inline(__always)
  public static func amountMicros(
    of quantity: Int64, priceMicros: Int64?, _ kind: SaleKind
  ) -> Int64? {
    guard let priceMicros else { return kind.isPaid ? nil : 0 }
    let (amount, overflow) = priceMicros.multipliedReportingOverflow(by: quantity)
    precondition(!overflow, "an amount exceeds 64 bits")
    return amount
  }
}

extension SaleStore {
  /// R8 and R12: calls `body` with the journal lines of a sale in its current state, in order, starting with the Sale
  /// line.
  package func forEachJournalLine<Failure: Error>(
    of sale: Sale, _ body: (JournalLine) throws(Failure) -> Void
  ) throws(Failure) {
    try body(
      JournalLine(
        .sale, dateMs: sale.saleDateMs, quantity: sale.quantity, amountMicros: sale.amountMicros,
        position: sale.firstPosition, reason: Text(start: nil, count: 0)))
    if sale.firstLine < 0 { return }
    var walk = RefundWalk(sale)
    try forEachLine(of: sale) { line throws(Failure) in
      let figures = walk.next(line)
      try body(
        JournalLine(
          line.type, dateMs: line.dateMs, quantity: figures.quantity,
          amountMicros: figures.amountMicros, position: line.position, reason: line.reason))
    }
  }
}
