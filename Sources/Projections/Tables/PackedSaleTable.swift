// Tables with a few bytes of every sale, packed into few rows: sale_figures and statement_times.
package import Revenue

/// A sale's record in a packed table.
package protocol SaleRecord {
  /// The table. Its columns are `id` and `records`.
  static var table: StaticString { get }
  /// The size of one sale's record.
  static var byteCount: Int { get }
  /// How many sales share a row.
  static var rowCapacity: Int { get }

  func write(to bytes: UnsafeMutableRawPointer)
  /// Reads the bytes that `write` produces; nil if another program has stored impossible values.
  init?(_ bytes: UnsafeRawPointer)
}

/// Writes the records of sales, and reads all of them. Row `n` holds the records of the sales from number
/// `n × Record.rowCapacity` on, in numerical order, without gaps.
package struct PackedSaleTable<Record: SaleRecord> {
  private let database: Database
  private var target: RowTarget?
  private var changed: [(sale: Int, record: Record)] = []

  package init(_ database: Database) { self.database = database }

  // MARK: Writing

  /// Queues the record of a new or changed sale.
  package mutating func add(_ record: Record, ofSale number: Int) {
    changed.append((number, record))
  }

  /// Merges the queued records into the existing rows.
  package mutating func store(_ rows: RowWriter) throws(DatabaseError) {
    if changed.isEmpty { return }
    let capacity = Record.rowCapacity
    changed.sort { $0.sale < $1.sale }
    let select = try database.prepare("SELECT records FROM \(Record.table) WHERE id = ?")
    var row: [UInt8] = []
    var start = 0
    while start < changed.count {
      let number = changed[start].sale / capacity
      select.bind(1, number)
      row.removeAll(keepingCapacity: true)
      if try select.step() { row.append(contentsOf: select.bytes(0)) }
      select.reset()
      while start < changed.count, changed[start].sale / capacity == number {
        let offset = (changed[start].sale - number * capacity) * Record.byteCount
        precondition(offset <= row.count, "a gap in the records of sales")
        if offset == row.count {
          row.append(contentsOf: repeatElement(0, count: Record.byteCount))
        }
        let record = changed[start].record
        row.withUnsafeMutableBytes { bytes in
          if let first = bytes.baseAddress { record.write(to: first + offset) }
        }
        start += 1
      }
      try write(row, number, rows)
    }
    changed.removeAll(keepingCapacity: true)
  }

  /// Writes the records of all sales into an empty table.
  mutating func storeAll(
    _ sales: SaleStore, _ rows: RowWriter, _ record: (Sale) -> Record
  ) throws(DatabaseError) {
    let capacity = Record.rowCapacity
    let count = sales.sales.count
    var row: [UInt8] = []
    var first = 0
    while first < count {
      let end = min(count, first + capacity)
      row = Array(repeating: 0, count: (end - first) * Record.byteCount)
      row.withUnsafeMutableBytes { bytes in
        guard let start = bytes.baseAddress else { return }
        for place in first..<end {
          let sale = sales.sales[place]
          precondition(sale.id == place, "a sale's number is not its index")
          record(sale).write(to: start + (place - first) * Record.byteCount)
        }
      }
      try write(row, first / capacity, rows)
      first = end
    }
  }

  private mutating func write(
    _ row: [UInt8], _ number: Int, _ rows: RowWriter
  ) throws(DatabaseError) {
    if target == nil {
      target = try rows.target("INSERT OR REPLACE INTO \(Record.table)", valueCount: 2)
    }
    guard let target else { return }
    rows.begin(target)
    rows.add(number)
    withText(row) { rows.add(blob: $0) }
    try rows.end()
  }

  // MARK: Reading

  /// Calls `body` with the record of each sale, by number, and never for a sale that does not exist. Returns false
  /// if the table does not match the sales, possibly only after the last call.
  package static func forEach(
    in database: Database, _ body: (_ sale: Int, Record) throws -> Void
  ) throws -> Bool {
    let saleCount = Int(try database.nextNumber(of: "sales"))
    let rows = try database.prepare("SELECT id, records FROM \(Record.table) ORDER BY id")
    var count = 0
    while try rows.step() {
      let bytes = rows.bytes(1)
      let rowCount = bytes.count / Record.byteCount
      guard count % Record.rowCapacity == 0, try rows.ordinal(0) == count / Record.rowCapacity,
        rowCount * Record.byteCount == bytes.count,
        rowCount <= Record.rowCapacity, count + rowCount <= saleCount,
        let start = bytes.baseAddress
      else { return false }
      for index in 0..<rowCount {
        guard let record = Record(start + index * Record.byteCount) else { return false }
        try body(count + index, record)
      }
      count += rowCount
    }
    return count == saleCount
  }
}

// MARK: - Figures of sales

/// The figures that a sale contributes to its journal lines, without its texts, in 51 bytes. Revenue reports read these
/// instead of whole rows.
package struct SaleFigures: Equatable, SaleRecord {
  var saleDateMs: Int64
  /// The amount of the Sale line; 0 if there is no price.
  var amountMicros: Int64
  var firstPosition: Int64
  var environment: Symbol
  var bundle: Symbol
  var product: Symbol
  var country: Symbol
  /// The symbol of the price's currency; `.none` if there is no price.
  var currency: Symbol
  /// From 1 to `Sale.quantityMax`.
  var quantity: Int32
  var kind: SaleKind
  var priceBasis: PriceBasis
  var trust: ReplyTrust

  package init(_ sale: Sale, currency: Symbol) {
    precondition(1...Sale.quantityMax ~= sale.quantity, "a sale of \(sale.quantity) units")
    saleDateMs = sale.saleDateMs
    amountMicros = sale.amountMicros ?? 0
    firstPosition = Int64(sale.firstPosition)
    environment = sale.environment
    bundle = sale.bundle
    product = sale.product
    country = sale.country
    self.currency = sale.price == nil ? .none : currency
    quantity = Int32(sale.quantity)
    kind = sale.kind
    priceBasis = sale.priceBasis
    trust = sale.trust
  }

  /// The figures in a row of `sales`.
  init(
    saleDateMs: Int64, amountMicros: Int64, firstPosition: Int64, environment: Symbol,
    bundle: Symbol, product: Symbol, country: Symbol, currency: Symbol, quantity: Int32,
    kind: SaleKind, priceBasis: PriceBasis, trust: ReplyTrust
  ) {
    self.saleDateMs = saleDateMs
    self.amountMicros = amountMicros
    self.firstPosition = firstPosition
    self.environment = environment
    self.bundle = bundle
    self.product = product
    self.country = country
    self.currency = currency
    self.quantity = quantity
    self.kind = kind
    self.priceBasis = priceBasis
    self.trust = trust
  }

  // MARK: As bytes

  package static let table: StaticString = "sale_figures"
  package static let byteCount = 51
  /// A full row with its header just fits in a page of 8 KiB.
  package static let rowCapacity = 159

  /// Writes the properties as little-endian integers, without gaps, in the order of their declarations.
  package func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: saleDateMs.littleEndian, as: Int64.self)
    bytes.storeBytes(of: amountMicros.littleEndian, toByteOffset: 8, as: Int64.self)
    bytes.storeBytes(of: firstPosition.littleEndian, toByteOffset: 16, as: Int64.self)
    bytes.storeBytes(of: environment.littleEndian, toByteOffset: 24, as: Int32.self)
    bytes.storeBytes(of: bundle.littleEndian, toByteOffset: 28, as: Int32.self)
    bytes.storeBytes(of: product.littleEndian, toByteOffset: 32, as: Int32.self)
    bytes.storeBytes(of: country.littleEndian, toByteOffset: 36, as: Int32.self)
    bytes.storeBytes(of: currency.littleEndian, toByteOffset: 40, as: Int32.self)
    bytes.storeBytes(of: quantity.littleEndian, toByteOffset: 44, as: Int32.self)
    bytes.storeBytes(of: kind.rawValue, toByteOffset: 48, as: Int8.self)
    bytes.storeBytes(of: priceBasis.rawValue, toByteOffset: 49, as: Int8.self)
    bytes.storeBytes(of: trust.rawValue, toByteOffset: 50, as: Int8.self)
  }

  /// Reads the bytes that `write` produces; nil if another program has stored impossible values.
  package init?(_ bytes: UnsafeRawPointer) {
    saleDateMs = Int64(littleEndian: bytes.loadUnaligned(as: Int64.self))
    amountMicros = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    firstPosition = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self))
    environment = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: Int32.self))
    bundle = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 28, as: Int32.self))
    product = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 32, as: Int32.self))
    country = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 36, as: Int32.self))
    currency = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 40, as: Int32.self))
    quantity = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 44, as: Int32.self))
    guard let kind = SaleKind(rawValue: bytes.load(fromByteOffset: 48, as: Int8.self)),
      let priceBasis = PriceBasis(rawValue: bytes.load(fromByteOffset: 49, as: Int8.self)),
      let trust = ReplyTrust(rawValue: bytes.load(fromByteOffset: 50, as: Int8.self)),
      1...Int32(Sale.quantityMax) ~= quantity, storedInstantsMs.contains(saleDateMs),
      amountMicros >= 0, firstPosition >= 0
    else { return nil }
    self.kind = kind
    self.priceBasis = priceBasis
    self.trust = trust
  }
}
