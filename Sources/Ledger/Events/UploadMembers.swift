// What the two types of uploads have in common: where an upload came from, and the request's optional fields.
import Base
package import JSON

/// The optional fields of an upload, as the fold reads them: they point into the event's bytes.
package protocol UploadView {
  /// The line's number in the import file, from 1.
  var line: Int64? { get }
  var lineSHA256Hex: JSONString? { get }
  var countryCode: JSONString? { get }
  var identifierForVendor: JSONString? { get }
  var userIdentifier: JSONString? { get }
  var ipAddress: JSONString? { get }
  /// The metadata as written, one JSON object.
  var metadata: JSONBytes? { get }
}

extension ReceiptUploadedView: UploadView {}
extension TransactionsReceivedView: UploadView {}

extension ReceiptUploaded.Origin {
  /// Writes `via` and, for an import, the line.
  func writeMembers(to writer: inout JSONWriter) {
    switch self {
    case .http:
      writer.member("via", "http")
    case .importLine(let number, let sha256Hex):
      writer.member("via", "import")
      writer.member("line", number)
      writer.member("line_sha256", sha256Hex)
    }
  }
}
