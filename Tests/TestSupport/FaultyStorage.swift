// Files in memory that forget what was not synced, fail on demand, and crash at the n-th call.
package import Base
import Glibc
package import Ledger

/// Storage whose unsynced state a crash may lose, wholly or in part.
///
/// After a failed sync it misleads as the kernel does: unwritten bytes still read as if they had been written, and the
/// next sync succeeds without writing them.
package final class FaultyStorage: Storage {
  /// The faults, counted over all calls that can fail.
  package struct Faults: Sendable {
    /// From this call on everything fails: the machine is dead.
    package var crashAtCall: Int?
    /// The call with this ordinal fails once with a code; a write has then stored a part of its bytes.
    package var failCall: Failure?
    /// The sync with this ordinal fails, once.
    package var failSync: Int?
    /// Writes fail for lack of space while this is set.
    package var isFull = false
    /// Only for files whose path contains this, the disk is full.
    package var fullFiles: String?
    /// Now and then, calls are interrupted, and reads and writes do half.
    package var isFlaky = false
    /// Nothing may be changed, as on a file system that is mounted read-only.
    package var isReadOnly = false
    /// At most this many files may be open at a time.
    package var openFilesMax: Int?
    /// Ranges of files that the medium cannot read.
    package var unreadable: [String: Range<Int>] = [:]
    /// The names that successive listings leave out, one each, as names may come and go during a listing. A listing
    /// without the next name leaves out nothing.
    package var hiddenNames: [String] = []

    package init(
      crashAtCall: Int? = nil, failCall: Failure? = nil, failSync: Int? = nil, isFull: Bool = false,
      fullFiles: String? = nil, isFlaky: Bool = false, isReadOnly: Bool = false,
      openFilesMax: Int? = nil, unreadable: [String: Range<Int>] = [:], hiddenNames: [String] = []
    ) {
      self.crashAtCall = crashAtCall
      self.failCall = failCall
      self.failSync = failSync
      self.isFull = isFull
      self.fullFiles = fullFiles
      self.isFlaky = isFlaky
      self.isReadOnly = isReadOnly
      self.openFilesMax = openFilesMax
      self.unreadable = unreadable
      self.hiddenNames = hiddenNames
    }
  }

  /// One failing call.
  package struct Failure: Sendable {
    package let ordinal: Int
    /// The value of `errno`.
    package let code: Int32

    package init(ordinal: Int, code: Int32) {
      self.ordinal = ordinal
      self.code = code
    }
  }

  private struct File {
    static let sectorByteCount = 512

    var content: [UInt8] = []
    var durable: [UInt8] = []
    var permissions: UInt32
    /// The target of a symbolic link; nil for a regular file. It is durable with the link's name.
    var target: String?
    /// Sectors that a failed sync has dropped: they read as new, and no later sync writes them.
    var lostSectors: Set<Int> = []

    /// The content that a sync makes durable.
    var synced: [UInt8] {
      if lostSectors.isEmpty { return content }
      var result = content
      for sector in lostSectors {
        let start = sector * File.sectorByteCount
        for place in start..<min(start + File.sectorByteCount, result.count)
        where start < result.count {
          result[place] = place < durable.count ? durable[place] : 0
        }
      }
      return result
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer, offsetBytes: Int) {
      if bytes.isEmpty { return }
      let end = offsetBytes + bytes.count
      if content.count < end {
        content += [UInt8](repeating: 0, count: end - content.count)
      }
      content.replaceSubrange(offsetBytes..<end, with: bytes)
      for sector in offsetBytes / File.sectorByteCount...(end - 1) / File.sectorByteCount {
        lostSectors.remove(sector)
      }
    }

    mutating func loseUnsynced() {
      for sector in 0..<(content.count + File.sectorByteCount - 1) / File.sectorByteCount {
        let start = sector * File.sectorByteCount
        let new = content[start..<min(start + File.sectorByteCount, content.count)]
        let old = durable[min(start, durable.count)..<min(start + new.count, durable.count)]
        if !new.elementsEqual(old) { lostSectors.insert(sector) }
      }
    }
  }

  private enum EntryChange {
    case link(String, UInt64)
    case unlink(String)
    case rename(String, String)
    case renameDirectory(String, String)
  }

  private struct State {
    var files: [UInt64: File] = [:]
    var entries: [String: UInt64] = [:]
    var durableEntries: [String: UInt64] = [:]
    /// Changes to entries since the last sync of their directory, in one log as in a journal.
    var pending: [EntryChange] = []
    var directories: Set<String> = []
    var descriptors: [Int32: UInt64] = [:]
    var openDirectories: [Int32: String] = [:]
    var lockHolders: [UInt64: Int32] = [:]
    var nextNumber: UInt64 = 1
    var nextDescriptor: Int32 = 3
    var callCount = 0
    var syncCount = 0
    var readByteCount = 0
    var faults = Faults()
    var random = SeededRandom(seed: 0)

    /// The target of the link at this path; nil if there is none.
    func link(_ path: String) -> String? { entries[path].flatMap { files[$0]?.target } }

    /// Whether a directory was made there, or files were put in it.
    func isDirectory(_ path: String) -> Bool {
      directories.contains(path) || entries.keys.contains { $0.hasPrefix(path + "/") }
    }

    mutating func addFile(_ file: File) -> UInt64 {
      defer { nextNumber += 1 }
      files[nextNumber] = file
      return nextNumber
    }
  }

  private let state: Monitor<State>

  package init() { state = Monitor(State()) }

  private init(_ initial: State) { state = Monitor(initial) }

  /// The paths of all files.
  package var paths: [String] { state.withLock { $0.entries.keys.sorted() } }

  /// A file's bytes, past all faults.
  package func content(_ path: String) -> [UInt8] {
    state.withLock { state in state.entries[path].flatMap { state.files[$0]?.content } ?? [] }
  }

  /// Replaces a file's bytes, past all faults.
  package func setContent(_ path: String, _ content: [UInt8]) {
    state.withLock { state in
      if let number = state.entries[path] { state.files[number]?.content = content }
    }
  }

  /// Replaces the bytes under a name, past all faults; creates the file if there is none.
  package func place(_ path: String, _ content: [UInt8]) {
    state.withLock { state in
      let number = state.entries[path] ?? state.nextNumber
      if number == state.nextNumber { state.nextNumber += 1 }
      state.entries[path] = number
      state.durableEntries[path] = number
      state.files[number] = File(content: content, durable: content, permissions: 0o600)
    }
  }

  /// Puts a symbolic link in place, past all faults.
  package func placeLink(_ path: String, to target: String) {
    state.withLock { state in
      let number = state.addFile(File(permissions: 0o777, target: target))
      state.entries[path] = number
      state.durableEntries[path] = number
    }
  }

  /// Removes a file, past all faults.
  package func remove(_ path: String) { state.withLock { $0.entries[path] = nil } }

  package var callCount: Int { state.withLock { $0.callCount } }
  package var syncCount: Int { state.withLock { $0.syncCount } }
  /// How many bytes were read.
  package var readByteCount: Int { state.withLock { $0.readByteCount } }
  /// How many files are open.
  package var openFileCount: Int { state.withLock { $0.descriptors.count } }

  package func setFaults(_ faults: Faults) {
    state.withLock { state in
      state.faults = faults
      state.callCount = 0
      state.syncCount = 0
      state.readByteCount = 0
    }
  }

  /// Another storage with the same files, faults and counts. No file may be open.
  package func copy() -> FaultyStorage {
    state.withLock { state in
      precondition(state.descriptors.isEmpty && state.openDirectories.isEmpty)
      return FaultyStorage(state)
    }
  }

  /// The disk's content after a power cut: synced bytes, any sectors of the others, and the changes
  /// of names up to some point.
  package func afterCrash(seed: UInt64) -> FaultyStorage {
    state.withLock { state in
      var random = SeededRandom(seed: seed)
      var after = State()
      after.directories = state.directories
      after.entries = state.durableEntries
      let kept = Int.random(in: 0...state.pending.count, using: &random)
      for change in state.pending[..<kept] { FaultyStorage.apply(change, to: &after.entries) }
      for change in state.pending[kept...].reversed() {
        guard case .renameDirectory(let old, let new) = change else { continue }
        after.directories = FaultyStorage.moved(after.directories, from: new, to: old)
      }
      after.durableEntries = after.entries
      after.nextNumber = state.nextNumber
      for (number, file) in state.files {
        let content = FaultyStorage.torn(file, &random)
        after.files[number] = File(
          content: content, durable: content, permissions: file.permissions, target: file.target)
      }
      return FaultyStorage(after)
    }
  }

  /// Old or new bytes, sector by sector, and a size in between.
  private static func torn(_ file: File, _ random: inout SeededRandom) -> [UInt8] {
    let (old, new) = (file.durable, file.synced)
    if new == old { return old }
    switch Int.random(in: 0..<4, using: &random) {
    case 0: return old
    case 1: return new
    default:
      let size = Int.random(
        in: min(old.count, new.count)...max(old.count, new.count), using: &random)
      var result = [UInt8](repeating: 0, count: size)
      for sector in stride(from: 0, to: size, by: File.sectorByteCount) {
        let source = Bool.random(using: &random) ? new : old
        let end = min(sector + File.sectorByteCount, size, source.count)
        if sector < end { result.replaceSubrange(sector..<end, with: source[sector..<end]) }
      }
      return result
    }
  }

  private static func apply(_ change: EntryChange, to entries: inout [String: UInt64]) {
    switch change {
    case .link(let path, let number): entries[path] = number
    case .unlink(let path): entries[path] = nil
    case .rename(let old, let new):
      entries[new] = entries[old]
      entries[old] = nil
    case .renameDirectory(let old, let new):
      for path in entries.keys where path.hasPrefix(old + "/") {
        entries[new + path.dropFirst(old.count)] = entries[path]
        entries[path] = nil
      }
    }
  }

  private func call<Result>(
    changes: Bool = false, isInterruptible: Bool = true,
    onFailure: (inout State) -> Void = { _ in },
    _ body: (inout State) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try state.withLock { state throws(SystemError) in
      state.callCount += 1
      if let crash = state.faults.crashAtCall, state.callCount >= crash {
        throw SystemError(code: EIO)
      }
      if let failure = state.faults.failCall, state.callCount == failure.ordinal {
        onFailure(&state)
        throw SystemError(code: failure.code)
      }
      if changes, state.faults.isReadOnly { throw SystemError(code: EROFS) }
      if isInterruptible, state.faults.isFlaky,
        Int.random(in: 0..<5, using: &state.random) == 0
      {
        throw SystemError(code: EINTR)
      }
      return try body(&state)
    }
  }

  private static func change(_ change: EntryChange, _ state: inout State) {
    apply(change, to: &state.entries)
    state.pending.append(change)
  }

  /// The path of a name in an open directory.
  private static func path(
    _ name: String, in directory: Int32, _ state: State
  ) throws(SystemError) -> String {
    guard let path = state.openDirectories[directory] else { throw SystemError(code: EBADF) }
    return "\(path)/\(name)"
  }

  private static func openDirectory(
    _ path: String, _ state: inout State
  ) throws(SystemError) -> Int32 {
    if state.entries[path] != nil { throw SystemError(code: ENOTDIR) }
    guard path.hasSuffix("/..") || state.isDirectory(path) else { throw SystemError(code: ENOENT) }
    let descriptor = state.nextDescriptor
    state.nextDescriptor += 1
    state.openDirectories[descriptor] = path
    return descriptor
  }

  package func openDirectory(_ path: String) throws(SystemError) -> Int32 {
    try call { state throws(SystemError) in try FaultyStorage.openDirectory(path, &state) }
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    try call { state throws(SystemError) in
      try FaultyStorage.openDirectory(
        try FaultyStorage.path(name, in: directory, state), &state)
    }
  }

  package func path(of directory: Int32) -> String? {
    state.withLock { $0.openDirectories[directory] }
  }

  package func open(
    _ name: String, in directory: Int32, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32 {
    try call { state throws(SystemError) in
      if state.faults.isReadOnly, access != .readOnly { throw SystemError(code: EROFS) }
      if let limit = state.faults.openFilesMax, state.descriptors.count >= limit {
        throw SystemError(code: EMFILE)
      }
      let path = try FaultyStorage.path(name, in: directory, state)
      let number: UInt64
      if state.link(path) != nil {
        throw SystemError(code: access == .create ? EEXIST : ELOOP)
      } else if let existing = state.entries[path] {
        if access == .create { throw SystemError(code: EEXIST) }
        number = existing
      } else {
        guard access == .create || access == .readWriteOrCreate
        else { throw SystemError(code: ENOENT) }
        number = state.addFile(File(permissions: permissions))
        FaultyStorage.change(.link(path, number), &state)
      }
      let descriptor = state.nextDescriptor
      state.nextDescriptor += 1
      state.descriptors[descriptor] = number
      return descriptor
    }
  }

  package func close(_ descriptor: Int32) {
    state.withLock { state in
      state.openDirectories[descriptor] = nil
      guard let number = state.descriptors.removeValue(forKey: descriptor) else { return }
      if state.lockHolders[number] == descriptor { state.lockHolders[number] = nil }
    }
  }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int {
    try call { state throws(SystemError) in
      guard let number = state.descriptors[descriptor], let content = state.files[number]?.content
      else { throw SystemError(code: EBADF) }
      for (path, range) in state.faults.unreadable where state.entries[path] == number {
        let asked =
          offsetBytes..<offsetBytes + min(buffer.count, max(0, content.count - offsetBytes))
        if range.overlaps(asked) { throw SystemError(code: EIO) }
      }
      var count = max(0, min(buffer.count, content.count - offsetBytes))
      if state.faults.isFlaky, count > 1 { count = (count + 1) / 2 }
      state.readByteCount += count
      if count > 0 { buffer.copyBytes(from: content[offsetBytes..<offsetBytes + count]) }
      return count
    }
  }

  package func write(
    _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int {
    try call(
      changes: true,
      onFailure: { state in
        guard let number = state.descriptors[descriptor] else { return }
        let count = Int.random(in: 0...bytes.count, using: &state.random)
        state.files[number]?.write(
          UnsafeRawBufferPointer(rebasing: bytes[..<count]), offsetBytes: offsetBytes)
      }
    ) { state throws(SystemError) in
      guard let number = state.descriptors[descriptor] else { throw SystemError(code: EBADF) }
      var isFull = state.faults.isFull
      if let full = state.faults.fullFiles {
        isFull = state.entries.contains { $0.value == number && $0.key.contains(full) }
      }
      var count = bytes.count
      if state.faults.isFlaky || isFull, count > 1 { count = (count + 1) / 2 }
      if isFull, bytes.count < 100 { throw SystemError(code: ENOSPC) }
      state.files[number]?.write(
        UnsafeRawBufferPointer(rebasing: bytes[..<count]), offsetBytes: offsetBytes)
      return count
    }
  }

  private func sync(
    onFailure: (inout State) -> Void, _ body: (inout State) throws(SystemError) -> Void
  ) throws(SystemError) {
    // A sync is not interrupted: the storage protocol promises that it is never repeated.
    try call(isInterruptible: false, onFailure: onFailure) { state throws(SystemError) in
      state.syncCount += 1
      if state.syncCount == state.faults.failSync {
        onFailure(&state)
        throw SystemError(code: EIO)
      }
      try body(&state)
    }
  }

  package func syncData(_ descriptor: Int32) throws(SystemError) {
    try sync(
      onFailure: { state in
        if let number = state.descriptors[descriptor] { state.files[number]?.loseUnsynced() }
      }
    ) { state throws(SystemError) in
      guard let number = state.descriptors[descriptor], var file = state.files[number]
      else { throw SystemError(code: EBADF) }
      file.durable = file.synced
      state.files[number] = file
    }
  }

  package func syncDirectory(_ descriptor: Int32) throws(SystemError) {
    // As on a journalling file system, the changes of all directories are made durable together. A failed sync leaves
    // the names as they are: such a file system turns read-only, or retries.
    try sync(onFailure: { _ in }) { state throws(SystemError) in
      state.durableEntries = state.entries
      state.pending = []
    }
  }

  package func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      guard let number = state.descriptors[descriptor], var file = state.files[number]
      else { throw SystemError(code: EBADF) }
      let missing = max(0, sizeBytes - file.content.count)
      file.content =
        Array(file.content.prefix(sizeBytes)) + [UInt8](repeating: 0, count: missing)
      file.lostSectors = file.lostSectors.filter { $0 * File.sectorByteCount < sizeBytes }
      state.files[number] = file
    }
  }

  package func changePermissions(_ descriptor: Int32, _ permissions: UInt32) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      if let number = state.descriptors[descriptor] {
        state.files[number]?.permissions = permissions
      }
    }
  }

  package func changeOwner(
    _ descriptor: Int32, _ owner: UInt32, _ group: UInt32
  ) throws(SystemError) {
    try call(changes: true) { _ throws(SystemError) in }
  }

  private static func status(_ number: UInt64, _ state: State) throws(SystemError) -> FileStatus {
    guard let file = state.files[number] else { throw SystemError(code: EBADF) }
    return FileStatus(
      sizeBytes: file.content.count, permissions: file.permissions, owner: geteuid(),
      fileNumber: number)
  }

  /// A name that is not a regular file.
  private static func status(_ kind: FileKind) -> FileStatus {
    FileStatus(
      kind: kind, sizeBytes: 0, permissions: kind == .link ? 0o777 : 0o700, owner: geteuid(),
      fileNumber: 0)
  }

  package func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
    try call { state throws(SystemError) in
      if state.openDirectories[descriptor] != nil { return FaultyStorage.status(.directory) }
      guard let number = state.descriptors[descriptor] else { throw SystemError(code: EBADF) }
      return try FaultyStorage.status(number, state)
    }
  }

  package func status(_ name: String, in directory: Int32) throws(SystemError) -> FileStatus {
    try call { state throws(SystemError) in
      let path = try FaultyStorage.path(name, in: directory, state)
      if state.link(path) != nil { return FaultyStorage.status(.link) }
      if state.directories.contains(path) { return FaultyStorage.status(.directory) }
      guard let number = state.entries[path] else { throw SystemError(code: ENOENT) }
      return try FaultyStorage.status(number, state)
    }
  }

  /// Follows no link.
  package func status(_ path: String) throws(SystemError) -> FileStatus {
    try call { state throws(SystemError) in
      if let number = state.entries[path] { return try FaultyStorage.status(number, state) }
      guard state.isDirectory(path) else { throw SystemError(code: ENOENT) }
      return FaultyStorage.status(.directory)
    }
  }

  package func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      let old = try FaultyStorage.path(name, in: directory, state)
      let new = try FaultyStorage.path(newName, in: directory, state)
      if state.entries[old] == nil, state.directories.contains(old) {
        return FaultyStorage.renameDirectory(old, new, &state)
      }
      guard state.entries[old] != nil else { throw SystemError(code: ENOENT) }
      FaultyStorage.change(.rename(old, new), &state)
    }
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      let path = try FaultyStorage.path(name, in: directory, state)
      guard state.entries[path] != nil else { throw SystemError(code: ENOENT) }
      FaultyStorage.change(.unlink(path), &state)
    }
  }

  /// Moves a directory with all that is in it, in one change.
  private static func renameDirectory(_ old: String, _ new: String, _ state: inout State) {
    state.directories = moved(state.directories, from: old, to: new)
    state.openDirectories = state.openDirectories.mapValues { moved($0, from: old, to: new) }
    change(.renameDirectory(old, new), &state)
  }

  private static func moved(
    _ directories: Set<String>, from old: String, to new: String
  ) -> Set<String> { Set(directories.map { moved($0, from: old, to: new) }) }

  private static func moved(_ path: String, from old: String, to new: String) -> String {
    path == old || path.hasPrefix(old + "/") ? new + path.dropFirst(old.count) : path
  }

  package func makeHardLink(
    _ name: String, in directory: Int32, as newName: String, in newDirectory: Int32
  ) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      let old = try FaultyStorage.path(name, in: directory, state)
      let new = try FaultyStorage.path(newName, in: newDirectory, state)
      guard let number = state.entries[old] else { throw SystemError(code: ENOENT) }
      if state.entries[new] != nil { throw SystemError(code: EEXIST) }
      FaultyStorage.change(.link(new, number), &state)
    }
  }

  package func removeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      let path = try FaultyStorage.path(name, in: directory, state)
      guard state.directories.contains(path) else { throw SystemError(code: ENOENT) }
      let isEmpty = !(Array(state.entries.keys) + state.directories).contains {
        $0.hasPrefix(path + "/")
      }
      if !isEmpty { throw SystemError(code: ENOTEMPTY) }
      state.directories.remove(path)
    }
  }

  package func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      if !state.directories.insert(path).inserted { throw SystemError(code: EEXIST) }
    }
  }

  package func makeDirectory(
    _ name: String, in directory: Int32, permissions: UInt32
  ) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      let path = try FaultyStorage.path(name, in: directory, state)
      if state.entries[path] != nil || !state.directories.insert(path).inserted {
        throw SystemError(code: EEXIST)
      }
    }
  }

  package func list(_ directory: Int32) throws(SystemError) -> [String] {
    try call { state throws(SystemError) in
      let prefix = try FaultyStorage.path("", in: directory, state)
      let paths = Array(state.entries.keys) + state.directories
      var names = paths.filter { $0.hasPrefix(prefix) }
        .map { String($0.dropFirst(prefix.count)) }.filter { !$0.contains("/") }
      if let hidden = state.faults.hiddenNames.first, names.contains(hidden) {
        state.faults.hiddenNames.removeFirst()
        names.removeAll { $0 == hidden }
      }
      return names
    }
  }

  package func readLink(_ name: String, in directory: Int32) throws(SystemError) -> String {
    try call { state throws(SystemError) in
      let path = try FaultyStorage.path(name, in: directory, state)
      guard let target = state.link(path) else { throw SystemError(code: EINVAL) }
      return target
    }
  }

  package func makeLink(
    to target: String, _ name: String, in directory: Int32
  ) throws(SystemError) {
    try call(changes: true) { state throws(SystemError) in
      let path = try FaultyStorage.path(name, in: directory, state)
      if state.entries[path] != nil || state.directories.contains(path) {
        throw SystemError(code: EEXIST)
      }
      let number = state.addFile(File(permissions: 0o777, target: target))
      FaultyStorage.change(.link(path, number), &state)
    }
  }

  package func lock(_ descriptor: Int32) throws(SystemError) -> Bool {
    try call { state throws(SystemError) in
      guard let number = state.descriptors[descriptor] else { throw SystemError(code: EBADF) }
      if let holder = state.lockHolders[number], holder != descriptor { return false }
      state.lockHolders[number] = descriptor
      return true
    }
  }

  package func unlock(_ descriptor: Int32) {
    state.withLock { state in
      guard let number = state.descriptors[descriptor], state.lockHolders[number] == descriptor
      else { return }
      state.lockHolders[number] = nil
    }
  }
}
