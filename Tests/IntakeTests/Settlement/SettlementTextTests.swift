// From the bytes of a report's file to its text: gzip, encodings, line ends, other kinds (settlement rule S2).
import Base
import Foundation
import Intake
import Revenue
import TestSupport
import Testing

@Suite struct SettlementTextTests {
  private static let text = "Ä\u{20AC}\u{1F600}\nb\n"

  private static func refusal(_ bytes: [UInt8]) -> String {
    do throws(DeclarationError) {
      _ = try SettlementText(bytes: bytes, name: "r.txt")
      return ""
    } catch { return error.description }
  }

  private static func utf16(_ text: String, isBigEndian: Bool) -> [UInt8] {
    let units = [0xFEFF] + Array(text.utf16)
    return units.flatMap { unit in
      let bytes = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
      return isBigEndian ? bytes : bytes.reversed()
    }
  }

  // MARK: Encodings

  @Test(arguments: [
    Array(text.utf8), [0xEF, 0xBB, 0xBF] + Array(text.utf8), utf16(text, isBigEndian: false),
    utf16(text, isBigEndian: true),
  ])
  func aTextIsThatOfItsEncoding(_ bytes: [UInt8]) throws {
    let read = try SettlementText(bytes: bytes)
    expectEqual(String(decoding: read.text, as: UTF8.self), Self.text)
    expectEqual(read.sha256Hex, bytes.withUnsafeBytes { SHA256.hash($0) }.hex)
  }

  @Test(
    arguments: [
      ([0x61, 0xE4, 0x80, 0xFF], "aä\u{80}ÿ"), ([0xC3, 0xA4, 0xC3], "Ã¤Ã"),
      ([0xED, 0xA0, 0x80], "í\u{A0}\u{80}"), ([0x61, 0xC0, 0x80], "aÀ\u{80}"),
    ] as [([UInt8], String)])
  func bytesThatAreNoUTF8AreLatin1(_ bytes: [UInt8], _ expected: String) throws {
    expectEqual(
      String(decoding: try SettlementText(bytes: bytes).text, as: UTF8.self), expected)
  }

  @Test(
    arguments: [
      (Array("a\nb\0".utf8), "line 2: a NUL stands in it"),
      ([0x61, 0x0D, 0x0A, 0xE4, 0], "line 2: a NUL stands in it"),
      ([0xFF, 0xFE, 0x61, 0, 0, 0], "line 1: a NUL stands in it"),
      (
        [0xEF, 0xBB, 0xBF, 0x0A, 0x0D, 0x61, 0xE4],
        "line 3: invalid UTF-8, though its byte order mark says UTF-8"
      ),
      (
        [0xFF, 0xFE, 0x61, 0, 0x0A], "line 1: invalid UTF-16LE, though its byte order mark says so"
      ),
      (
        [0xFF, 0xFE, 0x0A, 0, 0x3D, 0xD8, 0x61, 0],
        "line 2: invalid UTF-16LE, though its byte order mark says so"
      ),
      ([0xFE, 0xFF, 0xD8, 0x3D], "line 1: invalid UTF-16BE, though its byte order mark says so"),
      (
        [0xFE, 0xFF, 0xDE, 0, 0, 0x61],
        "line 1: invalid UTF-16BE, though its byte order mark says so"
      ),
    ] as [([UInt8], String)])
  func bytesThatAreNotOfTheirEncodingAreRefused(_ bytes: [UInt8], _ expected: String) {
    expectEqual(Self.refusal(bytes), "r.txt: " + expected)
  }

  // MARK: Lines

  @Test(
    arguments: [
      ("a\r\nb\r\n", "a\nb\n"), ("a\rb\r", "a\nb\n"), ("a\r\r\nb", "a\n\nb"),
      ("\r\n\r\n", "\n\n"), ("a\n\rb", "a\n\nb"), ("a\nb", "a\nb"), ("\r", "\n"),
      ("a\u{85}b\u{2028}c\u{B}", "a\u{85}b\u{2028}c\u{B}"),
    ] as [(String, String)])
  func everyLineEndBecomesOne(_ text: String, _ expected: String) throws {
    for bytes in [Array(text.utf8), Self.utf16(text, isBigEndian: true)] {
      let read = try SettlementText(bytes: bytes)
      expectEqual(String(decoding: read.text, as: UTF8.self), expected)
    }
  }

  // MARK: Gzip

  @Test func everyMemberIsUnpackedAndTheDigestIsOfWhatItHolds() throws {
    let (one, two) = (Array("a\tb\r\n".utf8), Array("c".utf8))
    let read = try SettlementText(
      bytes: Gzip.member(one) + Gzip.member([]) + Gzip.member(two))
    expectEqual(read.text, Array("a\tb\nc".utf8))
    expectEqual(read.sha256Hex, (one + two).withUnsafeBytes { SHA256.hash($0) }.hex)
  }

  @Test(arguments: [
    [0], [UInt8](repeating: 0, count: 512), [0x0A], Array("more".utf8), [0x1F], [0x1F, 0x8B],
  ])
  func whateverFollowsTheLastMemberIsRefused(_ more: [UInt8]) {
    #expect(Self.refusal(Gzip.member(Array(Self.text.utf8)) + more).hasPrefix("inflate: r.txt: "))
  }

  @Test func damageIsRefused() {
    let whole = Gzip.member(Array("a line of text\n".utf8))
    for count in 2..<whole.count {
      #expect(Self.refusal(Array(whole[..<count])).hasPrefix("inflate: r.txt: "), "\(count)")
    }
    for index in whole.indices.dropFirst(whole.count - 8) {
      var bytes = whole
      bytes[index] ^= 1
      #expect(Self.refusal(bytes).hasPrefix("inflate: r.txt: "), "\(index)")
    }
  }

  /// A few hundred KiB that would unpack to 300 MiB.
  @Test func whatUnpacksToMoreThanTheLimitIsRefused() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("big.txt.gz")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "head -c 314572800 /dev/zero | tr '\\0' x | gzip -1 >'\(path)'"]
    try process.run()
    process.waitUntilExit()
    do throws(DeclarationError) {
      _ = try SettlementText.read(path: path, stop: StopFlag())
      Issue.record("it was read")
    } catch { expectEqual(error.description, "read: big.txt.gz: is larger than 256 MiB") }
  }

  // MARK: Files

  @Test(
    arguments: [
      ([], "is empty"), (Gzip.member([]), "is empty"),
      (Array("%PDF-1.7\n".utf8), "is a PDF file; give a report as Apple offers it for download"),
      (Array("PK\u{3}\u{4}x.txt".utf8), "is a zip archive; unpack it"),
      (
        Array("PK\u{3}\u{4}[Content_Types].xml".utf8),
        "is an Excel file; give a report as Apple offers it for download"
      ),
      (
        [0xD0, 0xCF, 0x11, 0xE0],
        "is an old Excel or Word file; give a report as Apple offers it for download"
      ),
      (
        Array("<!DOCTYPE html>".utf8),
        "is HTML or XML; give a report as Apple offers it for download"
      ),
      (Array("{\"errors\":[]}".utf8), "is JSON; give a report as Apple offers it for download"),
      (Gzip.member(Array("BZh91".utf8)), "is compressed with bzip2; unpack it"),
      (Gzip.member(Gzip.member([0x61])), "is compressed with gzip twice; unpack it"),
    ] as [([UInt8], String)])
  func aFileOfAnotherKindIsNamed(_ bytes: [UInt8], _ expected: String) {
    expectEqual(Self.refusal(bytes), "read: r.txt: " + expected)
  }

  @Test func aFileIsCitedByItsBaseNameAndItsPathWhereItCannotBeRead() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("85_0914_EU.txt")
    try Data("hello\n".utf8).write(to: URL(fileURLWithPath: path))
    let text = try SettlementText.read(path: path, stop: StopFlag())
    expectEqual(text.name, "85_0914_EU.txt")
    do throws(DeclarationError) {
      _ = try text.report(symbols: StringInterner(TextArena()))
      Issue.record("it was read")
    } catch {
      #expect(
        error.description.hasPrefix("85_0914_EU.txt: is not one of the reports that can be read"))
    }
    do throws(DeclarationError) {
      _ = try SettlementText.read(path: directory.path("none"), stop: StopFlag())
      Issue.record("it was read")
    } catch {
      expectEqual(error.description, "open: \(directory.path("none")): no such file or directory")
    }
  }
}
