// One line of the import file: an upload with the reply that it got.
import AppStoreAuthority
import Base
import ProgramSupport

struct LineWriter {
  let simulation: Simulation
  private let modernCertificates: CertificateSet
  private let olderCertificates: CertificateSet
  private let signed: SignedLines?

  /// Receipts are signed with SHA-256 since then: 2023-08-14.
  private static let sha256SinceMs: Int64 = 1_691_971_200_000

  init(simulation: Simulation, signed: SignedLines?) {
    self.simulation = simulation
    self.signed = signed
    let fillerBytes = simulation.isSmall ? [0, 0, 0] : [600, 370, 330]
    let keyBytes = simulation.isSmall ? 64 : 256
    modernCertificates = CertificateSet(
      seed: simulation.seed, usesSHA256: true, keyBytes: keyBytes, fillerBytes: fillerBytes)
    olderCertificates = CertificateSet(
      seed: simulation.seed, usesSHA256: false, keyBytes: keyBytes, fillerBytes: fillerBytes)
  }

  private enum Verification {
    case none
    case statusOnly(String)
    case full
  }

  /// Writes upload `ordinal` of `customer` as one JSON object.
  func write(
    _ customer: Customer, ordinal: Int, to json: inout JSONWriter
  ) throws(AuthorityError) {
    let upload = customer.uploads[ordinal]
    if let signed {
      // A stream of its own: the other uploads stay as they are without signed ones.
      var random = RandomSource(
        seed: simulation.seed, 41, UInt64(customer.index), UInt64(ordinal))
      if let purchases = signed.purchases(customer, upload, random: &random) {
        return try write(
          purchases, of: customer, upload, signed.signer, random: &random, to: &json)
      }
    }
    var random = RandomSource(
      seed: simulation.seed, 40, UInt64(customer.index), UInt64(ordinal))
    let verification = verification(random: &random)
    let requestMs = upload.atMs + Int64(random.within(90...2400))
    json.beginObject()
    json.member("marketplace", "itunes")
    json.member("receipt", receipt(of: customer, upload: upload, receiptMs: upload.receiptMs))
    writeRequest(customer, upload, random: &random, to: &json)
    Metadata(simulation: simulation, customer: customer, upload: upload)
      .write(random: &random, to: &json)
    var saysWhen = true
    if case .full = verification, !customer.isLegacy, random.chance(80) { saysWhen = false }
    if saysWhen { writeInstant(upload.atMs, random: &random, to: &json) }
    writeVerification(
      verification, customer, upload, requestMs: requestMs, saysWhen: random.chance(700),
      random: &random, to: &json)
    json.endObject()
  }

  // MARK: Signed objects

  private func write(
    _ purchases: [Purchase], of customer: Customer, _ upload: PlannedUpload,
    _ signer: ObjectSigner, random: inout RandomSource, to json: inout JSONWriter
  ) throws(AuthorityError) {
    let facts = SignedFacts(
      simulation: simulation, customer: customer,
      signedMs: upload.atMs - Int64(random.within(100...1_400)))
    json.beginObject()
    json.member("marketplace", "itunes")
    if upload.prompt != nil, random.chance(400) {
      let notification = try facts.notification(of: purchases[0], signer, random: &random)
      json.member("notification", text: try signer.sign(notification.json))
    } else {
      json.key("signed_transactions")
      json.beginArray()
      for purchase in purchases {
        let object = try signer.sign(facts.transaction(purchase).json)
        object.withUnsafeBytes { json.string($0) }
      }
      json.endArray()
      writeRequest(customer, upload, random: &random, to: &json)
      Metadata(simulation: simulation, customer: customer, upload: upload)
        .write(random: &random, to: &json)
    }
    writeInstant(upload.atMs, random: &random, to: &json)
    json.endObject()
  }

  // MARK: The receipt

  private func receipt(
    of customer: Customer, upload: PlannedUpload, receiptMs: Int64
  ) -> String {
    if customer.isLegacy, let prompt = upload.prompt {
      let purchase = customer.purchases[prompt].shown(atMs: receiptMs, device: upload.device)
      return LegacyReceipt(simulation: simulation, customer: customer, device: upload.device)
        .base64(of: purchase, receiptMs: receiptMs)
    }
    let usesSHA256 = receiptMs >= Self.sha256SinceMs
    return UnifiedReceipt(
      simulation: simulation, customer: customer,
      certificates: usesSHA256 ? modernCertificates : olderCertificates, usesSHA256: usesSHA256
    ).base64(receiptMs: receiptMs, device: upload.device)
  }

  // MARK: The request's own fields

  private func writeRequest(
    _ customer: Customer, _ upload: PlannedUpload, random: inout RandomSource,
    to json: inout JSONWriter
  ) {
    let code = customer.storefront.countryCode
    switch random.index(weighted: [920, 22, 40, 18]) {
    case 0: json.member("country_code", code)
    case 1: json.member("country_code", code.lowercased())
    case 2: break
    default:
      json.key("country_code")
      json.null()
    }
    if random.chance(800) {
      let facts = ReceiptFacts(simulation: simulation, customer: customer)
        .facts(device: upload.device, atMs: upload.atMs)
      json.member("identifier_for_vendor", facts.vendorIdentifier)
    }
    if let user = customer.user(atMs: upload.atMs), random.chance(980) {
      json.member("user_identifier", user)
    }
    // Addresses set aside for documentation: RFC 5737 and RFC 3849.
    switch random.index(weighted: [50, 20, 18, 7, 5]) {
    case 0: break
    case 1:
      json.key("ip_address")
      json.null()
    case 2: json.member("ip_address", "203.0.113.\(random.within(1...254))")
    case 3: json.member("ip_address", "2001:db8::\(String(random.below(65_536), radix: 16))")
    default: json.member("ip_address", "NULL")
    }
  }

  private func writeInstant(
    _ epochMs: Int64, random: inout RandomSource, to json: inout JSONWriter
  ) {
    if random.chance(120) {
      json.member("occurred_at", raw: String(epochMs))
    } else {
      json.member("occurred_at", Timestamp.text(ms: epochMs))
    }
  }

  // MARK: The reply

  private func verification(random: inout RandomSource) -> Verification {
    switch random.index(weighted: [958, 30, 12]) {
    case 0: return .full
    case 2: return .none
    default: break
    }
    switch random.index(weighted: [38, 24, 16, 8, 6, 4, 4]) {
    case 0: return .statusOnly("21003")
    case 1: return .statusOnly("21010")
    case 2: return .statusOnly("21005")
    case 3: return .statusOnly("21009")
    case 4: return .statusOnly("21199,\"is_retryable\":true")
    case 5: return .statusOnly("21104,\"is-retryable\":\"false\"")
    default: return .statusOnly("21002")
    }
  }

  private func writeVerification(
    _ verification: Verification, _ customer: Customer, _ upload: PlannedUpload,
    requestMs: Int64, saysWhen: Bool, random: inout RandomSource, to json: inout JSONWriter
  ) {
    if case .none = verification { return }
    json.key("verification")
    json.beginObject()
    if saysWhen {
      json.member("occurred_at", Timestamp.text(ms: requestMs + Int64(random.within(40...400))))
    }
    json.member("endpoint", customer.isSandbox ? "sandbox" : "production")
    if case .statusOnly(let status) = verification {
      json.member("reply", raw: "{\"status\":\(status)}")
    } else {
      json.key("reply")
      writeReply(customer, upload, requestMs: requestMs, random: &random, to: &json)
    }
    json.endObject()
  }

  private func writeReply(
    _ customer: Customer, _ upload: PlannedUpload, requestMs: Int64,
    random: inout RandomSource, to json: inout JSONWriter
  ) {
    // Now and then the App Store answers an old receipt in the new shape.
    if customer.isLegacy, let prompt = upload.prompt, !random.chance(50) {
      let shown = customer.purchases[prompt].shown(
        atMs: upload.receiptMs, device: upload.device)
      LegacyReceipt(simulation: simulation, customer: customer, device: upload.device)
        .reply(about: shown, receiptMs: upload.receiptMs, requestMs: requestMs).write(to: &json)
      return
    }
    ReplyPlan(
      simulation: simulation, customer: customer, upload: upload, requestMs: requestMs,
      receipt: { receipt(of: customer, upload: upload, receiptMs: $0) }
    ).reply(random: &random).write(to: &json)
  }
}
