// `sign-notifications`: notifications about invented customers, one a line.
import AppStoreAuthority
import Base
import ProgramSupport

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
    try fill(Output(ifGiven: command.options.outputPath)) { output in try command.write(to: &output) }
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
