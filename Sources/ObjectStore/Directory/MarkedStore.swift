// A mark that tells a copy's directory from the empty place of a disk that is not mounted.
package import Base
import Glibc

/// A store that may seem empty because what holds it is away.
package protocol MarkedStore: ObjectStore {
  /// The mark that the store bears; nil if it has none, or one that can't be read.
  func mark() throws(ObjectStoreError) -> UUID16?
  /// Marks the store, in place of any mark before.
  func setMark(_ mark: UUID16) throws(ObjectStoreError)
  /// From now on calls fail with `unavailable` unless the store bears this mark; nil takes that back.
  func require(mark: UUID16?)
}

/// The file that marks a directory.
enum MarkFile {
  static let name = "copy-id"
  private static let byteCount = 37

  /// Nil if there is none, or none of the form.
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
