// `sign-receipts`: receipts of invented customers, one a line.
import AppStore
import AppStoreAuthority
import Base
import ProgramSupport

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
    json.field("country_code", storefront.country)
    json.field("user_identifier", "user-\(customer)")
    json.key("metadata")
    json.beginObject()
    json.field("upload", "000000000000")
    json.key("prices")
    json.beginArray()
    for product in CustomerReceipts.products where bought.contains(product.id) {
      json.beginObject()
      json.field("product_id", product.id)
      json.field("price", storefront.price(product))
      json.field("currency", storefront.currency)
      json.endObject()
    }
    json.endArray()
    json.endObject()
    json.endObject()
    return json.bytes
  }
}
