// The figures that a sale's journal lines need, in 51 bytes. Revenue reports read these instead of whole rows.
package import Revenue

/// The figures that a sale contributes to its lines, without its texts.
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
