// An erasure request: its subject, its state and its result; and the errors of erasures.
package import Base
package import Ledger
package import Projections

/// What a request wants erased. A user's identifier is kept here and in the request's file until it is done.
package enum ErasureSubject: Equatable, Sendable {
  /// A user, by the identifier that clients use or `token:` and an app account token.
  /// - Parameter appFamily: the only app family whose events are erased; nil for all.
  case user(String, appFamily: UUID16?)
  /// A receipt, by its id.
  case receipt(String)
  /// One event.
  case position(Position)

  package var scope: DataRedacted.Scope {
    switch self {
    case .user: .user
    case .receipt: .receipt
    case .position: .position
    }
  }
}

/// The progress of a request.
package enum ErasureState: String, Sendable {
  /// It waits for the next pass.
  case waiting
  /// A pass is carrying it out.
  case running
  case done
  /// Nothing was redacted; `failure` has the reason.
  case failed
}

/// A request and its result.
package struct ErasureRecord: Equatable, Sendable {
  package let id: UUID16
  package let scope: DataRedacted.Scope
  package let reason: String
  /// Epoch milliseconds.
  package let requestedAtMs: Int64
  /// Nil once it is done or has failed: then nothing names the subject any more.
  package internal(set) var subject: ErasureSubject?
  /// The only app family that may ask about it; nil for a request of the command line.
  package let appFamily: UUID16?
  /// Whether it is carried out as soon as possible, rather than in the next daily pass.
  package internal(set) var isUrgent: Bool
  package internal(set) var state: ErasureState
  package internal(set) var certificate: ErasureCertificate?
  package internal(set) var failure: String?

  package init(
    _ subject: ErasureSubject, reason: String, requestedAtMs: Int64, isUrgent: Bool,
    id: UUID16 = .random()
  ) {
    self.id = id
    self.subject = subject
    scope = subject.scope
    self.reason = reason
    self.requestedAtMs = requestedAtMs
    self.isUrgent = isUrgent
    if case .user(_, let family) = subject { appFamily = family } else { appFamily = nil }
    state = .waiting
  }
}

/// What the log was not searched for after an erasure although that could have found something.
package enum NotSearched: String, Sendable {
  /// An identifier of a few bytes, which occurs everywhere by chance: it was compared with users and with the values
  /// and keys of metadata alone.
  case shortIdentifiers = "short_identifiers"
  /// The pass was interrupted, and its list of tokens was lost.
  case appAccountTokens = "app_account_tokens"
}

/// What an erasure did, without naming the user.
package struct ErasureCertificate: Equatable, Sendable {
  /// The position of the event that opened the erasure; nil if there was nothing to redact.
  package var erasure: Position?
  /// How many events lost data, by type.
  package var events: [(type: EventType, count: Int)] = []
  /// How many receipts' contents were redacted.
  package var receipts = 0
  /// How many are kept until the App Store replies, and until when at most, in epoch milliseconds.
  package var waitingReceipts = 0
  package var waitsUntilMs: Int64?
  /// The log's head after the events that list the lines: the first checkpoint of at least this size covers them.
  package var size = 0
  package var root: SHA256Digest?
  /// How many snapshots were removed.
  package var removedSnapshots = 0
  /// How many other events still contain the identifier as text, and the first of them: free text of others.
  package var remaining = 0
  package var remainingPositions: [Position] = []
  package var notSearched: [NotSearched] = []
  /// Epoch milliseconds.
  package var finishedAtMs: Int64 = 0

  package init() {}

  /// How many events lost data.
  package var eventCount: Int { events.reduce(0) { $0 + $1.count } }

  package static func == (left: ErasureCertificate, right: ErasureCertificate) -> Bool {
    left.json.bytes == right.json.bytes
  }
}

// MARK: JSON

extension ErasureCertificate {
  /// The members of its JSON object.
  package var members: [JSONValue.Member] {
    func number(_ value: Int) -> JSONValue { .number(String(value)) }
    return [
      .init("erasure", erasure.map(number) ?? .null),
      .init("events", .object(events.map { .init($0.type.rawValue, number($0.count)) })),
      .init("receipts", number(receipts)),
      .init("waiting_receipts", number(waitingReceipts)),
      .init("waits_until", waitsUntilMs.map { .string(Timestamp.text(ms: $0)) } ?? .null),
      .init("size", number(size)),
      .init("root", root.map { .string(Base64.text($0.bytes)) } ?? .null),
      .init("removed_snapshots", number(removedSnapshots)),
      .init("remaining", number(remaining)),
      .init("remaining_positions", .array(remainingPositions.map(number))),
      .init("not_searched", .array(notSearched.map { .string($0.rawValue) })),
      .init("finished_at", .string(Timestamp.text(ms: finishedAtMs))),
    ]
  }

  var json: JSONValue { .object(members) }

  init?(_ value: JSONValue) {
    guard let events = value["events"], case .object(let counts) = events,
      let receipts = value["receipts"]?.integerValue, let size = value["size"]?.integerValue,
      let removed = value["removed_snapshots"]?.integerValue,
      let remaining = value["remaining"]?.integerValue,
      let finished = value["finished_at"]?.stringValue.flatMap({ try? Timestamp.parse($0) })
    else { return nil }
    for count in counts {
      guard let type = EventType(rawValue: count.key), let number = count.value.integerValue else {
        return nil
      }
      self.events.append((type, Int(number)))
    }
    erasure = value["erasure"]?.integerValue.map(Int.init)
    self.receipts = Int(receipts)
    waitingReceipts = value["waiting_receipts"]?.integerValue.map(Int.init) ?? 0
    waitsUntilMs = value["waits_until"]?.stringValue.flatMap { try? Timestamp.parse($0) }
    self.size = Int(size)
    if let text = value["root"]?.stringValue {
      guard let bytes = try? Base64.decode(Array(text.utf8)),
        let digest = bytes.withUnsafeBytes({ SHA256Digest($0) })
      else { return nil }
      root = digest
    }
    removedSnapshots = Int(removed)
    self.remaining = Int(remaining)
    remainingPositions =
      value["remaining_positions"]?.arrayValue?.compactMap { $0.integerValue.map(Int.init) } ?? []
    notSearched =
      value["not_searched"]?.arrayValue?.compactMap {
        $0.stringValue.flatMap(NotSearched.init(rawValue:))
      } ?? []
    finishedAtMs = finished
  }

  /// Records the result of a search.
  mutating func record(_ search: IdentifierSearch) {
    (remaining, remainingPositions) = search.result
    notSearched = search.isPartial ? [.shortIdentifiers] : []
  }
}

extension ErasureRecord {
  /// The content of its file.
  package var bytes: [UInt8] {
    var members: [JSONValue.Member] = [
      .init("id", .string(id.description)), .init("scope", .string(scope.rawValue)),
      .init("reason", .string(reason)),
      .init("requested_at", .string(Timestamp.text(ms: requestedAtMs))),
      .init("state", .string(state.rawValue)), .init("urgent", .boolean(isUrgent)),
    ]
    if let appFamily { members.append(.init("app_family_id", .string(appFamily.description))) }
    switch subject {
    case .user(let identifier, _): members.append(.init("user_identifier", .string(identifier)))
    case .receipt(let id): members.append(.init("receipt_id", .string(id)))
    case .position(let position):
      members.append(.init("position", .number(String(position))))
    case nil: break
    }
    if let certificate { members.append(.init("certificate", certificate.json)) }
    if let failure { members.append(.init("failure", .string(failure))) }
    return JSONValue.object(members).bytes + [0x0A]
  }

  /// Parses a file's content; nil if this program would not write it.
  init?(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(bytes),
      let id = value["id"]?.stringValue.flatMap({ UUID16($0) }),
      let scope = value["scope"]?.stringValue.flatMap({ DataRedacted.Scope(rawValue: $0) }),
      let reason = value["reason"]?.stringValue, DataRedacted.isReason(reason),
      let requested = value["requested_at"]?.stringValue.flatMap({ try? Timestamp.parse($0) }),
      let state = value["state"]?.stringValue.flatMap({ ErasureState(rawValue: $0) }),
      case .boolean(let isUrgent)? = value["urgent"]
    else { return nil }
    self.id = id
    self.scope = scope
    self.reason = reason
    requestedAtMs = requested
    self.state = state
    self.isUrgent = isUrgent
    appFamily = value["app_family_id"]?.stringValue.flatMap { UUID16($0) }
    if let user = value["user_identifier"]?.stringValue {
      subject = .user(user, appFamily: appFamily)
    } else if let receipt = value["receipt_id"]?.stringValue {
      subject = .receipt(receipt)
    } else if let position = value["position"]?.integerValue {
      subject = .position(Int(position))
    }
    certificate = value["certificate"].flatMap { ErasureCertificate($0) }
    failure = value["failure"]?.stringValue
    let isOpen = state == .waiting || state == .running
    guard isOpen == (subject != nil) else { return nil }
  }
}

// MARK: - Errors

/// Why an erasure was not carried out, or not finished.
package enum ErasureError: ReportableError, CustomStringConvertible {
  case ledger(LedgerError)
  case projections(ProjectionError)
  /// The request can't be carried out: what it names, and why.
  case refused(object: String, cause: String)
  /// A file of `erasures/` does not have the form that this program writes.
  case damagedFile(name: String, cause: String)
  /// A signal or the server's shutdown came first. The next writer finishes what was begun.
  case interrupted

  package var description: String {
    switch self {
    case .ledger(let error): error.description
    case .projections(let error): "\(error)"
    case .refused(let object, let cause): "erase \(object): \(cause)"
    case .damagedFile(let name, let cause): "read \(name): \(cause)"
    case .interrupted: "erase: interrupted; the next command that writes finishes it"
    }
  }

  package var exitCode: ExitCode {
    switch self {
    case .ledger(let error): error.exitCode
    case .projections(let error): error.exitCode
    case .refused: .failed
    case .damagedFile: .corrupted
    case .interrupted: .interrupted
    }
  }

  package func lines(for command: String) -> [String] {
    switch self {
    case .ledger(let error): error.lines(for: command)
    case .projections(let error): error.lines(for: command)
    case .refused(let object, let cause): ["\(command): \(object): \(cause)"]
    case .damagedFile: ["\(command): \(self)"]
    case .interrupted:
      ["\(command): interrupted; the next command that writes finishes what was begun"]
    }
  }
}
