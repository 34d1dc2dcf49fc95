// The catalogue: which types of events there are, in which version they are written now.
package import JSON

/// The types of events that a ledger holds.
package enum EventType: String, CaseIterable, Sendable {
  /// An app family was registered, or registered again with other bundle ids or products.
  case appRegistered = "app.registered"
  /// A receipt was uploaded.
  case receiptUploaded = "receipt.uploaded"
  /// A verification of an upload has a result.
  case receiptVerified = "receipt.verified"
  /// A price list was declared.
  case pricesDeclared = "prices.declared"
  /// Exchange rates were declared.
  case ratesDeclared = "rates.declared"
  /// A snapshot of the projections was made.
  case snapshotCreated = "snapshot.created"
  /// The log was accepted as it is, though something recorded another history.
  case historyAccepted = "history.accepted"
  /// Whom verification trusts was set, or has changed.
  case trustDeclared = "trust.declared"

  /// The version in which this program writes the type.
  package var currentVersion: Int { 1 }

  /// The type whose name is `bytes`, without making a string.
  @inline(__always)
  package init?(_ bytes: JSONBytes) {
    let name = JSONString(raw: bytes, hasEscapes: false)
    if name == "receipt.verified" {
      self = .receiptVerified
    } else if name == "receipt.uploaded" {
      self = .receiptUploaded
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
    } else {
      return nil
    }
  }
}

/// Why an event cannot be read.
package enum EventError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The type is written by a later program.
  case unknownType
  /// The version is written by a later program.
  case newerVersion(EventType, version: Int)
  /// No upcaster leads from this version to the next.
  case missingUpcaster(EventType, version: Int)
  /// The data is not what the type promises.
  case malformed(EventType, JSONError)
  /// A field that the type promises is missing or impossible.
  case badField(EventType, field: String)

  /// The type and the member at fault, as the exception `malformed_event` names them; nil where the event is one of
  /// another program's version, which tells nothing about the event itself.
  package var malformation: String? {
    switch self {
    case .malformed(let type, _): "\(type.rawValue) data"
    case .badField(let type, let field): "\(type.rawValue) \(field)"
    case .unknownType, .newerVersion, .missingUpcaster: nil
    }
  }

  /// Whether a later program wrote the event.
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
