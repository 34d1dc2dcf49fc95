// The command line of ledger-rules: values, and what is refused.
import Base
import LedgerRules
import TestSupport
import Testing

@Suite struct ArgumentTests {
  @Test func optionsAreTaken() throws {
    var arguments = RulesArguments(["--directory", "d", "--describe", "--size", "7"])
    try expectEqual(arguments.required("--directory"), "d")
    try expectEqual(arguments.integer("--size", 0...9), 7)
    #expect(try arguments.text("--listing") == nil)
    #expect(try arguments.flag("--describe"))
    try arguments.finish()
  }

  @Test func wrongUsageIsRefused() {
    func refusal(
      _ arguments: [String], _ body: (inout RulesArguments) throws -> Void
    ) -> Failure? {
      var arguments = RulesArguments(arguments)
      do { try body(&arguments) } catch { return error as? Failure }
      return nil
    }
    let cases = [
      refusal(["--a"]) { _ = try $0.text("--a") },
      refusal(["--a", "1", "--a", "2"]) { _ = try $0.text("--a") },
      refusal([]) { _ = try $0.required("--a") },
      refusal(["--a", "10"]) { _ = try $0.integer("--a", 0...9) },
      refusal(["--a", "x"]) { _ = try $0.integer("--a", 0...9) },
      refusal(["--b"]) { try $0.finish() },
      refusal(["--f", "--f"]) { _ = try $0.flag("--f") },
    ]
    #expect(cases.allSatisfy { $0?.exitCode == .usage })
    expectEqual(cases[1]?.line, "ledger-rules: parse arguments: --a: is given twice")
  }
}
