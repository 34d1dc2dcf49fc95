// Which upload comes when: all customers' uploads, merged by time.

struct ScheduledUpload: Sendable {
  let atMs: Int64
  let customer: Int32
  let ordinal: Int32
}

struct Schedule: Sendable {
  /// 16 bytes an upload: all that is held of the history at any time.
  let uploads: [ScheduledUpload]
  let customerCount: Int

  init(_ simulation: Simulation, uploadCount: Int) {
    var uploads: [ScheduledUpload] = []
    uploads.reserveCapacity(uploadCount)
    var customer = 0
    while uploads.count < uploadCount {
      let planned = simulation.customer(customer).uploads
      for (ordinal, upload) in planned.prefix(uploadCount - uploads.count).enumerated() {
        uploads.append(
          ScheduledUpload(
            atMs: upload.atMs, customer: Int32(customer), ordinal: Int32(ordinal)))
      }
      customer += 1
    }
    uploads.sort { ($0.atMs, $0.customer, $0.ordinal) < ($1.atMs, $1.customer, $1.ordinal) }
    self.uploads = uploads
    customerCount = customer
  }
}
