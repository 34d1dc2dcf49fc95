// Shared by import tests: inputs, fakes of the ledger, lines.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

/// Accepts drafts, assigns their positions, and fills in the references.
final class FakeAppender: EventAppender {
  private(set) var submissions: [[EventDraft]] = []
  /// The data of all events, with positions in place.
  private(set) var events: [(type: String, data: JSONValue)] = []
  var failsAfter = Int.max
  /// Waiting for events at or after this position fails.
  var isDurableBefore = Int.max
  /// Submissions that are lost while later ones are kept, as on a full disk.
  var lost: Set<Int> = []
  /// The numbers of submissions by their first positions.
  private var numbers: [Position: Int] = [:]
  var onSubmit: () -> Void = {}

  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Range<Position> {
    guard submissions.count < failsAfter else {
      throw LedgerError(.inputOutput, operation: "append", object: "log", cause: "the disk is full")
    }
    let first = events.count
    for draft in drafts {
      var data = draft.data
      for reference in draft.references.reversed() {
        data.insert(
          contentsOf: Array(String(first + reference.eventIndex).utf8), at: reference.offsetBytes)
      }
      // The event must be one compact JSON object, or readers could not parse it.
      var compact: [UInt8] = []
      try? data.withUnsafeBytes { try JSONValidator.compact($0, to: &compact) }
      guard let value = try? JSONValue(data), compact == data else {
        Issue.record("an event whose data is no compact JSON")
        continue
      }
      events.append((draft.type, value))
    }
    numbers[first] = submissions.count
    submissions.append(drafts)
    onSubmit()
    return first..<events.count
  }

  func positions(of ticket: Range<Position>) throws(LedgerError) -> Range<Position> {
    if ticket.upperBound > isDurableBefore || lost.contains(numbers[ticket.lowerBound] ?? -1) {
      throw LedgerError(.inputOutput, operation: "append", object: "log", cause: "the sync failed")
    }
    return ticket
  }
  func flush() throws(LedgerError) {}
}

struct FakeFamilies: AppFamilies {
  static let id = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  var bundles: Set<String> = [Sample.bundleID]
  /// Set in tests where lookups fail.
  var failing: StopFlag?

  var appAppleID: Int64?

  func appAppleID(ofFamily id: String) -> Int64? { appAppleID }

  func id(forBundleID bundleID: String) -> String? {
    failing?.set()
    return failing != nil ? nil : bundles.contains(bundleID) ? Self.id : nil
  }
}

final class FakeKnownLines: KnownLines, KnownNotifications {
  var digests: Set<SHA256Digest> = []
  /// Set in tests where lookups fail.
  var failing: StopFlag?

  var notifications: Set<String> = []

  func contains(_ digest: SHA256Digest) -> Bool {
    failing?.set()
    return failing != nil || digests.contains(digest)
  }

  func contains(notificationUUID: String) -> Bool {
    failing?.set()
    return failing != nil || notifications.contains(notificationUUID)
  }
}

struct FakeChecker: SignatureChecker {
  var verdict = LocalVerification.valid

  func check(_ receiptFile: UnsafeRawBufferPointer, _ receipt: Receipt) -> LocalVerification {
    verdict
  }
}

enum Sample {
  static let bundleID = "com.example.app"
  static let nowMs: Int64 = 1_790_000_000_000

  /// A legacy receipt that decodes; it carries no signature.
  static func receipt(bundleID: String = bundleID, transaction: Int = 1) -> String {
    let info = """
      {
      \t"bid" = "\(bundleID)";
      \t"transaction-id" = "\(transaction)";
      \t"purchase-date-ms" = "1447821281000";
      }
      """
    let file = "{\n\t\"purchase-info\" = \"\(base64(info))\";\n}"
    return base64(file)
  }

  static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  static let reply =
    #"{"status":0,"environment":"Production","receipt":{"bundle_id":"com.example.app","in_app":[]}}"#

  /// A line with a receipt and these other members.
  static func line(_ members: String = "", transaction: Int = 1) -> String {
    let rest = members.isEmpty ? "" : "," + members
    return #"{"marketplace":"itunes","receipt":"\#(receipt(transaction: transaction))"\#(rest)}"#
  }

  static func recorded(_ members: String = "", reply: String = reply, transaction: Int = 1)
    -> String
  {
    let rest = members.isEmpty ? "" : "," + members
    return line(#""verification":{"reply":\#(reply)\#(rest)}"#, transaction: transaction)
  }

  static func hex(_ text: String) -> String {
    Array(text.utf8).withUnsafeBytes { SHA256.hash($0) }.hex
  }
}

extension TemporaryDirectory {
  func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let file = path(name)
    try Data(bytes).write(to: URL(fileURLWithPath: file))
    return file
  }

  func write(_ name: String, _ text: String) throws -> String {
    try write(name, Array(text.utf8))
  }
}

/// One import in memory, without a ledger.
struct ImportRun {
  var appender = FakeAppender()
  var families = FakeFamilies()
  var known = FakeKnownLines()
  var checker = FakeChecker()
  var signedObjects = SignedObjectVerifier()
  /// To be recorded before the first check of a signature.
  var trust: TrustDeclared?
  var options = ImportOptions()
  var stop = StopFlag()

  func callAsFunction(
    _ content: [UInt8]
  ) throws -> (summary: ImportSummary, problems: [ImportProblem]) {
    let directory = try TemporaryDirectory()
    return try run([try directory.write("import.ndjson", content)])
  }

  func callAsFunction(
    lines: String...
  ) throws -> (summary: ImportSummary, problems: [ImportProblem]) {
    try self(Array(lines.joined(separator: "\n").utf8))
  }

  func run(_ paths: [String]) throws -> (summary: ImportSummary, problems: [ImportProblem]) {
    var problems: [ImportProblem] = []
    let inputs = try ImportInput.openAll(
      paths, spoolFolder: options.isStrict ? Folder(path: NSTemporaryDirectory()) : nil, stop: stop)
    let importer = Importer(
      inputs, into: appender, families: families, known: known, verifier: checker,
      signedObjects: signedObjects, options: options, trust: trust, stop: stop,
      nowMs: { Sample.nowMs }, onProblem: { problems.append($0) })
    return (importer.run(), problems)
  }
}

/// Gzip without compression, made by hand so that tests know every byte.
enum Gzip {
  static func member(_ content: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    var place = 0
    repeat {
      let count = min(65535, content.count - place)
      bytes.append(place + count == content.count ? 1 : 0)
      bytes += little(UInt32(count), 2) + little(UInt32(~count & 0xFFFF), 2)
      bytes += content[place..<place + count]
      place += count
    } while place < content.count
    return bytes + little(checksum(content), 4) + little(UInt32(content.count), 4)
  }

  private static func little(_ value: UInt32, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * $0)) }
  }

  private static func checksum(_ content: [UInt8]) -> UInt32 {
    var value: UInt32 = ~0
    for byte in content {
      value ^= UInt32(byte)
      for _ in 0..<8 { value = value >> 1 ^ (value & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
    return ~value
  }
}

/// Bytes in memory, delivered in pieces of a chosen size.
final class MemorySource: ByteSource {
  private let bytes: [UInt8]
  private var place = 0
  private let pieceBytes: () -> Int
  var fault: Failure?

  init(_ bytes: [UInt8], pieceBytes: @escaping () -> Int = { 7 }) {
    self.bytes = bytes
    self.pieceBytes = pieceBytes
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
    let count = min(max(pieceBytes(), 1), bytes.count - place, buffer.count)
    if count == 0, let fault { throw fault }
    buffer.copyBytes(from: bytes[place..<place + count])
    place += count
    return count
  }
}

extension SignedSample {
  static let app = SignedSample(bundleID: Sample.bundleID)

  /// A line with these transactions and these other members.
  func line(_ transactions: [String], _ members: String = "") -> String {
    let list = transactions.map { "\"\($0)\"" }.joined(separator: ",")
    let rest = members.isEmpty ? "" : "," + members
    return #"{"marketplace":"itunes","signed_transactions":[\#(list)]\#(rest)}"#
  }

  func line(notification: String, _ members: String = "") -> String {
    let rest = members.isEmpty ? "" : "," + members
    return #"{"marketplace":"itunes","notification":"\#(notification)"\#(rest)}"#
  }

  /// A notification about signed objects.
  func notification(transaction: String, renewal: String? = nil) throws -> String {
    try sign(
      notificationPayload(
        subtype: "BILLING_RECOVERY",
        [
          "signedTransactionInfo": "\"\(transaction)\"",
          "signedRenewalInfo": renewal.map { "\"\($0)\"" },
        ]))
  }
}

extension ImportRun {
  /// An import that trusts the test chain.
  static func signed() throws -> ImportRun {
    var run = ImportRun()
    run.signedObjects = try SignedSample.authority.get().verifier
    return run
  }
}
