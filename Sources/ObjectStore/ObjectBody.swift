// Reading the bytes of a body, and the keys that stores take.
package import Base
import Glibc

extension ObjectBody {
  package var byteCount: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .file(_, _, let byteCount, _): byteCount
    }
  }

  /// The digest of the bytes; that of a file's part is what the caller says.
  package var sha256: SHA256Digest {
    switch self {
    case .bytes(let bytes): bytes.withUnsafeBytes { SHA256.hash($0) }
    case .file(_, _, _, let sha256): sha256
    }
  }

  /// Copies bytes from a place in the body on.
  /// - Returns: how many: fewer than the buffer holds if the body ends, or the file is shorter than it was said to be.
  package func copy(
    to buffer: UnsafeMutableRawBufferPointer, fromOffset offset: Int
  ) throws(SystemError) -> Int {
    let count = min(buffer.count, byteCount - offset)
    guard count > 0 else { return 0 }
    switch self {
    case .bytes(let bytes):
      buffer.copyBytes(from: bytes[offset..<offset + count])
      return count
    case .file(let descriptor, let start, _, _):
      var copied = 0
      while copied < count {
        let piece = pread(
          descriptor, buffer.baseAddress.map { $0 + copied }, count - copied,
          start + offset + copied)
        if piece == 0 { break }
        if piece > 0 {
          copied += piece
        } else if errno != EINTR {
          throw SystemError(code: errno)
        }
      }
      return copied
    }
  }
}

/// What stores take as a key.
package enum ObjectKey {
  /// Leaves room for a prefix: S3 allows 1,024 bytes for both.
  package static let byteCountMax = 800

  /// Whether the text is parts of ASCII letters, digits, `-` and `.` between slashes, none of them empty, `.` or `..`.
  package static func isValid(_ key: String) -> Bool {
    guard (1...byteCountMax).contains(key.utf8.count) else { return false }
    return key.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { part in
      !part.isEmpty && part != "." && part != ".." && part.utf8.allSatisfy(isPlain)
    }
  }

  /// Throws unless the key is valid. It may come from a store's list, so it is not shown.
  package static func check(_ key: String, operation: String) throws(ObjectStoreError) {
    if isValid(key) { return }
    throw ObjectStoreError(
      .unexpected, operation: operation, object: "an object",
      cause: "its key is not one that a copy has")
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// The order of lists: by the bytes.
  package static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}
