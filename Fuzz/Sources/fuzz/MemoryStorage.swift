// The ledger's files in memory: an input becomes a log without touching the disk.
import Glibc
import Synchronization

@testable import Base
@testable import Ledger

/// Files by their paths. It never fails; what fails is another suite's business.
final class MemoryStorage: Storage {
  private struct State {
    var files: [UInt64: [UInt8]] = [:]
    var names: [String: UInt64] = [:]
    var descriptors: [Int32: UInt64] = [:]
    var directories: [Int32: String] = [:]
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

  /// Every directory is there.
  func openDirectory(_ path: String) throws(SystemError) -> Int32 {
    state.withLock { state in
      defer { state.nextDescriptor += 1 }
      state.directories[state.nextDescriptor] = path
      return state.nextDescriptor
    }
  }

  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    try openDirectory(state.withLock { Self.path(name, in: directory, $0) })
  }

  func path(of directory: Int32) -> String? { state.withLock { $0.directories[directory] } }

  private static func path(_ name: String, in directory: Int32, _ state: State) -> String {
    "\(state.directories[directory] ?? "")/\(name)"
  }

  func open(
    _ name: String, in directory: Int32, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32 {
    try state.withLock { state throws(SystemError) in
      let path = Self.path(name, in: directory, state)
      let number = state.names[path] ?? state.nextNumber
      if number == state.nextNumber {
        guard access == .create || access == .readWriteOrCreate
        else { throw SystemError(code: ENOENT) }
        state.nextNumber += 1
        state.names[path] = number
        state.files[number] = []
      } else if access == .create {
        throw SystemError(code: EEXIST)
      }
      defer { state.nextDescriptor += 1 }
      state.descriptors[state.nextDescriptor] = number
      return state.nextDescriptor
    }
  }

  func close(_ descriptor: Int32) {
    state.withLock { state in
      state.descriptors[descriptor] = nil
      state.directories[descriptor] = nil
    }
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

  func syncDirectory(_ descriptor: Int32) throws(SystemError) {}

  func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError) {
    state.withLock { state in
      guard let number = state.descriptors[descriptor] else { return }
      let content = state.files[number] ?? []
      let missing = max(0, sizeBytes - content.count)
      state.files[number] = content.prefix(sizeBytes) + [UInt8](repeating: 0, count: missing)
    }
  }

  func changePermissions(_ descriptor: Int32, _ permissions: UInt32) throws(SystemError) {}

  func changeOwner(_ descriptor: Int32, _ owner: UInt32, _ group: UInt32) throws(SystemError) {}

  func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
    try state.withLock { state throws(SystemError) in
      if state.directories[descriptor] != nil {
        return FileStatus(
          kind: .directory, sizeBytes: 0, permissions: 0o700, owner: 0, fileNumber: 0)
      }
      return try Self.status(state, state.descriptors[descriptor])
    }
  }

  func status(_ name: String, in directory: Int32) throws(SystemError) -> FileStatus {
    try state.withLock { state throws(SystemError) in
      try Self.status(state, state.names[Self.path(name, in: directory, state)])
    }
  }

  private static func status(
    _ state: State, _ number: UInt64?
  ) throws(SystemError) -> FileStatus {
    guard let number, let content = state.files[number] else { throw SystemError(code: ENOENT) }
    return FileStatus(sizeBytes: content.count, permissions: 0o600, owner: 0, fileNumber: number)
  }

  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemError) {
    try state.withLock { state throws(SystemError) in
      guard let number = state.names.removeValue(forKey: Self.path(name, in: directory, state))
      else { throw SystemError(code: ENOENT) }
      state.names[Self.path(newName, in: directory, state)] = number
    }
  }

  func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    try state.withLock { state throws(SystemError) in
      guard state.names.removeValue(forKey: Self.path(name, in: directory, state)) != nil
      else { throw SystemError(code: ENOENT) }
    }
  }

  func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError) {}

  func makeDirectory(
    _ name: String, in directory: Int32, permissions: UInt32
  ) throws(SystemError) {}

  func list(_ directory: Int32) throws(SystemError) -> [String] {
    state.withLock { state in
      let prefix = Self.path("", in: directory, state)
      return state.names.keys.filter { $0.hasPrefix(prefix) }
        .map { String($0.dropFirst(prefix.count)) }.filter { !$0.contains("/") }
    }
  }

  /// There are no links here.
  func readLink(_ name: String, in directory: Int32) throws(SystemError) -> String {
    throw SystemError(code: EINVAL)
  }

  func makeLink(to target: String, _ name: String, in directory: Int32) throws(SystemError) {
    throw SystemError(code: EPERM)
  }

  func lock(_ descriptor: Int32) throws(SystemError) -> Bool { true }
}
