// The prices in an upload's metadata, as the client wrote them (rule R7): forms, problems and parsing.
import AppStore
import Base

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

// MARK: - Price forms

/// Parses the price forms of revenue rule R7, exactly and without allocating. Each function parses one raw token and
/// returns micros (10⁻⁶ of the currency's unit), from 0 to 10¹⁷, or nil if it is unreadable. Zero is returned as 0; the
/// rule decides whether it is a price.
package enum PriceForms {
  static let wholeDigitsMax = 11
  static let microsDigitsMax = 17
  static let milliunitsDigitsMax = 14
  static let microsDecimals = 6

  /// Parses `price`: the content of a JSON string, or a JSON number's digits as written, of the form
  /// `^[0-9]{1,11}(\.[0-9]+)?$`. Rounds half to even at the sixth decimal, taking all further decimals into
  /// account.
  package static func micros(decimal text: UnsafeRawBufferPointer) -> Int64? {
    var place = 0
    var micros: Int64 = 0
    while place < text.count, let digit = digitValue(text[place]) {
      guard place < wholeDigitsMax else { return nil }
      micros = micros * 10 + Int64(digit)
      place += 1
    }
    guard place > 0 else { return nil }
    if place == text.count { return micros * 1_000_000 }
    guard text[place] == UInt8(ascii: "."), place + 1 < text.count else { return nil }
    let pointPlace = place
    var seventhDigit: UInt8 = 0
    var hasMore = false
    for place in (pointPlace + 1)..<text.count {
      guard let digit = digitValue(text[place]) else { return nil }
      switch place - pointPlace {
      case ...microsDecimals: micros = micros * 10 + Int64(digit)
      case microsDecimals + 1: seventhDigit = digit
      default: hasMore = hasMore || digit != 0
      }
    }
    let decimals = text.count - pointPlace - 1
    for _ in min(decimals, microsDecimals)..<microsDecimals { micros *= 10 }
    if seventhDigit > 5 || (seventhDigit == 5 && (hasMore || micros % 2 == 1)) { micros += 1 }
    return micros
  }

  /// Parses `price_micros`: a JSON integer token of at most 17 digits, without a sign.
  package static func micros(microsToken token: UnsafeRawBufferPointer) -> Int64? {
    integer(token, digitsMax: microsDigitsMax)
  }

  /// Parses `price_milliunits`: a JSON integer token of at most 14 digits, without a sign.
  package static func micros(milliunitsToken token: UnsafeRawBufferPointer) -> Int64? {
    integer(token, digitsMax: milliunitsDigitsMax).map { $0 * 1000 }
  }

  private static func integer(_ token: UnsafeRawBufferPointer, digitsMax: Int) -> Int64? {
    guard (1...digitsMax).contains(token.count) else { return nil }
    if token.count > 1, token[0] == UInt8(ascii: "0") { return nil }
    var value: Int64 = 0
    for byte in token {
      guard let digit = digitValue(byte) else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }
}
