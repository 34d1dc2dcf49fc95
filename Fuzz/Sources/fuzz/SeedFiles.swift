// Writes what a run begins with: a target's seeds, and its words as a libFuzzer dictionary.
@testable import Base
import Glibc

enum SeedFiles {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Makes `directory/NAME/seeds` and `directory/NAME.words`; what is there already stays.
  static func write(_ target: FuzzTarget, in directory: String) throws {
    let folder = "\(directory)/\(target.name)"
    for path in [directory, folder, "\(folder)/seeds"] { try makeDirectory(path) }
    for (index, seed) in try target.seeds().enumerated() {
      guard seed.count <= target.inputByteCountMax else {
        throw Failure(description: "seed \(index) of \(target.name) is too large")
      }
      try write(seed, to: "\(folder)/seeds/\(index)")
    }
    try write(Array(words(target).utf8), to: "\(directory)/\(target.name).words")
    try write(
      Array("\(target.inputByteCountMax)\n".utf8), to: "\(directory)/\(target.name).size")
  }

  /// `"word"` a line; everything but plain ASCII as `\xHH`.
  private static func words(_ target: FuzzTarget) -> String {
    target.words.map { word in
      let characters = word.utf8.map { byte in
        (0x20...0x7E).contains(byte) && byte != 0x22 && byte != 0x5C
          ? String(UnicodeScalar(byte)) : "\\x" + withUnsafeBytes(of: byte) { Hex.text($0) }
      }
      return "\"\(characters.joined())\"\n"
    }.joined()
  }

  private static func makeDirectory(_ path: String) throws {
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw failure("make", path) }
  }

  private static func write(_ content: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("open", path) }
    defer { close(descriptor) }
    var written = 0
    while written < content.count {
      let count = content[written...].withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress, $0.count)
      }
      guard count > 0 else { throw failure("write", path) }
      written += count
    }
  }

  private static func failure(_ operation: String, _ path: String) -> Failure {
    Failure(description: "\(operation) \(path): \(String(cString: strerror(errno)))")
  }
}
