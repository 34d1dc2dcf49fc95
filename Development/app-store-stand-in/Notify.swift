// `notify`: sends the notifications of invented customers to a server.
import AppStoreAuthority
import AppStoreStandIn
import Base
import Glibc
import ProgramSupport

enum Notify {
  private static let faults: [(option: String, fault: SendFault)] = [
    ("--duplicate", .duplicate), ("--disorder", .disorder), ("--loss", .loss), ("--delay", .delay),
    ("--wrong-app", .wrongApp), ("--expired-leaf", .expiredLeaf), ("--clock-skew", .clockSkew),
  ]
  static let valued = CustomerPlan.valued.union(
    [
      "--url", "--authority", "--rate", "--duration", "--retry-scale", "--connections",
      "--timeout-ms", "--type", "--log",
    ] + faults.map(\.option))

  static func run(_ arguments: ArraySlice<String>) throws {
    let arguments = try Arguments(arguments, valued: valued)
    let customers = try CustomerPlan(arguments)
    let plan = try plan(arguments, customers)
    let composer = NotificationComposer(
      sales: CustomerTransactions(customers: customers.customers),
      signer: try AuthorityDirectory.objectSigner(try arguments.required("--authority")),
      skewedMs: Int64(time(nil)) * 1000 + hourMs)

    let signals = TerminationSignals()
    let log = try arguments.text("--log").map(LineLog.init)
    let sender = NotificationSender(plan, composer) { sent in log?.write(sent.json) }
    try WorkerThread {
      signals.wait()
      sender.stop()
    }.detach()
    let counts = try sender.run()
    try log?.finish()
    try StandardOutput.write(String(decoding: counts.json, as: UTF8.self) + "\n")
  }

  private static func plan(
    _ arguments: Arguments, _ customers: CustomerPlan
  ) throws(UsageError) -> SendPlan {
    let address = try address(try arguments.required("--url"), "--url")
    let rate = try arguments.required("--rate", 1...100_000)
    var faults = FaultPlan(seed: customers.customers.seed)
    for (option, fault) in Self.faults {
      faults.percents[fault] = try arguments.integer(option, 1...100)
    }
    var plan = SendPlan(
      address: address, customerCount: customers.count, rate: rate, faults: faults)
    plan.durationMs = try arguments.integer("--duration", Int64(1)...86_400).map { $0 * 1000 }
    plan.connections = try arguments.integer("--connections", 1...256) ?? 16
    plan.timeoutMs = try arguments.integer("--timeout-ms", 1...3_600_000) ?? 30_000
    plan.type = try arguments.choice("--type", SignNotifications.types)
    plan.retryScale = try retryScale(arguments)
    return plan
  }

  static func address(_ url: String, _ option: String) throws(UsageError) -> PostAddress {
    guard let address = PostAddress(url) else {
      throw UsageError(message: "\(option) '\(url)' is not an http:// address of this machine")
    }
    return address
  }

  static func retryScale(_ arguments: Arguments) throws(UsageError) -> Double {
    guard let text = arguments.text("--retry-scale") else { return 1 }
    guard let scale = Double(text), (0...1).contains(scale) else {
      throw UsageError(message: "--retry-scale '\(text)' must be a number from 0 to 1")
    }
    return scale
  }
}

/// A file that several threads write lines to.
private final class LineLog: Sendable {
  private let descriptor: Int32
  private let path: String
  /// The code of the first failure; 0 without one.
  private let state = Monitor<Int32>(0)

  init(path: String) throws {
    // Each line is whole in one call: who kills the sender loses none that it has written.
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o600)
    self.path = path
    guard descriptor >= 0 else { throw OutputError("can't create", path, errno) }
  }

  deinit { close(descriptor) }

  func write(_ line: [UInt8]) {
    let bytes = line + [0x0A]
    state.withLock { code in
      let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count != bytes.count, code == 0 { code = errno }
    }
  }

  func finish() throws {
    let code = state.withLock { $0 }
    if code != 0 { throw OutputError("can't write to", path, code) }
  }
}
