// What becomes of each member of each type of events in a merged ledger.
import Base
import Ledger

/// How a member's value is mapped.
enum MemberMapping {
  case kept
  /// The position of an earlier event of the same ledger.
  case position
  /// An app family's id.
  case family
  /// The id of a receipt, which follows from its app family and its digest.
  case receiptID
  case receiptDigest
  /// The id of an upload of signed transactions, which follows from its app family and its objects.
  case uploadID
  /// Who uploaded it.
  case user
}

extension ReceiptUploaded.Member {
  var mapping: MemberMapping {
    switch self {
    case .receiptID: .receiptID
    case .appFamilyID: .family
    case .receiptSHA256: .receiptDigest
    case .userIdentifier: .user
    case .style, .bundleID, .occurredAt, .via, .line, .lineSHA256, .countryCode,
      .identifierForVendor, .ipAddress, .metadata, .receipt, .receiptUntil:
      .kept
    }
  }
}

extension ReceiptVerified.Member {
  var mapping: MemberMapping {
    switch self {
    case .upload, .replyOf: .position
    case .authority, .outcome, .environment, .status, .reason, .attempt, .endpoint, .mismatch,
      .host, .via, .occurredAt, .notification, .reply, .replyBase64:
      .kept
    }
  }
}

extension TransactionsReceived.Member {
  var mapping: MemberMapping {
    switch self {
    case .uploadID: .uploadID
    case .appFamilyID: .family
    case .userIdentifier: .user
    case .occurredAt, .via, .line, .lineSHA256, .countryCode, .identifierForVendor, .ipAddress,
      .metadata, .outcome, .fraudReason, .transactions, .appTransaction, .environment:
      .kept
    }
  }
}

extension NotificationReceived.Member {
  var mapping: MemberMapping {
    switch self {
    case .appFamilyID: .family
    case .notificationUUID, .bundleID, .environment, .occurredAt, .via, .line, .lineSHA256, .type,
      .subtype, .transaction, .renewal, .notification:
      .kept
    }
  }
}

extension TransactionsFetched.Member {
  var mapping: MemberMapping {
    switch self {
    case .appFamilyID: .family
    case .bundleID, .environment, .occurredAt, .call, .host, .transactionID, .from, .to,
      .revision, .errorCode, .hasMore, .transactions, .renewals:
      .kept
    }
  }
}

extension EventType {
  /// How a member of the data is mapped. Registrations and lists of redacted lines are mapped as a whole.
  func mapping(of key: JSONString) -> MemberMapping {
    switch self {
    case .receiptUploaded: ReceiptUploaded.Member(key)?.mapping ?? .kept
    case .receiptVerified: ReceiptVerified.Member(key)?.mapping ?? .kept
    case .transactionsReceived: TransactionsReceived.Member(key)?.mapping ?? .kept
    case .notificationReceived: NotificationReceived.Member(key)?.mapping ?? .kept
    case .transactionsFetched: TransactionsFetched.Member(key)?.mapping ?? .kept
    case .signaturesAccepted: key == "page" ? .position : .kept
    case .pricesWithdrawn, .ratesWithdrawn: key == "position" ? .position : .kept
    // They name no event, family or user.
    case .pricesDeclared, .ratesDeclared, .settlementDeclared, .settlementMapped, .trustDeclared:
      .kept
    case .appRegistered, .dataRedacted: .kept
    // Not copied.
    case .snapshotCreated, .historyAccepted, .mergedFrom: .kept
    }
  }
}
