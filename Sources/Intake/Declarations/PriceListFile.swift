// `prices import`: a price list in CSV becomes `prices.declared` events.
import Base
import Ledger
import Revenue

/// Price lists with the columns product_id, country_code, currency, price and effective_from.
package enum PriceListFile {
  static let columns = ["product_id", "country_code", "currency", "price", "effective_from"]

  /// Reads a price list from a path; `-` is standard input. One wrong line refuses the whole file.
  package static func read(
    path: String, stop: StopFlag
  ) throws(DeclarationError) -> Declaration {
    try read(DeclarationFile(path: path, stop: stop))
  }

  /// Reads a price list from memory; `source` is the name that the events cite.
  package static func read(
    _ bytes: [UInt8], source: String
  ) throws(DeclarationError) -> Declaration {
    try read(DeclarationFile(source: source, bytes: bytes))
  }

  private struct Key: Hashable {
    var productID: String
    var countryCode: String?
    var effectiveFrom: String
  }

  private struct Value {
    var line: Int
    var micros: Int64
    var currency: String
  }

  private static func read(_ file: DeclarationFile) throws(DeclarationError) -> Declaration {
    var problems = ProblemList()
    var entries: [PricesDeclared.Entry] = []
    var seen: [Key: Value] = [:]
    var zeroPrices: Declaration.ZeroPrices?
    var reader = CSVReader(file.bytes)
    var columnMap: ColumnMap?
    var isHeaderSeen = false
    while true {
      do throws(CSVError) {
        guard let record = try reader.next() else { break }
        if !isHeaderSeen {
          isHeaderSeen = true
          columnMap = ColumnMap(record, names: columns, problems: &problems)
          // Without its columns, no line can be checked.
          if columnMap == nil { break }
        } else if let cells = columnMap?.cells(of: record, problems: &problems) {
          guard let (entry, micros) = entry(cells, record.line, &problems) else { continue }
          let key = Key(
            productID: entry.productID, countryCode: entry.countryCode,
            effectiveFrom: entry.effectiveFrom)
          if let earlier = seen[key] {
            if earlier.micros != micros || earlier.currency != entry.currency {
              problems.add(
                line: record.line,
                "conflicts with line \(earlier.line): another price for the same product, country and day"
              )
            }
          } else {
            seen[key] = Value(line: record.line, micros: micros, currency: entry.currency)
            entries.append(entry)
            if micros == 0 {
              zeroPrices = .init(
                count: (zeroPrices?.count ?? 0) + 1, firstLine: zeroPrices?.firstLine ?? record.line
              )
            }
          }
        }
      } catch {
        problems.add(line: error.line, error.description)
        if !isHeaderSeen { break }
      }
    }
    try problems.check(source: file.source)
    if entries.isEmpty {
      problems.add(line: 0, "the file declares no price")
      try problems.check(source: file.source)
    }
    var declaration = declaration(file, entries)
    declaration.zeroPrices = zeroPrices
    return declaration
  }

  private static func entry(
    _ cells: [String], _ line: Int, _ problems: inout ProblemList
  ) -> (PricesDeclared.Entry, micros: Int64)? {
    let (productID, country, currency, price, day) =
      (cells[0], cells[1], cells[2], cells[3], cells[4])
    var reasons: [String] = []
    if productID.isEmpty { reasons.append("product_id is empty") }
    if productID.unicodeScalars.count > DeclarationLimits.textCharacters {
      reasons.append("product_id is longer than \(DeclarationLimits.textCharacters) characters")
    }
    let knownCountry = Country.parse(country)
    if !country.isEmpty, knownCountry == nil {
      reasons.append("country_code is neither an ISO 3166-1 alpha-2 code nor XK")
    }
    let knownCurrency = Currency.parse(currency)
    if knownCurrency == nil { reasons.append("currency is not a known ISO 4217 code") }
    let micros = price.utf8.withContiguousBytes { PriceForms.micros(decimal: $0) }
    if micros == nil {
      reasons.append("price is not a decimal number such as 9.99")
    }
    if (try? CivilDate(parsing: day)) == nil {
      reasons.append("effective_from is not a date of the form YYYY-MM-DD")
    }
    guard reasons.isEmpty, let knownCurrency, let micros else {
      problems.add(line: line, reasons.joined(separator: "; "))
      return nil
    }
    let entry = PricesDeclared.Entry(
      productID: productID, countryCode: knownCountry?.description,
      currency: knownCurrency.description, price: price, effectiveFrom: day)
    return (entry, micros)
  }

  private static func declaration(
    _ file: DeclarationFile, _ entries: [PricesDeclared.Entry]
  ) -> Declaration {
    let parts = runs(of: entries) { entry in
      entry.productID.utf8.count * 2 + entry.price.utf8.count + 128
    }
    let drafts = parts.map { part in
      EventDraft(
        .pricesDeclared,
        PricesDeclared(
          source: file.source, sourceSHA256Hex: file.sha256Hex, entries: Array(part)
        ).data)
    }
    return Declaration(
      drafts: drafts, sourceSHA256Hex: file.sha256Hex, entryCount: entries.count,
      warnings: [])
  }
}

extension String.UTF8View {
  /// Lends the bytes. Copies them only if they are not contiguous.
  func withContiguousBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
      ?? Array(self).withUnsafeBytes(body)
  }
}
