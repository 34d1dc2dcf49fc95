// What the rules know about one event: its reply or signed transactions, its upload, and the reply's source.
package import AppStore

/// A verification that counts (rule R1), with its upload; or an event with signed transactions (rule R12).
package struct Verification {
  package var position: Int
  /// Epoch milliseconds.
  package var occurredAtMs: Int64
  package var recordedAtMs: Int64
  /// The reply's `receipt.request_date_ms`.
  package var requestDateMs: Int64?
  /// When a version 1 notification arrived, which is the time of its renewal information; nil for any other reply.
  package var notifiedAtMs: Int64?
  package var environment: Symbol
  package var bundle: Symbol
  /// Nil for a notification.
  package var upload: UploadEvidence?
  package var trust: ReplyTrust
  /// The products that the app family declares; nil if it declares none.
  package var products: DeclaredProducts?
  /// Whether it stands in for the App Store's reply while that is pending (rule R1, *pending*).
  package var isPending = false

  package init(
    position: Int, occurredAtMs: Int64, recordedAtMs: Int64, requestDateMs: Int64?,
    environment: Symbol, bundle: Symbol, upload: UploadEvidence?, trust: ReplyTrust,
    products: DeclaredProducts? = nil, isPending: Bool = false
  ) {
    self.position = position
    self.occurredAtMs = occurredAtMs
    self.recordedAtMs = recordedAtMs
    self.requestDateMs = requestDateMs
    self.environment = environment
    self.bundle = bundle
    self.upload = upload
    self.trust = trust
    self.products = products
    self.isPending = isPending
  }
}

/// An event with signed transactions that count (rule R12). Each transaction names its own environment and bundle.
package struct SignedEvidence {
  package var position: Int
  /// Epoch milliseconds.
  package var recordedAtMs: Int64
  /// Nil for a notification.
  package var upload: UploadEvidence?
  /// The products that the uploading app family declares; nil if it declares none.
  package var products: DeclaredProducts?

  package init(
    position: Int, recordedAtMs: Int64, upload: UploadEvidence?, products: DeclaredProducts? = nil
  ) {
    self.position = position
    self.recordedAtMs = recordedAtMs
    self.upload = upload
    self.products = products
  }

  /// The event as evidence for a transaction of an environment and a bundle.
  func verification(environment: Symbol, bundle: Symbol, trust: ReplyTrust) -> Verification {
    Verification(
      position: position, occurredAtMs: recordedAtMs, recordedAtMs: recordedAtMs,
      requestDateMs: nil, environment: environment, bundle: bundle, upload: upload, trust: trust,
      products: products)
  }
}

/// One signed transaction that counts, and the trust in the root that its signature leads to.
package struct SignedStatement {
  package var transaction: SignedTransaction
  package var trust: ReplyTrust

  package init(_ transaction: SignedTransaction, trust: ReplyTrust) {
    (self.transaction, self.trust) = (transaction, trust)
  }
}

/// The evidence of an upload for the sales in its verifications.
package struct UploadEvidence {
  package var position: Int
  /// Epoch milliseconds.
  package var occurredAtMs: Int64
  package var country: Symbol
  package var user: Int32
  /// One JSON object, or empty.
  package var metadata: Text

  package init(position: Int, occurredAtMs: Int64, country: Symbol, user: Int32, metadata: Text) {
    self.position = position
    self.occurredAtMs = occurredAtMs
    self.country = country
    self.user = user
    self.metadata = metadata
  }
}

// MARK: - Source of a reply

/// The source of the reply in which a sale was first observed.
public enum ReplyTrust: Int8, CaseIterable, BitwiseCopyable, Sendable {
  /// A program version that did not record the source wrote the event.
  case notRecorded
  /// One of Apple's hosts replied.
  case appStore
  /// A host configured by an operator replied.
  case configured
  /// The reply was imported.
  case imported
  /// There is no reply yet: the sale is pending (rule R1).
  case unconfirmed

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .notRecorded: "not_recorded"
    case .appStore: "app_store"
    case .configured: "configured"
    case .imported: "imported"
    case .unconfirmed: "unconfirmed"
    }
  }
}

// MARK: - Order of rows

extension ReplyRow {
  /// R2: sorts the rows of one sale. Rows of `latest_receipt_info` come first, then the smaller purchase
  /// date, the smaller transaction id and the original order decide.
  package static func inOrder(_ rows: [ReplyRow]) -> [ReplyRow] {
    rows.enumerated().sorted { left, right in
      precedes(left.element, left.offset, right.element, right.offset)
    }.map(\.element)
  }

  /// R2: whether one row comes before another, given their indexes.
  static func precedes(
    _ one: ReplyRow, _ index: Int, _ other: ReplyRow, _ otherIndex: Int
  ) -> Bool {
    let isLatest = one.source == .latestReceiptInfo
    if isLatest != (other.source == .latestReceiptInfo) { return isLatest }
    let dates = (one.purchaseDateMs ?? .min, other.purchaseDateMs ?? .min)
    if dates.0 != dates.1 { return dates.0 < dates.1 }
    let none = Text(start: nil, count: 0)
    let ids = (one.transactionID ?? none).order(other.transactionID ?? none)
    return ids != 0 ? ids < 0 : index < otherIndex
  }
}
