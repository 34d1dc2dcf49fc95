// `app list` and `app show`: app families, by their newest registrations.
import Base
import JSON
import Ledger
import Projections

let appListCommand = Command(
  "app list", summary: "List the app families",
  details: [
    "Prints each app family with its bundle ids, the number of products that it declares (`any` if it "
      + "declares none and accepts any product), the number of its receipts, and the position of its newest "
      + "registration."
  ],
  options: [.json],
  examples: [Example("ledgerctl app list", "List the registered apps")],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  return try listApps(
    AppQueries(try ledger.projections()).apps(), isJSON: invocation.has("json"), context)
}

let appShowCommand = Command(
  "app show", summary: "Show an app family and its products",
  details: [
    "Prints the bundle ids of an app family, and its products with their types and numbers of sales. If an "
      + "undeclared product was sold, prints the command that declares it."
  ],
  positionals: [.app],
  options: [.json],
  examples: [Example("ledgerctl app show com.example.notes", "Show an app by its bundle id")],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let queries = AppQueries(try ledger.projections())
  let app = try queries.registeredApp(invocation.positionals[0], operation: "app show")
  return try showApp(app, queries, isJSON: invocation.has("json"), context)
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

private func listApps(
  _ apps: [RegisteredApp], isJSON: Bool, _ context: Context
) throws -> ExitCode {
  if isJSON {
    try context.output.writeArray(apps) { write($0, to: &$1) }
    return .done
  }
  if apps.isEmpty {
    try context.output.writeLine("There are no app families; 'ledgerctl app add' registers one.")
    return .done
  }
  var table = TextTable([
    .init("app_family_id"), .init("name"), .init("bundle_ids"), .init("products", isNumber: true),
    .init("receipts", isNumber: true), .init("position", isNumber: true),
  ])
  for app in apps {
    let registration = app.registration
    table.append([
      registration.appFamilyID, registration.name,
      registration.bundleIDs.joined(separator: " "),
      registration.products.isEmpty ? "any" : "\(registration.products.count)",
      "\(app.receiptCount)", "\(app.position)",
    ])
  }
  try table.write(to: context.output, terminal: context.terminal, isCut: false)
  return .done
}

private func showApp(
  _ app: RegisteredApp, _ queries: AppQueries, isJSON: Bool, _ context: Context
) throws -> ExitCode {
  let registration = app.registration
  let sold = try queries.soldProducts(of: registration)
  let undeclared = try queries.undeclaredProducts().filter {
    $0.appFamilyID.hasSameBytes(as: registration.appFamilyID)
  }
  if isJSON {
    try context.output.writeObject { writer in
      write(app, to: &writer)
      writer.array("sales", sold.sorted { $0.key < $1.key }) { entry, writer in
        writer.object { writer in
          writer.member("product_id", entry.key)
          writer.member("sales", entry.value)
        }
      }
      writer.array("undeclared_products", undeclared) { $0.write(to: &$1) }
    }
    return .done
  }
  var sheet = Sheet(context)
  try sheet.fields([
    ("app family", registration.appFamilyID), ("name", registration.name),
    ("bundle ids", registration.bundleIDs.joined(separator: " ")),
    ("receipts", "\(app.receiptCount)"), ("registered at", "position \(app.position)"),
    ("products", registration.products.isEmpty ? "any (none is declared)" : "those declared"),
  ])
  var table = TextTable([.init("product_id"), .init("type"), .init("sales", isNumber: true)])
  let declared = Set(registration.products.map(\.id))
  for product in registration.products {
    table.append([product.id, product.type.rawValue, "\(sold[product.id] ?? 0)"])
  }
  for (product, count) in sold.sorted(by: { $0.key < $1.key }) where !declared.contains(product) {
    table.append([product, registration.products.isEmpty ? "" : "not declared", "\(count)"])
  }
  try sheet.table("Products", table)
  if !undeclared.isEmpty {
    try sheet.heading("Sold but not declared")
    for sentence in undeclared.sentences { try context.output.writeLine(visible(sentence)) }
  }
  return .done
}

/// The members of an app family's object.
private func write(_ app: RegisteredApp, to writer: inout JSONWriter) {
  let registration = app.registration
  writer.member("app_family_id", registration.appFamilyID)
  writer.member("name", registration.name)
  writer.array("bundle_ids", registration.bundleIDs) { $1.string($0) }
  writer.key("products")
  writer.object { writer in
    for product in registration.products {
      writer.key(product.id)
      writer.string(product.type.rawValue)
    }
  }
  writer.member("receipts", app.receiptCount)
  writer.member("position", app.position)
}
