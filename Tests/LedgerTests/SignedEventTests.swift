// Events with signed objects: they are read as written, and give back what was signed.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite struct SignedEventTests {
  private static let header = #"{"alg":"ES256","x5c":["MII="]}"#
  private static let signature = [UInt8](repeating: 0xFB, count: 64)
  private static let root = SHA256Digest(1, 2, 3, 4)

  private static func record(
    _ payload: String, header: String = header,
    _ verdict: SignedObjectRecord.Verdict = .valid(root: root), signedAtMs: Int64? = 1_000
  ) throws -> SignedObjectRecord {
    try SignedObjectRecord(
      header: Array(header.utf8), payload: Array(payload.utf8), signature: signature,
      verdict: verdict, signedAtMs: signedAtMs)
  }

  private static func text(_ payload: String, header: String = header) -> [UInt8] {
    let parts = [Array(header.utf8), Array(payload.utf8), signature].map { Base64.encode($0, .url) }
    return Array(parts.joined(separator: [UInt8(ascii: ".")]))
  }

  private static func upload(_ transactions: [SignedObjectRecord]) -> TransactionsReceived {
    TransactionsReceived(
      uploadID: "11111111-2222-5333-8444-555555555555",
      appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566", occurredAtMs: 0, origin: .http,
      transactions: transactions)
  }

  @Test func membersStandInTheCataloguesOrder() throws {
    var event = Self.upload([try Self.record(#"{"a": 1}"#)])
    event.origin = .importLine(number: 7, sha256Hex: "ab")
    event.countryCode = "DE"
    event.identifierForVendor = "v"
    event.userIdentifier = "u"
    event.ipAddress = "::1"
    event.metadata = Array("{}".utf8)
    event.fraudReason = .bundleIDMismatch
    event.appTransaction = try Self.record("{}", .invalid(reason: "wrong_signature"))
    let zeros = String(repeating: "0", count: 15)
    let signature = String(decoding: Base64.encode(Self.signature, .url), as: UTF8.self)
    let tail = #""signature":"\#(signature)","header":{"alg":"ES256","x5c":["MII="]}}"#
    expectEqual(
      String(decoding: event.data, as: UTF8.self),
      #"{"upload_id":"11111111-2222-5333-8444-555555555555","#
        + #""app_family_id":"0e7c2f4a-9a0b-4c5d-8e6f-112233445566","#
        + #""occurred_at":"1970-01-01T00:00:00.000Z","via":"import","line":7,"line_sha256":"ab","#
        + #""country_code":"DE","identifier_for_vendor":"v","user_identifier":"u","#
        + #""ip_address":"::1","metadata":{},"outcome":"invalid","#
        + #""fraud_reason":"bundle_id_mismatch","transactions":[{"outcome":"valid","#
        + #""root_sha256":"\#(zeros)1\#(zeros)2\#(zeros)3\#(zeros)4","#
        + #""signed_at":"1970-01-01T00:00:01.000Z","payload":{"a":1},"#
        + #""payload_base64url":"eyJhIjogMX0",\#(tail)],"app_transaction":{"outcome":"invalid","#
        + #""reason":"wrong_signature","signed_at":"1970-01-01T00:00:01.000Z","payload":{},\#(tail)}"#
    )
  }

  @Test(arguments: [
    (#"{"a":1}"#, header), (#" { "a" : [ 1 , 2 ] } "#, header), ("{\n}", header),
    (#"{"a":"\u00e9\/"}"#, #"{ "alg":"ES256" }"#),
  ])
  func anObjectGivesBackTheTextThatWasSigned(_ payload: String, _ header: String) throws {
    let data = Self.upload([try Self.record(payload, header: header)]).data
    try data.withUnsafeBytes { bytes in
      let view = try TransactionsReceivedView(data: bytes)
      let object = try #require(view.transactions.first)
      expectEqual(object.text, Self.text(payload, header: header))
      expectEqual((object.payloadBase64URL != nil), payload.contains { $0 == " " || $0 == "\n" })
      expectEqual(object.verdict, .valid(root: Self.root))
      expectEqual(object.signedAtMs, 1_000)
    }
    // An event's data has no white space outside strings.
    var compact: [UInt8] = []
    try data.withUnsafeBytes { try JSONValidator.compact($0, to: &compact) }
    expectEqual(compact, data)
  }

  @Test(arguments: [
    "[]", "1", "", "{", #"{"a":1,"a":2}"#,
    String(repeating: #"{"a":"#, count: 33) + "1" + String(repeating: "}", count: 33),
  ])
  func whatIsNoObjectOfFewLevelsIsRefused(_ payload: String) {
    #expect(throws: JSONError.self) { try Self.record(payload) }
  }

  @Test func anUploadsIDNamesItsFamilyAndItsObjects() throws {
    let (one, other) = (try #require(UUID16(TestEvent.signedFamily)), UUID16.random())
    let texts = [Self.text("{}"), Self.text(#"{"a":1}"#)]
    let id = TransactionsReceived.uploadID(of: texts, in: one)
    let joined = Array(texts.joined(separator: [0x0A]))
    let name = joined.withUnsafeBytes { SHA256.hash($0) }.hex
    expectEqual(id, Array(name.utf8).withUnsafeBytes { UUID16.named($0, in: one) })
    #expect(id != TransactionsReceived.uploadID(of: texts.reversed(), in: one))
    #expect(id != TransactionsReceived.uploadID(of: texts, in: other))
  }

  @Test(arguments: [0, 1, 100, 101])
  func aListHasOneToAHundredTransactions(_ count: Int) throws {
    let record = try Self.record("{}")
    let data = Self.upload(Array(repeating: record, count: count)).data
    let result = Result { try data.withUnsafeBytes { try TransactionsReceivedView(data: $0) } }
    switch result {
    case .success(let view): #expect(view.transactions.count == count && 1...100 ~= count)
    case .failure(let error):
      #expect(
        error as? EventError == .badField(.transactionsReceived, field: "transactions")
          && !(1...100 ~= count))
    }
  }

  @Test(arguments: [
    (#"{"outcome":"valid","payload":{},"signature":"","header":{}}"#, true),
    (#"{"outcome":"valid","payload":{},"signature":"","header":{},"later":1}"#, true),
    (#"{"payload":{},"signature":"","header":{}}"#, false),
    (#"{"outcome":"maybe","payload":{},"signature":"","header":{}}"#, false),
    (#"{"outcome":"valid","payload":[],"signature":"","header":{}}"#, false),
    (#"{"outcome":"valid","payload":{},"header":{}}"#, false),
    (#"{"outcome":"valid","payload":{},"signature":1,"header":{}}"#, false),
    (#"{"outcome":"valid","payload":{},"signature":"","header":null}"#, false),
    (#"{"outcome":"valid","root_sha256":"00","payload":{},"signature":"","header":{}}"#, false),
    (#"{"outcome":"valid","signed_at":"now","payload":{},"signature":"","header":{}}"#, false),
    (#"{"outcome":"valid","payload_base64url":1,"payload":{},"signature":"","header":{}}"#, false),
  ])
  func aSignedObjectHasWhatTheCatalogueSays(_ object: String, _ isRight: Bool) throws {
    let good = try Self.record("{}")
    var data = String(decoding: Self.upload([good]).data, as: UTF8.self)
    let start = try #require(data.range(of: #""transactions":["#)).upperBound
    data.replaceSubrange(start..., with: object + "]}")
    let result = Result {
      try Array(data.utf8).withUnsafeBytes { _ = try TransactionsReceivedView(data: $0) }
    }
    expectEqual(((try? result.get()) != nil), isRight)
  }

  @Test func aMembersBitIsItsIndexInTheCatalogue() {
    func bits<Member: EventMember>(_: Member.Type) -> [UInt32] { Member.allCases.map(\.bit) }
    let types = [
      bits(ReceiptUploaded.Member.self), bits(ReceiptVerified.Member.self),
      bits(TransactionsReceived.Member.self), bits(NotificationReceived.Member.self),
      bits(TransactionsFetched.Member.self), bits(SignedObjectRecord.Member.self),
    ]
    for bits in types {
      expectEqual(bits, bits.indices.map { 1 << UInt32($0) })
    }
  }
}
