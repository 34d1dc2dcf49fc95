// Objects as files below a directory, such as one on another disk; and the mark of such a directory.
package import Base
import Glibc
import Synchronization

/// A directory that holds a copy. Each call opens the root again, so that a disk that comes back is found. Links below
/// the root are not followed.
package final class DirectoryStore: MarkedStore {
  package let name: String
  private let path: String
  private let isCancelled = Atomic<Bool>(false)
  private let requiredMark = Monitor<UUID16?>(nil)

  private static let pieceByteCount = 256 << 10

  /// - Parameter path: absolute; calls fail until it exists.
  package init(path: String) {
    self.path = path
    name = "file://\(path)"
  }

  package func cancel() { isCancelled.store(true, ordering: .releasing) }

  // MARK: Mark

  package func require(mark: UUID16?) { requiredMark.withLock { $0 = mark } }

  package func mark() throws(ObjectStoreError) -> UUID16? {
    let call = try call("read", MarkFile.name)
    let root = try root(call, isMarkNeeded: false)
    return try call.wrap { () throws(SystemError) in try MarkFile.read(in: root) }
  }

  package func setMark(_ mark: UUID16) throws(ObjectStoreError) {
    let call = try call("put", MarkFile.name)
    let root = try root(call, isMarkNeeded: false)
    let draft = try write(.bytes(MarkFile.bytes(mark)), besides: MarkFile.name, in: root, call)
    try putInPlace(draft, as: MarkFile.name, in: root, call)
  }

  // MARK: Storing

  package func put(_ key: String, _ body: ObjectBody) throws(ObjectStoreError) {
    let call = try call("put", key)
    let (folder, file) = try makeFolder(of: key, call)
    let draft = try write(body, besides: file, in: folder, call)
    try putInPlace(draft, as: file, in: folder, call)
  }

  private func putInPlace(
    _ draft: String, as file: String, in folder: OpenFile, _ call: DirectoryCall
  ) throws(ObjectStoreError) {
    do throws(SystemError) {
      try folder.rename(draft, to: file)
      try folder.sync()
    } catch {
      try? folder.unlink(draft)
      throw call.error(error)
    }
  }

  package func create(
    _ key: String, _ body: ObjectBody
  ) throws(ObjectStoreError) -> PutOutcome {
    let call = try call("create", key)
    let (folder, file) = try makeFolder(of: key, call)
    // Avoids writing what would be discarded.
    if try isObject(file, in: folder, call) { return .exists }
    let draft = try write(body, besides: file, in: folder, call)
    do throws(SystemError) {
      // Unlike a rename, this fails if the name is taken.
      let isStored = try folder.link(draft, to: file)
      try folder.unlink(draft)
      if isStored { try folder.sync() }
      return isStored ? .stored : .exists
    } catch {
      try? folder.unlink(draft)
      throw call.error(error)
    }
  }

  /// Writes the bytes under a temporary name and syncs them.
  /// - Returns: the name.
  private func write(
    _ body: ObjectBody, besides file: String, in folder: OpenFile, _ call: DirectoryCall
  ) throws(ObjectStoreError) -> String {
    let draft = DraftName.new(for: file)
    let output = try call.wrap { () throws(SystemError) in try folder.newFile(draft) }
    do throws(ObjectStoreError) {
      try copy(body, to: output, call)
      try call.wrap { () throws(SystemError) in try output.sync() }
    } catch {
      try? folder.unlink(draft)
      throw error
    }
    return draft
  }

  private func copy(
    _ body: ObjectBody, to output: OpenFile, _ call: DirectoryCall
  ) throws(ObjectStoreError) {
    let piece = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.pieceByteCount, alignment: 1)
    defer { piece.deallocate() }
    let digest = SHA256()
    var offset = 0
    while offset < body.byteCount {
      try check(call)
      let start = offset
      let count = try call.wrap { () throws(SystemError) in
        let count = try body.copy(to: piece, fromOffset: start)
        let bytes = UnsafeRawBufferPointer(rebasing: piece[..<count])
        digest.update(bytes)
        try output.write(bytes)
        return count
      }
      if count == 0 { break }
      offset += count
    }
    guard offset == body.byteCount, digest.finish() == body.sha256 else {
      throw call.error(.unexpected, "the file is not as it was when its digest was made")
    }
  }

  /// The folder of a key, created if it is missing, and the file's name in it.
  private func makeFolder(
    of key: String, _ call: DirectoryCall
  ) throws(ObjectStoreError) -> (folder: OpenFile, file: String) {
    var parts = try Self.parts(of: key, call)
    let file = parts.removeLast()
    var folder = try root(call)
    for part in parts {
      let outer = folder
      folder = try call.wrap { () throws(SystemError) in
        do throws(SystemError) { return try outer.folder(part) } catch {
          if error.code != ENOENT { throw error }
          try outer.makeFolder(part)
          return try outer.folder(part)
        }
      }
    }
    return (folder, file)
  }

  // MARK: Reading

  package func get(_ key: String, byteCountMax: Int) throws(ObjectStoreError) -> [UInt8]? {
    var bytes: [UInt8] = []
    let isThere = try read(key, byteCountMax: byteCountMax, operation: "get") {
      bytes.append(contentsOf: $0)
    }
    return isThere ? bytes : nil
  }

  package func read(
    _ key: String, byteCountMax: Int,
    _ body: (UnsafeRawBufferPointer) throws(ObjectStoreError) -> Void
  ) throws(ObjectStoreError) -> Bool {
    try read(key, byteCountMax: byteCountMax, operation: "read", body)
  }

  private func read(
    _ key: String, byteCountMax: Int, operation: String,
    _ body: (UnsafeRawBufferPointer) throws(ObjectStoreError) -> Void
  ) throws(ObjectStoreError) -> Bool {
    let call = try call(operation, key)
    guard let (folder, name) = try folder(of: key, call),
      let file = try call.ifThere({ () throws(SystemError) in try folder.file(name) })
    else { return false }
    let status = try call.wrap { () throws(SystemError) in try file.status() }
    guard status.st_mode & S_IFMT == S_IFREG else { throw call.error(SystemError(code: ELOOP)) }
    let byteCount = Int(status.st_size)
    guard byteCount <= byteCountMax else {
      throw call.error(.tooLarge, "it is larger than allowed")
    }
    let piece = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.pieceByteCount, alignment: 1)
    defer { piece.deallocate() }
    // Objects are replaced by renaming, so the size of this one does not change.
    let part = ObjectBody.file(
      descriptor: file.descriptor, offsetBytes: 0, byteCount: byteCount, sha256: Self.unknown)
    var offset = 0
    while offset < byteCount {
      try check(call)
      let start = offset
      let count = try call.wrap { () throws(SystemError) in
        try part.copy(to: piece, fromOffset: start)
      }
      if count == 0 { throw call.error(.unavailable, "the file became shorter") }
      try body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
      offset += count
    }
    return true
  }

  /// Where no digest is known; no caller reads it.
  private static let unknown = SHA256Digest(0, 0, 0, 0)

  package func contains(_ key: String) throws(ObjectStoreError) -> Bool {
    let call = try call("look for", key)
    guard let (folder, file) = try folder(of: key, call) else { return false }
    return try isObject(file, in: folder, call)
  }

  /// Whether there is a file of that name; throws if it is not a regular file.
  private func isObject(
    _ name: String, in folder: OpenFile, _ call: DirectoryCall
  ) throws(ObjectStoreError) -> Bool {
    let status = try call.wrap { () throws(SystemError) in try folder.status(of: name) }
    guard let status else { return false }
    guard status.st_mode & S_IFMT == S_IFREG else { throw call.error(SystemError(code: ELOOP)) }
    return true
  }

  package func delete(_ key: String) throws(ObjectStoreError) {
    let call = try call("delete", key)
    guard let (folder, file) = try folder(of: key, call) else { return }
    try call.wrap { () throws(SystemError) in
      try folder.unlink(file)
      // A deleted object must not reappear after a crash.
      try folder.sync()
    }
  }

  /// The folder of a key and the file's name in it; nil if there is no such folder.
  private func folder(
    of key: String, _ call: DirectoryCall
  ) throws(ObjectStoreError) -> (folder: OpenFile, file: String)? {
    var parts = try Self.parts(of: key, call)
    let file = parts.removeLast()
    var folder = try root(call)
    for part in parts {
      let outer = folder
      guard let inner = try call.ifThere({ () throws(SystemError) in try outer.folder(part) })
      else { return nil }
      folder = inner
    }
    return (folder, file)
  }

  // MARK: Lists

  package func list(prefix: String, after: String?) throws(ObjectStoreError) -> [ObjectEntry] {
    let call = DirectoryCall(operation: "list", object: name)
    try check(call)
    var listing = DirectoryListing(prefix: prefix, after: after)
    let root = try root(call)
    try call.wrap { () throws(SystemError) in try listing.add(root, at: "") }
    return listing.entries
  }

  // MARK: Calls

  private func call(
    _ operation: String, _ key: String
  ) throws(ObjectStoreError) -> DirectoryCall {
    try ObjectKey.check(key, operation: operation)
    let call = DirectoryCall(operation: operation, object: key)
    try check(call)
    return call
  }

  private func check(_ call: DirectoryCall) throws(ObjectStoreError) {
    if isCancelled.load(ordering: .acquiring) {
      throw call.error(.cancelled, "the store is no longer used")
    }
  }

  private static func parts(
    of key: String, _ call: DirectoryCall
  ) throws(ObjectStoreError) -> [String] {
    let parts = key.split(separator: "/").map { String($0) }
    guard let last = parts.last, parts.count <= DirectoryListing.depthMax,
      !DraftName.matches(last)
    else { throw call.error(.unexpected, "its key does not have the form of a copy's") }
    return parts
  }

  private func root(
    _ call: DirectoryCall, isMarkNeeded: Bool = true
  ) throws(ObjectStoreError) -> OpenFile {
    let root: OpenFile
    let status: stat
    do throws(SystemError) {
      root = try OpenFile.root(path)
      status = try root.status()
    } catch {
      guard error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP else {
        throw call.error(error)
      }
      throw call.error(.noBucket, "there is no directory \(path)")
    }
    guard status.st_uid == geteuid() else {
      throw call.error(.noBucket, "the directory \(path) belongs to another user")
    }
    guard status.st_mode & 0o022 == 0 else {
      throw call.error(.noBucket, "other users can write to the directory \(path): run chmod go-w")
    }
    if isMarkNeeded, let required = requiredMark.withLock({ $0 }) {
      // Checks what the open directory leads to: a disk that disappears meanwhile takes it along.
      guard try call.wrap({ () throws(SystemError) in try MarkFile.read(in: root) }) == required
      else {
        throw call.error(
          .unavailable,
          "the directory \(path) lacks the file \(MarkFile.name) of this copy: is its disk mounted?"
        )
      }
    }
    return root
  }
}

/// The names of files that are being written.
enum DraftName {
  private static let mark = ".new-"
  private static let digitCount = 16

  static func new(for file: String) -> String {
    var random = SystemRandomNumberGenerator()
    let digits = String(random.next(), radix: 16)
    let zeros = String(repeating: "0", count: digitCount - digits.utf8.count)
    return file + mark + zeros + digits
  }

  static func matches(_ name: String) -> Bool {
    let tail = name.utf8.suffix(digitCount)
    return tail.count == digitCount && tail.allSatisfy { Hex.value($0) != nil }
      && name.utf8.dropLast(digitCount).suffix(mark.utf8.count).elementsEqual(mark.utf8)
  }
}

/// A call, as context for its errors.
struct DirectoryCall {
  let operation: String
  let object: String

  func error(_ kind: ObjectStoreError.Kind, _ cause: String) -> ObjectStoreError {
    ObjectStoreError(kind, operation: operation, object: object, cause: cause)
  }

  func error(_ error: SystemError) -> ObjectStoreError {
    switch error.code {
    case ENOSPC, EDQUOT: self.error(.full, text(error))
    case EACCES, EPERM, EROFS: self.error(.denied, text(error))
    case ELOOP, ENOTDIR, EISDIR:
      self.error(.unexpected, "a link, a directory or a file is where it does not belong")
    case EOPNOTSUPP: self.error(.unexpected, "the file system has no hard links")
    case EMLINK, ENAMETOOLONG, EINVAL: self.error(.unexpected, text(error))
    // The disk fails, or is not there now.
    default: self.error(.unavailable, text(error))
    }
  }

  private func text(_ error: SystemError) -> String { SmallFileError.system(error).cause }

  func wrap<Value>(
    _ body: () throws(SystemError) -> Value
  ) throws(ObjectStoreError) -> Value {
    do throws(SystemError) { return try body() } catch { throw self.error(error) }
  }

  /// Nil if there is no file of that name.
  func ifThere<Value>(
    _ body: () throws(SystemError) -> Value
  ) throws(ObjectStoreError) -> Value? {
    do throws(SystemError) { return try body() } catch {
      if error.code == ENOENT { return nil }
      throw self.error(error)
    }
  }
}

// MARK: - Marks

/// A store that may seem empty because its disk is not mounted. A mark tells the copy's directory from the empty mount
/// point.
package protocol MarkedStore: ObjectStore {
  /// The store's mark; nil if it has none, or an unreadable one.
  func mark() throws(ObjectStoreError) -> UUID16?
  /// Marks the store, replacing any earlier mark.
  func setMark(_ mark: UUID16) throws(ObjectStoreError)
  /// From now on calls fail with `unavailable` unless the store bears this mark; nil removes the requirement.
  func require(mark: UUID16?)
}

/// The file that marks a directory.
enum MarkFile {
  static let name = "copy-id"
  private static let byteCount = 37

  /// Nil if it is missing or not of the right form.
  static func read(in root: OpenFile) throws(SystemError) -> UUID16? {
    let file: OpenFile
    do throws(SystemError) { file = try root.file(name) } catch {
      if error.code == ENOENT || error.code == ELOOP { return nil }
      throw error
    }
    guard try file.status().st_mode & S_IFMT == S_IFREG else { return nil }
    let text = try withUnsafeTemporaryAllocation(byteCount: byteCount + 1, alignment: 1) {
      buffer throws(SystemError) -> String in
      let part = ObjectBody.file(
        descriptor: file.descriptor, offsetBytes: 0, byteCount: buffer.count,
        sha256: SHA256Digest(0, 0, 0, 0))
      let count = try part.copy(to: buffer, fromOffset: 0)
      return String(decoding: buffer[..<count], as: UTF8.self)
    }
    guard text.utf8.count == byteCount, text.hasSuffix("\n") else { return nil }
    return UUID16(String(text.dropLast()))
  }

  static func bytes(_ mark: UUID16) -> [UInt8] { Array("\(mark)\n".utf8) }
}
