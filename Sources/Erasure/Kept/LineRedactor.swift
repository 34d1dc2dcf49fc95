// Computes what an erasure keeps of each event's data, member by member.
import AppStore
package import Base
package import Ledger
package import Projections

/// Computes the kept data of events, for one erasure. Used by one thread.
package final class LineRedactor {
  private let names: Pseudonyms
  private let ownership: Ownership
  private let keptReply: KeptReply
  private let keptSigned: KeptSigned
  private let keptMetadata: KeptMetadata
  private let keeper = TextKeeper()
  private let waitsUntilMs: Int64

  /// - Parameters:
  ///   - waitsUntilMs: until when a receipt may wait for the App Store, in epoch milliseconds.
  ///   - lineDigest: replaces an import line's SHA-256.
  package init(
    erasure: Position, _ ownership: Ownership, _ database: Database, waitsUntilMs: Int64 = 0,
    lineDigest: @escaping (SHA256Digest) -> SHA256Digest
  ) throws {
    names = Pseudonyms(erasure: erasure, ownership, database, lineDigest: lineDigest)
    self.ownership = ownership
    self.waitsUntilMs = waitsUntilMs
    keptReply = KeptReply(names)
    keptSigned = KeptSigned(names)
    keptMetadata = KeptMetadata(names)
  }

  /// The data that is kept of an event, which may be redacted already; nil if all of it is kept.
  package func kept(of event: EventLine, _ extents: [ErasureExtent]) throws -> [UInt8]? {
    precondition(!extents.isEmpty, "an event without an extent does not belong to an erasure")
    guard let type = EventType(event.type) else { return nil }
    guard type.reads(event.version) else {
      throw ErasureError.refused(
        object: "position \(event.position)", cause: "a later version of this program wrote it")
    }
    // A malformed event that was redacted holds nothing more to redact.
    if MalformedEvent.fault(of: event, type) != nil { return nil }
    keeper.removeAll()
    let kept: [UInt8]?
    do {
      kept = try reduced(event, type, extents)
    } catch let error as EventError {
      kept = MalformedEvent.kept(fault(of: event, error))
    } catch is JSONError {
      kept = MalformedEvent.kept("data")
    }
    // Unchanged data loses nothing.
    guard let kept, !event.data.elementsEqual(kept) else { return nil }
    return kept
  }

  /// The exception's text for an event's fault.
  private func fault(of event: EventLine, _ error: EventError) -> String {
    do throws(JSONError) {
      try JSONValidator.validate(event.data, depthLimit: JSONValidator.greatestDepthLimit)
    } catch { return "data" }
    if case .badField(_, let field) = error { return field }
    return "data"
  }

  private func reduced(
    _ event: EventLine, _ type: EventType, _ extents: [ErasureExtent]
  ) throws -> [UInt8]? {
    switch type {
    case .receiptUploaded:
      let view = try ReceiptUploadedView(
        data: event.data, isRedacted: event.isRedacted, version: event.version)
      let parts = Parts(extents)
      // An earlier redaction of the receipt has removed its id and digest.
      let goes = parts.content && (view.receiptSHA256Hex != nil || view.receiptUntilMs != nil)
      return try upload(event, ReceiptUploaded.Member.self, parts) {
        if parts.waits { return waitingReceipt(view, $0, &$1) }
        return try goes && receipt(view, parts, $0, &$1)
      }
    case .receiptVerified:
      if extents == [.withToken], !holdsToken(event) { return nil }
      return try verification(event)
    case .transactionsReceived:
      let view = try TransactionsReceivedView(data: event.data, isRedacted: event.isRedacted)
      let transactions = try ReceivedTransactions(view, keeper).transactions
      let parts = Parts(extents)
      return try upload(event, TransactionsReceived.Member.self, parts) {
        try signedUpload(view, transactions, parts, $0, &$1)
      }
    case .notificationReceived: return try notification(event)
    case .transactionsFetched: return try page(event, isWhole: extents.contains(.whole))
    case .signaturesAccepted: return nil
    default:
      precondition(type.role != .purchases, "an erasure must know what to keep of such an event")
      return nil
    }
  }

  // MARK: Ownership

  /// Whether a purchase loses data that is not a fact.
  private func goes(_ purchase: ShownPurchase) -> Bool {
    let facts = PurchaseFacts(purchase)
    return ownership.holds(facts) || ownership.losesAccount(facts)
  }

  /// Whether a reply holds a token, in a purchase or as text.
  private func holdsToken(_ event: EventLine) -> Bool {
    PurchaseFacts.all(of: event).contains {
      $0.appAccountToken.map { ownership.appAccountTokens.contains($0) } ?? false
    } || holdsToken(event.data)
  }

  private func holdsToken(_ bytes: JSONBytes) -> Bool {
    ownership.appAccountTokens.contains { token in
      IdentifierSearch.contains(bytes, token)
        || IdentifierSearch.contains(
          bytes, Array(String(decoding: token, as: UTF8.self).uppercased().utf8))
    }
  }

  // MARK: Uploads

  /// Which parts of an upload are redacted.
  private struct Parts {
    /// The receipt, or all signed objects.
    var content = false
    /// Everything but the receipt, which waits for the App Store.
    var waits = false
    /// Only the user's signed objects.
    var ownObjects = false
    /// The receipt's or the upload's id.
    var id = false
    var user = false
    var ipAddress = false
    var identifierForVendor = false
    var metadata = false

    init(_ extents: [ErasureExtent]) {
      for extent in extents {
        switch extent {
        case .whole: (content, id, user) = (true, true, true)
        case .names: user = true
        case .waiting: (waits, user) = (true, true)
        case .receipt: (content, id) = (true, true)
        case .receiptKeepingID: content = true
        case .ownObjects:
          (ownObjects, ipAddress, identifierForVendor, metadata) = (true, true, true, true)
        case .objects: ownObjects = true
        case .ipAddress: ipAddress = true
        case .identifierForVendor: identifierForVendor = true
        case .metadata: metadata = true
        case .withToken: break
        }
      }
      if content || user { (ipAddress, identifierForVendor, metadata) = (true, true, true) }
    }

    /// Whether more is redacted than fields whose retention has ended.
    var takesAll: Bool { content || ownObjects || user }
    /// Whether the import line's digest would let the redacted data be guessed.
    var line: Bool { takesAll || ipAddress || identifierForVendor || metadata }
  }

  /// Writes a member and returns true, or returns false to have it copied.
  private typealias MemberWriter = (JSONString, inout JSONWriter, JSONBytes) throws -> Bool

  /// Copies members in their order; `write` writes those that change.
  /// - Parameter known: the members that may stay; nil for all.
  private func members<Member: EventMember>(
    of data: JSONBytes, _ known: Member.Type?, _ write: MemberWriter
  ) throws -> [UInt8] {
    var cursor = JSONCursor(data)
    var writer = JSONWriter()
    writer.reserve(data.count)
    writer.beginObject()
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let value = try cursor.readRaw()
      if let known, known.init(key) == nil { continue }
      if try write(key, &writer, value) { continue }
      writer.key(key.string)
      writer.raw(value)
    }
    writer.endObject()
    return writer.bytes
  }

  /// Writes the members that both types of uploads have; `other` writes the rest.
  private func upload<Member: EventMember>(
    _ event: EventLine, _ known: Member.Type, _ parts: Parts,
    _ other: (JSONString, inout JSONWriter) throws -> Bool
  ) throws -> [UInt8] {
    try members(of: event.data, parts.takesAll ? known : nil) { key, writer, value in
      if key == "ip_address" { return parts.ipAddress }
      if key == "identifier_for_vendor" { return parts.identifierForVendor }
      if key == "line_sha256", parts.line, !event.isRedacted {
        try line(value, to: &writer)
        return true
      }
      if key == "user_identifier", parts.user {
        writer.member("user_identifier", try user(value))
        return true
      }
      if key == "metadata", parts.metadata {
        guard let reduced = try keptMetadata.reduced(value) else { return true }
        writer.key("metadata")
        reduced.withUnsafeBytes { writer.raw($0) }
        return true
      }
      return try other(key, &writer)
    }
  }

  /// The HMAC of a line's digest.
  private func line(_ value: JSONBytes, to writer: inout JSONWriter) throws {
    var cursor = JSONCursor(value)
    guard let digest = SHA256Digest(hex: JSONBytes(try cursor.readString().raw)) else {
      return writer.member("line_sha256", names.mark(value))
    }
    writer.member("line_sha256", names.line(digest).hex)
  }

  /// The name that replaces a user; a name from an earlier erasure is kept.
  private func user(_ value: JSONBytes) throws -> String {
    var cursor = JSONCursor(value)
    let text = try cursor.readString().string
    if text.isEmpty { return text }
    return names.isErased(text) ? text : names.user
  }

  private func receipt(
    _ view: ReceiptUploadedView, _ parts: Parts, _ key: JSONString, _ writer: inout JSONWriter
  ) throws -> Bool {
    if key == "receipt_id", parts.id, let id = view.receiptID {
      writer.member("receipt_id", names.id(insteadOf: id.raw).description)
      return true
    }
    if key == "receipt_sha256" || key == "receipt_until" { return true }
    guard key == "receipt" else { return false }
    // An unreadable receipt shows no purchases.
    guard let file = PendingReceipts.file(of: view) else { return true }
    writer.key("receipt")
    let facts = file.keptFacts(
      eventStyle: view.style?.string, eventBundleID: view.bundleID?.string
    ) { names.quantity($0, isInteger: Int64($0) != nil) }
    facts.withUnsafeBytes { writer.raw($0) }
    return true
  }

  /// Keeps the receipt under another id and without its digest, with the time by which it must be redacted.
  private func waitingReceipt(
    _ view: ReceiptUploadedView, _ key: JSONString, _ writer: inout JSONWriter
  ) -> Bool {
    guard view.receiptSHA256Hex != nil, let text = view.receipt else { return false }
    if key == "receipt_id", let id = view.receiptID {
      writer.member("receipt_id", names.id(insteadOf: id.raw).description)
      return true
    }
    if key == "receipt_sha256" { return true }
    guard key == "receipt" else { return false }
    writer.member("receipt_until", Timestamp.fixedText(ms: waitsUntilMs))
    writer.key("receipt")
    writer.string(keeper.bytes(of: text))
    return true
  }

  // MARK: Signed objects

  private func signedUpload(
    _ view: TransactionsReceivedView, _ transactions: [SignedTransaction?], _ parts: Parts,
    _ key: JSONString, _ writer: inout JSONWriter
  ) throws -> Bool {
    if key == "upload_id", parts.id, let id = view.uploadID,
      view.objects.contains(where: { !$0.isReduced })
    {
      writer.member("upload_id", names.id(insteadOf: id.raw).description)
      return true
    }
    if key == "transactions", parts.content || parts.ownObjects {
      writer.key("transactions")
      try list(view.transactions, transactions, isWhole: parts.content, to: &writer)
      return true
    }
    if key == "app_transaction", parts.content, let object = view.appTransaction {
      writer.key("app_transaction")
      keptSigned.object(object, KeptSigned.nothing, to: &writer)
      return true
    }
    return false
  }

  /// Writes a list of signed transactions: the redacted ones as facts, the others as they are.
  private func list(
    _ objects: [SignedObjectView], _ transactions: [SignedTransaction?], isWhole: Bool,
    to writer: inout JSONWriter
  ) throws {
    precondition(objects.count == transactions.count, "a signed object was not decoded")
    writer.beginArray()
    for (object, transaction) in zip(objects, transactions) {
      // An object rejected for a reason of time or trust may count later, or already does.
      let counts = object.isValid || object.mayBecomeGood
      let facts = counts ? transaction.map { keptSigned.facts(of: $0) } : nil
      let isReduced =
        isWhole || (transaction.map { goes(ShownPurchase($0)) } ?? holdsToken(object.payload))
      if isReduced {
        keptSigned.object(object, facts ?? KeptSigned.nothing, to: &writer)
      } else {
        writer.raw(object.bytes)
      }
    }
    writer.endArray()
  }

  private func notification(_ event: EventLine) throws -> [UInt8] {
    let view = try NotificationReceivedView(data: event.data, isRedacted: event.isRedacted)
    let content = try ReceivedNotification(view, keeper)
    let transaction = content.transaction.map { keptSigned.facts(of: $0) }
    var renewal = content.renewal.map { keptSigned.facts(of: $0) }
    if renewal == nil, let original = content.originalTransactionID {
      renewal = keptSigned.facts(ofSubscription: original)
    }
    return try members(of: event.data, NotificationReceived.Member.self) { key, writer, value in
      if key == "line_sha256", !event.isRedacted {
        try line(value, to: &writer)
        return true
      }
      let object: (view: SignedObjectView?, facts: [UInt8]?)? =
        if key == "transaction" {
          (view.transaction, transaction)
        } else if key == "renewal" {
          (view.renewal, renewal)
        } else if key == "notification" {
          (view.notification, KeptSigned.nothing)
        } else {
          nil
        }
      guard let object, let view = object.view else { return false }
      writer.key(key.string)
      keptSigned.object(view, object.facts ?? KeptSigned.nothing, to: &writer)
      return true
    }
  }

  private func page(_ event: EventLine, isWhole: Bool) throws -> [UInt8] {
    let view = try TransactionsFetchedView(data: event.data, isRedacted: event.isRedacted)
    let content = try FetchedTransactions(view, keeper)
    // A rejected object has an owner too.
    let transactions = zip(view.transactions, content.transactions).map { object, transaction in
      transaction
        ?? (try? SignedTransaction(
          payload: object.payload, keeper, environment: view.environment))
    }
    return try members(of: event.data, TransactionsFetched.Member.self) { key, writer, _ in
      if key == "transactions" {
        writer.key("transactions")
        try list(view.transactions, transactions, isWhole: isWhole, to: &writer)
        return true
      }
      guard key == "renewals" else { return false }
      writer.key("renewals")
      writer.beginArray()
      for object in view.renewals {
        let renewal = try SignedRenewal(payload: object.payload, keeper)
        if isWhole || goes(ShownPurchase(renewal)) || holdsToken(object.payload) {
          keptSigned.object(
            object,
            object.isValid || object.mayBecomeGood
              ? keptSigned.facts(of: renewal) : KeptSigned.nothing,
            to: &writer)
        } else {
          writer.raw(object.bytes)
        }
      }
      writer.endArray()
      return true
    }
  }

  // MARK: Verifications

  private func verification(_ event: EventLine) throws -> [UInt8] {
    let view = try ReceiptVerifiedView(data: event.data)
    var reply: [UInt8]?
    if let bytes = view.reply {
      do throws(JSONError) {
        reply = keptReply.bytes(of: try Reply(bytes, keeper, notification: view.notification))
      } catch {
        throw EventError.badField(.receiptVerified, field: "reply")
      }
    }
    return try members(of: event.data, ReceiptVerified.Member.self) { key, writer, _ in
      if key == "reply", let reply {
        writer.key("reply")
        reply.withUnsafeBytes { writer.raw($0) }
        return true
      }
      guard key == "reply_base64" else { return false }
      writer.member("reply_base64", "")
      return true
    }
  }
}
