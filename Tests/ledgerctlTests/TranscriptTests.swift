// Compares the program's output with the transcripts and docs/cli.md.
import Foundation
import TestSupport
import Testing

@Suite(.bounded) struct TranscriptTests {
  @Test(arguments: try Transcript.all()) func printsWhatTheTranscriptSays(_ transcript: Transcript)
    throws
  {
    let actual = try transcript.run()
    if ProcessInfo.processInfo.environment["UPDATE_TRANSCRIPTS"] == "1" {
      return try transcript.rewrite(actual)
    }
    for (step, printed) in zip(transcript.steps, actual) where !Self.defeatsSanitizer(step) {
      expectEqual(
        printed, step.expected,
        "\(transcript.name): \(step.command.joined(separator: "\n")); UPDATE_TRANSCRIPTS=1 rewrites"
      )
    }
  }

  /// The thread sanitizer writes files itself: under a file size limit it ends before the program starts.
  private static func defeatsSanitizer(_ step: Transcript.Step) -> Bool {
    ProcessInfo.processInfo.environment["TSAN_OPTIONS"] != nil
      && step.command.contains { $0.contains("ulimit -f") }
  }

  @Test func transcriptsExist() throws {
    let transcripts = try Transcript.all()
    #expect(!transcripts.isEmpty)
    for transcript in transcripts { #expect(!transcript.steps.isEmpty, "\(transcript.name)") }
  }
}

@Suite(.bounded) struct ReferenceTests {
  private static let reference = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("docs/cli.md")

  @Test func docsCliIsTheProgramsReference() throws {
    let printed = try Sandbox().run("ledgerctl help --markdown")
    expectEqual(printed.exitCode, 0)
    let text = try String(contentsOf: Self.reference, encoding: .utf8)
    expectEqual(printed.output, text, "ledgerctl help --markdown -o docs/cli.md writes it")
  }

  /// Every line of a `sh` block. Without any setup they fail, but not because of wrong usage.
  private static func examples() throws -> [String] {
    let text = try String(contentsOf: reference, encoding: .utf8)
    let blocks = text.components(separatedBy: "```sh\n").dropFirst()
    return blocks.flatMap { block in
      (block.components(separatedBy: "```").first ?? "").split(separator: "\n").map(String.init)
        .filter { !$0.hasPrefix("#") }
    }
  }

  @Test(arguments: try examples()) func examplesOfTheReferenceAreValid(_ line: String) throws {
    let outcome = try Sandbox().run(line)
    #expect(!outcome.diagnostics.contains("See 'ledgerctl help"), "\(outcome.diagnostics)")
    #expect(outcome.exitCode != 2)
  }

  /// A command that works without arguments needs no example.
  @Test func everyCommandThatNeedsArgumentsHasAnExample() throws {
    let text = try String(contentsOf: Self.reference, encoding: .utf8)
    let commands = text.components(separatedBy: "\n## ").dropFirst().filter { section in
      let usage = section.components(separatedBy: "```").dropFirst().first ?? ""
      let words = section.prefix { $0 != "\n" }
      return usage.hasPrefix("\nledgerctl \(words) ") && !usage.contains("\(words) [")
    }
    #expect(commands.count >= 20)
    for command in commands { #expect(command.contains("```sh"), "\(command.prefix(20))") }
  }
}
