// docs/revenue.md shows the same output as the transcript about closing a month.
import Foundation
import Testing

@Suite struct ClosingDocumentTests {
  @Test func documentShowsTheTranscriptsOutput() throws {
    let root = URL(fileURLWithPath: Transcript.folder).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let document = try String(
      contentsOf: root.appendingPathComponent("docs/revenue.md"), encoding: .utf8)
    let section = try #require(
      document.components(separatedBy: "## Closing a month\n").dropFirst().first?
        .components(separatedBy: "\n## ").first)
    let transcript = try #require(try Transcript.all().first { $0.name.hasPrefix("closing") })
    let printed = Set(
      transcript.steps.flatMap(\.expected).map { String($0.dropFirst(3)) } + [""])
    let blocks = section.components(separatedBy: "```\n").enumerated().filter { $0.offset % 2 == 1 }
    #expect(blocks.count == 4)
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
