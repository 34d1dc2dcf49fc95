// The erasure requests of a ledger, as files: they survive every crash, and each is carried out once.
package import Base
import Glibc
package import Ledger

/// The requests in `erasures/`. A command or a server adds one; the ledger's writer carries them out.
package struct ErasureQueue: Sendable {
  /// How many requests may wait.
  package static let waitingCountMax = 10_000
  /// How many records of finished requests are kept.
  package static let finishedCountMax = 10_000
  /// The longest identifier, in bytes.
  package static let identifierByteCountMax = 4096
  /// The folder in the ledger.
  package static let folderName = "erasures"
  private static let byteCountMax = 64 << 10
  private static let suffix = ".json"
  /// The file that records that an operator has requested retention, and when.
  private static let retentionName = "retention"

  private let directory: LedgerDirectory

  package init(_ directory: LedgerDirectory) { self.directory = directory }

  private static func name(_ id: UUID16) -> String { "\(id)\(suffix)" }

  private func folder() throws(LedgerError) -> Folder? {
    try directory.folderIfPresent(Self.folderName)
  }

  /// The ids of all requests.
  private func ids(_ folder: Folder) throws(LedgerError) -> [UUID16] {
    try folder.names().compactMap { name in
      guard name.hasSuffix(Self.suffix) else { return nil }
      let id = UUID16(String(name.dropLast(Self.suffix.count)))
      return id.flatMap { Self.name($0) == name ? $0 : nil }
    }
  }

  /// Adds a request, durably.
  ///
  /// Throws `refused` if too many wait.
  package func add(_ record: ErasureRecord) throws(ErasureError) {
    precondition(record.state == .waiting && record.subject != nil, "a new request waits")
    guard try records().count(where: { $0.subject != nil }) < Self.waitingCountMax else {
      throw .refused(
        object: "request",
        cause: "\(Self.waitingCountMax) requests wait already: run 'redact --now'")
    }
    do throws(LedgerError) {
      let folder = try madeFolder()
      do throws(LedgerError) {
        try folder.replaceFile(Self.name(record.id), with: record.bytes)
      } catch {
        // A pass that ends meanwhile removes incomplete files, including this one.
        guard error.code == ENOENT else { throw error }
        try folder.replaceFile(Self.name(record.id), with: record.bytes)
      }
    } catch { throw .ledger(error) }
  }

  private func madeFolder() throws(LedgerError) -> Folder {
    let isNew = try folder() == nil
    let folder = try directory.root.madeFolder(Self.folderName)
    if isNew {
      try directory.root.giveNewFolderToOwner(folder)
      try directory.root.sync()
    }
    return folder
  }

  // MARK: Requested retention

  /// Asks the ledger's writer for a pass of retention as of a time, however much it erases.
  package func orderRetention(nowMs: Int64) throws(ErasureError) {
    do throws(LedgerError) {
      try madeFolder().replaceFile(
        Self.retentionName, with: Array((Timestamp.text(ms: nowMs) + "\n").utf8))
    } catch { throw .ledger(error) }
  }

  /// The time for which an operator has requested a pass of retention that was not made yet.
  package func orderedRetentionMs() throws(ErasureError) -> Int64? {
    do throws(LedgerError) {
      guard let folder = try folder(), try folder.status(Self.retentionName) != nil else {
        return nil
      }
      let bytes = try folder.openFile(Self.retentionName, .readOnly)
        .readSmall(byteCountMax: Self.byteCountMax)
      guard bytes.last == UInt8(ascii: "\n"),
        let text = String(validating: bytes.dropLast(), as: UTF8.self),
        let ms = try? Timestamp.parse(text)
      else {
        throw LedgerError(
          .init(verdict: .corrupt, file: folder.label(Self.retentionName), position: nil),
          operation: "read request", cause: "it does not hold a time")
      }
      return ms
    } catch { throw .ledger(error) }
  }

  /// Records that the pass was made.
  package func endRetention() throws(ErasureError) {
    do throws(LedgerError) {
      guard let folder = try folder(), try folder.status(Self.retentionName) != nil else { return }
      try folder.unlink(Self.retentionName)
    } catch { throw .ledger(error) }
  }

  // MARK: Records

  /// Replaces a request's record, durably.
  package func update(_ record: ErasureRecord) throws(ErasureError) {
    do throws(LedgerError) {
      let folder = try directory.root.folder(Self.folderName)
      try folder.replaceFile(Self.name(record.id), with: record.bytes)
    } catch { throw .ledger(error) }
  }

  /// A request; nil if there is none with this id.
  package func record(_ id: UUID16) throws(ErasureError) -> ErasureRecord? {
    do throws(LedgerError) {
      guard let folder = try folder(), try folder.status(Self.name(id)) != nil else { return nil }
      return try read(id, folder)
    } catch { throw .ledger(error) }
  }

  private func read(_ id: UUID16, _ folder: Folder) throws(LedgerError) -> ErasureRecord {
    let name = Self.name(id)
    let bytes = try folder.openFile(name, .readOnly).readSmall(byteCountMax: Self.byteCountMax)
    guard let record = ErasureRecord(bytes), record.id == id else {
      throw LedgerError(
        .init(verdict: .corrupt, file: folder.label(name), position: nil),
        operation: "read request", cause: "it does not have the form of a request")
    }
    return record
  }

  /// All requests, oldest first.
  package func records() throws(ErasureError) -> [ErasureRecord] {
    do throws(LedgerError) {
      guard let folder = try folder() else { return [] }
      var records: [ErasureRecord] = []
      for id in try ids(folder) { records.append(try read(id, folder)) }
      return records.sorted {
        ($0.requestedAtMs, $0.id.description) < ($1.requestedAtMs, $1.id.description)
      }
    } catch { throw .ledger(error) }
  }

  /// The unfinished requests, oldest first.
  package func open() throws(ErasureError) -> [ErasureRecord] {
    try records().filter { $0.subject != nil }
  }

  /// Asks for a request to be carried out now; the writer may already have begun.
  package func hurry(_ record: ErasureRecord) throws(ErasureError) {
    guard var record = try self.record(record.id), record.state == .waiting, !record.isUrgent else {
      return
    }
    record.isUrgent = true
    try update(record)
  }

  /// Marks requests as done or failed. Their files no longer name their subjects.
  package func finish(
    _ record: ErasureRecord, _ outcome: Result<ErasureCertificate, ErasureError>
  ) throws(ErasureError) {
    var record = record
    record.subject = nil
    switch outcome {
    case .success(let certificate): (record.state, record.certificate) = (.done, certificate)
    case .failure(let error): (record.state, record.failure) = (.failed, error.description)
    }
    try update(record)
  }

  /// Removes the oldest records of finished requests, and incomplete files.
  package func tidy(keeping countMax: Int = finishedCountMax) throws(ErasureError) {
    let finished = try records().filter { $0.subject == nil }
    do throws(LedgerError) {
      guard let folder = try folder() else { return }
      for record in finished.dropLast(countMax) {
        try folder.unlink(Self.name(record.id))
      }
      for name in try folder.names() where name.hasSuffix(Self.suffix + ".new") {
        try folder.unlink(name)
      }
    } catch { throw .ledger(error) }
  }
}
