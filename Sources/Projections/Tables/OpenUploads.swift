// Uploads without a final answer from the App Store, and which of them are waiting for one.
import Ledger

/// Keeps uploads without a final answer. Most are answered at once and never reach the table.
final class OpenUploads {
  private struct Entry {
    var receipt: Int32
    /// Whether the local check found no reason not to ask the App Store.
    var isAccepted = false
    /// Whether an event records that the App Store could not be reached.
    var isUnreachable = false
    /// Whether the App Store has refused permanently, without a final status.
    var isRefused = false

    mutating func note(_ result: ReceiptVerifiedView) {
      switch (result.authority, result.outcome) {
      // A local check that could not decide leaves the decision to the App Store.
      case (.local, .valid), (.local, .unreachable): isAccepted = true
      case (.local, .invalid): isAccepted = false
      case (.appStore, .invalid): isRefused = true
      case (.appStore, .unreachable): isUnreachable = true
      case (.appStore, .valid): break
      }
    }
  }

  private let rows: RowWriter
  private var entries: [Int: Entry] = [:]
  /// The newest upload, kept outside the dictionary to save a lookup.
  private var last: (position: Int, entry: Entry)?
  private let insert: RowTarget
  private let update: RowTarget
  private let remove: RowTarget

  init(_ rows: RowWriter) throws(DatabaseError) {
    self.rows = rows
    insert = try rows.target("INSERT INTO open_uploads", valueCount: 5)
    // An upload may change twice in one batch, so each row runs as a separate statement.
    update = try rows.target(
      reading: """
        UPDATE open_uploads SET is_accepted = coalesce(c0, is_accepted),
        is_unreachable = is_unreachable | c1, is_refused = is_refused | c2
        FROM row_batch WHERE upload = c3
        """, valueCount: 4, inOrderWith: insert, isSingle: true)
    remove = try rows.target(
      reading: "DELETE FROM open_uploads WHERE upload IN (SELECT c0 FROM row_batch)",
      valueCount: 1, inOrderWith: insert)
  }

  /// Adds an upload.
  func add(_ position: Int, receipt: Int32) {
    if let last { entries[last.position] = last.entry }
    last = (position, Entry(receipt: receipt))
  }

  /// Records a verification result for the upload it names. A final result closes the upload.
  func note(_ result: ReceiptVerifiedView, isFinal: Bool) throws(DatabaseError) {
    let position = result.upload
    if isFinal { return try close(position) }
    if last?.position == position {
      last?.entry.note(result)
    } else if entries[position] != nil {
      entries[position]?.note(result)
    } else {
      var change = Entry(receipt: 0)
      change.note(result)
      rows.begin(update)
      rows.add(result.authority == .local ? (change.isAccepted ? 1 : 0) : Int64?.none)
      rows.add(change.isUnreachable ? 1 : 0)
      rows.add(change.isRefused ? 1 : 0)
      rows.add(position)
      try rows.end()
    }
  }

  private func close(_ position: Int) throws(DatabaseError) {
    if last?.position == position {
      last = nil
    } else if entries.isEmpty || entries.removeValue(forKey: position) == nil {
      rows.begin(remove)
      rows.add(position)
      try rows.end()
    }
  }

  /// Writes the open uploads before a position to the table, and forgets them.
  func store(before limit: Int = .max) throws(DatabaseError) {
    if let open = last, open.position < limit {
      entries[open.position] = open.entry
      last = nil
    }
    if entries.isEmpty { return }
    for (position, entry) in entries.filter({ $0.key < limit }).sorted(by: { $0.key < $1.key }) {
      rows.begin(insert)
      rows.add(position)
      rows.add(Int(entry.receipt))
      rows.add(entry.isAccepted ? 1 : 0)
      rows.add(entry.isUnreachable ? 1 : 0)
      rows.add(entry.isRefused ? 1 : 0)
      try rows.end()
      entries[position] = nil
    }
  }
}
