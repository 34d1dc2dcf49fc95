// A sale as the rules keep it: what the customer was charged for once.
import Revenue

/// The kinds of sales (rule R5).
enum SaleKind: Int8, CaseIterable {
  case regular, offer, trial, familyShared

  /// The word in reports.
  var word: StaticString {
    switch self {
    case .regular: "regular"
    case .offer: "offer"
    case .trial: "trial"
    case .familyShared: "family_shared"
    }
  }

  /// Whether the customer paid a price for it.
  var isPaid: Bool { self == .regular || self == .offer }
}

/// What a sale's key is (rule R3).
enum KeyKind: Int8 { case lineItem, transaction }

/// Where a price comes from (rule R7).
enum PriceBasis: Int8, CaseIterable {
  /// A trial or family-shared sale, which has no price.
  case notApplicable
  case clientTransaction, clientProduct, clientSingle, carriedForward, priceList
  /// Unpriced.
  case none

  /// The word in reports.
  var word: StaticString {
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

  /// Whether the price was given with an upload (R7, 1–3); such a price holds for good.
  var isFromClient: Bool {
    self == .clientTransaction || self == .clientProduct || self == .clientSingle
  }
}

/// What may be wrong with a price that a client sent (rule R7).
enum PriceProblem: Int8, CaseIterable {
  case noPrice, unreadable, formsDisagree, zero, currencyMissing, currencyUnknown

  /// The word in reports.
  var word: StaticString {
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

/// A price for one unit.
struct UnitPrice: Equatable {
  var micros: Int64
  var currency: Currency
}

/// What the cancellations of a sale have led to (rule R8).
enum CancellationState: Int8 { case none, returned, reversed }

/// The lines of the journal (rule R8), in their order at one position.
enum LineType: Int8, CaseIterable {
  case sale, `return`, reversal

  /// The word in reports.
  var word: StaticString {
    switch self {
    case .sale: "Sale"
    case .return: "Return"
    case .reversal: "Reversal"
    }
  }

  /// +1 or −1, by which quantity and amount are multiplied.
  var sign: Int64 { self == .return ? -1 : 1 }
}

/// A Return or Reversal of a sale. The Sale line follows from the sale itself.
struct SaleLine {
  var type: LineType
  var dateMs: Int64
  var position: Int
  var reason: Text
  /// Index of the sale's next line, or −1.
  var next: Int32 = -1
}

/// A sale. Texts belong to the store's arena.
struct Sale {
  /// Its number, from 0 in the order of first observation.
  var id: Int
  var environment: Symbol
  var bundle: Symbol
  var keyKind: KeyKind
  var key: Text

  // What the first observation fixed (rules R3–R5).
  var product: Symbol = .none
  var quantity: Int64 = 1
  var saleDateMs: Int64 = 0
  var kind: SaleKind = .regular
  var transactionID = Text(start: nil, count: 0)
  var originalTransactionID = Text(start: nil, count: 0)
  var firstPosition = 0
  var trust: ReplyTrust = .notRecorded

  // What later ones may add (rule R6).
  var country: Symbol = .none
  var countryPosition = -1
  var user: Int32 = -1
  var userPosition = -1

  // Rule R7.
  var price: UnitPrice?
  var priceBasis: PriceBasis = .none
  var pricePosition = -1
  var priceProblem: PriceProblem = .noPrice

  // Rule R8.
  var isUpgraded = false
  var cancellationState: CancellationState = .none
  /// `request_date_ms` of the newest reply that showed the cancellation; the least value where none had one.
  var newestCancellationRequestMs = Int64.min
  /// `request_date_ms` of the reply that reversed.
  var reversalRequestMs = Int64.min
  /// Index of the first line beside the Sale line, and of the last, or −1.
  var firstLine: Int32 = -1
  var lastLine: Int32 = -1
  /// Index of the first alias, or −1.
  var firstAlias: Int32 = -1

  /// How many verifications changed it.
  var version = 0
  var createdAtMs: Int64 = 0
  var updatedAtMs: Int64 = 0
  /// The verification that changed it last, in this run.
  var updatedPosition = -1

  /// Whether the database has another state of it, or none.
  var isChanged = true
  /// Whether it rests on receipts that the App Store has not confirmed (rule R1).
  var isPending = false
  /// Whether the verification at hand is the first that shows it.
  var isFirstObservation = true

  /// The price that a client sent. One that was derived gives way to it.
  var clientPrice: UnitPrice? { priceBasis.isFromClient ? price : nil }

  init(id: Int, environment: Symbol, bundle: Symbol, keyKind: KeyKind, key: Text) {
    (self.id, self.environment, self.bundle) = (id, environment, bundle)
    (self.keyKind, self.key) = (keyKind, key)
  }

  /// Whether the key is this sale's.
  @inline(__always)
  func isOf(_ other: SaleKey) -> Bool {
    environment == other.environment && bundle == other.bundle && keyKind == other.kind
      && key.equals(other.text)
  }
}

/// What identifies a sale (rule R3).
struct SaleKey: Hashable {
  var environment: Symbol
  var bundle: Symbol
  var kind: KeyKind
  var text: Text

  @inline(__always)
  static func == (left: SaleKey, right: SaleKey) -> Bool {
    left.environment == right.environment && left.bundle == right.bundle
      && left.kind == right.kind && left.text.equals(right.text)
  }

  /// A hash for tables in memory.
  var placeHash: UInt64 {
    let numbers = UInt64(UInt32(bitPattern: environment)) << 32 | UInt64(UInt32(bitPattern: bundle))
    return text.placeHash(numbers ^ UInt64(UInt8(bitPattern: kind.rawValue)) << 63)
  }

  @inline(__always)
  func hash(into hasher: inout Hasher) {
    hasher.combine(environment)
    hasher.combine(bundle)
    hasher.combine(kind.rawValue)
    hasher.combine(bytes: text)
  }
}
