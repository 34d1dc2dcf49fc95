// Reads what is to be verified: a receipt, raw or in base64, or a signed object.
import AppStore
import Base
import Intake
import JSON

/// What a file or standard input holds, told by its content.
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

  /// The signed object in a content, alone or as the `signedPayload` of a notification's request; nil if there is
  /// none.
  private static func signedObjectText(_ content: [UInt8]) -> [UInt8]? {
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
    guard let first = content.firstIndex(where: { !isSpace($0) }),
      let last = content.lastIndex(where: { !isSpace($0) })
    else { return nil }
    let text = Array(content[first...last])
    // Base64 has no dots: one with a flaw in it was meant to be a signed object.
    if text.starts(with: "ey".utf8), text.contains(UInt8(ascii: ".")) { return text }
    // A property list may begin with a brace too, and is no JSON.
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

  /// Decodes a content; detects base64.
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
