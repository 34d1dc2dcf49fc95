// What the journal takes from a sale, in 48 bytes: a report of revenue reads these instead of whole rows.
import Revenue

/// The figures of a sale that its lines consist of, without its texts.
struct SaleFigures: Equatable {
  var saleDateMs: Int64
  /// Of one unit; 0 where there is no price.
  var priceMicros: Int64
  var firstPosition: Int64
  var environment: Symbol
  var bundle: Symbol
  var product: Symbol
  var country: Symbol
  /// The symbol of the price's currency; none where there is no price.
  var currency: Symbol
  var quantity: Int8
  var kind: SaleKind
  var priceBasis: PriceBasis
  var trust: ReplyTrust

  init(_ sale: Sale, currency: Symbol) {
    precondition(1...10 ~= sale.quantity, "a sale of \(sale.quantity) units")
    saleDateMs = sale.saleDateMs
    priceMicros = sale.price?.micros ?? 0
    firstPosition = Int64(sale.firstPosition)
    environment = sale.environment
    bundle = sale.bundle
    product = sale.product
    country = sale.country
    self.currency = sale.price == nil ? .none : currency
    quantity = Int8(sale.quantity)
    kind = sale.kind
    priceBasis = sale.priceBasis
    trust = sale.trust
  }

  // MARK: As bytes

  /// The size of one sale's figures.
  static let byteCount = 48
  /// How many sales share a row: with its header it just fits a page of 8 KiB.
  static let rowCapacity = 168

  /// Little-endian integers, without gaps, in the order of this declaration.
  func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: saleDateMs.littleEndian, as: Int64.self)
    bytes.storeBytes(of: priceMicros.littleEndian, toByteOffset: 8, as: Int64.self)
    bytes.storeBytes(of: firstPosition.littleEndian, toByteOffset: 16, as: Int64.self)
    bytes.storeBytes(of: environment.littleEndian, toByteOffset: 24, as: Int32.self)
    bytes.storeBytes(of: bundle.littleEndian, toByteOffset: 28, as: Int32.self)
    bytes.storeBytes(of: product.littleEndian, toByteOffset: 32, as: Int32.self)
    bytes.storeBytes(of: country.littleEndian, toByteOffset: 36, as: Int32.self)
    bytes.storeBytes(of: currency.littleEndian, toByteOffset: 40, as: Int32.self)
    bytes.storeBytes(of: quantity, toByteOffset: 44, as: Int8.self)
    bytes.storeBytes(of: kind.rawValue, toByteOffset: 45, as: Int8.self)
    bytes.storeBytes(of: priceBasis.rawValue, toByteOffset: 46, as: Int8.self)
    bytes.storeBytes(of: trust.rawValue, toByteOffset: 47, as: Int8.self)
  }

  /// Reads what `write` has written; nil where another program has put in what no amount can be made of.
  init?(_ bytes: UnsafeRawPointer) {
    saleDateMs = Int64(littleEndian: bytes.loadUnaligned(as: Int64.self))
    priceMicros = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    firstPosition = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self))
    environment = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: Int32.self))
    bundle = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 28, as: Int32.self))
    product = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 32, as: Int32.self))
    country = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 36, as: Int32.self))
    currency = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 40, as: Int32.self))
    quantity = bytes.load(fromByteOffset: 44, as: Int8.self)
    guard let kind = SaleKind(rawValue: bytes.load(fromByteOffset: 45, as: Int8.self)),
      let priceBasis = PriceBasis(rawValue: bytes.load(fromByteOffset: 46, as: Int8.self)),
      let trust = ReplyTrust(rawValue: bytes.load(fromByteOffset: 47, as: Int8.self)),
      1...10 ~= quantity, priceMicros.magnitude < UInt64(Int64.max / 10)
    else { return nil }
    self.kind = kind
    self.priceBasis = priceBasis
    self.trust = trust
  }
}
