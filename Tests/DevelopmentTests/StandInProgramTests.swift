// The stand-in as a program: its first line, its end, and the receipts that it signs.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import TestSupport
import Testing

@Suite("The stand-in as a program", .bounded)
struct StandInProgramTests {
  let directory: TemporaryDirectory

  init() throws { directory = try SharedAuthority.directory.get() }

  func sign(_ arguments: String...) throws -> Outcome {
    try Outcome(
      of: "app-store-stand-in", ["sign-receipts", "--authority", "authority"] + arguments,
      in: directory.path)
  }

  /// A program that runs until it is stopped.
  final class Running {
    let process = Process()
    let input = Pipe()
    let announcement: JSONValue

    init(_ arguments: [String], in directory: String) throws {
      let output = Pipe()
      process.executableURL = URL(fileURLWithPath: BuiltProducts.path + "/app-store-stand-in")
      process.arguments = arguments
      process.currentDirectoryURL = URL(fileURLWithPath: directory)
      process.standardInput = input
      process.standardOutput = output
      try process.run()
      var line = Data()
      while let byte = try output.fileHandleForReading.read(upToCount: 1), byte != Data([0x0A]) {
        line += byte
        if byte.isEmpty { break }
      }
      announcement = try JSONValue(Array(line))
    }

    deinit { process.terminate() }

    var port: UInt16? {
      let url = announcement["control_url"]?.stringValue.flatMap { URL(string: $0) }
      return url?.port.map { UInt16($0) }
    }
  }

  @Test(
    "it prints its address and its root, and knows receipts that another process signed")
  func announcement() throws {
    let running = try Running(
      ["--authority", "authority", "--control", #"{"behaviour":"delay","ms":1}"#],
      in: directory.path)
    let authority = try AuthorityDirectory.load(directory.path("authority"))
    expectEqual(running.announcement["root_sha256"], .string(authority.root.fingerprint.hex))
    let signed = try AuthorityDirectory.loadSignedObjects(directory.path("authority"))
    expectEqual(running.announcement["signed_root_sha256"], .string(signed.root.fingerprint.hex))
    expectEqual(
      running.announcement["transaction_intermediates"]?.arrayValue?.first,
      .string(Base64.text(authority.iTunesStore.der)))
    let port = try #require(running.port)
    expectEqual(
      running.announcement["production_url"], .string("http://127.0.0.1:\(port)/verifyReceipt"))
    expectEqual(
      running.announcement["sandbox_url"], .string("http://127.0.0.1:\(port)/sandbox/verifyReceipt")
    )
    let receipts = try sign("--customers", "4", "--seed", "1", "--style", "mixed")
    for line in receipts.output.split(separator: "\n") {
      let answer = try HTTPClient(port: port).exchange(
        "POST", "/verifyReceipt", Array("{\"receipt-data\":\"\(line)\"}".utf8))
      try expectEqual(JSONValue(answer?.body ?? [])["status"], .number("0"))
    }
    running.process.terminate()
    running.process.waitUntilExit()
    #expect(running.process.terminationReason == .exit && running.process.terminationStatus == 0)
  }

  @Test("with a key, which it makes, it answers the App Store Server API")
  func serverAPI() throws {
    let key = directory.path("server-api.p8")
    let running = try Running(
      [
        "--authority", "authority", "--customers", "5", "--seed", "1", "--server-api-key", key,
        "--bundle-id", "com.example.other",
      ], in: directory.path)
    let port = try #require(running.port)
    expectEqual(
      running.announcement["server_api_production_url"], .string("http://127.0.0.1:\(port)"))
    expectEqual(
      running.announcement["server_api_sandbox_url"], .string("http://127.0.0.1:\(port)/sandbox"))
    try expectEqual(
      FileManager.default.attributesOfItem(atPath: key)[.posixPermissions] as? Int, 0o600)
    let text = try String(contentsOfFile: key, encoding: .utf8)
    #expect(text.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    let path = "/inApps/v2/history/7"
    try expectEqual(HTTPClient(port: port).exchange("GET", path)?.status, 401)
    // The same key again.
    try expectEqual(AuthorityDirectory.openKey(key).pem(), Array(text.utf8))
  }

  @Test("it ends with its standard input if requested")
  func endsWithInput() throws {
    let running = try Running(
      ["--authority", "authority", "--until-stdin-ends"], in: directory.path)
    #expect(running.port != nil)
    try running.input.fileHandleForWriting.close()
    running.process.waitUntilExit()
    expectEqual(running.process.terminationStatus, 0)
  }

  @Test("the same seed and time sign the same receipts, another seed others")
  func deterministic() throws {
    let options = ["--customers", "3", "--style", "mixed", "--at", "1795000000000"]
    func output(_ seed: String) throws -> String {
      let arguments = ["sign-receipts", "--authority", "authority", "--seed", seed] + options
      return try Outcome(of: "app-store-stand-in", arguments, in: directory.path).output
    }
    let first = try output("1")
    expectEqual(first.split(separator: "\n").count, 3)
    try expectEqual(output("1"), first)
    #expect(try output("2") != first)
  }

  @Test("upload bodies have receipt, country and user, and prices of the receipt's purchases")
  func uploads() throws {
    let outcome = try sign(
      "--customers", "5", "--seed", "3", "--receipts", "2", "--format", "uploads", "-o",
      "uploads.ndjson")
    #expect(outcome.exitCode == 0 && outcome.output.isEmpty)
    let text = try String(contentsOfFile: directory.path("uploads.ndjson"), encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.count == 10 && Set(lines).count == 10)
    for line in lines {
      let body = try JSONValue(Array(line.utf8))
      let file = try Base64.decode(Array((body["receipt"]?.stringValue ?? "").utf8))
      let products = Set(try ReceiptFile.decode(file).purchases.compactMap(\.productID))
      let prices = body["metadata"]?["prices"]?.arrayValue ?? []
      expectEqual(Set(prices.compactMap { $0["product_id"]?.stringValue }), products)
      #expect(prices.allSatisfy { $0["price"] != nil && $0["currency"] != nil })
      expectEqual(body["metadata"]?["upload"], .string("000000000000"))
      expectEqual(body["country_code"]?.stringValue?.count, 2)
      #expect(body["user_identifier"]?.stringValue?.hasPrefix("user-") == true)
    }
  }

  @Test(
    "wrong usage is reported, and exits with 2",
    arguments: [
      ([], "--authority is missing"), (["--port", "70000"], "--authority is missing"),
      (
        ["--authority", "x", "--port", "70000"],
        "--port '70000' must be an integer from 0 to 65535"
      ),
      (["--loud"], "unknown argument '--loud'"),
      (["sign-receipts", "--seed", "1"], "--customers is missing"),
      (["sign-transactions", "--seed", "1"], "--customers is missing"),
      (["sign-notifications", "--customers", "1"], "--seed is missing"),
      (["sign-objects"], "--authority is missing"),
      (
        ["sign-transactions", "--transactions", "101"],
        "--transactions '101' must be an integer from 1 to 100"
      ),
      (
        ["sign-notifications", "--format", "uploads"],
        "--format 'uploads' must be one of bodies, import, jws"
      ),
      (["sign-receipts", "--customers", "1"], "--seed is missing"),
      (["--authority", "x", "--customers", "1", "--seed", "1"], "--server-api-key is missing"),
      (["--authority", "x", "--server-api-key", "k"], "--customers is missing"),
      (["notify", "--customers", "1", "--seed", "1"], "--url is missing"),
      (
        ["notify", "--customers", "1", "--seed", "1", "--url", "https://127.0.0.1/"],
        "--url 'https://127.0.0.1/' is not an http:// address of this machine"
      ),
      (
        [
          "notify", "--customers", "1", "--seed", "1", "--url", "http://127.0.0.1:1/", "--rate",
          "1",
          "--retry-scale", "2",
        ], "--retry-scale '2' must be a number from 0 to 1"
      ),
      (
        ["sign-receipts", "--customers", "1", "--seed", "1", "--style", "odd"],
        "--style 'odd' must be one of unified, transaction, mixed"
      ),
    ])
  func usage(arguments: [String], message: String) throws {
    let outcome = try Outcome(of: "app-store-stand-in", arguments, in: directory.path)
    expectEqual(
      outcome.diagnostics, "app-store-stand-in: \(message)\nTry 'app-store-stand-in --help'.\n")
    #expect(outcome.exitCode == 2 && outcome.output.isEmpty)
  }

  @Test("a wrong control request at the start, or an unusable directory, ends it with 1")
  func failures() throws {
    for (arguments, message) in [
      (
        ["--authority", "authority", "--control", "{}"],
        "not an object with an operation as its first member"
      ),
      (["--authority", "/dev/null"], "open /dev/null/root.key: Not a directory"),
    ] {
      let outcome = try Outcome(of: "app-store-stand-in", arguments, in: directory.path)
      expectEqual(outcome.diagnostics, "app-store-stand-in: \(message)\n")
      expectEqual(outcome.exitCode, 1)
    }
  }
}
