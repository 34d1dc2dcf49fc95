// What an erasure would take, or took, as text and as JSON.
import Base
import Erasure
import JSON
import Ledger

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

  func write(to sheet: inout Sheet, isDry: Bool) throws {
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
      ("not reached", "backups, exports, copies, logs of proxies, what webhooks were told"))
    if remaining > 0 { fields.append(("also", remainingText(remaining, remainingPositions))) }
    if !notSearched.isEmpty { fields.append(("not searched", notSearched.text)) }
    try sheet.fields(fields)
  }
}

extension ErasurePreview {
  /// How many positions are named.
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

/// What is said of receipts that stay for a while.
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

/// What is said of events of others that contain an identifier.
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

  func write(to sheet: inout Sheet) throws {
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
      ("not reached", "backups, exports, copies, logs of proxies, what webhooks were told"))
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
