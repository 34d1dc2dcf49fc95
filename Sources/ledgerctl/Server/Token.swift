// `token create`, `token list`, `token revoke`: who may use the client API.
package import Base
import Projections
package import Server

let tokenCreateCommand = Command(
  "token create", summary: "Create a token for an app's back end and show it once",
  details: [
    "A token is for one app family and one scope (docs/configuration.md). It is shown only once: "
      + "config.json, which is rewritten with indentation, stores its SHA-256. A running server accepts it "
      + "within two seconds. A token that cannot be printed, or written to FILE, is revoked. FILE gets mode "
      + "0600; after a shell redirection others may be able to read it."
  ],
  options: [
    .appFamily,
    Option(
      "scope",
      value: .init(
        "SCOPE", allowed: Configuration.Token.Scope.allCases.map(\.rawValue), standard: "upload"),
      help: "which requests it may make"),
    Option(
      "output", short: "o", value: .init("FILE"),
      help: "write to FILE"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl token create --app 0e7c2f4a-9a0b-4c5d-8e6f-112233445566 --scope read -o read-token",
      "Create a token that may ask what users own")
  ]
) { invocation, context in
  try createToken(invocation, context)
}

let tokenListCommand = Command(
  "token list", summary: "List the tokens, but not their secret values",
  details: [
    "Revoked tokens stay in the list."
  ],
  options: [Option("app", value: .init("ID"), help: "only this app family"), .json]
) { invocation, context in
  try listTokens(invocation, context)
}

let tokenRevokeCommand = Command(
  "token revoke", summary: "Revoke a token",
  details: [
    "A running server refuses requests with the token within two seconds."
  ],
  positionals: [Positional("TOKEN-ID", help: "the token's id, as `token list` shows it")],
  options: [.json],
  examples: [Example("ledgerctl token revoke tk-9f3a61c04b2e", "Revoke a leaked token")]
) { invocation, context in
  try revokeToken(invocation, context)
}

extension Option {
  /// The app family of a command that needs one.
  static let appFamily = Option(
    "app", value: .init("ID"), isRequired: true, help: "the app family's id")
}

extension Invocation {
  /// The app family's id of `--app`, in lower case.
  func appFamilyID() throws(UsageError) -> String? {
    try value("app", "is not the id of an app family; `app add` prints it", read: uuidText)
  }
}

extension OpenLedger {
  /// The name of an app family; throws if none is registered with that id.
  func appName(_ appFamilyID: String, operation: String) throws -> String {
    guard let name = try IntakeLookup(try projections()).appName(ofFamily: appFamilyID) else {
      throw Failure(
        operation: operation, object: appFamilyID,
        cause: "no app family has this id; 'ledgerctl app add' registers one")
    }
    return name
  }
}

private func createToken(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let appFamilyID = try invocation.appFamilyID() ?? ""
  let scope = invocation.value("scope").flatMap(Configuration.Token.Scope.init) ?? .upload
  let ledger = try OpenLedger(invocation, context)
  _ = try ledger.appName(appFamilyID, operation: "token create")
  // Opened first, so that no token is created if that fails.
  let outputPath = invocation.outputPath
  let target = try outputPath.map {
    try OutputFile(path: $0, outside: ledger.directory, isPrivate: true)
  }
  let file = ConfigurationFile(ledger.directory)
  let (token, kept) = try file.addToken(appFamilyID: appFamilyID, scope: scope)
  do {
    let output = target?.output ?? context.output
    if invocation.isJSON {
      try output.writeJSON(["token": token] + kept.record)
    } else {
      try output.writeLine(token)
    }
    try output.flush()
    try target?.commit()
  } catch {
    throw withdrawToken(kept.id, from: file, because: error)
  }
  if let outputPath {
    context.log(
      "token \(kept.id) is in \(visible(outputPath)); keep it secret, like a password",
      .information)
  } else if !invocation.isJSON {
    context.log(
      "token \(kept.id) is shown only once; keep it secret, like a password",
      .information)
  }
  return .done
}

/// Revokes a token that could not be printed or written. The error says that it is revoked, or how to revoke it.
package func withdrawToken(
  _ id: String, from file: ConfigurationFile, because error: any Error
) -> Failure {
  var cause =
    switch error {
    case OutputError.closedPipe: "it could not be printed: the reader closed the output"
    case OutputError.writeFailed(let object, let code):
      "it could not be printed: \(object): \(systemErrorText(code))"
    case let failure as Failure:
      "it could not be written: \(failure.object): \(failure.cause)"
    default: "it could not be written"
    }
  do {
    _ = try file.revokeToken(id: id)
    cause += "; it was revoked"
  } catch {
    cause += "; it could not be revoked either (\(error)); run 'ledgerctl token revoke \(id)'"
  }
  return Failure(operation: "token create", object: id, cause: cause)
}

private func listTokens(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let appFamilyID = try invocation.appFamilyID()
  let ledger = try OpenLedger(invocation, context)
  if let appFamilyID { _ = try ledger.appName(appFamilyID, operation: "token list") }
  let tokens = try ConfigurationFile(ledger.directory).read().tokens.filter {
    appFamilyID == nil || $0.appFamilyID == appFamilyID
  }
  try context.print(invocation, ["tokens": tokens.map(\.record)]) { sheet in
    if tokens.isEmpty { return try sheet.line("No tokens.") }
    let lookup = try IntakeLookup(try ledger.projections())
    var table = TextTable(["Token", "App family", "App", "Scope", "Created", "Revoked"])
    for token in tokens {
      table.append([
        token.id, token.appFamilyID, try lookup.appName(ofFamily: token.appFamilyID) ?? "",
        token.scope.rawValue, timeText(token.createdAtMs), token.revokedAtMs.map(timeText) ?? "",
      ])
    }
    try sheet.table(table, leastImportant: ["App family", "Created"])
  }
  return .done
}

private func revokeToken(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let tokenID = invocation.positionals[0]
  // A user who gives the token itself must not find it in a log of errors.
  guard TokenText.isID(tokenID), !tokenID.hasPrefix(TokenText.prefix) else {
    throw UsageError("TOKEN-ID", "is not the id of a token; `token list` shows them")
  }
  let file = ConfigurationFile(try OpenLedger(invocation, context).directory)
  guard let (token, wasRevoked) = try file.revokeToken(id: tokenID) else {
    throw Failure(
      operation: "token revoke", object: ShownArgument.text(tokenID),
      cause: "there is no token with this id")
  }
  try context.print(invocation, token.record) {
    let revokedAt = token.revokedAtMs.map(timeText) ?? ""
    try $0.line(
      wasRevoked
        ? "Token \(token.id) was already revoked at \(revokedAt)." : "Revoked token \(token.id).")
  }
  return .done
}

extension Configuration.Token {
  /// Its members except the digest.
  fileprivate var record: Record {
    [
      "id": id, "app_family_id": appFamilyID, "scope": scope.rawValue,
      "created_at": timeText(createdAtMs),
      "revoked_at": revokedAtMs.map(timeText),
    ]
  }
}
