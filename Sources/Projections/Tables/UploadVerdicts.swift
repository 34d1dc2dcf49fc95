// The table `upload_verdicts`: the first fraud verdict on each upload, with the event that gave it.

/// Writes verdicts as they are found.
struct UploadVerdicts {
  private let rows: RowWriter
  private let target: RowTarget

  init(_ rows: RowWriter) throws(DatabaseError) {
    self.rows = rows
    // Events come in order, and the first verdict holds.
    target = try rows.target("INSERT OR IGNORE INTO upload_verdicts", valueCount: 4)
  }

  /// Writes a verdict, unless the upload already has one.
  /// - Parameter receipt: nil for an upload of signed transactions.
  func add(upload: Int, receipt: Int32?, _ fraud: Fraud) throws(DatabaseError) {
    rows.begin(target)
    rows.add(upload)
    rows.add(receipt.map { Int64($0) })
    rows.add(Int(fraud.reason))
    rows.add(fraud.position)
    try rows.end()
  }
}
