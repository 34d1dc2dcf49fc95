// Ledgers that were created apart, with times that a test chooses, and the ledger that is merged from them.
import Base
import Erasure
import Ledger
import Merge
import Projections
import TestSupport
import Testing

/// A ledger of a fleet. Its app family is its own, and ids follow from content as an intake makes them.
final class Shop {
  let fixture: LedgerFixture
  let family: UUID16

  /// - Parameter number: from 1; also orders the ledgers.
  init(_ number: UInt8) throws {
    fixture = try LedgerFixture(id: number, origin: "shop.example/\(number)")
    family = try #require(UUID16("0000000\(number)-9a0b-4c5d-8e6f-112233445566"))
  }

  var directory: LedgerDirectory { fixture.directory }
  var size: Int { get throws { try LogReader(directory).head.size } }

  /// Appends a step in one frame; returns the position of its first event.
  @discardableResult
  func append(_ step: TestEvent, at time: String) throws -> Position {
    try append(drafts: genuine(step.drafts, family), atMs: ms(time))
  }

  @discardableResult
  func append(drafts: [EventDraft], atMs: Int64) throws -> Position {
    let writer = try fixture.writer(atMs: atMs)
    let position = try writer.append(drafts).firstPosition
    try writer.close()
    return position
  }

  /// Registers the app, by default for the bundle that test events name.
  func register(
    _ bundles: [String] = ["app"], products: [AppRegistered.Product] = [], at time: String
  ) throws {
    let app = AppRegistered(
      appFamilyID: family.description, name: "App", bundleIDs: bundles, products: products)
    try append(drafts: [EventDraft(.appRegistered, app.data)], atMs: ms(time))
  }

  /// Erases a user.
  func erase(_ user: String, at time: String) throws {
    try erase(.user(user, appFamily: nil), at: time)
  }

  func erase(_ subject: ErasureSubject, at time: String) throws {
    try ErasureQueue(directory).add(
      ErasureRecord(
        subject, reason: "user_request", requestedAtMs: ms(time), isUrgent: true, id: .random()))
    let writer = try fixture.writer(atMs: ms(time))
    let records = try Eraser(directory, writer, projections: .standard).run(nowMs: ms(time))
    try writer.close()
    try #require(records.allSatisfy { $0.state == .done })
  }
}

/// Test events with the ids that an intake gives them in an app family.
func genuine(_ drafts: [EventDraft], _ family: UUID16) throws -> [EventDraft] {
  try drafts.map { draft in
    var text = String(decoding: draft.data, as: UTF8.self)
    func replace(_ old: String, _ new: String) {
      text = text.split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
    }
    switch EventType(rawValue: draft.type) {
    case .receiptUploaded:
      let view = try draft.data.withUnsafeBytes { try ReceiptUploaded.ids($0) }
      replace(view.id, named(view.digest, family))
    case .transactionsReceived:
      try draft.data.withUnsafeBytes { bytes in
        let view = try TransactionsReceivedView(data: bytes)
        replace(
          view.uploadID?.string ?? "",
          TransactionsReceived.uploadID(of: view.objects.map(\.text), in: family).description)
      }
    default: break
    }
    replace(TestEvent.signedFamily, family.description)
    return EventDraft(
      type: draft.type, version: draft.version, data: Array(text.utf8),
      references: draft.references)
  }
}

private func named(_ digest: SHA256Digest, _ family: UUID16) -> String {
  digest.withUnsafeBytes { UUID16.named($0, in: family) }.description
}

extension ReceiptUploaded {
  fileprivate static func ids(
    _ data: UnsafeRawBufferPointer
  ) throws -> (id: String, digest: SHA256Digest) {
    let view = try ReceiptUploadedView(data: data)
    let hex = try #require(view.receiptSHA256Hex)
    return (
      try #require(view.receiptID).string, try #require(SHA256Digest(hex: hex.raw))
    )
  }
}

// MARK: - Merged ledgers

/// A place for merged ledgers.
final class MergedPlace {
  let temporary: TemporaryDirectory
  var merge = Merge()
  private(set) var forgottenCount = 0

  init() throws {
    temporary = try TemporaryDirectory()
    merge.forgetProjections = { [unowned self] in
      forgottenCount += 1
      try Projector.forgetAll($0)
    }
  }

  func path(_ name: String = "all") -> String { temporary.path(name) }

  @discardableResult
  func merge(
    _ shops: [Shop], until time: String? = nil, into name: String = "all"
  ) throws -> Merge.Report {
    var merge = merge
    merge.untilMs = time.map { ms($0) }
    return try merge.run(shops.map(\.directory), into: path(name))
  }

  func fixture(_ name: String = "all") throws -> LedgerFixture {
    try LedgerFixture(opening: path(name), in: temporary)
  }

  func lines(_ name: String = "all") throws -> [String] { try fixture(name).lines() }

  /// What an audit of the whole log finds.
  func findings(_ name: String = "all") throws -> [String] {
    let report = try LogAudit(try LedgerDirectory.open(path: path(name))).run()
    return report.findings.map { "\($0)" }
  }

  func verification(_ shops: [Shop], _ name: String = "all") throws -> MergeVerification {
    try MergeVerification(
      of: try LedgerDirectory.open(path: path(name)), with: shops.map(\.directory))
  }
}

extension LedgerFixture {
  /// The log's lines.
  func lines() throws -> [String] {
    let reader = try LogReader(directory)
    var lines: [String] = []
    try reader.read(from: 0, to: reader.head.size) { chunk in
      try chunk.forEachEvent { lines.append(String(decoding: $0.bytes, as: UTF8.self)) }
      return true
    }
    return lines
  }

  func csv(_ line: String) throws -> String {
    try csv(try ReportWords(line).request, from: try rebuilt())
  }
}

/// The merged events of a ledger: each with type, time, salt and data, in which positions are named by the events of
/// the sources that stand there.
func comparable(_ lines: [String]) throws -> [String] {
  var names: [Int64: String] = [:]
  var values: [JSONValue] = []
  for line in lines {
    let value = try JSONValue(Array(line.utf8))
    values.append(value)
    guard let position = value["seq"]?.integerValue else { continue }
    let data = value["data"]?["merged"] ?? value["redacted"]?["kept"]?["merged"]
    names[position] = data.map { String(decoding: $0.bytes, as: UTF8.self) }
  }
  let naming: Set = ["upload", "reply_of", "page", "erasure", "position", "by"]
  func renamed(_ value: JSONValue) -> JSONValue {
    switch value {
    case .object(let members):
      .object(
        members.filter { !["seq", "digest", "sha256"].contains($0.key) }.map { member in
          guard naming.contains(member.key), let number = member.value.integerValue,
            let name = names[number]
          else {
            return .init(member.key, member.key == "merged" ? member.value : renamed(member.value))
          }
          return .init(member.key, .string(name))
        })
    case .array(let elements): .array(elements.map(renamed))
    default: value
    }
  }
  return values.compactMap { value in
    guard value["data"]?["merged"] != nil || value["redacted"] != nil else { return nil }
    return String(decoding: renamed(value).bytes, as: UTF8.self)
  }
}
