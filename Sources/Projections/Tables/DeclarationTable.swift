// What operators have declared: apps, price lists, exchange rates and trust.
import Base
import Ledger
import Revenue

/// Writes declarations to the database, and keeps the price lists in memory for the pricing rules.
final class DeclarationTable {
  fileprivate let database: Database
  private let symbols: StringInterner
  /// Writes the rows; nil if declarations are only read.
  fileprivate let rows: RowWriter?
  private(set) var priceList = PriceList()
  /// Whether this run has seen a new price list, which may give earlier sales a price.
  private(set) var hasNewPrices = false
  private var isLoaded: Bool

  init(_ database: Database, _ rows: RowWriter?, _ symbols: StringInterner, isFresh: Bool) {
    self.database = database
    self.rows = rows
    self.symbols = symbols
    isLoaded = isFresh
  }

  // MARK: Apps

  /// Writes an app family. A registration replaces the previous one entirely.
  func add(
    _ app: AppRegistered, data: Text, position: Int
  ) throws(DatabaseError) {
    try rows?.drain()
    let removeBundles = try database.prepare("DELETE FROM app_bundles WHERE app_family_id = ?")
    removeBundles.bind(1, text: app.appFamilyID)
    try removeBundles.run()
    let insert = try database.prepare("INSERT OR REPLACE INTO apps VALUES(?, ?, ?, ?)")
    insert.bind(1, text: app.appFamilyID)
    insert.bind(2, text: app.name)
    insert.bind(3, text: data)
    insert.bind(4, position)
    try insert.run()
    let insertBundle = try database.prepare("INSERT OR REPLACE INTO app_bundles VALUES(?, ?)")
    let insertKnown = try database.prepare("INSERT OR IGNORE INTO known_bundles VALUES(?)")
    for bundle in app.bundleIDs {
      insertBundle.bind(1, text: bundle)
      insertBundle.bind(2, text: app.appFamilyID)
      try insertBundle.run()
      insertKnown.bind(1, text: bundle)
      try insertKnown.run()
    }
  }

  // MARK: Prices

  /// Writes a price list. Skips entries that the rules cannot parse; the importer rejects such entries.
  func add(
    _ prices: PricesDeclared, position: Int, recordedAtMs: Int64
  ) throws(DatabaseError) {
    try load()
    guard let rows else { return }
    try rows.drain()
    try addDeclaration(
      .pricesDeclared, prices.source, prices.sourceSHA256Hex, position, recordedAtMs,
      entryCount: prices.entries.count)
    let target = try rows.target("INSERT INTO price_list", valueCount: 7)
    for (ordinal, entry) in prices.entries.enumerated() {
      var price = entry.price
      let micros = price.withUTF8 { PriceForms.micros(decimal: UnsafeRawBufferPointer($0)) }
      guard let micros, let currency = Currency.parse(entry.currency),
        let date = try? CivilDate(parsing: entry.effectiveFrom)
      else { continue }
      let product = symbols.symbol(entry.productID)
      let country = entry.countryCode.map { symbols.symbol($0) } ?? .none
      let effectiveFromMs = Int64(date.dayNumber) * 86_400_000
      rows.begin(target)
      rows.add(position)
      rows.add(ordinal)
      rows.add(Int(product))
      rows.add(symbol: country)
      rows.add(Int(symbols.symbol(currency)))
      rows.add(micros)
      rows.add(effectiveFromMs)
      try rows.end()
      priceList.add(
        product,
        PriceList.Entry(
          country: country, effectiveFromMs: effectiveFromMs, position: position,
          ordinal: ordinal, price: UnitPrice(micros: micros, currency: currency)))
    }
    hasNewPrices = true
  }

  /// All price lists, including those of earlier runs.
  func sortedPriceList() throws(DatabaseError) -> PriceList {
    try load()
    priceList.sort()
    return priceList
  }

  private func load() throws(DatabaseError) {
    if isLoaded { return }
    isLoaded = true
    let rows = try database.prepare(
      """
      SELECT position, ordinal, product, country, currency, price_micros, effective_from_ms
      FROM price_list ORDER BY position, ordinal
      """)
    while try rows.step() {
      guard let currency = Currency.parse(symbols.text(try rows.number(4)))
      else { continue }
      priceList.add(
        try rows.number(2),
        PriceList.Entry(
          country: try rows.symbol(3),
          effectiveFromMs: try rows.instant(6), position: try rows.ordinal(0),
          ordinal: try rows.ordinal(1),
          price: UnitPrice(micros: try rows.unsigned(5), currency: currency)))
    }
  }

  // MARK: Rates

  /// Writes exchange rates. A report reads them when it converts to a currency (rule R10).
  func add(
    _ rates: RatesDeclared, position: Int, recordedAtMs: Int64
  ) throws(DatabaseError) {
    guard let rows else { return }
    try rows.drain()
    try addDeclaration(
      .ratesDeclared, rates.source, rates.sourceSHA256Hex, position, recordedAtMs,
      entryCount: rates.days.reduce(0) { $0 + $1.rates.count })
    let target = try rows.target("INSERT INTO rates", valueCount: 6)
    var ordinal = 0
    for day in rates.days {
      guard let date = try? CivilDate(parsing: day.date) else { continue }
      for rate in day.rates {
        rows.begin(target)
        rows.add(position)
        rows.add(ordinal)
        rows.add(date.dayNumber)
        withText(day.base) { rows.add(text: $0) }
        withText(rate.quote) { rows.add(text: $0) }
        withText(rate.rate) { rows.add(text: $0) }
        try rows.end()
        ordinal += 1
      }
    }
  }

  // MARK: Withdrawals

  /// Removes the entries of a declaration. Returns false if there is no such declaration; a second withdrawal changes
  /// nothing.
  func withdraw(
    _ type: EventType, at named: Position, position: Int
  ) throws(DatabaseError) -> Bool {
    try load()
    guard let rows else { return true }
    try rows.drain()
    let mark = try database.prepare(
      """
      UPDATE declarations SET withdrawn_by = coalesce(withdrawn_by, ?)
      WHERE position = ? AND type = ? RETURNING 1
      """)
    mark.bind(1, position)
    mark.bind(2, named)
    mark.bind(3, Self.code(type))
    guard try mark.step() else { return false }
    mark.reset()
    let table = type == .pricesDeclared ? "price_list" : "rates"
    let remove = try database.prepare("DELETE FROM \(table) WHERE position = ?")
    remove.bind(1, named)
    try remove.run()
    if type == .pricesDeclared {
      priceList.remove(position: named)
      hasNewPrices = true
    }
    return true
  }

  // MARK: Settlement

  /// Writes a report of Apple's, or a part of one; or which product a vendor identifier is.
  /// - Parameter isOfOneLedger: if not, nothing is written: ledgers that are folded together may be of several vendor
  ///   accounts.
  func add(
    settlement data: Text, _ type: EventType, position: Int, isOfOneLedger: Bool
  ) throws {
    if type == .settlementMapped {
      let mapping = try SettlementMapped(data: data)
      if isOfOneLedger { try add(mapping, position: position) }
    } else {
      // Whoever reads the lines checks them, with the rest of the file.
      let file = try SettlementDeclared(data: data, readsLines: false)
      if isOfOneLedger { try add(file, data: data, position: position) }
    }
  }

  /// Reports read the rows from the data: which of them count depends on what is declared later.
  private func add(
    _ file: SettlementDeclared, data: Text, position: Int
  ) throws(DatabaseError) {
    try rows?.drain()
    let insert = try database.prepare(
      "INSERT INTO settlement_files VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")
    insert.bind(1, position)
    insert.bind(2, text: file.kind.rawValue)
    insert.bind(3, text: file.month)
    insert.bind(4, text: file.region)
    insert.bind(5, text: file.source)
    insert.bind(6, text: file.sourceSHA256Hex)
    insert.bind(7, file.part)
    insert.bind(8, file.partCount)
    insert.bind(9, text: data)
    try insert.run()
  }

  private func add(_ mapping: SettlementMapped, position: Int) throws(DatabaseError) {
    try rows?.drain()
    let insert = try database.prepare("INSERT INTO settlement_maps VALUES(?, ?, ?)")
    insert.bind(1, position)
    insert.bind(2, text: mapping.sku)
    insert.bind(3, text: mapping.productID)
    try insert.run()
  }

  // MARK: Trust

  /// Writes which hosts and certificates verification trusts, starting at an event.
  func add(_ trust: TrustDeclared, data: Text, position: Int) throws(DatabaseError) {
    try rows?.drain()
    let insert = try database.prepare("INSERT INTO trust_declarations VALUES(?, ?, ?, ?, ?)")
    insert.bind(1, position)
    insert.bind(2, text: trust.productionHost)
    insert.bind(3, text: trust.sandboxHost)
    insert.bind(4, trust.foreignTrust.isEmpty ? 1 : 0)
    insert.bind(5, text: data)
    try insert.run()
  }

  private func addDeclaration(
    _ type: EventType, _ source: String, _ sha256Hex: String, _ position: Int,
    _ recordedAtMs: Int64, entryCount: Int
  ) throws(DatabaseError) {
    let insert = try database.prepare("INSERT INTO declarations VALUES(?, ?, ?, ?, ?, ?, NULL)")
    insert.bind(1, position)
    insert.bind(2, Self.code(type))
    insert.bind(3, text: source)
    insert.bind(4, text: sha256Hex)
    insert.bind(5, Int(recordedAtMs))
    insert.bind(6, entryCount)
    try insert.run()
  }

  /// What the table has for a type of declarations.
  static func code(_ type: EventType) -> Int { type == .pricesDeclared ? 0 : 1 }
}

// MARK: Redactions

extension DeclarationTable {
  /// Writes a row for an event of an erasure: its opening, or a part of its list.
  func add(
    _ redaction: DataRedacted, position: Int, recordedAtMs: Int64
  ) throws(DatabaseError) {
    guard let rows else { return }
    try rows.drain()
    let insert = try database.prepare("INSERT INTO redactions VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")
    insert.bind(1, position)
    switch redaction {
    case .opening(let opening):
      insert.bind(2, position)
      insert.bind(3, text: opening.request.description)
      insert.bind(4, text: opening.scope.rawValue)
      insert.bind(5, text: opening.reason)
      insert.bind(8, 0)
    case .listing(let listing):
      insert.bind(2, listing.erasure)
      insert.bind(5, text: listing.reason)
      insert.bind(6, listing.part)
      insert.bind(7, listing.partCount)
      insert.bind(8, listing.lines.count)
    }
    insert.bind(9, Int(recordedAtMs))
    try insert.run()
  }
}
