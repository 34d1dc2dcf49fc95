// `app edit`: appends a changed registration of an app family.
import Base
import Ledger
import Projections
import Server

let appEditCommand = Command(
  "app edit", summary: "Change an app family's name, bundle ids, products and entitlements",
  details: [
    "Appends the changed registration; a running server uses it from then on. Whatever is not named stays as "
      + "it is. Concurrent edits do not undo each other.",
    "`--product` declares a product or changes its type. The first declaration must include every product "
      + "that was sold, because uploads that show an undeclared product are answered as fraud. Earlier verdicts "
      + "do not change.",
    "`--entitlement` declares an entitlement or replaces its products; docs/client-api.md says which users "
      + "have it. Webhooks (docs/webhooks.md) are settings in config.json, not events.",
  ],
  positionals: [.app],
  options: [
    Option("name", value: .init("NAME"), help: "the family's new name"),
    Option("bundle-id", value: .init("ID"), isRepeatable: true, help: "a bundle id to add"),
    Option(
      "remove-bundle-id", value: .init("ID"), isRepeatable: true,
      help: "a bundle id to remove; it must have no receipts"),
    Option(
      "product", value: .init("ID=TYPE"), isRepeatable: true,
      help: "a product and its type, which is "
        + alternatives(ProductType.allCases.map { "`\($0.rawValue)`" })),
    Option(
      "remove-product", value: .init("ID"), isRepeatable: true,
      help: "a declared product to remove; it must never have been sold"),
    .appAppleID, .entitlement,
    Option(
      "remove-entitlement", value: .init("NAME"), isRepeatable: true,
      help: "an entitlement to remove"),
    .webhook, .webhookSecret, .removeWebhook, .json,
  ],
  examples: [
    Example(
      "ledgerctl app edit com.example.notes --product pro.year=auto_renewable",
      "Declare a new product before it is sold"),
    Example(
      "ledgerctl app edit com.example.notes --entitlement 'pro=pro.*'",
      "Grant `pro` to the owners of all products whose ids begin with `pro.`"),
  ]
) { invocation, context in
  try editApp(AppEditOptions(invocation), invocation, context)
}

/// The options of `app edit`.
struct AppEditOptions: Equatable, Sendable {
  /// An app family's id or a bundle id.
  let app: String
  let name: String?
  let bundleIDs: [String]
  let removedBundleIDs: [String]
  let products: [AppRegistered.Product]
  let removedProducts: [String]
  let appAppleID: Int64?
  let entitlements: [Entitlement]
  let removedEntitlements: [String]
  let webhook: WebhookEdit

  init(_ invocation: Invocation) throws(UsageError) {
    app = invocation.positionals[0]
    name = try AppAddOptions.name(invocation)
    bundleIDs = try AppAddOptions.bundleIDs("bundle-id", invocation)
    removedBundleIDs = try AppAddOptions.bundleIDs("remove-bundle-id", invocation)
    products = try AppAddOptions.products(invocation)
    removedProducts = invocation.values("remove-product")
    appAppleID = try AppAddOptions.appAppleID(invocation)
    entitlements = try AppAddOptions.entitlements(invocation)
    removedEntitlements = invocation.values("remove-entitlement")
    webhook = try WebhookEdit(invocation)
    if let id = bundleIDs.first(where: removedBundleIDs.contains) {
      throw invocation.wrong("remove-bundle-id", id, "conflicts with --bundle-id")
    }
    if let id = products.map(\.id).first(where: removedProducts.contains) {
      throw invocation.wrong("remove-product", id, "conflicts with --product")
    }
    if let name = entitlements.map(\.name).first(where: removedEntitlements.contains) {
      throw invocation.wrong("remove-entitlement", name, "conflicts with --entitlement")
    }
    if name == nil, bundleIDs.isEmpty, removedBundleIDs.isEmpty, products.isEmpty,
      removedProducts.isEmpty, appAppleID == nil, entitlements.isEmpty, removedEntitlements.isEmpty,
      webhook == .none
    {
      throw UsageError(
        visible(app, limit: 64),
        "nothing to change; give --name, --bundle-id, --product, --entitlement, --webhook or what to remove"
      )
    }
  }
}

private func editApp(
  _ options: AppEditOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  // An app that can't be changed is detected before anything is appended.
  let configuration =
    options.webhook == .none ? Configuration() : try ConfigurationFile(ledger.directory).read()
  let (id, position) = try ledger.withWriter { writer -> (String, Position?) in
    // Read while holding the writer, so that an edit appended since the command began is kept.
    let database = try ledger.projections()
    let queries = AppQueries(database)
    let app = try queries.registeredApp(options.app, operation: "app edit").registration
    try options.webhook.check(app.appFamilyID, configuration)
    let edit = AppEdit(options, app, queries, try IntakeLookup(database))
    let edited = try edit.applied()
    if edited == app { return (app.appFamilyID, nil) }
    return (app.appFamilyID, try writer.append(.appRegistered, edited.data))
  }
  let webhook = try options.webhook.apply(id, ledger)
  var record: Record = ["app_family_id": id, "position": position]
  if let webhook { record = record + ["webhook_secret": webhook.secret?.text] }
  try context.print(invocation, record) { sheet in
    if let position {
      try sheet.line("Changed app family \(id) at position \(position)")
    } else if webhook == nil {
      try sheet.line("Nothing changed: app family \(id) is already registered like this")
    }
    guard let webhook else { return }
    try sheet.line(webhook.text)
    if let secret = webhook.secret { try sheet.line(secret.text) }
  }
  if webhook?.secret != nil, !invocation.isJSON {
    context.log("the webhook's secret is shown only once; keep it secret, like a password")
  }
  // Report the append before anything can fail in the projections. `status` shows them as they are, so fold now.
  try context.output.flush()
  if position != nil { _ = try ledger.projections() }
  return .done
}

/// One edit of one app family, made while no other process can append.
private struct AppEdit {
  private let options: AppEditOptions
  private let app: AppRegistered
  private let queries: AppQueries
  private let lookup: IntakeLookup

  init(
    _ options: AppEditOptions, _ app: AppRegistered, _ queries: AppQueries, _ lookup: IntakeLookup
  ) {
    self.options = options
    self.app = app
    self.queries = queries
    self.lookup = lookup
  }

  private func failure(_ object: String, _ cause: String) -> Failure {
    Failure(operation: "app edit", object: visible(object, limit: 64), cause: cause)
  }

  func applied() throws -> AppRegistered {
    var edited = app
    if let name = options.name { edited.name = name }
    if let id = options.appAppleID { edited.appAppleID = id }
    try removeBundles(from: &edited)
    try addBundles(to: &edited)
    try changeProducts(of: &edited)
    try changeEntitlements(of: &edited)
    return edited
  }

  // MARK: Bundle ids

  private func removeBundles(from edited: inout AppRegistered) throws {
    for id in options.removedBundleIDs {
      guard let index = edited.bundleIDs.firstIndex(of: id) else {
        throw failure("--remove-bundle-id \(id)", "it does not belong to the app family")
      }
      let receipts = try queries.receiptCount(ofBundle: id, app)
      guard receipts == 0 else {
        throw failure(
          "--remove-bundle-id \(id)",
          "it has \(counted(receipts, "receipt"))")
      }
      edited.bundleIDs.remove(at: index)
    }
  }

  private func addBundles(to edited: inout AppRegistered) throws {
    for id in options.bundleIDs where !edited.bundleIDs.contains(id) {
      // A bundle id belongs to one app family: its receipts must not move.
      if let other = try lookup.appFamilyID(ofBundle: id), other != app.appFamilyID {
        throw failure("--bundle-id \(id)", "it already belongs to app family \(other)")
      }
      edited.bundleIDs.append(id)
    }
    if edited.bundleIDs.isEmpty {
      throw failure("--remove-bundle-id", "an app family needs at least one bundle id")
    }
  }

  // MARK: Products

  private func changeProducts(of edited: inout AppRegistered) throws {
    if options.products.isEmpty, options.removedProducts.isEmpty { return }
    let sold = try queries.soldProducts(of: app)
    for id in options.removedProducts {
      guard let index = edited.products.firstIndex(where: { $0.id == id }) else {
        throw failure("--remove-product \(id)", "it is not declared")
      }
      if let count = sold[id] {
        throw failure(
          "--remove-product \(id)",
          "it was sold \(count == 1 ? "once" : "\(count) times"); a product that was sold stays declared"
        )
      }
      edited.products.remove(at: index)
    }
    for product in options.products {
      if let index = edited.products.firstIndex(where: { $0.id == product.id }) {
        edited.products[index].type = product.type
      } else {
        edited.products.append(product)
      }
    }
    try checkFirstDeclaration(edited, sold)
  }

  // MARK: Entitlements

  private func changeEntitlements(of edited: inout AppRegistered) throws {
    for name in options.removedEntitlements {
      guard let index = edited.entitlements.firstIndex(where: { $0.name == name }) else {
        throw failure("--remove-entitlement \(name)", "it is not declared")
      }
      edited.entitlements.remove(at: index)
    }
    for entitlement in options.entitlements {
      if let index = edited.entitlements.firstIndex(where: { $0.name == entitlement.name }) {
        edited.entitlements[index] = entitlement
      } else {
        edited.entitlements.append(entitlement)
      }
    }
    guard edited.entitlements.count <= AppAddOptions.entitlementCountMax else {
      throw failure(
        "--entitlement",
        "an app family has at most \(AppAddOptions.entitlementCountMax) entitlements")
    }
  }

  /// Without declarations every sold product was accepted; declaring the first one must not turn others into fraud.
  private func checkFirstDeclaration(_ edited: AppRegistered, _ sold: [String: Int]) throws {
    guard app.products.isEmpty, !edited.products.isEmpty else { return }
    let declared = Set(edited.products.map(\.id))
    let missing = sold.keys.filter { !declared.contains($0) }.sorted()
    guard !missing.isEmpty else { return }
    let shown = missing.prefix(5).map { "--product \(shellQuoted("\($0)=TYPE"))" }
    let more = missing.count > 5 ? " and \(missing.count - 5) more" : ""
    throw Failure(
      operation: "app edit", object: "--product",
      cause:
        "the app declares no product and has sold \(counted(missing.count, "other product")), which would "
        + "be reported as fraud; add "
        + visible(shown.joined(separator: " ")) + more)
  }
}
