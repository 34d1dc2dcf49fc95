// Writes a ledger anew in small segments, for tests: the same events under the same root.
import Glibc
import Ledger
import ProgramSupport

let help = """
  Usage: resegment LEDGER -o DIR --segment-bytes N

  Writes the ledger DIR with the id, the origin and the events of LEDGER, in segments of N bytes and
  blocks of a third of that before compression. Nothing else is copied.

  Exit codes: 0 done, 1 failed, 2 wrong usage.

  """

func run(_ arguments: [String]) throws {
  guard let path = arguments.first, !path.hasPrefix("-") else {
    throw UsageError(message: "the ledger is missing")
  }
  let options = try Arguments(Array(arguments.dropFirst()), valued: ["-o", "--segment-bytes"])
  let segmentByteCount = try options.required("--segment-bytes", 1...1 << 40)
  let source = try LedgerDirectory.open(path: path)
  let reader = try LogReader(source)
  if let damage = reader.damage { throw damage }
  var target = try LedgerDirectory.create(
    path: try options.required("-o"), origin: source.identity.origin, id: source.identity.id,
    createdAtMs: source.identity.createdAtMs)
  if source.identity.formatVersion >= Format.versionWithRedactions {
    target = try target.allowingRedactions()
  }
  var sizes = WriterOptions()
  sizes.segmentByteCount = segmentByteCount
  sizes.blockByteCount = min(max(1, segmentByteCount / 3), sizes.blockByteCount)
  // A closing writer makes blocks of all full tails, however long that takes.
  sizes.closingLimitMs = 3_600_000
  let writer = try LedgerWriter.open(target, options: sizes)
  try reader.read(from: 0, to: reader.head.size) { chunk in
    var drafts: [EventDraft] = []
    try chunk.forEachEvent { line in
      var draft = EventDraft(
        type: String(decoding: line.type, as: UTF8.self), version: line.version,
        data: Array(line.data))
      draft.stored = StoredForm(line, redactedBy: line.redactedBy)
      drafts.append(draft)
    }
    // One by one, so that blocks can end between them.
    for draft in drafts { _ = try writer.append([draft]) }
    return true
  }
  try writer.close()
}

exit(Program.run("resegment", help: help, run))
