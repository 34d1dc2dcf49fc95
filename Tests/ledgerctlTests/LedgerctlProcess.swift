// Runs the built program in a shell, as a user would.
import Foundation
import TestSupport

/// The result of one command line.
struct Outcome: Equatable {
  var output: String
  var diagnostics: String
  var exitCode: Int32

  /// The diagnostics without the warning about sales without a price, which every report of the shop prints.
  var otherDiagnostics: String {
    diagnostics.split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.contains("has no price ('ledgerctl export exceptions')") }.joined(
        separator: "\n")
  }
}

/// A temporary directory in which command lines run.
final class Sandbox {
  private let temporary: TemporaryDirectory
  let path: String

  init() throws {
    temporary = try TemporaryDirectory("ledgerctl-tests")
    // Resolved, so that the program prints the same path.
    path = URL(fileURLWithPath: temporary.path).resolvingSymlinksInPath().path
  }

  /// Runs a line of shell in the directory, with the program on its path.
  func run(_ line: String) throws -> Outcome {
    let scratch = try Scratch()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", line]
    process.currentDirectoryURL = URL(fileURLWithPath: path)
    process.environment = [
      "PATH": "\(BuiltProducts.path):/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": path,
      // Shared by the transcripts: `. "$SHOP"`.
      "SHOP": Transcript.folder + "/shop.sh",
    ]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = scratch.output
    process.standardError = scratch.diagnostics
    try process.run()
    process.waitUntilExit()
    return Outcome(
      output: try scratch.text("output"), diagnostics: try scratch.text("diagnostics"),
      exitCode: process.terminationStatus)
  }
}

/// Files for what a process prints: a pipe would have to be emptied while it runs.
private final class Scratch {
  private let temporary: TemporaryDirectory
  let output: FileHandle
  let diagnostics: FileHandle

  init() throws {
    temporary = try TemporaryDirectory("ledgerctl-output")
    for name in ["output", "diagnostics"] {
      _ = FileManager.default.createFile(atPath: temporary.path(name), contents: nil)
    }
    output = try FileHandle(forWritingTo: URL(fileURLWithPath: temporary.path("output")))
    diagnostics = try FileHandle(forWritingTo: URL(fileURLWithPath: temporary.path("diagnostics")))
  }

  func text(_ name: String) throws -> String {
    let data = try Data(contentsOf: URL(fileURLWithPath: temporary.path(name)))
    return String(decoding: data, as: UTF8.self)
  }
}
