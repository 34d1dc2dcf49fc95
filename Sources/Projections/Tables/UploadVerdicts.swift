// Verdicts of fraud on uploads: the first of each, with the event that gave it.

/// Writes verdicts as they are found.
struct UploadVerdicts {
  private let rows: RowWriter
  private let target: RowTarget

  init(_ rows: RowWriter) throws(DatabaseError) {
    self.rows = rows
    // Events come in order: the first verdict is the one that holds.
    target = try rows.target("INSERT OR IGNORE INTO upload_verdicts", valueCount: 4)
  }

  /// Writes a verdict, unless the upload has one.
  func add(upload: Int, receipt: Int32, _ fraud: Fraud) throws(DatabaseError) {
    rows.begin(target)
    rows.add(upload)
    rows.add(Int(receipt))
    rows.add(Int(fraud.reason))
    rows.add(fraud.position)
    try rows.end()
  }
}
