// Runs a development program as a shell would.
import Base
import Foundation
import TestSupport

/// One run's output, and how it ended.
struct Outcome {
  let exitCode: Int32
  let output: String
  let diagnostics: String

  /// Runs a program of the package to its end; `input` is its standard input, shorter than a pipe's buffer.
  init(
    of program: String, _ arguments: [String], in directory: String, input: String = ""
  ) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: BuiltProducts.path + "/" + program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.environment = [:]
    let (output, diagnostics) = (Pipe(), Pipe())
    let given = Pipe()
    try given.fileHandleForWriting.write(contentsOf: Data(input.utf8))
    try given.fileHandleForWriting.close()
    process.standardInput = given
    process.standardOutput = output
    process.standardError = diagnostics
    try process.run()
    // Standard error is short: its pipe does not fill while the other is read.
    let text = output.fileHandleForReading.readDataToEndOfFile()
    let errors = diagnostics.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    exitCode = process.terminationStatus
    self.output = String(decoding: text, as: UTF8.self)
    self.diagnostics = String(decoding: errors, as: UTF8.self)
  }

  func json() throws -> JSONValue { try JSONValue(Array(output.utf8)) }
}
