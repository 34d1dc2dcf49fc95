// The ledger's files in memory: an input becomes a log without touching the disk.
import Glibc
@testable import Ledger
import Synchronization

/// Files by their paths. It never fails; what fails is another suite's business.
final class MemoryStorage: Storage {
  private struct State {
    var files: [UInt64: [UInt8]] = [:]
    var names: [String: UInt64] = [:]
    var descriptors: [Int32: UInt64] = [:]
    var nextNumber: UInt64 = 1
    var nextDescriptor: Int32 = 3
  }

  private let state: Mutex<State>

  init() { state = Mutex(State()) }

  /// Files with these contents.
  init(_ contents: [String: [UInt8]]) {
    var initial = State()
    for (path, content) in contents {
      initial.files[initial.nextNumber] = content
      initial.names[path] = initial.nextNumber
      initial.nextNumber += 1
    }
    state = Mutex(initial)
  }

  /// All files.
  var contents: [String: [UInt8]] {
    state.withLock { state in state.names.mapValues { state.files[$0] ?? [] } }
  }

  func open(
    _ path: String, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32 {
    try state.withLock { state throws(SystemError) in
      // The directory itself is opened too; nothing is read from it.
      let number = path.hasSuffix("/.") ? 0 : state.names[path] ?? state.nextNumber
      if number == state.nextNumber {
        guard access == .replace || access == .readWriteOrCreate
        else { throw SystemError(code: ENOENT) }
        state.nextNumber += 1
        state.names[path] = number
        state.files[number] = []
      } else if access == .replace {
        state.files[number] = []
      }
      defer { state.nextDescriptor += 1 }
      state.descriptors[state.nextDescriptor] = number
      return state.nextDescriptor
    }
  }

  func close(_ descriptor: Int32) {
    state.withLock { $0.descriptors[descriptor] = nil }
  }

  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int {
    state.withLock { state in
      let content = state.descriptors[descriptor].flatMap { state.files[$0] } ?? []
      let byteCount = max(0, min(buffer.count, content.count - offsetBytes))
      if byteCount > 0 { buffer.copyBytes(from: content[offsetBytes..<offsetBytes + byteCount]) }
      return byteCount
    }
  }

  func write(
    _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int {
    state.withLock { state in
      guard let number = state.descriptors[descriptor] else { return bytes.count }
      var content = state.files[number] ?? []
      let end = offsetBytes + bytes.count
      if content.count < end {
        content += [UInt8](repeating: 0, count: end - content.count)
      }
      content.replaceSubrange(offsetBytes..<end, with: bytes)
      state.files[number] = content
      return bytes.count
    }
  }

  func syncData(_ descriptor: Int32) throws(SystemError) {}

  func syncDirectory(_ path: String) throws(SystemError) {}

  func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError) {
    state.withLock { state in
      guard let number = state.descriptors[descriptor] else { return }
      let content = state.files[number] ?? []
      let missing = max(0, sizeBytes - content.count)
      state.files[number] = content.prefix(sizeBytes) + [UInt8](repeating: 0, count: missing)
    }
  }

  func changePermissions(_ descriptor: Int32, _ permissions: UInt32) throws(SystemError) {}

  func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
    try state.withLock { state throws(SystemError) in
      try Self.status(state, state.descriptors[descriptor])
    }
  }

  func status(path: String) throws(SystemError) -> FileStatus {
    try state.withLock { state throws(SystemError) in
      try Self.status(state, state.names[path])
    }
  }

  private static func status(
    _ state: State, _ number: UInt64?
  ) throws(SystemError) -> FileStatus {
    guard let number, let content = state.files[number] else { throw SystemError(code: ENOENT) }
    return FileStatus(sizeBytes: content.count, permissions: 0o600, owner: 0, fileNumber: number)
  }

  func rename(_ oldPath: String, to newPath: String) throws(SystemError) {
    try state.withLock { state throws(SystemError) in
      guard let number = state.names.removeValue(forKey: oldPath)
      else { throw SystemError(code: ENOENT) }
      state.names[newPath] = number
    }
  }

  func unlink(_ path: String) throws(SystemError) {
    try state.withLock { state throws(SystemError) in
      guard state.names.removeValue(forKey: path) != nil
      else { throw SystemError(code: ENOENT) }
    }
  }

  func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError) {}

  func list(_ path: String) throws(SystemError) -> [String] {
    let prefix = (path.hasSuffix("/.") ? String(path.dropLast(2)) : path) + "/"
    return state.withLock { state in
      state.names.keys.filter { $0.hasPrefix(prefix) }
        .map { String($0.dropFirst(prefix.count)) }.filter { !$0.contains("/") }
    }
  }

  func lock(_ descriptor: Int32) throws(SystemError) -> Bool { true }
}
