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
  /// A price list was withdrawn.
  case pricesWithdrawn = "prices.withdrawn"
  /// Exchange rates were withdrawn.
  case ratesWithdrawn = "rates.withdrawn"
  /// A report of Apple's about what it sold and paid was declared.
  case settlementDeclared = "settlement.declared"
  /// A vendor identifier of Apple's reports was mapped to a product.
  case settlementMapped = "settlement.mapped"
  /// A snapshot of the projections was made.
  case snapshotCreated = "snapshot.created"
  /// An operator accepted the log although other records held another history.
  case historyAccepted = "history.accepted"
  /// The trust of verifications was set or changed.
  case trustDeclared = "trust.declared"
  /// An erasure was begun, or lines were redacted by it.
  case dataRedacted = "data.redacted"
  /// Events of other ledgers follow, merged.
  case mergedFrom = "merged.from"

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
    switch JSONString(raw: bytes, hasEscapes: false) {
    case "receipt.verified": self = .receiptVerified
    case "receipt.uploaded": self = .receiptUploaded
    case "transactions.received": self = .transactionsReceived
    case "notification.received": self = .notificationReceived
    case "transactions.fetched": self = .transactionsFetched
    case "signatures.accepted": self = .signaturesAccepted
    case "app.registered": self = .appRegistered
    case "prices.declared": self = .pricesDeclared
    case "rates.declared": self = .ratesDeclared
    case "prices.withdrawn": self = .pricesWithdrawn
    case "rates.withdrawn": self = .ratesWithdrawn
    case "settlement.declared": self = .settlementDeclared
    case "settlement.mapped": self = .settlementMapped
    case "snapshot.created": self = .snapshotCreated
    case "history.accepted": self = .historyAccepted
    case "trust.declared": self = .trustDeclared
    case "data.redacted": self = .dataRedacted
    case "merged.from": self = .mergedFrom
    default: return nil
    }
  }
}

/// Why an event cannot be read.
package enum EventError: ReportableError, Equatable, Sendable, CustomStringConvertible {
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

// MARK: - What other modules need to know of each type

extension EventType {
  /// What the events of a type are to the figures.
  package enum Role: Sendable {
    /// They show purchases, or judge what shows them. They may hold personal data.
    case purchases
    /// They state what applies to the whole ledger.
    case declaration
    /// They record what was done to the ledger, and change no figures.
    case record
  }

  package var role: Role {
    switch self {
    case .receiptUploaded, .receiptVerified, .transactionsReceived, .notificationReceived,
      .transactionsFetched, .signaturesAccepted:
      .purchases
    case .appRegistered, .pricesDeclared, .ratesDeclared, .pricesWithdrawn, .ratesWithdrawn,
      .settlementDeclared, .settlementMapped:
      .declaration
    case .snapshotCreated, .historyAccepted, .trustDeclared, .dataRedacted, .mergedFrom: .record
    }
  }

  /// Throws unless data that was never redacted is as the catalogue describes it. The events that it names are not
  /// checked.
  package func validate(_ data: JSONBytes, version: Int) throws(EventError) {
    switch self {
    case .appRegistered: _ = try AppRegistered(data: data)
    case .receiptUploaded: _ = try ReceiptUploadedView(data: data, version: version)
    case .receiptVerified: _ = try ReceiptVerifiedView(data: data)
    case .transactionsReceived: _ = try TransactionsReceivedView(data: data)
    case .notificationReceived: _ = try NotificationReceivedView(data: data)
    case .transactionsFetched: _ = try TransactionsFetchedView(data: data)
    case .signaturesAccepted: _ = try SignaturesAccepted(data: data)
    case .pricesDeclared: _ = try PricesDeclared(data: data)
    case .ratesDeclared: _ = try RatesDeclared(data: data)
    case .pricesWithdrawn, .ratesWithdrawn: _ = try DeclarationWithdrawn(self, data: data)
    case .settlementDeclared: _ = try SettlementDeclared(data: data)
    case .settlementMapped: _ = try SettlementMapped(data: data)
    case .snapshotCreated: _ = try SnapshotCreated(data: data)
    case .historyAccepted: _ = try HistoryAccepted(data: data)
    case .trustDeclared: _ = try TrustDeclared(data: data)
    case .dataRedacted: _ = try DataRedacted(data: data)
    case .mergedFrom: _ = try MergedFrom(data: data)
    }
  }

  /// Throws unless the decoder reads data of this version. No type has versions that need a conversion yet; one would
  /// be made as the event is read, since stored bytes are never rewritten.
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
      var key = try cursor.nextKey()
      if let first = key, first == MergedEvent.member {
        try cursor.skipValue()
        key = try cursor.nextKey()
      }
      guard let key, key == "malformed", try cursor.kind() == .string else { return nil }
      return .badField(type, field: try cursor.readString().string)
    } catch { return nil }
  }
}
