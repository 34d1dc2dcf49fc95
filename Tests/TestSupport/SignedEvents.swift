// Events with signed objects for tests: given payloads, under signatures that are never checked.
package import Base
package import Ledger

/// A signed object of a test's event.
package struct SignedObjectPlan: Sendable {
  package var payload: JSONText
  package var verdict = SignedObjectRecord.Verdict.valid(root: signedObjectRoot)
  /// The event's copy of its `signedDate`.
  fileprivate var signedAt = "2026-01-06"

  package init(
    _ payload: JSONText, _ verdict: SignedObjectRecord.Verdict = .valid(root: signedObjectRoot)
  ) {
    (self.payload, self.verdict) = (payload, verdict)
  }

  private var header = Array(#"{"alg":"ES256","x5c":[]}"#.utf8)
  private var signature = [UInt8](repeating: 0, count: 64)

  /// An object as it was sent, with its own signature.
  package init(jws: String, _ verdict: SignedObjectRecord.Verdict) throws {
    let parts = try jws.split(separator: ".").map { try Base64.decode(Array($0.utf8), .url) }
    self.init(JSONText(raw: String(decoding: parts[1], as: UTF8.self)), verdict)
    (header, signature) = (parts[0], parts[2])
  }

  /// As a client or the App Store sends it.
  package var text: [UInt8] {
    let parts = [header, payload.bytes, signature].map { Base64.encode($0, .url) }
    return Array(parts.joined(separator: [UInt8(ascii: ".")]))
  }

  fileprivate var record: SignedObjectRecord {
    do throws {
      return try SignedObjectRecord(
        header: header, payload: payload.bytes, signature: signature, verdict: verdict,
        signedAtMs: ms(signedAt))
    } catch { preconditionFailure("a test's payload is an object: \(error)") }
  }
}

/// The root of test objects: Apple's, so that their source reads `app_store`.
package let signedObjectRoot = SHA256Digest(
  0x6334_3abf_b89a_6a03, 0xebb5_7e9b_3f5f_a7be, 0x7c4f_5c75_6f30_17b3, 0xa8c4_88c3_653e_9179)

extension TestEvent {
  /// The app family of test events.
  package static let signedFamily = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"

  /// An upload of signed transactions on 10 January 2026.
  package static func signedUpload(
    _ objects: [SignedObjectPlan], country: String? = "DE", user: String? = nil,
    metadata: JSONText? = nil, at time: String = "2026-01-10", line: String? = nil,
    fraud: TransactionsReceived.FraudReason? = nil
  ) -> TestEvent {
    guard let family = UUID16(signedFamily) else { preconditionFailure("a UUID") }
    let digest = line.map { Array($0.utf8).withUnsafeBytes { SHA256.hash($0) }.hex }
    var event = TransactionsReceived(
      uploadID: "\(TransactionsReceived.uploadID(of: objects.map(\.text), in: family))",
      appFamilyID: signedFamily, occurredAtMs: ms(time),
      origin: digest.map { .importLine(number: 1, sha256Hex: $0) } ?? .http,
      transactions: objects.map(\.record))
    event.countryCode = country
    event.userIdentifier = user
    event.metadata = metadata?.bytes
    event.fraudReason = fraud
    return .raw(
      type: EventType.transactionsReceived.rawValue,
      JSONText(raw: String(decoding: event.data, as: UTF8.self)))
  }

  /// The same with payloads of valid objects.
  package static func signedUpload(
    _ payloads: JSONText..., country: String? = "DE", user: String? = nil,
    metadata: JSONText? = nil, at time: String = "2026-01-10", line: String? = nil
  ) -> TestEvent {
    signedUpload(
      payloads.map { SignedObjectPlan($0) }, country: country, user: user, metadata: metadata,
      at: time, line: line)
  }

  /// A page that the App Store Server API returned on 10 January 2026, with these transactions.
  package static func fetched(
    _ transactions: [SignedObjectPlan], renewals: [SignedObjectPlan] = [],
    _ call: TransactionsFetched.Call = .history, about transactionID: String? = "1",
    bundle: String = "app", environment: String = "Production", revision: String? = nil,
    errorCode: Int64? = nil, hasMore: Bool = false, range: ClosedRange<Int64>? = nil,
    at time: String = "2026-01-10"
  ) -> TestEvent {
    var event = TransactionsFetched(
      appFamilyID: signedFamily, bundleID: bundle, environment: environment,
      occurredAtMs: ms(time), call: call, host: "api.storekit.apple.com",
      transactionID: transactionID, hasMore: hasMore, transactions: transactions.map(\.record),
      renewals: renewals.map(\.record))
    event.revision = revision
    event.errorCode = errorCode
    event.fromMs = range?.lowerBound
    event.toMs = range?.upperBound
    return .raw(
      type: EventType.transactionsFetched.rawValue,
      JSONText(raw: String(decoding: event.data, as: UTF8.self)))
  }

  /// The same with payloads of valid transactions.
  package static func fetched(
    _ payloads: JSONText..., about transactionID: String = "1", revision: String? = nil,
    hasMore: Bool = false, at time: String = "2026-01-10"
  ) -> TestEvent {
    fetched(
      payloads.map { SignedObjectPlan($0) }, about: transactionID, revision: revision,
      hasMore: hasMore, at: time)
  }

  /// Accepts refused objects of the page at a position, on 11 January 2026.
  package static func accepted(
    _ page: Position, transactions: [Int] = [], renewals: [Int] = []
  ) -> TestEvent {
    func objects(_ indexes: [Int]) -> [SignaturesAccepted.Object] {
      indexes.map { SignaturesAccepted.Object(index: $0, root: signedObjectRoot) }
    }
    let event = SignaturesAccepted(
      page: page, occurredAtMs: ms("2026-01-11"), transactions: objects(transactions),
      renewals: objects(renewals))
    return .raw(
      type: EventType.signaturesAccepted.rawValue,
      JSONText(raw: String(decoding: event.data, as: UTF8.self)))
  }

  /// A notification on 10 January 2026, about a transaction with this payload.
  /// - Parameters:
  ///   - about: more members of its `data`.
  ///   - signed: the day or time of its own signature.
  package static func notification(
    _ type: String, subtype: String? = nil, uuid: String, _ transaction: JSONText?,
    renewal: JSONText? = nil, about: Members = [:], signed: String = "2026-01-06",
    at time: String = "2026-01-10", line: String? = nil, isFetched: Bool = false
  ) -> TestEvent {
    func inner(_ payload: JSONText?) -> (JSONText, NotificationReceived.Inner)? {
      payload.map { payload in
        let plan = SignedObjectPlan(payload)
        return (
          JSONText(stringLiteral: String(decoding: plan.text, as: UTF8.self)),
          NotificationReceived.Inner(verdict: plan.verdict, signedAtMs: ms("2026-01-06"))
        )
      }
    }
    let (transaction, renewal) = (inner(transaction), inner(renewal))
    var data: [(String, JSONText)] = [("bundleId", "app"), ("environment", "Production")]
    if let transaction { data.append(("signedTransactionInfo", transaction.0)) }
    if let renewal { data.append(("signedRenewalInfo", renewal.0)) }
    data += about.map { ($0.key, $0.value) }
    let payload = JSONText.object([
      ("notificationType", JSONText(stringLiteral: type)),
      ("notificationUUID", JSONText(stringLiteral: uuid)), ("signedDate", instant(signed)),
      ("data", .object(data)),
    ])
    let digest = line.map { Array($0.utf8).withUnsafeBytes { SHA256.hash($0) }.hex }
    var plan = SignedObjectPlan(payload)
    plan.signedAt = signed
    let event = NotificationReceived(
      notificationUUID: uuid, appFamilyID: signedFamily, bundleID: "app",
      environment: "Production", occurredAtMs: ms(time),
      origin: digest.map { .importLine(number: 1, sha256Hex: $0) } ?? (isFetched ? .fetch : .http),
      type: type,
      subtype: subtype, transaction: transaction?.1, renewal: renewal?.1,
      notification: plan.record)
    return .raw(
      type: EventType.notificationReceived.rawValue,
      JSONText(raw: String(decoding: event.data, as: UTF8.self)))
  }
}
