// What the new events of a source say of its erasures.
import Base
import Ledger

/// The erasures of one source whose events an earlier run has not seen, or saw beyond what it took.
struct ErasureScan {
  private struct Entry {
    /// Whether the last of its lists was seen.
    var isFinished = false
    var lastList: Position = -1
  }

  /// Earlier runs took the events before this position.
  let first: Position
  private var entries: [Position: Entry] = [:]
  /// The events before `first` that some list names.
  private var listedBefore: Set<Position> = []
  /// The erasures that lines name which the run takes, and those in the names of erased users.
  private(set) var named: Set<Position> = []
  /// Receipts whose redacted uploads no longer have a digest.
  private(set) var receiptIDs: Set<String> = []

  init(first: Position) { self.first = first }

  /// The events before `first` that may have lost data since, in order.
  var candidates: [Position] { listedBefore.sorted() }

  mutating func note(erasureEvent line: EventLine) {
    guard let event = try? DataRedacted(data: line.data), case .listing(let listing) = event
    else { return }
    var entry = entries[listing.erasure] ?? Entry()
    entry.isFinished = entry.isFinished || listing.part == listing.partCount
    entry.lastList = line.position
    entries[listing.erasure] = entry
    for redacted in listing.lines where redacted.position < first {
      listedBefore.insert(redacted.position)
    }
  }

  /// Notes a line that lost its data.
  mutating func note(redacted line: EventLine, _ erasure: Position) {
    named.insert(erasure)
    ErasedNames.forEach(in: Array(line.data)) { erasure, _ in named.insert(erasure) }
    if let id = Self.receiptWithoutDigest(line) { receiptIDs.insert(id) }
  }

  /// The id of the receipt of a redacted upload that no longer has the digest.
  static func receiptWithoutDigest(_ line: EventLine) -> String? {
    guard line.isRedacted, line.hasType("receipt.uploaded"),
      let view = try? ReceiptUploadedView(
        data: line.data, isRedacted: true, version: line.version),
      view.receiptSHA256Hex == nil
    else { return nil }
    return view.receiptID?.string
  }

  /// Whether all events of an erasure stand before a position, so that the merged ledger can repeat it where they do.
  func isWhole(_ erasure: Position, before end: Position) -> Bool {
    guard let entry = entries[erasure] else { return false }
    return entry.isFinished && entry.lastList < end && erasure < end
  }
}
