// What `sign-transactions` and `sign-notifications` are asked for, and what both do with a payload.
import AppStoreAuthority
import Base
import Glibc
import ProgramSupport

/// What is wrong with what is signed.
enum SigningFault {
  case object(ObjectFault)
  /// Names an app that nobody registered.
  case wrongApp
  /// Was signed an hour from now.
  case clockSkew

  static let others = ["wrong_app", "clock_skew"]

  init(_ name: String) throws(UsageError) {
    switch name {
    case Self.others[0]: self = .wrongApp
    case Self.others[1]: self = .clockSkew
    default: self = .object(try SignObjects.fault(name))
    }
  }
}

/// The invented customers that a command is about.
struct CustomerPlan {
  let customers: CustomerReceipts
  let count: Int
  let bundleID: String

  static let valued: Set<String> = [
    "--customers", "--seed", "--environment", "--bundle-id", "--at",
  ]

  init(_ arguments: Arguments) throws(UsageError) {
    count = try arguments.required("--customers", 1...5_000_000)
    let seed = try arguments.required("--seed", 0...UInt64(Int64.max))
    let environment =
      try arguments.choice("--environment", ["production", "sandbox", "mixed"]) ?? "production"
    let atMs = try arguments.integer("--at", Int64(1_400_000_000_000)...2_000_000_000_000)
    bundleID = arguments.text("--bundle-id") ?? "com.example.game"
    customers = CustomerReceipts(
      seed: seed, bundleID: bundleID,
      environment: CustomerReceipts.Environment(rawValue: environment) ?? .production,
      atMs: atMs ?? Int64(time(nil)) * 1000)
  }
}

struct SigningOptions {
  let signer: ObjectSigner
  let customers: CustomerReceipts
  let customerCount: Int
  let fault: SigningFault?
  let outputPath: String?

  static let valued = CustomerPlan.valued.union(["--authority", "--fault", "-o"])

  init(_ arguments: Arguments) throws {
    let plan = try CustomerPlan(arguments)
    fault = if let name = arguments.text("--fault") { try SigningFault(name) } else { nil }
    signer = try AuthorityDirectory.objectSigner(try arguments.required("--authority"))
    customers = plan.customers
    customerCount = plan.count
    outputPath = arguments.text("-o")
  }

  /// Signs a transaction's payload with the fault that was asked for.
  func sign(_ payload: TransactionPayload) throws -> [UInt8] {
    var payload = payload
    bend(bundleID: &payload.bundleID, signedMs: &payload.signedMs)
    return try signer.sign(payload.json, objectFault)
  }

  /// Signs a notification's payload with the fault that was asked for.
  func sign(_ payload: NotificationPayload) throws -> [UInt8] {
    var payload = payload
    bend(bundleID: &payload.bundleID, signedMs: &payload.signedMs)
    return try signer.sign(payload.json, objectFault)
  }

  private var objectFault: ObjectFault? {
    if case .object(let fault) = fault { fault } else { nil }
  }

  private func bend(bundleID: inout String, signedMs: inout Int64) {
    switch fault {
    case .wrongApp: bundleID = "com.example.stranger"
    case .clockSkew: signedMs = max(signedMs, Int64(time(nil)) * 1000) + hourMs
    case .object, nil: break
    }
  }
}
