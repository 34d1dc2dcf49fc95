// Runs the stand-in until it is told to end.
import AppStoreAuthority
import AppStoreStandIn
import Base
import Glibc
import ProgramSupport

enum Serve {
  static let valued = CustomerPlan.valued.union([
    "--authority", "--port", "--shared-secret", "--delay-ms", "--control", "--transactions",
    "--server-api-key", "--server-api-rate", "--notifications-url", "--retry-scale",
  ])
  static let plain: Set<String> = ["--no-renewals", "--until-stdin-ends"]

  static func run(_ arguments: [String]) throws {
    let arguments = try Arguments(arguments, valued: valued, plain: plain)
    let directory = try arguments.required("--authority")
    var options = StandInOptions()
    options.port = try arguments.integer("--port", 0...65_535) ?? 0
    options.sharedSecret = arguments.text("--shared-secret")
    if let ms = try arguments.integer("--delay-ms", 0...3_600_000) {
      options.controls.append(Array(#"{"behaviour":"delay","ms":\#(ms)}"#.utf8))
    }
    if arguments.has("--no-renewals") {
      options.controls.append(Array(#"{"renewals":false}"#.utf8))
    }
    if let text = arguments.text("--control") { options.controls.append(Array(text.utf8)) }

    let customers = try serverAPICustomers(arguments)

    let signals = TerminationSignals()
    let authority = try AuthorityDirectory.open(directory)
    let signedObjects = try AuthorityDirectory.loadSignedObjects(directory)
    if let customers {
      options.serverAPI = try serverAPI(arguments, customers, signedObjects)
    }
    let server = try StandInServer(authority: authority, options: options)
    try StandardOutput.write(announcement(of: server, authority, signedObjects.root) + "\n")
    if arguments.has("--until-stdin-ends") {
      var byte: UInt8 = 0
      // A signal is blocked here: whoever holds the other end ends it.
      while read(0, &byte, 1) > 0 {}
    } else {
      signals.wait()
    }
    server.stop()
  }

  /// The customers of the App Store Server API; nil where nobody is to ask about them.
  private static func serverAPICustomers(
    _ arguments: Arguments
  ) throws(UsageError) -> CustomerPlan? {
    guard arguments.text("--server-api-key") != nil || arguments.text("--customers") != nil else {
      return nil
    }
    _ = try arguments.required("--server-api-key")
    return try CustomerPlan(arguments)
  }

  private static func serverAPI(
    _ arguments: Arguments, _ plan: CustomerPlan, _ authority: SignedObjectAuthority
  ) throws -> ServerAPIOptions {
    var options = ServerAPIOptions(
      authority: authority, customers: plan.customers, customerCount: plan.count,
      bundleID: plan.bundleID,
      key: try AuthorityDirectory.openKey(try arguments.required("--server-api-key")))
    if let url = arguments.text("--notifications-url") {
      options.notifications = NotificationTarget(
        address: try Notify.address(url, "--notifications-url"),
        retryScale: try Notify.retryScale(arguments))
    }
    options.transactionCount = try arguments.integer("--transactions", 1...100)
    options.callsPerSecond = try arguments.integer("--server-api-rate", 1...1_000_000)
    return options
  }

  /// One JSON object: where it listens, and what a ledger must trust.
  private static func announcement(
    of server: StandInServer, _ authority: TestAuthority, _ signedRoot: IssuedCertificate
  ) -> String {
    var json = JSONWriter()
    json.beginObject()
    json.member("production_url", server.productionURL)
    json.member("sandbox_url", server.sandboxURL)
    json.member("control_url", server.controlURL)
    if server.hasServerAPI {
      json.member("server_api_production_url", server.serverAPIProductionURL)
      json.member("server_api_sandbox_url", server.serverAPISandboxURL)
    }
    json.member("root_sha256", authority.root.fingerprint.hex)
    json.member("signed_root_sha256", signedRoot.fingerprint.hex)
    json.key("transaction_intermediates")
    json.beginArray()
    for der in [authority.iTunesStore.der, authority.intermediate.der] {
      json.string(Base64.text(der))
    }
    json.endArray()
    json.endObject()
    return String(decoding: json.bytes, as: UTF8.self)
  }
}
