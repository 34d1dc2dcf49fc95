// docs/format.md against the code: its dump is decoded, and made again.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("The format document")
struct FormatDocumentTests {
  private static let document: String = {
    let file = URL(fileURLWithPath: #filePath)
    let root = file.deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return
      (try? String(contentsOf: root.appendingPathComponent("docs/format.md"), encoding: .utf8))
      ?? ""
  }()

  /// The contents of the fenced code blocks in a language.
  private static func parts(_ language: String) -> [String] {
    document.components(separatedBy: "```\(language)\n").dropFirst()
      .map { $0.components(separatedBy: "\n```")[0] }
  }

  /// The bytes of a dump: sixteen at most a line, between the offset and the text.
  private static func bytes(_ dump: String) -> [UInt8] {
    dump.split(separator: "\n").flatMap { line in
      line.dropFirst(10).prefix(47).split(separator: " ").compactMap { UInt8($0, radix: 16) }
    }
  }

  private static let segmentName = "00000000000000000000.jsonl.gz"
  private static let tailName = "tail-00000000000000000002.log"

  @Test("The dumped bytes are a log whose events are those that the document lists")
  func decode() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("ledger")
    let directory = try LedgerDirectory.create(
      path: path, origin: "receipts.example/doc", id: DocumentedLog.id)
    let dumps = FormatDocumentTests.parts("hex").map(FormatDocumentTests.bytes)
    try #require(dumps.count == 2)
    for (name, bytes) in zip(
      [FormatDocumentTests.segmentName, FormatDocumentTests.tailName], dumps)
    {
      try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/log/\(name)"))
    }
    let reader = try LogReader(directory)
    var lines: [String] = []
    let hasher = SHA256()
    try reader.read(from: 0) { chunk in
      try chunk.forEachEvent { event in
        #expect(event.verifyDigest(hasher))
        lines.append(String(decoding: event.bytes, as: UTF8.self))
      }
      return true
    }
    expectEqual(lines.joined(separator: "\n"), FormatDocumentTests.parts("json")[0])
    expectEqual(lines.count, 3)
  }

  @Test("The same log made again has the same events, tail bytes and opening")
  func makeAgain() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("ledger")
    try DocumentedLog.make(in: path)
    func content(_ name: String) throws -> [UInt8] {
      Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/log/\(name)")))
    }
    let dumps = FormatDocumentTests.parts("hex").map(FormatDocumentTests.bytes)
    try expectEqual(content(FormatDocumentTests.tailName), dumps[1])
    // Another version of the compressor may choose other bytes for the same content.
    try expectEqual(content(FormatDocumentTests.segmentName).prefix(0x52), dumps[0].prefix(0x52))
    let (output, _) = try shell(
      "zcat log/*.jsonl.gz; grep -hv '^#' log/tail-*.log", in: path)
    expectEqual(
      String(decoding: output, as: UTF8.self), FormatDocumentTests.parts("json")[0] + "\n")
  }

  @Test(
    "Sizes in the document are those of the code",
    arguments: [
      "bytes at most 33,554,432 (32 MiB)", "at most 16 MiB with its line feed",
      "A closing member always has 114 bytes",
    ])
  func sizes(_ sentence: String) throws {
    #expect(FormatDocumentTests.document.contains(sentence))
    expectEqual(Format.frameByteCountMax, 33_554_432)
    expectEqual(Format.lineByteCountMax, 16 << 20)
    let fixture = try LedgerFixture()
    try fixture.fill(40)
    let sealed = try fixture.content(fixture.segmentNames[0])
    expectEqual(Array(sealed.suffix(114).prefix(4)), [0x1F, 0x8B, 8, 4])
    expectEqual(sealed.suffix(114).dropFirst(17).first, 3)
  }
}
