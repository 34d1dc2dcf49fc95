// The files of a ledger's directory other than frames, and which of them are already in the copy.
import Base
import Ledger

/// Segments, blocks, checkpoints, the identity and open work: found on disk, stored concurrently with the steps, named
/// by them. Only the replication thread uses it.
final class UploadedFiles {
  private struct ClosedSegment {
    let range: Range<Position>
    let stamp: FileStamp
  }

  /// A block that was stored, as it was in its file.
  private struct KnownBlock {
    let fileNumber: UInt64
    let part: NewestSegment.Part
    let sha256: SHA256Digest
  }

  private struct KnownFile {
    let stamp: FileStamp
    let sha256: SHA256Digest
    let byteCount: Int
  }

  private enum Limit {
    /// How many objects of a kind are uploaded at once.
    static let segments = 3
    static let blocks = 8
    static let checkpoints = 4
  }

  private let directory: LedgerDirectory
  private var closed: [ClosedSegment] = []
  private var newest: NewestSegment?
  private var isHeld = false
  private var nextCheckMs: Int64 = 0
  private var checkpointsChangedAtNs: Int64?
  private var checkpointStamps: [Int: FileStamp] = [:]
  private var identityStamp: FileStamp?

  /// Also of segments that are no longer closed or have changed: their stamps show that.
  private(set) var digests: SegmentDigests
  private(set) var digestsHaveChanged = false
  private var blocks: [Position: KnownBlock] = [:]
  private var checkpoints: [Int: KnownFile] = [:]
  private var identity: KnownFile?
  private var verifiedKeys: Set<String> = []
  private var workReader = OpenWorkReader()
  /// Open work as last read; nil if there is none and the copy names none.
  private var work: (bytes: [UInt8], sha256: SHA256Digest)?
  private var workReadMs: Int64?
  /// The demand up to which the open work that was last read is known to be complete.
  private var workDemand = 0

  private var named = NamedObjects()
  /// Objects that this process has stored and no step names yet.
  private var unnamed: [String: CopyObject] = [:]
  private var underWay: [CopyObject: Int] = [:]
  /// Objects that the store has lost or damaged and that must be stored again.
  private(set) var lost: Set<CopyObject> = []
  /// The keys that were stored again.
  private var mended: Set<String> = []
  /// When keys were deleted, as a task number: the result of an upload that began earlier may be deleted.
  private var deletions: [String: Int] = [:]
  private var requestCount = 0
  /// The last result of `layout`; nil once anything has changed that it depends on.
  private var knownLayout: ContentLayout?

  init(_ directory: LedgerDirectory) {
    self.directory = directory
    digests = SegmentDigests(of: directory)
  }

  // MARK: Reading

  /// Reads the log, and at intervals the other files.
  func observe(_ reader: LogReader, nowMs: Int64, checkMs: Int64) throws(LedgerError) {
    let wasHeld = isHeld
    isHeld = try reader.hasUnwrittenRedactions()
    let fileNumber = newest?.fileNumber
    let first = newest?.first
    let partCount = newest?.parts.count
    newest = try reader.newestSegment()
    if newest?.first != first || newest?.fileNumber != fileNumber
      || newest?.parts.count != partCount
    {
      knownLayout = nil
    }
    let isRewritten = newest?.first == first && newest?.fileNumber != fileNumber
    if first != newest?.first { blocks = [:] }
    let ranges = reader.closedSegments
    if nowMs >= nextCheckMs || isRewritten || wasHeld && !isHeld {
      nextCheckMs = nowMs + checkMs
      try observe(ranges, knowing: [:])
      dropDigests()
      try observeFiles()
    } else if ranges.count != closed.count {
      try observe(
        ranges,
        knowing: Dictionary(uniqueKeysWithValues: closed.map { ($0.range.lowerBound, $0) }))
    }
  }

  private func observe(
    _ ranges: [Range<Position>], knowing known: [Position: ClosedSegment]
  ) throws(LedgerError) {
    var found: [ClosedSegment] = []
    for range in ranges {
      if let segment = known[range.lowerBound], segment.range == range {
        found.append(segment)
      } else if let stamp = try directory.segmentStamp(range.lowerBound) {
        found.append(ClosedSegment(range: range, stamp: stamp))
      }
    }
    closed = found
    knownLayout = nil
  }

  /// Drops the digests of segments that no longer exist because an earlier log was restored.
  private func dropDigests() {
    let firsts = Set(closed.map(\.range.lowerBound))
    let entries = digests.entries.filter { firsts.contains($0.key) }
    if entries.count == digests.entries.count { return }
    digests.entries = entries
    digestsHaveChanged = true
  }

  /// Makes the next look compare everything.
  func checkSoon() { nextCheckMs = 0 }

  private func observeFiles() throws(LedgerError) {
    identityStamp = try directory.root.status(Format.identityName).map { FileStamp($0) }
    guard let folder = try directory.folderIfPresent(CheckpointStore.directoryName) else { return }
    let changedAtNs = try folder.ownStatus().modifiedAtNs
    if changedAtNs == checkpointsChangedAtNs { return }
    for size in try CheckpointStore(directory).sizes() {
      checkpointStamps[size] = try folder.status(CheckpointStore.leafName(size: size)).map {
        FileStamp($0)
      }
    }
    checkpointsChangedAtNs = changedAtNs
  }

  /// Reads open work at intervals, or when a caller waits for it.
  /// - Parameters:
  ///   - pauseMs: the shortest time between two reads.
  ///   - demand: how many callers have waited.
  func observeWork(
    nowMs: Int64, pauseMs: Int64, demand: Int, wantsAll: Bool
  ) throws(LedgerError) {
    // The open work that was read is named first: stored but never named, it would have to be deleted.
    guard underWay[.work] == nil, !unnamed.values.contains(.work) else { return }
    let isDue = workReadMs.map { nowMs - $0 >= pauseMs } ?? true
    guard isDue || wantsAll || demand > workDemand else { return }
    let read = try workReader.read(directory)
    (workReadMs, workDemand) = (nowMs, demand)
    guard !read.isEmpty || named.work != nil else { return work = nil }
    let bytes = read.bytes
    work = (bytes, bytes.withUnsafeBytes { SHA256.hash($0) })
  }

  /// The demand up to which open work is in the copy, as of the newest step's state.
  var confirmedWorkDemand: Int { work?.sha256 == named.work ? workDemand : 0 }

  // MARK: Storing

  /// What must be stored now. The caller starts all of it.
  /// - Parameters:
  ///   - isOwner: whether there is a step of this writer; before that, the identity alone is stored.
  ///   - isBroken: whether steps were lost, so that everything must be known to be stored.
  func uploads(isOwner: Bool, isBroken: Bool) throws(LedgerError) -> [Upload] {
    var uploads: [Upload] = []
    try addIdentity(to: &uploads)
    if !isOwner { return uploads }
    addWork(to: &uploads)
    try addCheckpoints(to: &uploads)
    // What the files of the log still hold is about to be erased. What the copy has lost is stored all the same and
    // replaced later: the erasure itself may wait for the copy.
    if isHeld, !isBroken, lost.isEmpty { return uploads }
    var room = Limit.segments - underWay.keys.count { $0.isSegment }
    for segment in closed where room > 0 {
      let object = CopyObject.segment(segment.range.lowerBound)
      guard copied(segment) == nil, underWay[object] == nil else { continue }
      uploads.append(upload(object, .segment(segment.range.lowerBound), segment.stamp))
      room -= 1
    }
    guard let newest else { return uploads }
    room = Limit.blocks - underWay.keys.count { $0.isBlock }
    let stamp = FileStamp(byteCount: 0, fileNumber: newest.fileNumber, changedAtNs: 0)
    for part in newest.parts where room > 0 {
      let object = CopyObject.block(part.first)
      guard copied(part, of: newest) == nil, underWay[object] == nil else { continue }
      uploads.append(
        upload(
          object,
          .part(newest.file, offsetBytes: part.offsetBytes, byteCount: part.byteCount), stamp))
      room -= 1
    }
    return uploads
  }

  private func addIdentity(to uploads: inout [Upload]) throws(LedgerError) {
    guard let stamp = identityStamp, identity?.stamp != stamp || lost.contains(.identity),
      underWay[.identity] == nil
    else { return }
    let bytes = try directory.root.openFile(Format.identityName, .readOnly).readSmall()
    uploads.append(upload(.identity, .bytes(bytes), stamp))
  }

  private func addWork(to uploads: inout [Upload]) {
    guard let work, underWay[.work] == nil,
      named.work != work.sha256 && unnamed[CopyObject.work.key(work.sha256)] == nil
        || lost.contains(.work)
    else { return }
    let stamp = FileStamp(byteCount: work.bytes.count, fileNumber: 0, changedAtNs: 0)
    uploads.append(upload(.work, .bytes(work.bytes), stamp))
  }

  private func addCheckpoints(to uploads: inout [Upload]) throws(LedgerError) {
    var room = Limit.checkpoints - underWay.keys.count { $0.isCheckpoint }
    let folder = try directory.folderIfPresent(CheckpointStore.directoryName)
    for (size, stamp) in checkpointStamps.sorted(by: { $0.key < $1.key }) where room > 0 {
      let object = CopyObject.checkpoint(size)
      guard checkpoints[size]?.stamp != stamp || lost.contains(object), underWay[object] == nil,
        let bytes = try folder?.openFile(CheckpointStore.leafName(size: size), .readOnly)
          .readSmall()
      else { continue }
      uploads.append(upload(object, .bytes(bytes), stamp))
      room -= 1
    }
  }

  private func upload(
    _ object: CopyObject, _ source: Upload.Source, _ stamp: FileStamp
  ) -> Upload {
    requestCount += 1
    underWay[object] = requestCount
    return Upload(
      object: object, source: source, stamp: stamp,
      stored: lost.contains(object) ? nil : named.digest(object), number: requestCount)
  }

  /// Applies the result of an upload.
  /// - Parameter deleted: keys that are being deleted.
  func apply(_ upload: Upload, _ result: Result<Stored, LedgerError>, deleting deleted: [String]) {
    underWay[upload.object] = nil
    knownLayout = nil
    defer { if underWay.isEmpty { deletions = [:] } }
    guard case .success(let stored) = result else { return checkSoon() }
    let key = upload.object.key(stored.sha256)
    // It may be deleted again. It is stored again once no deletion is running.
    if deleted.contains(key) { return }
    if let deletion = deletions[key], deletion > upload.number { return }
    if lost.remove(upload.object) != nil { mended.insert(key) }
    if stored.isNew, named.digest(upload.object) != stored.sha256 { unnamed[key] = upload.object }
    let file = KnownFile(
      stamp: stored.stamp, sha256: stored.sha256, byteCount: stored.byteCount)
    switch upload.object {
    case .identity: identity = file
    case .work: break
    case .checkpoint(let size): checkpoints[size] = file
    case .segment(let first):
      let isVerified = !stored.isNew && digests.entries[first]?.isVerified == true
      digests.entries[first] = SegmentDigests.Entry(
        stamp: stored.stamp, sha256: stored.sha256, isVerified: isVerified)
      digestsHaveChanged = true
    case .block(let first):
      guard case .part(_, let offset, let byteCount) = upload.source, let newest,
        newest.fileNumber == upload.stamp.fileNumber, let part = self.part(first),
        part.offsetBytes == offset, part.byteCount == byteCount
      else { return }
      blocks[first] = KnownBlock(
        fileNumber: newest.fileNumber, part: part, sha256: stored.sha256)
    }
  }

  private func part(_ first: Position) -> NewestSegment.Part? {
    guard let parts = newest?.parts else { return nil }
    let index = lowerBound(parts.indices) { parts[$0].first < first }
    return index < parts.count && parts[index].first == first ? parts[index] : nil
  }

  // MARK: Naming

  private func isStored(_ object: CopyObject, _ sha256: SHA256Digest) -> Bool {
    !lost.contains(object)
      && (named.digest(object) == sha256 || unnamed[object.key(sha256)] != nil)
  }

  /// A segment as a step names it; nil if its current bytes are not in the copy.
  private func copied(_ segment: ClosedSegment) -> CopiedSegment? {
    let first = segment.range.lowerBound
    guard let entry = digests.entries[first], entry.stamp == segment.stamp,
      isStored(.segment(first), entry.sha256)
    else { return nil }
    return CopiedSegment(
      first: first, end: segment.range.upperBound, byteCount: segment.stamp.byteCount,
      sha256: entry.sha256)
  }

  private func copied(_ part: NewestSegment.Part, of newest: NewestSegment) -> CopiedBlock? {
    guard let known = blocks[part.first], known.fileNumber == newest.fileNumber,
      known.part == part, isStored(.block(part.first), known.sha256)
    else { return nil }
    return CopiedBlock(
      segment: newest.first, first: part.first, end: part.end, offsetBytes: part.offsetBytes,
      byteCount: part.byteCount, sha256: known.sha256)
  }

  /// The segments and blocks that the next step may name: what is stored, up to the first gap. Never less than the
  /// state names.
  func layout(after state: CopyState) -> ContentLayout {
    if let knownLayout { return knownLayout }
    let layout = foundLayout(after: state)
    knownLayout = layout
    return layout
  }

  private func foundLayout(after state: CopyState) -> ContentLayout {
    let current = ContentLayout(state)
    let layout = storedLayout(orBlocks: state.blocks)
    return layout.end >= current.end ? layout : current
  }

  private func storedLayout(orBlocks known: [CopiedBlock]) -> ContentLayout {
    var layout = ContentLayout()
    for segment in closed {
      guard let copied = copied(segment), copied.first == layout.segmentsEnd else { break }
      layout.segments.append(copied)
    }
    if layout.segments.count < closed.count {
      // Keep the blocks of a segment that is closed and not stored as a whole yet.
      if known.first?.first == layout.segmentsEnd { layout.blocks = known }
    } else if let newest {
      for part in newest.parts {
        guard let copied = copied(part, of: newest) else { break }
        layout.blocks.append(copied)
      }
    }
    return layout
  }

  /// What is on disk, except frames, and stored; nil until a step can name it.
  /// - Parameter state: its checkpoints are named again unless the store has lost them.
  func stored(after state: CopyState) -> StoredContent? {
    guard let identity, isStored(.identity, identity.sha256),
      work.map({ isStored(.work, $0.sha256) }) ?? true
    else { return nil }
    let known = state.checkpoints.filter { !lost.contains(.checkpoint($0.size)) }
    return StoredContent(
      layout: storedLayout(orBlocks: []), identity: identity.sha256, work: work?.sha256,
      checkpoints: CopyState.merged(known, newCheckpoints(upTo: .max)))
  }

  /// The checkpoints that a step of a size may name and the state does not.
  func newCheckpoints(upTo size: Int) -> [CopiedCheckpoint] {
    checkpoints.compactMap { (checkpointSize, file) in
      guard checkpointSize <= size, named.checkpoints[checkpointSize] != file.sha256,
        isStored(.checkpoint(checkpointSize), file.sha256)
      else { return nil }
      return CopiedCheckpoint(size: checkpointSize, sha256: file.sha256)
    }
    .sorted { $0.size < $1.size }
  }

  /// The identity, if it is stored and the state does not name it.
  var newIdentity: SHA256Digest? {
    guard let identity, named.identity != identity.sha256,
      isStored(.identity, identity.sha256)
    else { return nil }
    return identity.sha256
  }

  /// The open work, if it is stored and the state does not name it.
  var newWork: SHA256Digest? {
    guard let work, named.work != work.sha256, isStored(.work, work.sha256) else { return nil }
    return work.sha256
  }

  /// Records what the newest step's state names.
  func recordState(_ state: CopyState) {
    knownLayout = nil
    named = NamedObjects(state)
    unnamed = unnamed.filter { named.digest($0.value).map($0.value.key) != $0.key }
    verifiedKeys.formIntersection(state.namedKeys)
    lost = lost.filter { named.digest($0) != nil }
  }

  /// Whether everything on disk, except frames, is in the copy in its current form.
  func isSettled(_ state: CopyState) -> Bool {
    let layout = layout(after: state)
    return underWay.isEmpty && unnamed.isEmpty && lost.isEmpty && mended.isEmpty && !isHeld
      && layout == ContentLayout(state) && layout.segments.count == closed.count
      && layout.blocks.count == newest?.parts.count ?? 0 && newIdentity == nil
      && work?.sha256 == named.work
      && identity?.stamp == identityStamp && newCheckpoints(upTo: state.size).isEmpty
      && checkpointStamps.allSatisfy { checkpoints[$0.key]?.stamp == $0.value }
  }

  // MARK: Deleting

  /// Objects that were stored and will not be named because their files have changed since.
  func removeOrphans() -> [String] {
    let orphans = unnamed.filter { !isWanted($0.value, key: $0.key) }.map(\.key)
    for key in orphans { unnamed[key] = nil }
    return orphans
  }

  private func isWanted(_ object: CopyObject, key: String) -> Bool {
    let digest: SHA256Digest? =
      switch object {
      case .identity: identity?.sha256
      case .work: work?.sha256
      case .checkpoint(let size): checkpoints[size]?.sha256
      case .segment(let first):
        closed.first { $0.range.lowerBound == first }.flatMap { segment in
          digests.entries[first].flatMap { $0.stamp == segment.stamp ? $0.sha256 : nil }
        }
      case .block(let first):
        blocks[first].flatMap { known in
          known.fileNumber == newest?.fileNumber && part(first) == known.part
            ? known.sha256 : nil
        }
      }
    return digest.map(object.key) == key
  }

  /// Whether an object is not named, not about to be named, and not being stored.
  func mayDelete(_ key: String) -> Bool {
    guard let object = CopyLayout.object(ofKey: key) else { return false }
    return unnamed[key] == nil && underWay[object] == nil
      && named.digest(object).map(object.key) != key
  }

  /// The objects that replaced others and were not read back yet.
  func expected(
    replacing keys: [String], frames: [Range<Position>], in state: CopyState
  ) -> [ExpectedObject] {
    var expected: Set<ExpectedObject> = []
    for key in keys {
      guard let object = CopyLayout.object(ofKey: key) else { continue }
      switch object {
      case .segment(let first), .block(let first):
        if let cover = cover(of: first, state) { expected.insert(cover) }
      case .checkpoint, .identity, .work:
        guard let sha256 = named.digest(object) else { continue }
        expected.insert(
          ExpectedObject(
            object: object, key: object.key(sha256), sha256: sha256, byteCount: nil))
      }
    }
    for range in frames {
      var position = range.lowerBound
      // A step's frames are of one tail, and so of one block, or of a few if the log was laid out again.
      while position < range.upperBound, let end = self.end(of: position, state) {
        if let cover = cover(of: position, state) { expected.insert(cover) }
        position = end
      }
    }
    return expected.filter { !isVerified($0) }.sorted { $0.key < $1.key }
  }

  private func cover(of position: Position, _ state: CopyState) -> ExpectedObject? {
    if let segment = self.segment(holding: position, state) {
      return ExpectedObject(
        object: .segment(segment.first), key: segment.key, sha256: segment.sha256,
        byteCount: segment.byteCount)
    }
    return self.block(holding: position, state).map { block in
      ExpectedObject(
        object: .block(block.first), key: block.key, sha256: block.sha256,
        byteCount: block.byteCount)
    }
  }

  private func end(of position: Position, _ state: CopyState) -> Position? {
    segment(holding: position, state)?.end ?? block(holding: position, state)?.end
  }

  private func segment(holding position: Position, _ state: CopyState) -> CopiedSegment? {
    let segments = state.segments
    let index = lowerBound(segments.indices) { segments[$0].end <= position }
    return index < segments.count ? segments[index] : nil
  }

  private func block(holding position: Position, _ state: CopyState) -> CopiedBlock? {
    let blocks = state.blocks
    let index = lowerBound(blocks.indices) { blocks[$0].end <= position }
    return index < blocks.count && blocks[index].first <= position ? blocks[index] : nil
  }

  private func isVerified(_ expected: ExpectedObject) -> Bool {
    if lost.contains(expected.object) { return false }
    if case .segment(let first) = expected.object,
      let entry = digests.entries[first], entry.sha256 == expected.sha256, entry.isVerified
    {
      return true
    }
    return verifiedKeys.contains(expected.key)
  }

  /// Applies the result of a cleanup.
  func apply(_ before: Cleanup, _ after: Cleanup) {
    requestCount += 1
    let left = Set(after.keys)
    if !underWay.isEmpty {
      for key in before.keys where !left.contains(key) { deletions[key] = requestCount }
    }
    for verified in after.verified {
      verifiedKeys.insert(verified.key)
      if case .segment(let first) = verified.object,
        digests.entries[first]?.sha256 == verified.sha256
      {
        digests.entries[first]?.isVerified = true
        digestsHaveChanged = true
      }
    }
    markLost(after.damaged)
  }

  // MARK: Losses

  /// Records objects that the store does not have as they were stored.
  /// - Returns: those that are still needed.
  @discardableResult
  func markLost(_ objects: [ExpectedObject]) -> [ExpectedObject] {
    let needed = objects.filter { named.digest($0.object) == $0.sha256 }
    for object in needed {
      lost.insert(object.object)
      verifiedKeys.remove(object.key)
      invalidate(object.object)
    }
    return needed
  }

  /// The keys that were stored again since the last call.
  func removeMended() -> Set<String> {
    defer { mended = [] }
    return mended
  }

  /// What is missing on this disk as well: a step must omit it.
  var unrecoverable: [CopyFault] {
    lost.compactMap { object in
      guard case .checkpoint(let size) = object, checkpointStamps[size] == nil,
        let sha256 = named.checkpoints[size]
      else { return nil }
      return CopyFault(object: object.key(sha256), cause: "it is missing, and on this disk too")
    }
  }

  /// The sizes of the checkpoints that the copy names: no step records them.
  var sizes: [String: Int] {
    var sizes: [String: Int] = [:]
    // A checkpoint's file never changes.
    for (size, stamp) in checkpointStamps {
      guard let sha256 = named.checkpoints[size] else { continue }
      sizes[CopyObject.checkpoint(size).key(sha256)] = stamp.byteCount
    }
    return sizes
  }

  private func invalidate(_ object: CopyObject) {
    knownLayout = nil
    switch object {
    case .identity: identity = nil
    // It is in memory.
    case .work: break
    case .segment(let first):
      digests.entries[first] = nil
      digestsHaveChanged = true
    case .block(let first): blocks[first] = nil
    case .checkpoint(let size): checkpoints[size] = nil
    }
  }

  /// Writes the digests of segments, if they have changed.
  func saveDigests() throws(LedgerError) {
    guard digestsHaveChanged else { return }
    try digests.write(to: directory)
    digestsHaveChanged = false
  }
}

extension CopyObject {
  var isSegment: Bool { if case .segment = self { true } else { false } }
  var isBlock: Bool { if case .block = self { true } else { false } }
  var isCheckpoint: Bool { if case .checkpoint = self { true } else { false } }
}
