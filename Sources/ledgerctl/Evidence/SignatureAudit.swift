// Judges the signed objects of a log again, with the roots that its events name.
import AppStore
import Base
import Ledger

/// How many signed objects were judged again, and which of them get a verdict other than the recorded one.
struct SignatureAudit {
  private(set) var objectCount = 0
  /// How many are valid by a root other than Apple's, or by a testing certificate.
  private(set) var foreignCount = 0
  private(set) var differenceCount = 0
  /// How many can no longer be judged, because a redaction removed their signatures.
  private(set) var redactedCount = 0

  /// The trust behind a verdict.
  private enum Trust: Hashable {
    case root(SHA256Digest)
    case signer(SHA256Digest)
    /// The latest trust that a ledger declared, for verdicts that name neither.
    case declared(Ledger)
  }

  /// The origin of a ledger whose events were merged; nil for the events of the audited one.
  private typealias Ledger = String?

  /// The verifiers of recent trusts only: a log may name many.
  private var verifiers: [Trust: SignedObjectVerifier] = [:]
  private static let verifierCountMax = 64
  private var declared: [Ledger: TrustDeclared] = [:]

  /// Reads an intact log, and adds findings to the report, which keeps the first ones and counts the others. An object
  /// is judged at the time when its event was recorded.
  init(_ directory: LedgerDirectory, _ report: inout AuditReport, _ context: Context) throws {
    let progress = Progress("Judging signatures", unit: .count("events"), context: context)
    let reader = try LogReader(directory)
    let pages = try LogReader(directory)
    let size = reader.head.size
    try reader.read(from: 0, to: size) { chunk in
      try context.interruption.check()
      try chunk.forEachEvent { event in
        if event.position % 1024 == 0 { progress.update(event.position, of: size) }
        if EventType(event.type) == .trustDeclared {
          // The projections report a malformed event as an exception.
          if let trust = try? TrustDeclared(data: event.data) { declare(trust) }
        } else if let objects = (try? Self.objects(of: event, pages)) ?? nil {
          for object in objects { add(object, of: event, &report) }
        }
      }
      return true
    }
  }

  /// The objects that an event contains, or accepts from an earlier one. The projections report a malformed event as an
  /// exception.
  private static func objects(
    of event: EventLine, _ pages: LogReader
  ) throws -> [SignedEventObject]? {
    guard EventType(event.type) == .signaturesAccepted else {
      return try SignedEventObject.all(of: event)
    }
    let page = try SignaturesAccepted(data: event.data).page
    guard page < event.position else { return nil }
    return try SignedEventObject.accepted(by: event, page: pages.event(at: page))
  }

  private mutating func add(
    _ object: SignedEventObject, of event: EventLine, _ report: inout AuditReport
  ) {
    if object.isRedacted {
      redactedCount += 1
      return
    }
    objectCount += 1
    guard let cause = judge(object, of: event) else { return }
    differenceCount += 1
    report.add(
      AuditFinding(.init(verdict: .tampered, file: "log", position: event.position), cause: cause))
  }

  private mutating func declare(_ trust: TrustDeclared) {
    declared[trust.mergedFrom] = trust
    verifiers[.declared(trust.mergedFrom)] = nil
  }

  /// What is wrong with the recorded verdict; nil if the object gets the same verdict again.
  private mutating func judge(_ object: SignedEventObject, of event: EventLine) -> String? {
    guard let recorded = object.recorded, let text = object.text else {
      return "\(object.place) has no verdict, or is missing"
    }
    let trust: Trust
    switch recorded {
    case .valid(let root):
      trust = .root(root)
      if root != .appleRootG3 { foreignCount += 1 }
    case .locallyValid(let signer):
      trust = .signer(signer)
      foreignCount += 1
    case .invalid: trust = .declared(MergedEvent.source(of: event.data)?.origin)
    }
    let verdict: SignedObjectVerdict
    do throws(SignedObjectFault) {
      let signed = try SignedObject(text)
      if case .invalid(let reason) = recorded, Self.lacks(signed, reason) { return nil }
      verdict = verifier(trust).verify(signed, nowMs: event.recordedAtMs)
    } catch { verdict = .invalid(error) }
    switch (recorded, verdict) {
    case (.valid(let root), .valid(let found)) where root == found: return nil
    case (.locallyValid(let signer), .locallyValid(let found)) where signer == found: return nil
    case (.invalid, .invalid): return nil
    case (.invalid, _):
      return "\(object.place) is recorded as invalid, but its signature is good"
    case (_, .invalid(let fault)):
      return "\(object.place) is recorded as valid, but is not: \(fault)"
    default: return "\(object.place) was signed under another certificate than the one recorded"
    }
  }

  /// Whether an object lacks the fact for which it was rejected, whatever its signature is. Earlier programs rejected
  /// every object that names no environment.
  private static func lacks(_ object: SignedObject, _ reason: String) -> Bool {
    guard let fault = SignedObjectFault(rawValue: reason) else { return false }
    return fault == .missingEnvironment ? !object.namesEnvironment : object.missingFact == fault
  }

  private mutating func verifier(_ trust: Trust) -> SignedObjectVerifier {
    if let known = verifiers[trust] { return known }
    if verifiers.count >= Self.verifierCountMax { verifiers.removeAll() }
    let made: SignedObjectVerifier
    switch trust {
    case .root(let root): made = SignedObjectVerifier(pinnedRoots: [root])
    case .signer(let signer): made = SignedObjectVerifier(localTestingSigners: [signer])
    case .declared(let ledger):
      let declared = declared[ledger]
      made = SignedObjectVerifier(
        pinnedRoots: Set((declared?.roots ?? []) + [.appleRootG3]),
        localTestingSigners: Set(declared?.localTestingSigners ?? []))
    }
    verifiers[trust] = made
    return made
  }

  var text: String {
    let redacted =
      redactedCount == 0 ? "" : "; \(counted(redactedCount, "redacted one")) not judged"
    if objectCount == 0 { return "no signed objects\(redacted)" }
    let foreign =
      foreignCount == 0 ? "" : ", \(foreignCount) of them valid by others than Apple's root"
    return "\(counted(objectCount, "signed object")) judged again\(foreign); "
      + (differenceCount == 0
        ? "each as recorded" : counted(differenceCount, "difference")) + redacted
  }

  var record: Record {
    [
      "objects": objectCount, "not_apple": foreignCount, "differences": differenceCount,
      "redacted": redactedCount,
    ]
  }
}
