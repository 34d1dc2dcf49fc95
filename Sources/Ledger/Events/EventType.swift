// The catalogue: the types of events and their current versions.
package import Base

/// The types of events that a ledger holds.
package enum EventType: String, CaseIterable, Sendable {
  /// An app family was registered, or registered again with other bundle ids or products.
  case appRegistered = "app.registered"
  /// A receipt was uploaded.
  case receiptUploaded = "receipt.uploaded"
  /// A verification of an upload produced a result.
  case receiptVerified = "receipt.verified"
  /// Signed transactions were uploaded.
  case transactionsReceived = "transactions.received"
  /// The App Store sent a notification.
  case notificationReceived = "notification.received"
  /// A call of the App Store Server API was answered.
  case transactionsFetched = "transactions.fetched"
  /// Signed objects of a fetched page that were judged invalid are good now.
  case signaturesAccepted = "signatures.accepted"
  /// A price list was declared.
  case pricesDeclared = "prices.declared"
  /// Exchange rates were declared.
  case ratesDeclared = "rates.declared"
  /// A snapshot of the projections was made.
  case snapshotCreated = "snapshot.created"
  /// An operator accepted the log although other records held another history.
  case historyAccepted = "history.accepted"
  /// The trust of verifications was set or changed.
  case trustDeclared = "trust.declared"
  /// An erasure was begun, or lines were redacted by it.
  case dataRedacted = "data.redacted"

  /// The version of the type that this program writes; some events have `laterVersion`.
  package var currentVersion: Int { 1 }

  /// The version of events of the type that hold what older programs would pass over.
  private var laterVersion: Int? {
    switch self {
    case .receiptUploaded: ReceiptUploaded.reducedVersion
    case .receiptVerified: ReceiptVerified.notifiedVersion
    case .transactionsReceived: TransactionsReceived.statedVersion
    default: nil
    }
  }

  /// Whether the decoder takes data of this version as it is.
  package func reads(_ version: Int) -> Bool {
    version == currentVersion || version == laterVersion
  }

  /// The type whose name is `bytes`, without creating a string.
  @inline(__always)
  package init?(_ bytes: JSONBytes) {
    let name = JSONString(raw: bytes, hasEscapes: false)
    if name == "receipt.verified" {
      self = .receiptVerified
    } else if name == "receipt.uploaded" {
      self = .receiptUploaded
    } else if name == "transactions.received" {
      self = .transactionsReceived
    } else if name == "notification.received" {
      self = .notificationReceived
    } else if name == "transactions.fetched" {
      self = .transactionsFetched
    } else if name == "signatures.accepted" {
      self = .signaturesAccepted
    } else if name == "app.registered" {
      self = .appRegistered
    } else if name == "prices.declared" {
      self = .pricesDeclared
    } else if name == "rates.declared" {
      self = .ratesDeclared
    } else if name == "snapshot.created" {
      self = .snapshotCreated
    } else if name == "history.accepted" {
      self = .historyAccepted
    } else if name == "trust.declared" {
      self = .trustDeclared
    } else if name == "data.redacted" {
      self = .dataRedacted
    } else {
      return nil
    }
  }
}

/// Why an event cannot be read.
package enum EventError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A newer program wrote the type.
  case unknownType
  /// A newer program wrote the version.
  case newerVersion(EventType, version: Int)
  /// There is no upcaster from this version to the next.
  case missingUpcaster(EventType, version: Int)
  /// The data is not valid JSON.
  case malformed(EventType, JSONError)
  /// A required field is missing, or a field is invalid.
  case badField(EventType, field: String)

  /// The type and the faulty member, as named by the exception `malformed_event`. Nil if the program's version is at
  /// fault, not the event.
  package var malformation: String? {
    switch self {
    case .malformed(let type, _): "\(type.rawValue) data"
    case .badField(let type, let field): "\(type.rawValue) \(field)"
    case .unknownType, .newerVersion, .missingUpcaster: nil
    }
  }

  /// Whether a newer program wrote the event.
  package var isOfLaterProgram: Bool {
    switch self {
    case .unknownType, .newerVersion: true
    case .missingUpcaster, .malformed, .badField: false
    }
  }

  package var description: String {
    switch self {
    case .unknownType:
      "the event's type is unknown; a later version of this program wrote it"
    case .newerVersion(let type, let version):
      "\(type.rawValue) has version \(version), newer than this program's \(type.currentVersion); "
        + "a later version of this program wrote it"
    case .missingUpcaster(let type, let version):
      "\(type.rawValue) has version \(version), which is no longer supported"
    case .malformed(let type, let error): "the data of \(type.rawValue) is damaged: \(error)"
    case .badField(let type, let field): "\(type.rawValue) has no valid \(field)"
    }
  }
}

// MARK: - Where the data of an old version would become that of the next one. Stored bytes are never rewritten

extension EventType {
  /// Throws unless the decoder takes data of a version as it is: no type has an older one yet.
  package func checkVersion(_ version: Int) throws(EventError) {
    if reads(version) { return }
    throw version > currentVersion
      ? .newerVersion(self, version: version) : .missingUpcaster(self, version: version)
  }
}

// MARK: - What a redaction keeps of an event that readers pass over: what is wrong with it

/// The data of a malformed event after its redaction. It names the fault, so that the exception stays as it was.
package enum MalformedEvent {
  /// What is kept.
  /// - Parameter field: the faulty member, or `data`, as the exception names it.
  package static func kept(_ field: String) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("malformed", field)
    writer.endObject()
    return writer.bytes
  }

  /// The fault of a redacted event that was malformed; nil for any other event.
  package static func fault(of event: EventLine, _ type: EventType) -> EventError? {
    guard event.isRedacted else { return nil }
    var cursor = JSONCursor(event.data)
    do throws(JSONError) {
      try cursor.beginObject()
      guard let key = try cursor.nextKey(), key == "malformed", try cursor.kind() == .string else {
        return nil
      }
      return .badField(type, field: try cursor.readString().string)
    } catch { return nil }
  }
}
