// Events for tests, each a step of a history, and their drafts for a writer.
import Base
package import Ledger

/// One step of a history; most append one event, `upload` with a reply two.
package enum TestEvent: Sendable {
  case upload(UploadPlan)
  /// A verification of the upload at a position.
  case verified(VerificationPlan)
  case prices([PriceListLine])
  /// `date base quote rate`, one a line.
  case rates(source: String, [String])
  case app(AppRegistered)
  /// An event of any type and data, including data that this program never writes.
  case raw(type: String, version: Int = 1, JSONText)

  /// How many events the step appends.
  package var count: Int {
    if case .upload(let plan) = self { return plan.verification == nil ? 1 : 2 }
    return 1
  }
}

/// `product country currency price from`; `-` stands for no country.
package typealias PriceListLine = String

/// An upload, optionally with its verification right after it.
package struct UploadPlan: Sendable {
  package var country: String?
  package var user: String?
  package var metadata: JSONText?
  package var occurredAtMs: Int64
  /// Any bytes that distinguish receipts; a receipt file if the receipt stays pending.
  package var receipt: [UInt8]
  package var bundle = "app"
  package var isTransactionStyle = false
  package var verification: VerificationPlan?
}

/// One result of one verification.
package struct VerificationPlan: Sendable {
  package enum Reply: Sendable {
    case none, json(JSONText), reused(Int), noJSON
  }

  /// The upload's position; nil for a verification that comes with its upload.
  package var upload: Int?
  package var authority: Authority = .appStore
  package var outcome: Outcome = .valid
  package var status: Int64? = 0
  package var environment: String?
  package var endpoint: Endpoint? = .production
  package var reason: String?
  package var mismatch: String?
  package var source: ReplySource?
  package var occurredAtMs: Int64
  package var reply: Reply

  package init(upload: Int? = nil, occurredAtMs: Int64, reply: Reply) {
    self.upload = upload
    self.occurredAtMs = occurredAtMs
    self.reply = reply
  }
}

extension TestEvent {
  /// An upload on 10 January 2026 and, with a reply, the App Store's valid verification.
  package static func upload(
    _ reply: JSONText? = nil, country: String? = "DE", user: String? = nil,
    metadata: JSONText? = nil, at time: String = "2026-01-10", verifiedAt: String? = nil,
    receipt: String = "receipt", endpoint: Endpoint? = .production, outcome: Outcome = .valid,
    status: Int64? = 0
  ) -> TestEvent {
    var verification: VerificationPlan?
    if let reply {
      var plan = VerificationPlan(occurredAtMs: ms(verifiedAt ?? time), reply: .json(reply))
      plan.endpoint = endpoint
      plan.outcome = outcome
      plan.status = status
      verification = plan
    }
    return .upload(
      UploadPlan(
        country: country, user: user, metadata: metadata, occurredAtMs: ms(time),
        receipt: Array(receipt.utf8), verification: verification))
  }

  /// The App Store's valid verification of the upload at a position.
  package static func verify(
    _ upload: Int, _ reply: JSONText, at time: String = "2026-01-10"
  ) -> TestEvent {
    .verified(VerificationPlan(upload: upload, occurredAtMs: ms(time), reply: .json(reply)))
  }

  /// A verification that reuses the reply of the verification at an earlier position.
  package static func reuse(
    _ position: Int, for upload: Int, at time: String = "2026-01-10"
  ) -> TestEvent {
    .verified(VerificationPlan(upload: upload, occurredAtMs: ms(time), reply: .reused(position)))
  }

  /// An upload of a receipt file with a valid signature and without a reply yet.
  package static func pending(
    _ file: ReceiptFileText, country: String? = "DE", user: String? = nil,
    metadata: JSONText? = nil, at time: String = "2026-01-10"
  ) -> TestEvent {
    var plan = VerificationPlan(occurredAtMs: ms(time), reply: .none)
    plan.authority = .local
    plan.status = nil
    plan.endpoint = nil
    plan.environment = file.environment
    var upload = UploadPlan(
      country: country, user: user, metadata: metadata, occurredAtMs: ms(time),
      receipt: file.bytes, verification: plan)
    upload.isTransactionStyle = file.isTransactionStyle
    return .upload(upload)
  }
}

extension TestEvent {
  /// The drafts of the step; references point to events of the same step.
  package var drafts: [EventDraft] {
    switch self {
    case .upload(let plan): plan.drafts
    case .verified(let plan): [plan.draft(uploadIndex: nil)]
    case .prices(let lines): [EventDraft(.pricesDeclared, priceList(lines).data)]
    case .rates(let source, let lines): [EventDraft(.ratesDeclared, rates(source, lines).data)]
    case .app(let app): [EventDraft(.appRegistered, app.data)]
    case .raw(let type, let version, let data):
      [EventDraft(type: type, version: version, data: data.bytes)]
    }
  }

  private func priceList(_ lines: [PriceListLine]) -> PricesDeclared {
    PricesDeclared(
      source: "prices.csv", sourceSHA256Hex: "",
      entries: lines.map { line in
        let words = line.split(separator: " ").map(String.init)
        return PricesDeclared.Entry(
          productID: words[0], countryCode: words[1] == "-" ? nil : words[1], currency: words[2],
          price: words[3], effectiveFrom: words[4])
      })
  }

  private func rates(_ source: String, _ lines: [String]) -> RatesDeclared {
    RatesDeclared(
      source: source, sourceSHA256Hex: "",
      days: lines.map { line in
        let words = line.split(separator: " ").map(String.init)
        return RatesDeclared.Day(
          date: words[0], base: words[1],
          rates: [RatesDeclared.Rate(quote: words[2], rate: words[3])])
      })
  }
}

extension UploadPlan {
  fileprivate var drafts: [EventDraft] {
    let sha256 = receipt.withUnsafeBytes { SHA256.hash($0) }
    let hex = sha256.hex
    // The first 32 digits as a UUID: it only has to distinguish receipts.
    let digits = Array(hex)
    let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
    var event = ReceiptUploaded(
      receiptID: groups.joined(separator: "-"),
      appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
      style: isTransactionStyle ? "transaction" : "unified", bundleID: bundle,
      receiptSHA256Hex: hex, occurredAtMs: occurredAtMs,
      origin: .importLine(number: 1, sha256Hex: lineDigestHex))
    event.countryCode = country
    event.userIdentifier = user
    event.metadata = metadata?.bytes
    let base64 = Base64Text.encode(receipt)
    let data = base64.withUnsafeBytes { event.data(receipt: $0) }
    let upload = EventDraft(.receiptUploaded, data)
    return [upload] + (verification.map { [$0.draft(uploadIndex: 0)] } ?? [])
  }

  /// As if the upload were a line of its own: different uploads have different digests.
  private var lineDigestHex: String {
    let text = "\(occurredAtMs) \(country ?? "") \(user ?? "") \(metadata?.text ?? "")"
    return (Array(text.utf8) + receipt).withUnsafeBytes { SHA256.hash($0) }.hex
  }
}

extension VerificationPlan {
  fileprivate func draft(uploadIndex: Int?) -> EventDraft {
    var event = ReceiptVerified(
      authority: authority, outcome: outcome, occurredAtMs: occurredAtMs)
    event.status = status
    event.environment = environment
    event.endpoint = endpoint
    event.reason = reason
    event.mismatch = mismatch
    event.source = source
    let kept: ReceiptVerified.Reply =
      switch reply {
      case .none: .none
      case .json(let text): .json(text.bytes)
      case .reused(let position): .reused(position)
      case .noJSON: .other(base64: Array("aHRtbA==".utf8))
      }
    if let upload { return EventDraft(.receiptVerified, event.data(upload: upload, reply: kept)) }
    return EventDraft(
      .receiptVerified, event.data(upload: nil, reply: kept),
      references: [
        PositionReference(
          offsetBytes: ReceiptVerified.uploadOffsetBytes, eventIndex: uploadIndex ?? 0)
      ])
  }
}

extension EventDraft {
  fileprivate init(
    _ type: EventType, _ data: [UInt8], references: [PositionReference] = []
  ) {
    self.init(
      type: type.rawValue, version: type.currentVersion, data: data, references: references)
  }
}
