// Erasures as text and JSON: previews, results, unfinished ones; and `user export`.
import Base
import Erasure
import Ledger
import Projections
import Server

extension ErasurePreview {
  var record: Record {
    [
      "events": Record(events.map { ($0.type.rawValue, $0.count) }), "receipts": receipts,
      "waiting_receipts": waitingReceipts,
      "waits_until": waitingReceipts > 0 ? timeText(waitsUntilMs) : nil,
      "shared_uploads": sharedUploads,
      "without_user": withoutUser.map { upload -> Record in
        ["position": upload.position, "reason": upload.reason.rawValue]
      },
      "snapshots": snapshots, "remaining": remaining,
      "remaining_positions": remainingPositions, "not_searched": notSearched.map(\.rawValue),
    ]
  }

  func write(to sheet: inout TextSections, isDry: Bool) throws {
    if targetCount == 0 {
      let reasons = [
        remaining > 0 ? "But \(remainingText(remaining, remainingPositions))." : nil,
        notSearched.isEmpty ? nil : "Not searched: \(notSearched.text).",
      ]
      let found = remaining > 0 ? "no upload and no purchase is of it" : "no event holds data of it"
      return try sheet.line(
        (["Nothing to redact: \(found)."] + reasons.compactMap(\.self)).joined(separator: " "))
    }
    try sheet.heading(isDry ? "Would be redacted" : "To be redacted")
    var fields: Fields = events.map { ($0.type.rawValue, counted($0.count, "event")) }
    if events.isEmpty { fields.append(("events", "\(targetCount) at most")) }
    if receipts > 0 {
      fields.append(("receipts", "the content of \(counted(receipts, "receipt"))"))
    }
    if waitingReceipts > 0 {
      fields.append(("waiting", waitingText(waitingReceipts, untilMs: waitsUntilMs)))
    }
    if sharedUploads > 0 {
      fields.append(
        (
          "shared",
          "\(counted(sharedUploads, "upload")) of receipts that other users uploaded too: only what names this user"
        ))
    }
    if !withoutUser.isEmpty { fields.append(("without user", withoutUserText)) }
    if snapshots > 0 {
      fields.append(("snapshots", "\(snapshots), removed; the newest state is saved again"))
    }
    fields.append(
      ("not reached", "backups, exports, copies, logs of proxies, what webhooks delivered"))
    if remaining > 0 { fields.append(("also", remainingText(remaining, remainingPositions))) }
    if !notSearched.isEmpty { fields.append(("not searched", notSearched.text)) }
    try sheet.fields(fields)
  }
}

extension ErasurePreview {
  /// How many positions are listed.
  private static let shownCountMax = 20

  /// What links uploads that name no user to this one.
  fileprivate var withoutUserText: String {
    let shown = withoutUser.prefix(Self.shownCountMax).map { upload in
      "\(upload.position) (\(upload.reason.text))"
    }
    let names = shown.joined(separator: ", ")
    return
      "\(counted(withoutUser.count, "upload")) that \(withoutUser.count == 1 ? "names" : "name") no user: "
      + "\(names)\(withoutUser.count > shown.count ? ", …" : "")"
  }
}

extension InclusionReason {
  fileprivate var text: String {
    switch self {
    case .receipt: "the same receipt"
    case .transaction: "a transaction"
    case .originalTransaction: "a subscription"
    case .appAccountToken: "an app account token"
    case .account: "an Apple Account"
    }
  }
}

/// The text about receipts that are kept for a while.
private func waitingText(_ count: Int, untilMs: Int64) -> String {
  "\(counted(count, "receipt")) \(count == 1 ? "waits" : "wait") for the App Store: the content stays until it has "
    + "replied, at most until \(timeText(untilMs))"
}

extension [NotSearched] {
  fileprivate var text: String {
    map { part in
      switch part {
      case .shortIdentifiers:
        "an identifier of fewer than 6 bytes, but in users and in values and keys of metadata"
      case .appAccountTokens: "app account tokens: the pass was interrupted"
      }
    }.joined(separator: "; ")
  }
}

/// The text about events of other users that contain an identifier.
private func remainingText(_ count: Int, _ positions: [Position]) -> String {
  let names = positions.map { "\($0)" }.joined(separator: ", ")
  return
    "\(counted(count, "other event")) \(count == 1 ? "contains" : "contain") the identifier in data of "
    + "others: \(names)\(count > positions.count ? ", …" : ""); 'redact --position' takes that out"
}

extension ErasureRecord {
  var record: Record {
    [
      "id": id.description, "scope": scope.rawValue, "reason": reason,
      "requested_at": timeText(requestedAtMs), "state": state.rawValue,
      "certificate": certificate?.record, "failure": failure,
    ]
  }

  func write(to sheet: inout TextSections) throws {
    switch state {
    case .waiting, .running:
      try sheet.heading("Request \(id)")
      try sheet.line("It waits for the next pass; 'ledgerctl redact --now' makes one.")
    case .failed:
      try sheet.heading("Request \(id)")
      try sheet.line("Not done: \(failure ?? "")")
    case .done:
      try sheet.heading("Certificate of erasure")
      try sheet.fields(fields)
    }
  }

  private var fields: Fields {
    guard let certificate else { return [] }
    var fields: Fields = [
      ("request", id.description), ("reason", reason),
      ("finished", timeText(certificate.finishedAtMs)),
    ]
    if let erasure = certificate.erasure {
      fields.append(("erasure", "the event at position \(erasure)"))
    }
    if certificate.eventCount == 0 {
      fields.append(("redacted", "nothing: no event held data of it"))
    }
    fields += certificate.events.map {
      ("redacted", "\(counted($0.count, "event")) \($0.type.rawValue)")
    }
    if certificate.receipts > 0 {
      fields.append(("receipts", "the content of \(counted(certificate.receipts, "receipt"))"))
    }
    if certificate.waitingReceipts > 0 {
      fields.append(
        (
          "waiting",
          waitingText(certificate.waitingReceipts, untilMs: certificate.waitsUntilMs ?? 0)
        ))
    }
    fields.append(
      (
        "head",
        "\(certificate.root.map { $0.base64 } ?? "") of \(counted(certificate.size, "event"))"
      ))
    if certificate.removedSnapshots > 0 {
      fields.append(("snapshots", "\(certificate.removedSnapshots) removed"))
    }
    fields.append(
      ("remains", "ids of transactions, products, dates, countries, amounts; see docs/privacy.md"))
    fields.append(
      ("not reached", "backups, exports, copies, logs of proxies, what webhooks delivered"))
    if certificate.remaining > 0 {
      fields.append(("also", remainingText(certificate.remaining, certificate.remainingPositions)))
    }
    if !certificate.notSearched.isEmpty {
      fields.append(("not searched", certificate.notSearched.text))
    }
    return fields
  }
}

extension ErasureCertificate {
  var record: Record {
    Record(members.map { ($0.key, RawJSON(bytes: $0.value.bytes)) })
  }
}

// MARK: - Unfinished erasures

/// The unfinished erasures of a ledger, and what finishes each: a promotion may leave some.
struct UnfinishedErasures {
  private let entries: [(erasure: UnfinishedErasure, isWaiting: Bool)]
  /// How many are listed in the text.
  private static let namedCountMax = 10

  /// - Parameter found: the erasures that the log does not finish.
  init(_ found: [UnfinishedErasure], _ directory: LedgerDirectory) throws(ErasureError) {
    let queue = ErasureQueue(directory)
    var entries: [(erasure: UnfinishedErasure, isWaiting: Bool)] = []
    for erasure in found {
      let state = try queue.record(erasure.request)?.state
      // Earlier versions listed nothing if there was nothing to redact.
      if state == .done { continue }
      entries.append((erasure, state == .waiting || state == .running))
    }
    self.entries = entries
  }

  /// Searches for them in the projections and in the log after their position.
  init(_ ledger: OpenLedger) throws {
    try self.init(try ledger.readOnlyProjector().unfinishedErasures(), ledger.directory)
  }

  var isEmpty: Bool { entries.isEmpty }
  /// Whether the request of any of them is missing from this ledger, so that no pass finishes it.
  var isAnyLost: Bool { !lost.isEmpty }

  /// Those whose request is missing from this ledger.
  var lost: [UnfinishedErasure] { entries.filter { !$0.isWaiting }.map(\.erasure) }

  /// The state of the erasure at a position; nil if it is finished.
  func state(of position: Position) -> String? {
    entries.first { $0.erasure.position == position }.map {
      $0.isWaiting ? "waiting" : "unfinished"
    }
  }

  /// A line for each of the first ones.
  var lines: [String] {
    let named = entries.prefix(Self.namedCountMax).map { erasure, isWaiting in
      isWaiting
        ? "the erasure at \(erasure.position) is not finished: the next pass does that, or 'ledgerctl redact --again'"
        : "the erasure at \(erasure.position) is not finished, and its request is not in this ledger: repeat "
          + "request \(erasure.request) (\(erasure.scope.rawValue), \(erasure.reason)) with "
          + "'ledgerctl redact --\(erasure.scope.rawValue) … --request \(erasure.request)'"
    }
    let rest = entries.count - named.count
    return rest > 0 ? named + ["and \(rest) more"] : named
  }

  var fields: Fields { lines.map { ("unfinished", $0) } }

  var record: [Record] {
    entries.map { erasure, isWaiting in
      [
        "erasure": erasure.position, "request": erasure.request.description,
        "scope": erasure.scope.rawValue, "reason": erasure.reason, "waiting": isWaiting,
      ]
    }
  }
}

// MARK: - `user export`

let userExportCommand = Command(
  "user export", summary: "Write all that the ledger holds about a user to a file",
  details: [
    "For an access request, or before an erasure: writes one JSON object with the head of the log and, in "
      + "`events`, what `redact --user` would redact, each as the ledger holds it. Of an event that is about "
      + "others too, only this user's transactions are written."
  ],
  positionals: [
    Positional(
      "ID", help: "the user identifier that the client sent; `-` reads it from standard input")
  ],
  options: [
    Option("app", value: .init("ID"), help: "only this app family"),
    Option(
      "output", short: "o", value: .init("FILE"), isRequired: true,
      help: "write to FILE, which only its owner can read"),
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
  context.log("user export: wrote \(counted(count, "event"))", .information)
  return .done
}
