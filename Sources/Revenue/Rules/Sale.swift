// A sale as the rules keep it: what the customer was charged for once. The parts that reports read for each
// line are public, because `package` functions do not inline across modules.

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
  case clientTransaction, clientProduct, clientSingle, carriedForward, priceList
  /// Unpriced.
  case none

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .notApplicable: ""
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
}

/// What can be wrong with a price that a client sent (rule R7).
public enum PriceProblem: Int8, CaseIterable, BitwiseCopyable, Sendable {
  case noPrice, unreadable, formsDisagree, zero, currencyMissing, currencyUnknown

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .noPrice: "no_price"
    case .unreadable: "price_unreadable"
    case .formsDisagree: "price_forms_disagree"
    case .zero: "price_zero"
    case .currencyMissing: "currency_missing"
    case .currencyUnknown: "currency_unknown"
    }
  }
}

/// The price of one unit.
package struct UnitPrice: Equatable, BitwiseCopyable {
  package var micros: Int64
  package var currency: Currency

  package init(micros: Int64, currency: Currency) {
    self.micros = micros
    self.currency = currency
  }
}

/// The result of a sale's cancellations so far (rule R8).
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
  package var reason: Text
  /// Index of the sale's next line, or −1.
  var next: Int32 = -1

  package init(type: LineType, dateMs: Int64, position: Int, reason: Text) {
    self.type = type
    self.dateMs = dateMs
    self.position = position
    self.reason = reason
  }
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
  package var quantity: Int64 = 1
  package var saleDateMs: Int64 = 0
  package var kind: SaleKind = .regular
  package var transactionID = Text(start: nil, count: 0)
  package var originalTransactionID = Text(start: nil, count: 0)
  package var firstPosition = 0
  package var trust: ReplyTrust = .notRecorded

  // Later observations may add these (rule R6).
  package var country: Symbol = .none
  package var countryPosition = -1
  package var user: Int32 = -1
  package var userPosition = -1

  // Rule R7.
  package var price: UnitPrice?
  package var priceBasis: PriceBasis = .none
  package var pricePosition = -1
  package var priceProblem: PriceProblem = .noPrice

  // Rule R8.
  package var isUpgraded = false
  package var cancellationState: CancellationState = .none
  /// `request_date_ms` of the newest reply that showed the cancellation; the minimum if no such reply had
  /// one.
  package var newestCancellationRequestMs = Int64.min
  /// `request_date_ms` of the reply that caused the Reversal.
  package var reversalRequestMs = Int64.min
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
  /// Whether the sale rests on receipts that the App Store has not confirmed (rule R1).
  package var isPending = false
  /// Whether the current verification is the first that shows the sale.
  package var isFirstObservation = true

  /// The price that a client sent. It replaces a derived price.
  var clientPrice: UnitPrice? { priceBasis.isFromClient ? price : nil }

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
