// The tails of an audit, opened at one moment, as far as the limit of open files allows.

/// Opens the tails of a log.
struct AuditTails {
  /// The maximum size of a tail: the events of a block, and the headers of their frames.
  static let byteCountMax = 2 * Format.blockByteCountMax

  struct Tail {
    let first: Position
    let file: TailFile

    /// The file's bytes.
    func content() throws(LedgerError) -> ByteBuffer {
      let file = try file.opened()
      let byteCount = try file.sizeBytes()
      guard byteCount <= AuditTails.byteCountMax else {
        throw LedgerError(
          .init(verdict: .corrupt, file: file.name, position: first), operation: "read tail",
          cause: "it is larger than a tail can be")
      }
      let content = ByteBuffer(capacity: byteCount)
      _ = try file.readWhole(byteCount, offsetBytes: 0, into: content)
      return content
    }
  }

  private(set) var open: [Tail] = []
  private(set) var temporaryNames: [String] = []
  private(set) var findings: [AuditFinding] = []
  /// The size of all tails.
  private(set) var byteCount = 0

  init(_ directory: LedgerDirectory) throws(LedgerError) {
    let names = try directory.listIfPresent(Format.logDirectoryName) ?? []
    temporaryNames = names.filter { $0.hasSuffix(Format.temporarySuffix) }.sorted()
      .map(directory.logPath)
    let keptTailCount = OpenFileLimit.tailCountMax(limit: OpenFileLimit.current)
    for first in names.compactMap(Format.tailFirst).sorted() {
      let name = directory.logPath(Format.tailName(first))
      do throws(LedgerError) {
        guard let file = try directory.openFileIfPresent(name) else { continue }
        byteCount += try file.sizeBytes()
        let isKept = open.count < keptTailCount
        open.append(
          Tail(first: first, file: try TailFile(file, directory, first: first, isKept: isKept)))
      } catch {
        // A file that must not be used, such as a symbolic link, is not damage.
        if error.kind == .invalidInput { throw error }
        findings.append(AuditFinding(error, file: name, at: first))
      }
    }
  }

  /// The next whole frame after the first byte. Without one, the bytes may be a torn frame, unless they
  /// are longer than a frame can be or the search was abandoned.
  static func nextFrame(
    _ bytes: UnsafeRawBufferPointer
  ) -> (frame: (first: Position, offsetBytes: Int)?, isTorn: Bool) {
    var search = ValidPartSearch(bytes, start: 0x23)
    while let candidate = search.next() {
      guard let header = FrameHeader(candidate), header.frameByteCount <= candidate.count
      else { continue }
      guard search.spend(header.frameByteCount) else { return (nil, false) }
      if header.isWhole(in: candidate) {
        return ((header.first, bytes.count - candidate.count), false)
      }
    }
    return (nil, bytes.count <= Format.frameByteCountMax + Format.frameHeaderByteCountMax)
  }
}
