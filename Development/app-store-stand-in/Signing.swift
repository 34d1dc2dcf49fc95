// The commands that sign receipts, transactions and notifications of invented customers, one a line.
import AppStore
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

struct SignReceipts {
  private let signer: ReceiptSigner
  private let customers: CustomerReceipts
  private let customerCount: Int
  private let receiptCount: Int
  private let style: String
  private let isUploads: Bool

  static func run(_ arguments: ArraySlice<String>) throws {
    let arguments = try Arguments(
      arguments,
      valued: CustomerPlan.valued.union(["--authority", "--receipts", "--style", "--format", "-o"]))
    let plan = try CustomerPlan(arguments)
    let isUploads = try arguments.choice("--format", ["base64", "uploads"]) == "uploads"
    let style = try arguments.choice("--style", ["unified", "transaction", "mixed"]) ?? "unified"
    let receiptCount = try arguments.integer("--receipts", 1...100) ?? 1
    let authority = try AuthorityDirectory.open(try arguments.required("--authority"))
    let command = SignReceipts(
      signer: ReceiptSigner(authority: authority), customers: plan.customers,
      customerCount: plan.count, receiptCount: receiptCount, style: style, isUploads: isUploads)
    try fill(Output(ifGiven: arguments.text("-o"))) { output in try command.write(to: &output) }
  }

  private func write(to output: inout Output) throws {
    for ordinal in 0..<receiptCount {
      for customer in 0..<customerCount {
        let receipt = customers.receipt(customer: customer, ordinal: ordinal)
        let isTransaction = style == "transaction" || (style == "mixed" && customer % 4 == 3)
        var shown = receipt
        if isTransaction { shown.purchases = [receipt.purchases[receipt.purchases.count - 1]] }
        let file = isTransaction ? try signer.transaction(shown) : try signer.unified(shown)
        let text = Base64.encode(file)
        try output.write(line: isUploads ? upload(text, shown, customer: customer) : text)
      }
    }
  }

  /// The body of an upload request. The digits of `upload` may be overwritten to tell uploads apart.
  private func upload(_ receiptText: [UInt8], _ receipt: Receipt, customer: Int) -> [UInt8] {
    let storefront = CustomerReceipts.storefront(customer: customer)
    let bought = Set(receipt.purchases.compactMap(\.productID))
    var json = JSONWriter()
    json.reserve(receiptText.count + 1_024)
    json.beginObject()
    json.key("receipt")
    receiptText.withUnsafeBytes { json.string($0) }
    json.member("country_code", storefront.country)
    json.member("user_identifier", "user-\(customer)")
    json.key("metadata")
    json.beginObject()
    json.member("upload", "000000000000")
    json.key("prices")
    json.beginArray()
    for product in CustomerReceipts.products where bought.contains(product.id) {
      json.beginObject()
      json.member("product_id", product.id)
      json.member("price", storefront.price(product))
      json.member("currency", storefront.currency)
      json.endObject()
    }
    json.endArray()
    json.endObject()
    json.endObject()
    return json.bytes
  }
}

struct SignTransactions {
  private let options: SigningOptions
  private let format: String
  private let transactionCount: Int

  static func run(_ arguments: ArraySlice<String>) throws {
    let arguments = try Arguments(
      arguments, valued: SigningOptions.valued.union(["--transactions", "--format"]))
    let format = try arguments.choice("--format", ["uploads", "import", "jws"]) ?? "uploads"
    let count = try arguments.integer("--transactions", 1...100) ?? 1
    let command = SignTransactions(
      options: try SigningOptions(arguments), format: format, transactionCount: count)
    try fill(Output(ifGiven: command.options.outputPath)) { output in try command.write(to: &output)
    }
  }

  private func write(to output: inout Output) throws {
    let sales = CustomerTransactions(customers: options.customers)
    for customer in 0..<options.customerCount {
      let objects = try sales.transactions(customer: customer, count: transactionCount)
        .map(options.sign)
      if format == "jws" {
        for object in objects { try output.write(line: object) }
      } else {
        try output.write(line: upload(objects, customer: customer))
      }
    }
  }

  /// The body of an upload request, or a line of an import file. The digits of `upload` may be overwritten to
  /// tell uploads apart.
  private func upload(_ objects: [[UInt8]], customer: Int) -> [UInt8] {
    var json = JSONWriter()
    json.reserve(objects.reduce(512) { $0 + $1.count + 3 })
    json.beginObject()
    if format == "import" { json.member("marketplace", "itunes") }
    json.key("signed_transactions")
    json.beginArray()
    for object in objects { object.withUnsafeBytes { json.string($0) } }
    json.endArray()
    json.member("country_code", CustomerReceipts.storefront(customer: customer).country)
    json.member("user_identifier", "user-\(customer)")
    json.key("metadata")
    json.beginObject()
    json.member("upload", "000000000000")
    json.endObject()
    if format == "import" {
      json.member("occurred_at", Timestamp.text(ms: options.customers.atMs))
    }
    json.endObject()
    return json.bytes
  }
}

struct SignNotifications {
  private let options: SigningOptions
  private let format: String
  /// The type to write; nil for all.
  private let type: String?

  static let types = [
    "SUBSCRIBED", "DID_RENEW", "DID_CHANGE_RENEWAL_STATUS", "DID_FAIL_TO_RENEW",
    "GRACE_PERIOD_EXPIRED", "EXPIRED", "ONE_TIME_CHARGE", "CONSUMPTION_REQUEST", "REFUND",
    "REFUND_DECLINED", "REFUND_REVERSED", "TEST",
  ]

  static func run(_ arguments: ArraySlice<String>) throws {
    let arguments = try Arguments(
      arguments, valued: SigningOptions.valued.union(["--type", "--format"]))
    let format = try arguments.choice("--format", ["bodies", "import", "jws"]) ?? "bodies"
    let type = try arguments.choice("--type", types)
    let command = SignNotifications(
      options: try SigningOptions(arguments), format: format, type: type)
    try fill(Output(ifGiven: command.options.outputPath)) { output in try command.write(to: &output)
    }
  }

  private func write(to output: inout Output) throws {
    let sales = CustomerTransactions(customers: options.customers)
    for customer in 0..<options.customerCount {
      for told in sales.notifications(customer: customer) {
        if let type, told.payload.type != type { continue }
        var payload = told.payload
        payload.transaction = try told.transaction.map { try options.signer.sign($0.json) }
        payload.renewal = try told.renewal.map { try options.signer.sign($0.json) }
        try output.write(line: line(options.sign(payload)))
      }
    }
  }

  private func line(_ object: [UInt8]) -> [UInt8] {
    if format == "jws" { return object }
    var json = JSONWriter()
    json.reserve(object.count + 64)
    json.beginObject()
    if format == "import" {
      json.member("marketplace", "itunes")
      json.member("notification", text: object)
    } else {
      json.member("signedPayload", text: object)
    }
    json.endObject()
    return json.bytes
  }
}
