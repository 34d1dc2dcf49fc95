// Why bytes are not a receipt. No message ever shows a byte of the receipt.
package import Base

/// Why a receipt file cannot be decoded.
package enum ReceiptError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No bytes at all.
  case empty
  /// Neither PKCS#7 nor a property list.
  case unknownStyle
  /// ASN.1 that is damaged, or is not PKCS#7 SignedData with content.
  case envelope(DERError)
  /// PKCS#7 of a type other than SignedData over data.
  case notSignedData
  /// The content is not a set of attributes.
  case attributes(DERError)
  /// The value of an attribute does not match its type.
  case attribute(type: Int64, AttributeProblem)
  /// More purchases than `ReceiptFile.maximumPurchaseCount`.
  case tooManyPurchases
  /// A damaged property list; `part` says which of the two.
  case propertyList(part: TransactionPart, PropertyListError)
  /// A property list without a field that every receipt has.
  case missingField(TransactionPart, field: String)
  /// A field that should hold base64 but does not.
  case base64(field: String, Base64Error)
  /// An invalid date or flag.
  case invalidField(field: String)
  /// A unified receipt without attribute 2.
  case missingBundleID

  /// What can be wrong with one attribute.
  package enum AttributeProblem: Equatable, Sendable {
    case malformed(DERError)
    case notText
    case notUTF8
    case notADate
  }

  /// The two property lists of a transaction receipt.
  package enum TransactionPart: String, Sendable {
    case file = "receipt"
    case purchaseInfo = "purchase-info"
  }

  package var description: String { "decode receipt: \(cause)" }

  /// What is wrong, without the operation.
  package var cause: String {
    switch self {
    case .empty: "empty"
    case .unknownStyle: "neither a PKCS#7 file nor a property list"
    case .envelope(let error): "PKCS#7: \(error)"
    case .notSignedData: "PKCS#7: not SignedData with content"
    case .attributes(let error): "attributes: \(error)"
    case .attribute(let type, let problem): "attribute \(type): \(Self.describe(problem))"
    case .tooManyPurchases: "more than \(ReceiptFile.maximumPurchaseCount) purchases"
    case .propertyList(let part, let error): "property list \(part.rawValue): \(error)"
    case .missingField(let part, let field): "property list \(part.rawValue): no field \(field)"
    case .base64(let field, let error): "field \(field): \(error)"
    case .invalidField(let field): "field \(field): not a valid value"
    case .missingBundleID: "no bundle id (attribute 2)"
    }
  }

  private static func describe(_ problem: AttributeProblem) -> String {
    switch problem {
    case .malformed(let error): "\(error)"
    case .notText: "not a string"
    case .notUTF8: "not UTF-8"
    case .notADate: "not an RFC 3339 date"
    }
  }
}
