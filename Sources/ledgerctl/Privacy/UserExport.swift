// `user export`: all that the ledger holds about a user.
import Base
import Erasure
import JSON
import Ledger
import Projections

let userExportCommand = Command(
  "user export", summary: "Write all that the ledger holds about a user to a file",
  details: [
    "For an access request, or before an erasure: one JSON object with the head of the log and `events`, each as the "
      + "ledger holds it: uploads with their receipts, replies of the App Store, notifications, fetched and signed "
      + "transactions. Of an event that is about others too, only the transactions of this user are written.",
    "These are the events that `redact --user` would redact. The file is readable only by its owner. With `-` in "
      + "place of the identifier, it is read from standard input.",
  ],
  positionals: [Positional("ID", help: "the user identifier that the client sent, or -")],
  options: [
    Option("app", value: .init("ID"), help: "only in this app family"),
    Option("output", short: "o", value: .init("FILE"), isRequired: true, help: "write to FILE"),
  ],
  examples: [Example("ledgerctl user export user-17 -o user-17.json", "Answer an access request")],
  isReadOnly: true
) { invocation, context in
  let app = try invocation.value("app", "is not the id of an app family") { UUID16($0) }
  let ledger = try OpenLedger(invocation, context)
  if let damage = ledger.reader.damage { throw damage }
  var user = invocation.positionals[0]
  if user == "-" {
    let bytes = try SecretInput.read(prompt: "User identifier: ", context)
    guard !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else {
      throw Failure(
        operation: "user export", object: "standard input", cause: "it holds no identifier")
    }
    user = text
  }
  let database = try ledger.projections()
  try ledger.reader.refresh()
  let export = try UserExport(user, appFamily: app, ledger.reader, database)
  guard export.eventCount > 0 else {
    throw Failure(
      operation: "user export", object: "ID", cause: "the ledger holds nothing about this user")
  }
  let file = try OutputFile(
    path: invocation.value("output") ?? "", outside: context.ledgers.opened, isPrivate: true)
  var count = 0
  var writer = JSONWriter()
  writer.string(user)
  let head = ledger.reader.head
  try file.output.write(
    "{\"user_identifier\":\(String(decoding: writer.bytes, as: UTF8.self)),\"ledger\":\"\(ledger.directory.identity.id)\","
      + "\"size\":\(head.size),\"root\":\"\(head.root.base64)\",\"events\":[")
  try export.write { event in
    try context.interruption.check()
    try file.output.write(count == 0 ? "\n" : ",\n")
    try file.output.write(event)
    count += 1
  }
  try file.output.write("\n]}\n")
  try file.commit()
  context.say("user export: wrote \(counted(count, "event"))")
  return .done
}
