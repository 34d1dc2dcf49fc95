// The events of several ledgers as those of one, as `ledgerctl merge` would write them.
import Base
import Ledger
import Merge

/// Maps the events of a fold, in order: app families of one bundle are one, and what several ledgers have in common
/// counts once. Of one ledger alone, everything stays as it is.
final class FleetEvents {
  /// How an event counts.
  enum Outcome {
    case asItIs
    /// With other data: the line.
    case mapped([UInt8])
    /// Another ledger has it too.
    case passedOver
  }

  private let names: FleetNames
  private let mapping: NameMapping<FleetNames>
  private var registered = RegisteredFamilies()
  private var copied = CopiedOnce()

  /// - Parameter declarations: all registrations of apps, in order.
  init(ledgerCount: Int, _ declarations: EventStream) throws {
    names = FleetNames(ledgerCount: ledgerCount)
    mapping = NameMapping(names)
    guard ledgerCount > 1 else { return }
    while let next = declarations.next {
      if next.line.hasType("app.registered"), let app = try? AppRegistered(data: next.line.data) {
        try names.add(app, of: next.key.ledger)
      }
      try declarations.advance()
    }
    names.findChanged()
  }

  /// - Parameter digest: the SHA-256 of the receipt, in hex, of an upload that has lost it; otherwise empty.
  func outcome(of line: EventLine, in ledger: Int, digest: UnsafeRawBufferPointer) -> Outcome {
    guard names.ledgerCount > 1, let type = EventType(line.type) else { return .asItIs }
    guard copied.copies(line, type, of: ledger) else { return .passedOver }
    let data: [UInt8]
    switch type {
    case .appRegistered: data = registered.mapped(line, of: ledger, names.families)
    case .receiptUploaded, .transactionsReceived, .notificationReceived, .transactionsFetched,
      .receiptVerified:
      guard line.isRedacted || type != .receiptVerified && names.isChanged[ledger] else {
        return .asItIs
      }
      names.digest = digest.isEmpty ? nil : String(decoding: digest, as: UTF8.self)
      data = mapping.mapped(line, type, of: ledger)
    default: return .asItIs
    }
    let end = line.dataOffsetBytes + line.data.count
    return .mapped(line.bytes[..<line.dataOffsetBytes] + data + line.bytes[end...])
  }
}

/// What the ledgers of a fold name. Positions stay those of the ledgers, which the fold knows.
private final class FleetNames: SourceNames {
  let ledgerCount: Int
  private(set) var families = AppFamilies()
  private var familiesOfLedgers: [Set<String>]
  /// For each ledger, whether one of its families has another id here.
  private(set) var isChanged: [Bool] = []
  /// That of the present event's receipt.
  var digest: String?

  init(ledgerCount: Int) {
    self.ledgerCount = ledgerCount
    familiesOfLedgers = Array(repeating: [], count: ledgerCount)
  }

  func add(_ app: AppRegistered, of ledger: Int) throws {
    try families.add(app)
    familiesOfLedgers[ledger].insert(app.appFamilyID)
  }

  func findChanged() {
    isChanged = familiesOfLedgers.map { $0.contains { families.mergedID(of: $0) != $0 } }
  }

  func userPrefix(of source: Int) -> String? { nil }
  func position(of position: Position, in source: Int) -> Position? { position }
  func receiptDigest(of receiptID: String, in source: Int) -> String? { digest }

  func namingErasure(_ erasure: Position, in source: Int) -> Position? {
    ErasureNumber(ledger: source, position: erasure).number(ledgerCount: ledgerCount)
  }
}

/// An erasure of one of several ledgers, and the number by which the names of what it erased tell it from others.
struct ErasureNumber {
  let ledger: Int
  let position: Position

  init(ledger: Int, position: Position) { (self.ledger, self.position) = (ledger, position) }

  init(_ number: Int, ledgerCount: Int) {
    (ledger, position) = (number % ledgerCount, number / ledgerCount)
  }

  /// Nil if a name cannot hold it: no log is so long.
  func number(ledgerCount: Int) -> Int? {
    let (product, overflows) = position.multipliedReportingOverflow(by: ledgerCount)
    let number = product &+ ledger
    return overflows || number >= 1_000_000_000_000_000_000 || number < 0 ? nil : number
  }
}
