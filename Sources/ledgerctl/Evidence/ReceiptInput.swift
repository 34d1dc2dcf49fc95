// Reads a receipt (raw or in base64) or a signed object for `verify`; and asks the App Store about a receipt.
import AppStore
import Base
import Glibc
import HTTPClient
import Intake
import Ledger

/// The content of a file or standard input, by its form.
enum GivenObject {
  case receipt(ReceiptInput)
  case signedObject(SignedObject)

  /// The limit for base64 including line breaks and other white space.
  private static let textBytesMax = UploadLimits.receiptTextBytes * 3 / 2

  /// Reads a file, or standard input for `-`.
  init(path: String, stop: StopFlag) throws {
    let source = try FileSource(path: path, stop: stop)
    let name = visible(source.name)
    let content = try Self.content(source)
    guard let text = Self.signedObjectText(content) else {
      self = .receipt(try ReceiptInput(content, name: name))
      return
    }
    do throws(SignedObjectFault) { self = .signedObject(try SignedObject(text)) } catch {
      throw Failure(operation: "read signed object", object: name, cause: "\(error)")
    }
  }

  private static func content(_ source: FileSource) throws -> [UInt8] {
    var content: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try source.read(into: buffer)
      if count == 0 { return content }
      content += buffer[..<count]
      if content.count > textBytesMax { throw ReceiptInput.tooLarge(visible(source.name)) }
    }
  }

  /// The signed object in a file's content, alone or as the `signedPayload` of a notification's request; nil if there
  /// is none.
  private static func signedObjectText(_ content: [UInt8]) -> [UInt8]? {
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
    guard let first = content.firstIndex(where: { !isSpace($0) }),
      let last = content.lastIndex(where: { !isSpace($0) })
    else { return nil }
    let text = Array(content[first...last])
    // Base64 has no dots: a flawed text with dots was meant to be a signed object.
    if text.starts(with: "ey".utf8), text.contains(UInt8(ascii: ".")) { return text }
    // A property list may also begin with a brace, and is not JSON.
    guard text[0] == UInt8(ascii: "{"),
      let payload = (try? JSONValue(text))?["signedPayload"]?.stringValue
    else { return nil }
    return Array(payload.utf8)
  }
}

/// A decoded receipt.
struct ReceiptInput {
  /// The decoded file.
  let file: [UInt8]
  let receipt: Receipt

  /// SHA-256 of the file, as in the events of its uploads.
  var digest: SHA256Digest { file.withUnsafeBytes { SHA256.hash($0) } }

  /// Decodes a file's content; detects base64.
  init(_ content: [UInt8], name: String) throws {
    if content.isEmpty { throw Self.failure(name, "is empty") }
    do {
      file = Self.isFile(content) ? content : try content.withUnsafeBytes(ReceiptText.decode)
      guard Base64.characterCount(byteCount: file.count) <= UploadLimits.receiptTextBytes else {
        throw Self.tooLarge(name)
      }
      receipt = try ReceiptFile.decode(file)
    } catch let error as Base64Error {
      // The description begins with the name of the field.
      let fault = error.description.drop { $0 != ":" }
      throw Self.failure(name, "is neither a receipt nor the base64 of one\(fault)")
    } catch let error as ReceiptError {
      throw Self.failure(name, error.cause)
    }
  }

  /// Whether the bytes are a raw receipt: DER, whose second byte is not a character, or a property list.
  private static func isFile(_ content: [UInt8]) -> Bool {
    if content[0] == 0x30, content.count > 1, content[1] >= 0x80 { return true }
    return content.first { $0 > 0x20 } == UInt8(ascii: "{")
  }

  fileprivate static func tooLarge(_ name: String) -> Failure {
    failure(
      name,
      "is larger than \(sizeText(UploadLimits.receiptTextBytes)) in base64, the limit for a receipt"
    )
  }

  private static func failure(_ name: String, _ cause: String) -> Failure {
    Failure(operation: "read receipt", object: name, cause: cause)
  }
}

// MARK: - The App Store's reply

/// A parsed reply about one receipt, for `verify --app-store`, or the reason why there is none.
struct AppStoreFinding {
  let answer: VerifyReceiptResponse
  private(set) var outcome = Outcome.unreachable
  private(set) var status: Int64?
  private(set) var environment: String?
  private(set) var bundleID: String?
  private(set) var purchases: [PurchaseLine] = []

  init(_ answer: VerifyReceiptResponse) throws {
    self.answer = answer
    guard case .json(let bytes) = answer.content else { return }
    try bytes.withUnsafeBytes { bytes in
      let keeper = TextKeeper()
      let reply = try Reply(bytes, keeper)
      outcome = reply.outcome
      status = reply.status
      environment = reply.environment.map { String(decoding: $0, as: UTF8.self) }
      bundleID = reply.bundleID.map { String(decoding: $0, as: UTF8.self) }
      purchases = reply.rows.map { PurchaseLine($0) }
    }
  }

  /// Asks the App Store, and waits for the reply or a signal.
  static func ask(
    _ request: VerifyReceiptRequest, _ options: VerifyReceiptOptions, _ context: Context
  ) throws -> AppStoreFinding {
    let client = try VerifyReceiptClient(options)
    defer { client.shutDown() }
    let arrived = Arrival()
    client.verify(request) { arrived.set($0) }
    while true {
      try context.interruption.check()
      if let answer = arrived.answer { return try AppStoreFinding(answer) }
      poll(nil, 0, 10)
    }
  }

  /// The client's thread stores the reply here.
  private final class Arrival: Sendable {
    private let kept = Monitor<VerifyReceiptResponse?>(nil)

    var answer: VerifyReceiptResponse? { kept.withLock { $0 } }
    func set(_ answer: VerifyReceiptResponse) { kept.withLock { $0 = answer } }
  }

  /// The result in a few words.
  var verdict: String {
    switch answer.content {
    case .none(.httpStatus):
      return "no reply: HTTP status \(answer.httpStatus.map { "\($0)" } ?? "none")"
    case .none(let failure): return "no reply: \(failure.meaning)"
    case .other: return "no reply: the response is not JSON"
    case .json: break
    }
    guard let status else { return "no reply: the JSON has no status" }
    return "status \(status): \(ReplyStatus.meaning(status) ?? "not a documented status")"
  }

  var fields: Fields {
    var fields = [("App Store", verdict), ("endpoint", answer.endpoint.rawValue)]
    if let environment { fields.append(("environment", environment)) }
    if let bundleID { fields.append(("bundle id", bundleID)) }
    return fields
  }

  var record: Record {
    var failure: String?
    if case .none(let cause) = answer.content { failure = cause.rawValue }
    var reply: RawJSON?
    if case .json(let bytes) = answer.content { reply = RawJSON(bytes: bytes) }
    return [
      "outcome": outcome.rawValue, "status": status, "explanation": verdict,
      "endpoint": answer.endpoint.rawValue, "http_status": answer.httpStatus,
      "duration_ms": answer.durationMs, "failure": failure, "environment": environment,
      "bundle_id": bundleID, "purchases": purchases.map(\.record), "reply": reply,
    ]
  }
}
