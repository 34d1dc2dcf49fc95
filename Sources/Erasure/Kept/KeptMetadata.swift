// What an erasure keeps of an upload's metadata: prices in the forms that rule R7 reads, without free text.
import AppStore
import Base
import Revenue

/// Reduces metadata to its prices.
struct KeptMetadata {
  /// The members of a price, in the order in which they are written.
  private enum Member: Int, CaseIterable {
    case productID, transactionID, kind, price, priceMicros, priceMilliunits, currency

    init?(_ key: JSONString) {
      if key == "product_id" {
        self = .productID
      } else if key == "transaction_id" {
        self = .transactionID
      } else if key == "kind" {
        self = .kind
      } else if key == "price" {
        self = .price
      } else if key == "price_micros" {
        self = .priceMicros
      } else if key == "price_milliunits" {
        self = .priceMilliunits
      } else if key == "currency" {
        self = .currency
      } else {
        return nil
      }
    }

    var isForm: Bool { self == .price || self == .priceMicros || self == .priceMilliunits }
  }

  private let names: Pseudonyms
  private let keeper = TextKeeper()

  init(_ names: Pseudonyms) { self.names = names }

  /// One JSON object; nil if the metadata names no price.
  func reduced(_ metadata: JSONBytes) throws -> [UInt8]? {
    keeper.removeAll()
    var cursor = JSONCursor(metadata)
    guard try cursor.kind() == .object else { return nil }
    var entries: [[Member: LenientValue]] = []
    var top: [Member: LenientValue] = [:]
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "prices" {
        try read(&entries, &cursor)
      } else if let member = Member(key) {
        top[member] = try keeper.read(&cursor)
      } else {
        try cursor.skipValue()
      }
    }
    entries = entries.filter { !Self.isEmpty($0) }
    let hasShorthand = top.contains { $0.key.isForm && !Self.isMissing($0.value) }
    if entries.isEmpty, !hasShorthand { return nil }
    var writer = JSONWriter()
    writer.beginObject()
    if !entries.isEmpty {
      writer.key("prices")
      writer.beginArray()
      for entry in entries {
        writer.beginObject()
        try write(entry, to: &writer)
        writer.endObject()
      }
      writer.endArray()
    }
    if hasShorthand { try write(top, to: &writer) }
    writer.endObject()
    return writer.bytes
  }

  private static func isMissing(_ value: LenientValue) -> Bool {
    if case .missing = value { return true }
    return false
  }

  private static func isEmpty(_ entry: [Member: LenientValue]) -> Bool {
    entry.values.allSatisfy(isMissing)
  }

  private func read(
    _ entries: inout [[Member: LenientValue]], _ cursor: inout JSONCursor
  ) throws {
    guard try cursor.kind() == .array else { return try cursor.skipValue() }
    try cursor.beginArray()
    while try cursor.nextElement() {
      guard try cursor.kind() == .object else {
        try cursor.skipValue()
        continue
      }
      var entry: [Member: LenientValue] = [:]
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if let member = Member(key) {
          entry[member] = try keeper.read(&cursor)
        } else {
          try cursor.skipValue()
        }
      }
      entries.append(entry)
    }
  }

  private func write(_ entry: [Member: LenientValue], to writer: inout JSONWriter) throws {
    for member in Member.allCases {
      guard let value = entry[member], !Self.isMissing(value) else { continue }
      switch member {
      case .productID:
        guard let id = value.id else { continue }
        writer.member(
          "product_id",
          try names.isProduct(id) ? String(decoding: id, as: UTF8.self) : names.mark(id))
      case .transactionID:
        guard let id = value.id else { continue }
        writer.member(
          "transaction_id",
          try names.isTransaction(id) ? String(decoding: id, as: UTF8.self) : names.mark(id))
      case .kind:
        guard let id = value.id else { continue }
        writer.member(
          "kind", Self.isKind(id) ? String(decoding: id, as: UTF8.self) : names.mark(id))
      case .price: form("price", value, to: &writer) { PriceForms.micros(decimal: $0) }
      case .priceMicros:
        form("price_micros", value, numbersOnly: true, to: &writer) {
          PriceForms.micros(microsToken: $0)
        }
      case .priceMilliunits:
        form("price_milliunits", value, numbersOnly: true, to: &writer) {
          PriceForms.micros(milliunitsToken: $0)
        }
      case .currency: currency(value, to: &writer)
      }
    }
  }

  private static func isKind(_ text: JSONBytes) -> Bool {
    ["regular", "intro", "promo", "offer_code"].contains { text.elementsEqual($0.utf8) }
  }

  /// More digits are rounded away: only the first six decimals count.
  private static let decimalsMax = 6

  /// A price as written if a rule can read it; otherwise a mark, which no rule can read either.
  private func form(
    _ key: StaticString, _ value: LenientValue, numbersOnly: Bool = false,
    to writer: inout JSONWriter, _ micros: (JSONBytes) -> Int64?
  ) {
    let text: JSONBytes
    switch value {
    case .number(let token): text = token
    case .string(let string) where !numbersOnly: text = string
    default: return writer.member(key, names.mark(value.text))
    }
    guard let micros = micros(text) else { return writer.member(key, names.mark(value.text)) }
    writer.key(key)
    if let point = text.firstIndex(of: UInt8(ascii: ".")),
      text.count - point - 1 > Self.decimalsMax
    {
      // Decimals beyond those of a price could carry any information.
      writer.string(Self.decimal(micros))
    } else if case .number = value {
      writer.raw(text)
    } else {
      writer.string(text)
    }
  }

  private static func decimal(_ micros: Int64) -> String {
    let decimals = String(micros % 1_000_000)
    return "\(micros / 1_000_000)." + String(repeating: "0", count: 6 - decimals.count) + decimals
  }

  /// A known code as it is, nothing for nothing, or a mark for an unknown one.
  private func currency(_ value: LenientValue, to writer: inout JSONWriter) {
    guard case .string(let text) = value else {
      return writer.member("currency", names.mark(value.text))
    }
    if text.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) {
      writer.member("currency", "")
    } else if let known = Currency.parse(text) {
      writer.member("currency", known.description)
    } else {
      writer.member("currency", names.mark(text))
    }
  }
}
