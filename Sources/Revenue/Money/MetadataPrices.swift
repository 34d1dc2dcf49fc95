// The prices in an upload's metadata, as the client wrote them (rule R7, forms and problems).
import AppStore
import JSON

/// One price that a client sent: an entry of `metadata.prices[]`, or the shorthand members.
struct PriceEntry {
  /// The forms as written; `missing` if absent or null.
  struct Forms {
    var price: LenientValue = .missing
    var micros: LenientValue = .missing
    var milliunits: LenientValue = .missing

    var isEmpty: Bool {
      if case .missing = price, case .missing = micros, case .missing = milliunits { return true }
      return false
    }
  }

  var productID: Text?
  var transactionID: Text?
  /// The number of the only sale that the entry counts for as if it had no `transactionID`.
  var onlySale: Int?
  var kind: LenientValue = .missing
  var forms = Forms()
  var currency: LenientValue = .missing

  /// Reads one member; ignores a member that does not belong to a price.
  mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    if key == "price" {
      forms.price = try keeper.read(&cursor)
    } else if key == "price_micros" {
      forms.micros = try keeper.read(&cursor)
    } else if key == "price_milliunits" {
      forms.milliunits = try keeper.read(&cursor)
    } else if key == "currency" {
      currency = try keeper.read(&cursor)
    } else if key == "product_id" {
      productID = try keeper.read(&cursor).id
    } else if key == "transaction_id" {
      transactionID = try keeper.read(&cursor).id
    } else if key == "kind" {
      kind = try keeper.read(&cursor)
    } else {
      try cursor.skipValue()
    }
  }
}

/// The result of applying R7 to an entry: a price, or the first problem found.
enum PriceReading {
  case price(micros: Int64, Currency)
  case problem(PriceProblem)
}

extension PriceEntry {
  /// R7: the unit price, if all its forms are readable and equal, it is not 0, and its currency is known.
  func read() -> PriceReading {
    var found: Int64?
    var disagree = false
    for form in [
      micros(of: forms.price), micros(ofMicros: forms.micros),
      micros(ofMilliunits: forms.milliunits),
    ] {
      switch form {
      case .absent: continue
      case .unreadable: return .problem(.unreadable)
      case .micros(let value):
        if let found, found != value { disagree = true }
        found = value
      }
    }
    guard let found else { return .problem(.unreadable) }
    if disagree { return .problem(.formsDisagree) }
    if found == 0 { return .problem(.zero) }
    switch currency {
    case .missing: return .problem(.currencyMissing)
    case .string(let text):
      if text.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) {
        return .problem(.currencyMissing)
      }
      guard let known = Currency.parse(text) else { return .problem(.currencyUnknown) }
      return .price(micros: found, known)
    default: return .problem(.currencyUnknown)
    }
  }

  private enum Form { case absent, unreadable, micros(Int64) }

  private func form(_ micros: Int64?) -> Form { micros.map { .micros($0) } ?? .unreadable }

  /// A string of digits with or without a decimal point, or a number written that way.
  private func micros(of value: LenientValue) -> Form {
    switch value {
    case .missing: .absent
    case .string(let text), .number(let text): form(PriceForms.micros(decimal: text))
    default: .unreadable
    }
  }

  private func micros(ofMicros value: LenientValue) -> Form {
    switch value {
    case .missing: .absent
    case .number(let token): form(PriceForms.micros(microsToken: token))
    default: .unreadable
    }
  }

  private func micros(ofMilliunits value: LenientValue) -> Form {
    switch value {
    case .missing: .absent
    case .number(let token): form(PriceForms.micros(milliunitsToken: token))
    default: .unreadable
    }
  }
}

/// The prices in one upload's metadata. The texts live as long as the metadata and this value's keeper.
package struct MetadataPrices {
  /// The entries of `prices[]`, then the shorthand if it names a product or a transaction.
  private(set) var entries: [PriceEntry] = []
  /// The shorthand `metadata.price` (or another form) with `metadata.currency`.
  private(set) var shorthand: PriceEntry?
  private let keeper = TextKeeper()

  package init() {}

  /// Whether there is no price to read.
  var isEmpty: Bool { entries.isEmpty && shorthand == nil }

  /// Visits the transactions that entries name.
  package func forEachTransaction(_ body: (Text) -> Void) {
    for entry in entries { if let transaction = entry.transactionID { body(transaction) } }
  }

  /// Reads another upload's metadata. Clients write it freely, so unexpected content gives no entry.
  package mutating func read(_ metadata: Text) {
    entries.removeAll(keepingCapacity: true)
    shorthand = nil
    keeper.removeAll()
    if metadata.isEmpty { return }
    do throws(JSONError) { try parse(metadata) } catch {
      // The event's line was validated when it was written. A fold must not stop at one that was not.
      entries.removeAll()
      shorthand = nil
    }
  }

  mutating func limit(entryAt index: Int, toSale id: Int) { entries[index].onlySale = id }

  private mutating func parse(_ metadata: Text) throws(JSONError) {
    var cursor = JSONCursor(metadata)
    guard try cursor.kind() == .object else { return }
    var top = PriceEntry()
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "prices" {
        try parseEntries(&cursor)
      } else {
        try top.read(key, &cursor, keeper)
      }
    }
    if top.forms.isEmpty { return }
    if top.productID != nil || top.transactionID != nil {
      entries.append(top)
    } else {
      shorthand = top
    }
  }

  private mutating func parseEntries(_ cursor: inout JSONCursor) throws(JSONError) {
    guard try cursor.kind() == .array else { return try cursor.skipValue() }
    try cursor.beginArray()
    while try cursor.nextElement() {
      guard try cursor.kind() == .object else {
        try cursor.skipValue()
        continue
      }
      var entry = PriceEntry()
      try cursor.beginObject()
      while let key = try cursor.nextKey() { try entry.read(key, &cursor, keeper) }
      entries.append(entry)
    }
  }
}
