// `config check`, `config set-shared-secret`: the configuration.
import Base
import Glibc
import Projections
import Replication
import Server

let configCheckCommand = Command(
  "config check", summary: "Check config.json and print the configuration in effect",
  details: [
    "Prints the configuration as JSON, with all defaults; digests of tokens are omitted, and a shared secret "
      + "is `(set)`. If it cannot be used, the command fails and prints every problem with its place in the "
      + "file. Settings of unregistered app families, and a copy's directory that cannot be reached, cause "
      + "warnings and exit code 3."
  ]
) { invocation, context in
  try checkConfiguration(invocation, context)
}

let configSetSharedSecretCommand = Command(
  "config set-shared-secret", summary: "Set the App Store's shared secret for an app",
  details: [
    "Reads the secret from standard input; a terminal prompts for it without echo. A running server uses it "
      + "within two seconds. config.json is rewritten with indentation; the other content stays."
  ],
  options: [
    .appFamily,
    Option("remove", help: "remove the secret; reads no input"),
  ],
  examples: [
    Example(
      "ledgerctl config set-shared-secret --app 0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
      "Prompt for the secret and set it")
  ]
) { invocation, context in
  try setSharedSecret(invocation, context)
}

private func checkConfiguration(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ConfigurationFile(ledger.directory).read()
  try context.output.write(configuration.masked.indentedBytes)
  let lookup = try IntakeLookup(try ledger.projections())
  var warnings = try configuration.unknownFamilies(lookup).map { "\($0.path): \($0.cause)" }
  if let cause = configuration.replication.flatMap(unreachableCopy) {
    warnings.insert(visible("replication.target: \(cause)"), at: 0)
  }
  for warning in warnings.prefix(100) { context.log("config check: \(warning)") }
  if warnings.count > 100 {
    context.log("config check: \(warnings.count - 100) more warnings")
  }
  return warnings.isEmpty ? .done : .partlyDone
}

extension Configuration {
  /// The settings of app families that are not registered, with the cause.
  func unknownFamilies(
    _ lookup: IntakeLookup
  ) throws(DatabaseError) -> [(path: String, cause: String)] {
    var settings: [(path: String, family: String)] = []
    for (index, token) in tokens.enumerated() where token.revokedAtMs == nil {
      settings.append(("tokens[\(index)].app_family_id", token.appFamilyID))
    }
    settings += sharedSecrets.keys.sorted().map { ("shared_secrets", $0) }
    settings += apps.keys.sorted().map { ("apps", $0) }
    var unknown: [(path: String, cause: String)] = []
    for (path, family) in settings where try lookup.appName(ofFamily: family) == nil {
      unknown.append((path, "no app family has the id \(family)"))
    }
    return unknown
  }
}

/// Why the directory of a copy cannot be reached, which a server tries again and again: a disk may be mounted later.
/// Nil if it can, or if the copy is elsewhere.
func unreachableCopy(_ copy: Configuration.Replication) -> String? {
  guard case .directory(let path)? = try? ReplicationTarget(parsing: copy.target) else {
    return nil
  }
  var status = stat()
  if stat(path, &status) != 0 { return "\(copy.target): \(systemErrorText(errno))" }
  return status.st_mode & S_IFMT == S_IFDIR ? nil : "\(copy.target): it is not a directory"
}

private func setSharedSecret(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let appFamilyID = try invocation.appFamilyID() ?? ""
  let ledger = try OpenLedger(invocation, context)
  let file = ConfigurationFile(ledger.directory)
  if invocation.has("remove") {
    let isRemoved = try file.setSharedSecret(nil, appFamilyID: appFamilyID)
    try context.output.writeLine(
      isRemoved ? "Removed the shared secret." : "There was no shared secret.")
    return .done
  }
  let name = try ledger.appName(appFamilyID, operation: "config set-shared-secret")
  let secret = try SecretInput.read(prompt: "Shared secret of \(visible(name)): ", context)
  guard SharedSecret.isValid(secret) else {
    throw Failure(
      operation: "config set-shared-secret", object: "standard input",
      cause: "the secret \(SharedSecret.requirement)")
  }
  _ = try file.setSharedSecret(secret, appFamilyID: appFamilyID)
  try context.output.writeLine("Set the shared secret of \(visible(name)).")
  return .done
}
