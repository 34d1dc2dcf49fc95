// The drafts of uploads and of their verifications, for HTTP and import alike; the identity of a receipt.
package import AppStore
package import Base
package import Ledger

/// Builds events that are appended together.
package enum UploadDrafts {
  /// What an upload's event contains in addition to the request's fields.
  package struct Context {
    package var identity: ReceiptIdentity
    package var appFamily: UUID16
    package var style: ReceiptStyle
    package var bundleID: String
    /// Epoch milliseconds.
    package var occurredAtMs: Int64
    package var origin: ReceiptUploaded.Origin
    /// The client's address, for uploads that neither give nor withhold one.
    package var peerAddress: String?

    package init(
      identity: ReceiptIdentity, appFamily: UUID16, style: ReceiptStyle, bundleID: String,
      occurredAtMs: Int64, origin: ReceiptUploaded.Origin, peerAddress: String? = nil
    ) {
      self.identity = identity
      self.appFamily = appFamily
      self.style = style
      self.bundleID = bundleID
      self.occurredAtMs = occurredAtMs
      self.origin = origin
      self.peerAddress = peerAddress
    }
  }

  /// The upload's event.
  /// - Parameter forgery: a forged receipt whose facts are kept in place of the file; nil keeps the file.
  package static func upload(
    _ fields: UploadFields, _ context: Context, reducing forgery: Receipt? = nil
  ) -> EventDraft {
    var event = ReceiptUploaded(
      receiptID: context.identity.receiptID.description,
      appFamilyID: context.appFamily.description, style: context.style.rawValue,
      bundleID: context.bundleID, receiptSHA256Hex: context.identity.sha256.hex,
      occurredAtMs: context.occurredAtMs, origin: context.origin)
    event.countryCode = fields.client.countryCode
    event.identifierForVendor = fields.client.identifierForVendor
    event.userIdentifier = fields.client.userIdentifier
    event.ipAddress = fields.client.storedAddress(peer: context.peerAddress)
    if let forgery {
      let facts = ForgedReceipt.facts(
        of: forgery, eventStyle: context.style.rawValue, eventBundleID: context.bundleID)
      return EventDraft(
        type: EventType.receiptUploaded.rawValue, version: ReceiptUploaded.reducedVersion,
        data: facts.withUnsafeBytes { event.data(facts: $0) })
    }
    event.metadata = fields.client.metadata
    let data = fields.receiptText.withUnsafeBytes { event.data(receipt: $0) }
    return EventDraft(.receiptUploaded, data)
  }

  /// What an event of signed transactions contains in addition to the request's fields.
  package struct SignedContext {
    package var appFamily: UUID16
    /// The upload's id in the app family.
    package var uploadID: UUID16
    /// Epoch milliseconds.
    package var occurredAtMs: Int64
    package var origin: ReceiptUploaded.Origin
    /// The client's address, for uploads that neither give nor withhold one.
    package var peerAddress: String?
    /// Why the upload counts for nothing; nil if it is valid.
    package var fraudReason: TransactionsReceived.FraudReason?

    package init(
      appFamily: UUID16, uploadID: UUID16, occurredAtMs: Int64, origin: ReceiptUploaded.Origin,
      peerAddress: String? = nil, fraudReason: TransactionsReceived.FraudReason? = nil
    ) {
      self.appFamily = appFamily
      self.uploadID = uploadID
      self.occurredAtMs = occurredAtMs
      self.origin = origin
      self.peerAddress = peerAddress
      self.fraudReason = fraudReason
    }
  }

  /// The event of an upload of signed transactions. Throws if an object is not JSON, which `SignedObject` rules out.
  package static func transactions(
    _ upload: CheckedSignedUpload, _ client: ClientFields, _ context: SignedContext
  ) throws(JSONError) -> EventDraft {
    var transactions: [SignedObjectRecord] = []
    for transaction in upload.transactions { transactions.append(try transaction.record()) }
    var event = TransactionsReceived(
      uploadID: context.uploadID.description, appFamilyID: context.appFamily.description,
      occurredAtMs: context.occurredAtMs, origin: context.origin, transactions: transactions,
      appTransaction: try upload.appTransaction?.record())
    event.countryCode = client.countryCode
    event.identifierForVendor = client.identifierForVendor
    event.userIdentifier = client.userIdentifier
    event.ipAddress = client.storedAddress(peer: context.peerAddress)
    event.metadata = client.metadata
    event.fraudReason = context.fraudReason
    event.environment = upload.statedEnvironment
    return EventDraft(
      type: EventType.transactionsReceived.rawValue, version: event.version, data: event.data)
  }

  /// A verification of an upload in the same append.
  /// - Parameters:
  ///   - data: without the upload's position.
  ///   - version: the event's.
  package static func verification(
    _ data: [UInt8], ofDraftAt index: Int, version: Int = 1
  ) -> EventDraft {
    let upload = PositionReference(
      offsetBytes: ReceiptVerified.uploadOffsetBytes, eventIndex: index)
    return EventDraft(
      type: EventType.receiptVerified.rawValue, version: version, data: data,
      references: [upload])
  }

  /// A verification of an upload that is already in the ledger.
  package static func verification(_ data: [UInt8]) -> EventDraft {
    EventDraft(.receiptVerified, data)
  }

  /// A verification of an upload that is already in the ledger, by a reply that is the first draft of the
  /// same append.
  /// - Parameter data: without the reply's position.
  package static func verificationByFirstDraft(_ data: [UInt8]) -> EventDraft {
    let reply = PositionReference(offsetBytes: data.count - 1, eventIndex: 0)
    return EventDraft(.receiptVerified, data, references: [reply])
  }
}

// MARK: - Meaning of a reply

extension Reply {
  /// The outcome by status, as in the table of verifyReceipt statuses. A reply that neither confirms nor finally
  /// rejects counts as unreachable, so the App Store is asked again.
  package var outcome: Outcome {
    switch status {
    case ReplyStatus.valid, ReplyStatus.expiredSubscription: .valid
    case ReplyStatus.notAuthenticated, ReplyStatus.accountNotFound: .invalid
    case .some(ReplyStatus.internalFailures): isRetryable == false ? .invalid : .unreachable
    default: .unreachable
    }
  }

  /// The fraud that the status alone proves.
  package var fraudReason: String? {
    status == ReplyStatus.notAuthenticated ? FraudReason.notAuthenticated.rawValue : nil
  }

  /// The endpoint that must have replied, according to the reply. If the reply does not name an environment, the line
  /// is rejected and this value is not used.
  package var likelyEndpoint: Endpoint {
    guard let environment else { return .production }
    return String(decoding: environment, as: UTF8.self).lowercased() == Endpoint.sandbox.rawValue
      ? .sandbox : .production
  }
}

extension Endpoint {
  /// The name in events of the endpoint that replied.
  package init(_ endpoint: AppStoreEndpoint) {
    switch endpoint {
    case .production: self = .production
    case .sandbox: self = .sandbox
    }
  }
}

// MARK: - Identity of a receipt

/// A receipt's identity: its digest, and its id within an app family. It is the same if the same receipt is uploaded
/// again to the same app family.
package struct ReceiptIdentity: Equatable, Sendable {
  /// SHA-256 of the decoded receipt file.
  package let sha256: SHA256Digest
  /// UUID version 5: the namespace is the app family's id, the name is the 32 bytes of the digest.
  package let receiptID: UUID16

  package init(sha256: SHA256Digest, appFamily: UUID16) {
    self.sha256 = sha256
    receiptID = sha256.withUnsafeBytes { UUID16.named($0, in: appFamily) }
  }
}
