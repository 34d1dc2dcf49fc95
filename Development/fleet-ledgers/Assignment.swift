// Which event of a ledger goes to which of several.
import Ledger
import ProgramSupport

/// The ledgers of all events of a source, and their positions there. About 16 bytes an event are kept.
struct Assignment {
  let ledgerCount: Int
  private var ledgers: [UInt8]
  private var positions: [Int]
  private var counts: [Int]

  /// What a verification names, where it names uploads and verifications that are there.
  private struct Verification {
    let position: Position
    let upload: Position
    let reply: Position?
  }

  /// - Parameter strayPercent: verifications that do not go where their upload goes.
  init(
    _ source: EventSource, into ledgerCount: Int, strayPercent: Int, random: inout RandomSource
  ) throws {
    self.ledgerCount = ledgerCount
    ledgers = []
    positions = []
    counts = Array(repeating: 0, count: ledgerCount)
    var isUpload: [Bool] = []
    var verifications: [Verification] = []
    try source.forEach { position, line in
      isUpload.append(line.hasType("receipt.uploaded"))
      guard line.hasType("receipt.verified") else { return }
      let references = StoredEvent(line).references
      guard let upload = references.last(where: { !$0.isOfReply }) else { return }
      verifications.append(
        Verification(
          position: position, upload: upload.position,
          reply: references.last { $0.isOfReply }?.position))
    }
    let leaders = Self.leaders(verifications)
    var next = 0
    for position in isUpload.indices {
      var ledger = random.below(ledgerCount)
      if isUpload[position] {
        // Most uploads whose reply was reused stay together.
        if let leader = leaders[position], leader < position, random.chance(800) {
          ledger = Int(ledgers[leader])
        }
      } else if next < verifications.count, verifications[next].position == position {
        let upload = verifications[next].upload
        next += 1
        if upload < position, isUpload[upload], !random.chance(strayPercent * 10) {
          ledger = Int(ledgers[upload])
        }
      }
      ledgers.append(UInt8(ledger))
      positions.append(counts[ledger])
      counts[ledger] += 1
    }
  }

  /// Of uploads whose verification reuses a reply, the upload that the reply was about.
  private static func leaders(_ verifications: [Verification]) -> [Position: Position] {
    var uploads: [Position: Position] = [:]
    for verification in verifications { uploads[verification.position] = verification.upload }
    var leaders: [Position: Position] = [:]
    for case let (upload, reply?) in verifications.map({ ($0.upload, $0.reply) }) {
      leaders[upload] = uploads[reply]
    }
    return leaders
  }

  var eventCount: Int { ledgers.count }

  func ledger(of position: Position) -> Int { Int(ledgers[position]) }

  /// The position of an event in its ledger.
  func newPosition(of position: Position) -> Position { positions[position] }

  /// How many events a ledger gets.
  func count(of ledger: Int) -> Int { counts[ledger] }
}
