// `key create`, `key list`: the keys that sign checkpoints.
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
  let store = KeyStore(try context.openLedger(invocation))
  let keys = try store.publicKeys()
  let signing = try store.signingKey()?.verifierKey
  let records = keys.map {
    ["name": $0.name, "id": $0.idText, "key": "\($0)", "signs": $0 == signing] as Record
  }
  try context.print(invocation, list: records) { sheet in
    if keys.isEmpty {
      return try sheet.line("There is no key; 'ledgerctl key create' creates one.")
    }
    var table = TextTable(["key", "use"])
    for key in keys { table.append(["\(key)", key == signing ? "signs" : "verifies"]) }
    try sheet.table("Keys", table)
  }
  return .done
}
