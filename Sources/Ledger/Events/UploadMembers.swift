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

/// What an upload's event says about the request.
protocol UploadContent {
  var origin: ReceiptUploaded.Origin { get }
  var countryCode: String? { get }
  var identifierForVendor: String? { get }
  var userIdentifier: String? { get }
  var ipAddress: String? { get }
  var metadata: [UInt8]? { get }
}

extension ReceiptUploaded: UploadContent {}
extension TransactionsReceived: UploadContent {}

extension UploadContent {
  /// Writes `via` to `metadata`, in the catalogue's order.
  func writeRequestMembers(to writer: inout JSONWriter) {
    origin.writeMembers(to: &writer)
    writer.member("country_code", ifPresent: countryCode)
    writer.member("identifier_for_vendor", ifPresent: identifierForVendor)
    writer.member("user_identifier", ifPresent: userIdentifier)
    writer.member("ip_address", ifPresent: ipAddress)
    guard let metadata else { return }
    writer.key("metadata")
    metadata.withUnsafeBytes { writer.raw($0) }
  }
}

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
    case .fetch:
      writer.member("via", "fetch")
    }
  }
}
