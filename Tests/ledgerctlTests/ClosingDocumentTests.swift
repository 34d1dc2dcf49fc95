// The document that closes a month shows the same commands and output as its transcript.
import Foundation
import TestSupport
import Testing

@Suite struct ClosingDocumentTests {
  /// A section of a document whose blocks a transcript runs.
  struct Example: CustomTestStringConvertible, Sendable {
    let document: String
    let section: String
    let transcript: String
    let blockCount: Int
    var testDescription: String { "\(document), \(section)" }
  }

  private static let examples = [
    Example(
      document: "docs/reports.md", section: "Close a month", transcript: "month.txt",
      blockCount: 8)
  ]

  @Test(arguments: examples) func documentShowsTheTranscriptsOutput(_ example: Example) throws {
    let root = URL(fileURLWithPath: Transcript.folder).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let document = try String(
      contentsOf: root.appendingPathComponent(example.document), encoding: .utf8)
    let section = try #require(
      document.components(separatedBy: "## \(example.section)\n").dropFirst().first?
        .components(separatedBy: "\n## ").first)
    let transcript = try #require(try Transcript.all().first { $0.name == example.transcript })
    let printed = Set(
      transcript.steps.flatMap(\.expected).map { String($0.dropFirst(3)) } + [""])
    let blocks = section.components(separatedBy: "```\n").enumerated().filter { $0.offset % 2 == 1 }
    expectEqual(blocks.count, example.blockCount)
    for line in blocks.flatMap({ $0.element.split(separator: "\n").map(String.init) }) {
      if line.hasPrefix("$ ") {
        // Each command is in a step of the transcript.
        let command = String(line.dropFirst(2))
        #expect(
          transcript.steps.contains { $0.command.joined().contains(command) }, "\(command)")
      } else {
        #expect(printed.contains(line), "\(line)")
      }
    }
  }
}
