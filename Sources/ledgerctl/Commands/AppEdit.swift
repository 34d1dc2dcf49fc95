// `app edit`: registers an app family anew, with what is asked for changed.
import JSON
import Ledger
import Projections
import Server

let appEditCommand = Command(
  "app edit", summary: "Change an app family's name, bundle ids and products",
  details: [
    "Appends the app family as it is then; a running server judges by it from there on. What is not named stays: two "
      + "edits at once are made one after the other, and neither undoes the other.",
    "`--product` declares a product, or changes its type. A product that was sold cannot be removed. Where an app that "
      + "declared none declares its first, all that it has sold must be declared with it: whoever buys what is not "
      + "declared is answered as a fraud. Verdicts given before stay.",
  ],
  positionals: [.app],
  options: [
    Option("name", value: .init("NAME"), help: "the family's new name"),
    Option("bundle-id", value: .init("ID"), isRepeatable: true, help: "a further bundle id"),
    Option(
      "remove-bundle-id", value: .init("ID"), isRepeatable: true,
      help: "a bundle id that has no receipts, to be removed"),
    Option(
      "product", value: .init("ID=TYPE"), isRepeatable: true,
      help: "a product to declare, or whose type to change; TYPE is "
        + alternatives(ProductType.allCases.map { "`\($0.rawValue)`" })),
    Option(
      "remove-product", value: .init("ID"), isRepeatable: true,
      help: "a declared product that was never sold, to be removed"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl app edit com.example.notes --product pro.year=auto_renewable",
      "Declare a new product before it is sold")
  ]
) { invocation, context in
  try editApp(AppEditOptions(invocation), invocation, context)
}

/// What `app edit` was asked for.
struct AppEditOptions: Equatable, Sendable {
  /// An app family's id or a bundle id.
  let app: String
  let name: String?
  let bundleIDs: [String]
  let removedBundleIDs: [String]
  let products: [AppRegistered.Product]
  let removedProducts: [String]
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    app = invocation.positionals[0]
    name = try AppAddOptions.name(invocation)
    bundleIDs = try AppAddOptions.bundleIDs("bundle-id", invocation)
    removedBundleIDs = try AppAddOptions.bundleIDs("remove-bundle-id", invocation)
    products = try AppAddOptions.products(invocation)
    removedProducts = invocation.values("remove-product")
    isJSON = invocation.has("json")
    if let id = bundleIDs.first(where: removedBundleIDs.contains) {
      throw invocation.wrong("remove-bundle-id", id, "contradicts --bundle-id")
    }
    if let id = products.map(\.id).first(where: removedProducts.contains) {
      throw invocation.wrong("remove-product", id, "contradicts --product")
    }
    if name == nil, bundleIDs.isEmpty, removedBundleIDs.isEmpty, products.isEmpty,
      removedProducts.isEmpty
    {
      throw UsageError(
        visible(app, limit: 64),
        "nothing to change: give --name, --bundle-id, --product, or what to remove",
        command: "app edit")
    }
  }
}

private func editApp(
  _ options: AppEditOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let (id, position) = try ledger.withWriter { writer -> (String, Position?) in
    // Read under the writer: what another edit has appended since the command began is kept.
    let database = try ledger.projections()
    let queries = AppQueries(database)
    let app = try queries.registeredApp(options.app, operation: "app edit").registration
    let edit = AppEdit(options, app, queries, try IntakeLookup(database))
    let edited = try edit.applied()
    if edited == app { return (app.appFamilyID, nil) }
    let positions = try writer.append([
      EventDraft(
        type: EventType.appRegistered.rawValue, version: EventType.appRegistered.currentVersion,
        data: edited.data)
    ])
    return (app.appFamilyID, positions.lowerBound)
  }
  if options.isJSON {
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("app_family_id", id)
      writer.member("position", position)
    }
    try context.output.write(writer.bytes)
    try context.output.writeLine()
  } else if let position {
    try context.output.writeLine("Changed app family \(id) at position \(position)")
  } else {
    try context.output.writeLine("Changed nothing: app family \(id) is registered so already")
  }
  // What was appended is said, whatever becomes of the projections; `status` looks at them as they are.
  try context.output.flush()
  if position != nil { _ = try ledger.projections() }
  return .done
}

/// One edit of one app family, as it stands while nobody else can change it.
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
    try removeBundles(from: &edited)
    try addBundles(to: &edited)
    try changeProducts(of: &edited)
    return edited
  }

  // MARK: Bundle ids

  private func removeBundles(from edited: inout AppRegistered) throws {
    for id in options.removedBundleIDs {
      guard let place = edited.bundleIDs.firstIndex(of: id) else {
        throw failure("--remove-bundle-id \(id)", "the app family does not have it")
      }
      let receipts = try queries.receiptCount(ofBundle: id, app)
      guard receipts == 0 else {
        throw failure(
          "--remove-bundle-id \(id)",
          "\(counted(receipts, "receipt")) \(receipts == 1 ? "is" : "are") of it")
      }
      edited.bundleIDs.remove(at: place)
    }
  }

  private func addBundles(to edited: inout AppRegistered) throws {
    for id in options.bundleIDs where !edited.bundleIDs.contains(id) {
      // One bundle belongs to one family: a receipt must not change hands.
      if let other = try lookup.appFamilyID(ofBundle: id), other != app.appFamilyID {
        throw failure("--bundle-id \(id)", "app family \(other) has it already")
      }
      edited.bundleIDs.append(id)
    }
    if edited.bundleIDs.isEmpty {
      throw failure("--remove-bundle-id", "an app family needs a bundle id")
    }
  }

  // MARK: Products

  private func changeProducts(of edited: inout AppRegistered) throws {
    if options.products.isEmpty, options.removedProducts.isEmpty { return }
    let sold = try queries.soldProducts(of: app)
    for id in options.removedProducts {
      guard let place = edited.products.firstIndex(where: { $0.id == id }) else {
        throw failure("--remove-product \(id)", "it is not declared")
      }
      if let count = sold[id] {
        throw failure(
          "--remove-product \(id)",
          "it was sold \(count == 1 ? "once" : "\(count) times"): a product that was sold stays declared"
        )
      }
      edited.products.remove(at: place)
    }
    for product in options.products {
      if let place = edited.products.firstIndex(where: { $0.id == product.id }) {
        edited.products[place].type = product.type
      } else {
        edited.products.append(product)
      }
    }
    try checkFirstDeclaration(edited, sold)
  }

  /// Who sold without declaring anything sold good products: none may become unknown by the first that is declared.
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
        "the app sells \(counted(missing.count, "other product")) and has declared none: whoever buys "
        + "\(missing.count == 1 ? "it" : "one of them") would be answered as a fraud; add "
        + visible(shown.joined(separator: " ")) + more)
  }
}
