// Reads past damage: delivers every intact event once, and lists exactly what was left out.
import Glibc

/// The outcome of reading past damage.
package struct SalvageReport: Sendable {
  /// The audit made at the same time, which tells why events were left out.
  package let audit: AuditReport
  /// Positions of damaged or missing events, ascending; adjacent ranges are joined.
  package let leftOut: [Range<Position>]

  /// How many events were left out.
  package var leftOutCount: Int { leftOut.reduce(0) { $0 + $1.count } }
}

/// Delivers the intact events of a damaged log. Needs no lock. Not thread-safe.
package struct LogSalvage {
  private let directory: LedgerDirectory

  package init(_ directory: LedgerDirectory) { self.directory = directory }

  /// Delivers every intact event in ascending order, each position once. An event is intact if its block
  /// or frame is, and its digest matches its data; a redacted line is delivered as it is. Throws errors that
  /// prevent reading, and those of the closures.
  package func run(
    progress: LogAudit.Progress = { _, _ in }, _ body: (EventLine) throws -> Void
  ) throws -> SalvageReport {
    var next: Position = 0
    var leftOut: [Range<Position>] = []
    func skip(upTo position: Position) {
      guard position > next else { return }
      if let last = leftOut.last, last.upperBound == next {
        leftOut[leftOut.count - 1] = last.lowerBound..<position
      } else {
        leftOut.append(next..<position)
      }
      next = position
    }
    let report = try LogAudit(directory, workers: 0).run(progress: progress) { lines, bytes in
      let faulty = Set(lines.faults.map(\.position))
      var eventLines = EventLines(bytes)
      while let text = eventLines.next(), let event = EventLine(text) {
        // A block that repeats earlier events is a finding.
        guard event.position >= next, !faulty.contains(event.position) else { continue }
        skip(upTo: event.position)
        try body(event)
        next = event.position + 1
      }
    }
    skip(upTo: report.size)
    return SalvageReport(audit: report, leftOut: leftOut)
  }
}

// MARK: - Search for whole members

/// Finds whole members by their first bytes and their checksum, in a segment that is damaged or partly unreadable. An
/// audit uses one search, because its budgets are for the whole audit.
struct MemberSearch {
  private static let windowByteCount = 1 << 20
  /// The unit of reading: one unreadable byte makes all of these unreadable.
  private static let pageByteCount = 4096

  private let header = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
  // Crafted bytes could have a plausible member at every offset: limits the bytes that are checksummed.
  private var checksumBudgetBytes = 1 << 32
  // A dying disk may take seconds for each failing read.
  private var failureBudget = 4096

  /// The header of the member at an offset; nil if there is none that fits into the file.
  func header(
    at offsetBytes: Int, of file: StorageFile, _ sizeBytes: Int
  ) throws(LedgerError) -> MemberHeader? {
    guard let found = try file.memberHeader(at: offsetBytes, header),
      found.memberByteCount <= sizeBytes - offsetBytes
    else { return nil }
    return found
  }

  /// Whether the member at an offset can be read and matches its checksum.
  func isWholeMember(at offsetBytes: Int, of file: StorageFile, _ sizeBytes: Int) -> Bool {
    let found = (try? header(at: offsetBytes, of: file, sizeBytes)) ?? nil
    return found.flatMap { try? $0.isWhole(in: file, at: offsetBytes) } ?? false
  }

  /// The offset of the next whole member; nil if there is none. Skips unreadable bytes.
  mutating func next(after offsetBytes: Int, in file: StorageFile, _ sizeBytes: Int) -> Int? {
    let window = ByteBuffer(capacity: Self.windowByteCount)
    var start = offsetBytes + 1
    while start < sizeBytes {
      let count = min(Self.windowByteCount, sizeBytes - start)
      guard fill(window, count, from: start, of: file) else { return nil }
      var offset = 0
      while let found = Self.memberStart(window.bytes, from: offset) {
        let candidate = start + found
        if let header = (try? header(at: candidate, of: file, sizeBytes)) ?? nil {
          checksumBudgetBytes -= header.memberByteCount
          if checksumBudgetBytes < 0 { return nil }
          if (try? header.isWhole(in: file, at: candidate)) == true { return candidate }
        }
        offset = found + 1
      }
      // The next window includes a start that this window's end may cut.
      start += count == Self.windowByteCount ? count - Format.memberStart.count + 1 : count
    }
    return nil
  }

  /// Reads a part of a file, page by page if reading it at once fails. Unreadable pages become zeros, in
  /// which no member begins. Returns false if the file became shorter or too many pages are unreadable.
  private mutating func fill(
    _ window: ByteBuffer, _ count: Int, from start: Int, of file: StorageFile
  ) -> Bool {
    if let isThere = try? file.readWhole(count, offsetBytes: start, into: window) {
      return isThere
    }
    let page = ByteBuffer(capacity: Self.pageByteCount)
    window.count = 0
    while window.count < count {
      let offset = start + window.count
      let size = min(count - window.count, Self.pageByteCount - offset % Self.pageByteCount)
      if let isThere = try? file.readWhole(size, offsetBytes: offset, into: page) {
        guard isThere else { return false }
      } else {
        failureBudget -= 1
        if failureBudget < 0 { return false }
        memset(page.base, 0, size)
        page.count = size
      }
      window.append(page.bytes)
    }
    return true
  }

  /// The next offset of the bytes that every member starts with.
  private static func memberStart(_ bytes: UnsafeRawBufferPointer, from: Int) -> Int? {
    guard let base = bytes.baseAddress else { return nil }
    let start = Format.memberStart
    var offset = from
    while offset + start.count <= bytes.count,
      let found = memchr(base + offset, Int32(start[0]), bytes.count - offset)
    {
      offset = UnsafeRawPointer(found) - base
      if offset + start.count > bytes.count { return nil }
      if start.withUnsafeBytes({ memcmp(base + offset, $0.baseAddress ?? base, start.count) })
        == 0
      {
        return offset
      }
      offset += 1
    }
    return nil
  }
}

extension MemberHeader {
  /// Whether the file has this header's whole member at an offset, with its checksum.
  func isWhole(in file: StorageFile, at offsetBytes: Int) throws(LedgerError) -> Bool {
    let member = ByteBuffer(capacity: memberByteCount)
    return try file.readWhole(memberByteCount, offsetBytes: offsetBytes, into: member)
      && isWhole(in: member.bytes)
  }
}
