// Small files that are read whole: the limit of their size, and what is not read.
import Base
import Foundation
import TestSupport
import Testing

@Suite struct SmallFileTests {
  @Test("a file of the limit's size is read, and one byte more is refused")
  func sizes() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("file")
    // Across the piece of 64 KiB in which a file is read.
    for limit in [1, 5, 65_535, 65_536, 65_537, 131_072] {
      for count in [0, limit - 1, limit, limit + 1, limit + 70_000] {
        let content = [UInt8](repeating: 7, count: count)
        try Data(content).write(to: URL(fileURLWithPath: path))
        if count <= limit {
          try expectEqual(SmallFile.read(path, byteCountMax: limit), content)
        } else {
          #expect(throws: SmallFileError.larger(byteCountMax: limit), "\(count) of \(limit)") {
            try SmallFile.read(path, byteCountMax: limit)
          }
        }
      }
    }
    #expect(throws: SmallFileError.notRegular) {
      try SmallFile.read(temporary.path, byteCountMax: 5)
    }
  }
}
