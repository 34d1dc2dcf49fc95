// Reads a receipt from a file, raw or in base64.
import AppStore
import Base
import Intake

/// A decoded receipt.
struct ReceiptInput {
  /// The decoded file.
  let file: [UInt8]
  let receipt: Receipt

  /// SHA-256 of the file, as in the events of its uploads.
  var digest: SHA256Digest { file.withUnsafeBytes { SHA256.hash($0) } }

  /// The limit for base64 including line breaks and other white space.
  private static let textBytesMax = UploadLimits.receiptTextBytes * 3 / 2

  /// Reads a file, or standard input for `-`. Detects base64 by content.
  init(path: String, stop: StopFlag) throws {
    let source = try FileSource(path: path, stop: stop)
    let name = visible(source.name)
    let content = try Self.content(source)
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

  private static func content(_ source: FileSource) throws -> [UInt8] {
    var content: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try source.read(into: buffer)
      if count == 0 { return content }
      content += buffer[..<count]
      if content.count > textBytesMax { throw tooLarge(visible(source.name)) }
    }
  }

  /// Whether the bytes are a raw receipt: DER, whose second byte is not a character, or a property list.
  private static func isFile(_ content: [UInt8]) -> Bool {
    if content[0] == 0x30, content.count > 1, content[1] >= 0x80 { return true }
    return content.contains(UInt8(ascii: "{"))
      && content.first { $0 > 0x20 }.map { "{/".utf8.contains($0) } ?? false
  }

  private static func tooLarge(_ name: String) -> Failure {
    failure(
      name,
      "is larger than \(sizeText(UploadLimits.receiptTextBytes)) in base64, the limit for a receipt"
    )
  }

  private static func failure(_ name: String, _ cause: String) -> Failure {
    Failure(operation: "read receipt", object: name, cause: cause)
  }
}
