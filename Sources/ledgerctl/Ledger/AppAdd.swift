// `app add`: registers an app family.
import Base
import Intake
import Ledger
import Projections

let appAddCommand = Command(
  "app add", summary: "Register an app family and print its id",
  details: [
    "An app family is one app under all its bundle ids; only their receipts are accepted. If it declares "
      + "products, uploads that show any other product are answered as fraud (402). If it declares none, any "
      + "product is accepted. docs/operations.md says which to choose."
  ],
  options: [
    Option("name", value: .init("NAME"), isRequired: true, help: "a name for display"),
    Option(
      "bundle-id", value: .init("ID"), isRepeatable: true, isRequired: true, help: "a bundle id"),
    Option(
      "product", value: .init("ID=TYPE"), isRepeatable: true,
      help: "a product and its type, which is "
        + alternatives(ProductType.allCases.map { "`\($0.rawValue)`" })),
    .appAppleID, .entitlement, .json,
  ],
  examples: [
    Example(
      "ledgerctl app add --name Notes --bundle-id com.example.notes --product pro.month=auto_renewable",
      "Register an app with one subscription")
  ]
) { invocation, context in
  try addApp(AppAddOptions(invocation), invocation, context)
}

/// The options of `app add`.
struct AppAddOptions: Equatable, Sendable {
  let name: String
  let bundleIDs: [String]
  let products: [AppRegistered.Product]
  let appAppleID: Int64?
  let entitlements: [Entitlement]

  init(_ invocation: Invocation) throws(UsageError) {
    name = try Self.name(invocation) ?? ""
    bundleIDs = try Self.bundleIDs("bundle-id", invocation)
    products = try Self.products(invocation)
    appAppleID = try Self.appAppleID(invocation)
    entitlements = try Self.entitlements(invocation)
  }

  static func appAppleID(_ invocation: Invocation) throws(UsageError) -> Int64? {
    try invocation.value("app-apple-id", "is not a number from 1 to 9223372036854775807") {
      Int64($0).flatMap { $0 >= 1 ? $0 : nil }
    }
  }

  static func name(_ invocation: Invocation) throws(UsageError) -> String? {
    try invocation.value("name", "must be 1 to 255 characters without control characters") {
      (1...255).contains($0.count) && visible($0) == $0 ? $0 : nil
    }
  }

  /// The bundle ids of an option, without duplicates.
  static func bundleIDs(
    _ option: String, _ invocation: Invocation
  ) throws(UsageError) -> [String] {
    let ids = invocation.values(option)
    for id in ids where !isIdentifier(id) {
      throw invocation.wrong(option, id, "is not a bundle id")
    }
    if let id = firstDuplicate(ids) { throw invocation.wrong(option, id, "given twice") }
    return ids
  }

  /// The products of `--product`, without duplicates.
  static func products(_ invocation: Invocation) throws(UsageError) -> [AppRegistered.Product] {
    var products: [AppRegistered.Product] = []
    for text in invocation.values("product") { products.append(try product(text, invocation)) }
    if let id = firstDuplicate(products.map(\.id)) {
      throw invocation.wrong("product", id, "given twice")
    }
    return products
  }

  /// A product id may contain `=`: the type follows the last one.
  private static func product(
    _ text: String, _ invocation: Invocation
  ) throws(UsageError) -> AppRegistered.Product {
    guard let equals = text.lastIndex(of: "=") else {
      throw invocation.wrong("product", text, "must be ID=TYPE")
    }
    let id = String(text[..<equals])
    let name = String(text[text.index(after: equals)...])
    guard isIdentifier(id) else { throw invocation.wrong("product", text, "must be ID=TYPE") }
    guard let type = ProductType(rawValue: name) else {
      let names = ProductType.allCases.map(\.rawValue)
      throw invocation.wrong(
        "product", text, "TYPE must be \(alternatives(names))\(hint(for: name, among: names))")
    }
    return AppRegistered.Product(id: id, type: type)
  }

  static func isIdentifier(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
      && visible(text) == text
  }

  static func firstDuplicate(_ texts: [String]) -> String? {
    var seen = Set<String>()
    return texts.first { !seen.insert($0).inserted }
  }
}

private func addApp(
  _ options: AppAddOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let id = UUID16.random().description
  let app = AppRegistered(
    appFamilyID: id, name: options.name, bundleIDs: options.bundleIDs, products: options.products,
    appAppleID: options.appAppleID, entitlements: options.entitlements)
  let position = try ledger.withWriter { writer in
    // A bundle id belongs to one app family: a second registration must not move its receipts.
    let lookup = try IntakeLookup(try ledger.projections())
    for bundleID in options.bundleIDs {
      if let other = try lookup.appFamilyID(ofBundle: bundleID) {
        throw Failure(
          operation: "app add", object: ShownArgument.text(bundleID),
          cause: "it already belongs to app family \(other)")
      }
    }
    return try writer.append(.appRegistered, app.data)
  }
  let record: Record = ["app_family_id": id, "position": position]
  try context.print(invocation, record) { try $0.line(id) }
  return .done
}
