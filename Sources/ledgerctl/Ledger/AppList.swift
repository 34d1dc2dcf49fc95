// `app list` and `app show`: app families, by their latest registrations.
import Base
import Ledger
import Projections

let appListCommand = Command(
  "app list", summary: "List the app families",
  details: [
    "Prints bundle ids, the number of declared products (`any` if there are none), the number of receipts, "
      + "and the position of the newest registration."
  ],
  options: [.json],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let apps = try AppQueries(try ledger.projections()).apps()
  try context.print(invocation, list: apps.map(\.record)) { try listApps(apps, to: &$0) }
  return .done
}

let appShowCommand = Command(
  "app show", summary: "Show an app family and its products",
  details: [
    "Prints bundle ids, products with their types and numbers of sales, and entitlements. If an undeclared "
      + "product was sold, prints the command that declares it."
  ],
  positionals: [.app],
  options: [.json],
  examples: [Example("ledgerctl app show com.example.notes", "Show an app by its bundle id")],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let queries = AppQueries(try ledger.projections())
  let app = try queries.registeredApp(invocation.positionals[0], operation: "app show")
  let sold = try queries.soldProducts(of: app.registration)
  let undeclared = try queries.undeclaredProducts().filter {
    $0.appFamilyID.hasSameBytes(as: app.registration.appFamilyID)
  }
  let sales = sold.sorted { $0.key < $1.key }.map {
    ["product_id": $0.key, "sales": $0.value] as Record
  }
  let record =
    app.record + ["sales": sales, "undeclared_products": undeclared.map(\.record)] as Record
  try context.print(invocation, record) { try showApp(app, sold, undeclared, to: &$0) }
  return .done
}

extension Option {
  static let appAppleID = Option(
    "app-apple-id", value: .init("NUMBER"),
    help:
      "the App Store's number of the app, which notifications and app transactions of Production must "
      + "name"
  )
}

extension Positional {
  static let app = Positional("APP", help: "the app family's id, or one of its bundle ids")
}

extension AppQueries {
  /// The app family that an argument names.
  func registeredApp(_ word: String, operation: String) throws -> RegisteredApp {
    guard let app = try app(word) else {
      throw Failure(
        operation: operation, object: visible(word, limit: 64),
        cause: "no app family has this id or bundle id; 'ledgerctl app list' shows them")
    }
    return app
  }
}

private func listApps(_ apps: [RegisteredApp], to sheet: inout TextSections) throws {
  if apps.isEmpty {
    return try sheet.line("There are no app families; 'ledgerctl app add' registers one.")
  }
  var table = TextTable([
    "app_family_id", "name", "bundle_ids", .number("app_apple_id"), .number("products"),
    .number("receipts"),
    .number("position"),
  ])
  for app in apps {
    let registration = app.registration
    table.append([
      registration.appFamilyID, registration.name,
      registration.bundleIDs.joined(separator: " "),
      registration.appAppleID.map { "\($0)" } ?? "",
      registration.products.isEmpty ? "any" : "\(registration.products.count)",
      "\(app.receiptCount)", "\(app.position)",
    ])
  }
  try sheet.table(
    table, leastImportant: ["position", "products", "app_apple_id", "receipts", "bundle_ids"])
}

private func showApp(
  _ app: RegisteredApp, _ sold: [String: Int], _ undeclared: [UndeclaredProduct],
  to sheet: inout TextSections
) throws {
  let registration = app.registration
  try sheet.fields([
    ("app family", registration.appFamilyID), ("name", registration.name),
    ("bundle ids", registration.bundleIDs.joined(separator: " ")),
    ("app apple id", registration.appAppleID.map { "\($0)" } ?? "not declared"),
    ("receipts", "\(app.receiptCount)"), ("registered at", "position \(app.position)"),
    ("products", registration.products.isEmpty ? "any (none is declared)" : "those declared"),
  ])
  var table = TextTable(["product_id", "type", .number("sales")])
  let declared = Set(registration.products.map(\.id))
  for product in registration.products {
    table.append([product.id, product.type.rawValue, "\(sold[product.id] ?? 0)"])
  }
  for (product, count) in sold.sorted(by: { $0.key < $1.key }) where !declared.contains(product) {
    table.append([product, registration.products.isEmpty ? "" : "not declared", "\(count)"])
  }
  try sheet.table("Products", table)
  if !registration.entitlements.isEmpty {
    var table = TextTable(["entitlement", "products"])
    for entitlement in registration.entitlements {
      table.append([entitlement.name, entitlement.patterns.joined(separator: " ")])
    }
    try sheet.table("Entitlements", table)
  }
  if !undeclared.isEmpty {
    try sheet.heading("Sold but not declared")
    for sentence in undeclared.sentences { try sheet.line(visible(sentence)) }
  }
}

extension RegisteredApp {
  fileprivate var record: Record {
    [
      "app_family_id": registration.appFamilyID, "name": registration.name,
      "bundle_ids": registration.bundleIDs, "app_apple_id": registration.appAppleID,
      "products": Record(registration.products.map { ($0.id, $0.type.rawValue) }),
      "entitlements": Record(registration.entitlements.map { ($0.name, $0.patterns) }),
      "receipts": receiptCount, "position": position,
    ]
  }
}
