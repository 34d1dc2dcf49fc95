// `key create`, `key list`: the keys that sign checkpoints.
import JSON
import Ledger

let keyCreateCommand = Command(
  "key create", summary: "Create a key that signs checkpoints",
  details: [
    "Creates an Ed25519 key named after the ledger's origin and prints its public half as a C2SP verifier "
      + "key. Give it to the people who check checkpoints and proofs, over a channel that cannot be tampered with.",
    "The private half is stored in `keys/`, readable only by its owner; it is never printed or overwritten. "
      + "If there already is a key, `--further` creates another one, which signs from then on; signatures of the "
      + "old key stay valid.",
  ],
  options: [Option("further", help: "create another key if there already is one")],
  examples: [Example("ledgerctl key create", "Create the ledger's signing key")]
) { invocation, context in
  let directory = try context.openLedger(invocation)
  let key = try KeyStore(directory).create(isFurther: invocation.has("further"))
  try context.output.writeLine("\(key)")
  return .done
}

let keyListCommand = Command(
  "key list", summary: "List the keys that sign checkpoints",
  details: [
    "Prints the public keys named in `ledger.json`, oldest first. The newest key whose private half is in the "
      + "ledger signs."
  ],
  options: [.json],
  examples: [Example("ledgerctl key list", "Show the keys that an auditor needs")]
) { invocation, context in
  try listKeys(isJSON: invocation.has("json"), invocation, context)
}

private func listKeys(
  isJSON: Bool, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let store = KeyStore(try context.openLedger(invocation))
  let keys = try store.publicKeys()
  let signing = try store.signingKey()?.verifierKey
  guard isJSON else {
    var table = TextTable([.init("key"), .init("use")])
    for key in keys { table.append(["\(key)", key == signing ? "signs" : "verifies"]) }
    var sheet = Sheet(context)
    if keys.isEmpty {
      try context.output.writeLine("There is no key; 'ledgerctl key create' creates one.")
    } else {
      try sheet.table("Keys", table)
    }
    return .done
  }
  try context.output.writeArray(keys) { key, writer in
    writer.member("name", key.name)
    writer.member("id", key.idText)
    writer.member("key", "\(key)")
    writer.member("signs", key == signing)
  }
  return .done
}
