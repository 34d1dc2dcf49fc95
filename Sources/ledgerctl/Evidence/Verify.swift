// `verify`: the content of a receipt or a signed object, and whether it is genuine.
import AppStore
import Base
import Glibc
import HTTPClient
import Intake
import Ledger
import Projections
import Server

let verifyCommand = Command(
  "verify", summary: "Show the content of a receipt or a signed object and whether it is genuine",
  details: [
    "FILE is a receipt of either style, raw or in base64, or a signed object (JWS) of StoreKit 2: a "
      + "transaction, a renewal info, an app transaction, a notification, or a notification's whole request. "
      + "Prints its content, with header and certificates of each JWS, and whether its signature is valid or why "
      + "not. Certificates must have been valid at the signedDate. Nothing is recorded.",
    "Where no file has that name, a number is the position of an event, whose signed objects are judged by "
      + "the trust of today's config.json; `audit --signatures` judges by the trust that was recorded. Without a "
      + "ledger, Apple's own trust and addresses apply, and no shared secret is sent.",
    "The exit code is 0 if the signature is good (of a notification, also those inside) and the App Store, "
      + "if asked, calls the receipt valid. If this program cannot judge the signature, the App Store's reply "
      + "decides. Otherwise the exit code is 3.",
  ],
  positionals: [
    Positional(
      "FILE",
      help:
        "a receipt or a signed object, or the position of an event with signed objects; `-` is standard "
        + "input")
  ],
  options: [
    Option(
      "app-store",
      help: "ask the App Store about a receipt: Production, then the Sandbox if the reply says so"),
    .json,
  ],
  examples: [
    Example("ledgerctl verify receipt.b64", "Check a receipt's signature"),
    Example(
      "jq -r .receipt upload.json | ledgerctl verify - --app-store --json",
      "Ask the App Store about an upload's receipt"),
  ]
) { invocation, context in
  let directory = try context.ledgerPathIfAny(given: invocation.ledgerPath).map {
    try context.openLedger(path: $0)
  }
  let configuration =
    try directory.map { try ConfigurationFile($0).read() } ?? Server.Configuration()
  let interruption = context.interruption
  let stop = StopFlag { interruption.isRequested }
  let path = invocation.positionals[0]
  if let position = positionValue(path), access(path, F_OK) != 0 {
    if invocation.has("app-store") {
      throw UsageError("--app-store", "cannot be asked about an event")
    }
    return try verifyEvent(position, configuration, invocation, context)
  }
  switch try GivenObject(path: path, stop: stop) {
  case .receipt(let input):
    return try verify(input, configuration, invocation, context)
  case .signedObject(let object):
    if invocation.has("app-store") {
      throw UsageError("--app-store", "cannot be asked about a signed object")
    }
    let finding = try SignedObjectFinding(
      object, configuration.trust.signedObjectVerifier(), nowMs: Timestamp.now())
    try context.print(invocation, finding.record) { try finding.write(to: &$0) }
    return finding.isGood ? .done : .partlyDone
  }
}

/// Judges the signed objects of an event.
private func verifyEvent(
  _ position: Position, _ configuration: Server.Configuration, _ invocation: Invocation,
  _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let verifier = configuration.trust.signedObjectVerifier()
  let line = try ledger.reader.event(at: position)
  let findings = try line.withUnsafeBytes { bytes in
    guard let event = EventLine(bytes), let objects = try SignedEventObject.all(of: event) else {
      throw Failure(
        operation: "verify", object: "position \(position)", cause: "the event has no signed object"
      )
    }
    // A notification's finding contains those of the objects inside it.
    return try objects.filter { !$0.isInner }.map { object in
      if object.isRedacted {
        throw Failure(
          operation: "verify", object: "position \(position)",
          cause: "\(object.place): an erasure took its signature; only facts are left")
      }
      let signed: SignedObject
      do throws(SignedObjectFault) { signed = try SignedObject(object.text ?? []) } catch {
        throw Failure(
          operation: "verify", object: "position \(position)", cause: "\(object.place): \(error)")
      }
      return (
        place: object.place,
        finding: try SignedObjectFinding(signed, verifier, nowMs: Timestamp.now())
      )
    }
  }
  let records = findings.map { ["place": $0.place, "object": $0.finding.record] as Record }
  try context.print(invocation, ["position": position, "objects": records]) { sheet in
    for (place, finding) in findings {
      try sheet.heading(place)
      try finding.write(to: &sheet)
    }
  }
  return findings.allSatisfy(\.finding.isGood) ? .done : .partlyDone
}

private func verify(
  _ input: ReceiptInput, _ configuration: Server.Configuration, _ invocation: Invocation,
  _ context: Context
) throws -> ExitCode {
  let verifier = try ReceiptVerifier(configuration: configuration.trust.verifierConfiguration)
  let verdict = verifier.verify(input.file, receipt: input.receipt)
  var finding: AppStoreFinding?
  if invocation.has("app-store") {
    let secret = try sharedSecret(of: input.receipt, configuration, invocation, context)
    finding = try AppStoreFinding.ask(
      VerifyReceiptRequest(receiptText: Base64.encode(input.file), sharedSecret: secret),
      configuration.appStore.clientOptions, context)
  }
  try context.print(invocation, record(input, verdict, finding)) { sheet in
    try write(input, verdict, finding, to: &sheet)
  }
  return isGood(verdict, finding) ? .done : .partlyDone
}

/// The shared secret of the receipt's app family, which the projections find by bundle id.
private func sharedSecret(
  of receipt: Receipt, _ configuration: Server.Configuration, _ invocation: Invocation,
  _ context: Context
) throws -> [UInt8]? {
  if configuration.sharedSecrets.isEmpty { return nil }
  let lookup = try IntakeLookup(try OpenLedger(invocation, context).projections())
  guard let family = try lookup.appFamilyID(ofBundle: receipt.bundleID) else { return nil }
  return configuration.sharedSecrets[family]
}

private func isGood(_ verdict: SignatureVerdict, _ finding: AppStoreFinding?) -> Bool {
  switch verdict {
  case .valid: finding.map { $0.outcome == .valid } ?? true
  case .invalid: false
  case .timeOnly, .undecided: finding?.outcome == .valid
  }
}

extension SignatureVerdict {
  /// The verdict in JSON.
  fileprivate var name: String {
    switch self {
    case .valid: "valid"
    case .invalid: "invalid"
    case .timeOnly: "time_only"
    case .undecided: "undecided"
    }
  }

  fileprivate var fault: SignatureFault? {
    switch self {
    case .valid: nil
    case .invalid(let fault), .timeOnly(let fault), .undecided(let fault): fault
    }
  }

  /// The verdict as text.
  fileprivate var explanation: String {
    switch self {
    case .valid: "good: by a trusted signer, content unchanged"
    case .invalid(let fault): "bad: \(fault)"
    case .timeOnly(let fault): "good except for the dates: \(fault)"
    case .undecided(.unknownSignatureVersion):
      "cannot be judged: \(SignatureFault.unknownSignatureVersion)"
    case .undecided(let fault): "matches the content, but the signer cannot be judged: \(fault)"
    }
  }
}

// MARK: Text

private func write(
  _ input: ReceiptInput, _ verdict: SignatureVerdict, _ finding: AppStoreFinding?,
  to sheet: inout TextSections
) throws {
  let receipt = input.receipt
  var fields: Fields = [
    ("style", receipt.style.rawValue), ("environment", receipt.environment ?? "not given"),
    ("bundle id", receipt.bundleID),
  ]
  if let version = receipt.applicationVersion { fields.append(("app version", version)) }
  if let version = receipt.originalApplicationVersion {
    fields.append(("first version", version))
  }
  if let createdAtMs = receipt.creationDateMs {
    fields.append(("created", instantText(createdAtMs)))
  }
  if let expiresAtMs = receipt.expirationDateMs {
    fields.append(("expires", instantText(expiresAtMs)))
  }
  fields.append(("SHA-256", input.digest.hex))
  fields.append(("signature", verdict.explanation))
  if verdict.fault == .intermediateNotConfigured {
    fields.append(("", "trust.transaction_intermediates in config.json can add it"))
  }
  try sheet.fields(fields)
  let purchases = receipt.purchases.map { PurchaseLine($0) }
  if purchases.isEmpty { try sheet.heading("Purchases: none") }
  try sheet.table("Purchases", PurchaseLine.table(purchases))
  guard let finding else { return }
  try sheet.line()
  try sheet.fields(finding.fields)
  try sheet.table("Purchases in the App Store's reply", PurchaseLine.table(finding.purchases))
}

// MARK: JSON

private func record(
  _ input: ReceiptInput, _ verdict: SignatureVerdict, _ finding: AppStoreFinding?
) -> Record {
  let receipt = input.receipt
  return [
    "is_good": isGood(verdict, finding), "style": receipt.style.rawValue,
    "environment": receipt.environment, "bundle_id": receipt.bundleID,
    "application_version": receipt.applicationVersion,
    "original_application_version": receipt.originalApplicationVersion,
    "created_at": receipt.creationDateMs.map(instantText),
    "expires_at": receipt.expirationDateMs.map(instantText), "sha256": input.digest.hex,
    "signature": [
      "verdict": verdict.name, "fault": verdict.fault?.rawValue,
      "explanation": verdict.explanation,
    ] as Record,
    "purchases": receipt.purchases.map { PurchaseLine($0).record }, "app_store": finding?.record,
  ]
}
