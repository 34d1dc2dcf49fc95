// `sign-transactions`: signed transactions of invented customers, one list a line.
import AppStoreAuthority
import Base
import ProgramSupport

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
    try fill(Output(ifGiven: command.options.outputPath)) { output in try command.write(to: &output) }
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
