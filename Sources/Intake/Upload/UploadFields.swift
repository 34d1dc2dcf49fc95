// The fields of one upload, of a receipt or of signed transactions, as HTTP requests contain them.
package import AppStore
package import Base

/// An upload of a receipt whose fields are all valid.
package struct UploadFields: Sendable {
  /// The receipt's base64, normalised.
  package var receiptText: [UInt8]
  /// The decoded receipt file.
  package var receiptFile: [UInt8]
  package var client: ClientFields
}

/// An upload of signed transactions whose fields are all valid. Its signatures have yet to be checked.
package struct SignedUploadFields: Sendable {
  /// From 1 to `UploadLimits.signedTransactions`, in the order of the list.
  package var transactions: [SignedObject]
  package var appTransaction: SignedObject?
  /// `Production` or `Sandbox`, as an operator states for objects that name none; clients cannot.
  package var environment: String?
  package var client: ClientFields
}

/// The limits on an upload's fields.
package enum UploadLimits {
  /// The receipt's base64, normalised.
  package static let receiptTextBytes = 4 << 20
  /// The metadata, without white space.
  package static let metadataBytes = 64 << 10
  /// Nesting levels of the metadata, including its outermost object.
  package static let metadataLevels = 32
  /// Unicode scalars in an identifier: the user's or the vendor's.
  package static let identifierCharacters = 255
  /// Transactions in one list.
  package static let signedTransactions = 100
}

/// Reads the properties of an upload one by one and finds every problem.
package protocol FieldReader {
  associatedtype Fields
  /// The problems found so far.
  var problems: [FieldProblem] { get }
  /// Whether the upload, as far as it has been read, asks not to store its client's address.
  var withholdsClientAddress: Bool { get }
  /// Reads the value at the cursor if `key` is a property of an upload.
  /// - Returns: false, with the value unread, for any other key.
  mutating func read(_ key: JSONString, from cursor: inout JSONCursor) throws(JSONError) -> Bool
  /// Finishes reading. Returns nil if there are problems.
  mutating func finish() -> Fields?
}

/// Reads the properties of an upload of a receipt one by one and finds every problem, not only the first. The
/// JSON text must have been validated and have no white space between tokens.
package struct UploadFieldReader: FieldReader {
  private var client = ClientFieldReader()
  private var receipt: ReceiptReader

  /// - Parameter signedObjectAdvice: advice for a signed object that is sent as a receipt.
  package init(signedObjectAdvice advice: String = "it belongs in signed_transactions") {
    receipt = ReceiptReader(signedObjectAdvice: advice)
  }

  package var problems: [FieldProblem] { client.problems }
  package var withholdsClientAddress: Bool { client.fields.address == .withheld }

  package mutating func read(
    _ key: JSONString, from cursor: inout JSONCursor
  ) throws(JSONError) -> Bool {
    if key == "receipt" {
      try receipt.read(from: &cursor, &client)
      return true
    }
    return try client.read(key, from: &cursor)
  }

  package mutating func finish() -> UploadFields? {
    if !receipt.isGiven { client.add(FieldProblem("receipt", .missing, "is missing")) }
    return receipt.fields(client)
  }
}

/// Reads the properties of an upload of signed transactions in the same way.
package struct SignedUploadFieldReader: FieldReader {
  private var client = ClientFieldReader()
  private var signed = SignedTransactionsReader()

  package init() {}

  package var problems: [FieldProblem] { client.problems }
  package var withholdsClientAddress: Bool { client.fields.address == .withheld }

  package mutating func read(
    _ key: JSONString, from cursor: inout JSONCursor
  ) throws(JSONError) -> Bool {
    if key == "signed_transactions" {
      try signed.readList(from: &cursor, &client)
    } else if key == "app_transaction" {
      try signed.readAppTransaction(from: &cursor, &client)
    } else {
      return try client.read(key, from: &cursor)
    }
    return true
  }

  package mutating func finish() -> SignedUploadFields? {
    if !signed.isGiven {
      client.add(FieldProblem("signed_transactions", .missing, "is missing"))
    }
    return signed.fields(client)
  }
}
