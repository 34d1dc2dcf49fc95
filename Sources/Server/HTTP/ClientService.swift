// The service behind the client API, independent of the transport: uploads, receipts, questions, erasures, health.
package import Base
package import Intake
package import Projections

/// The result of a request of the client API.
package enum ClientResponse: Sendable {
  /// 200, 206 or 402, with the resource of the receipt, or of the signed transactions, as JSON.
  case receipt(status: Int, body: ResponseBody)
  /// 200: what a user bought or owns.
  case ownership(ResponseBody)
  /// 202: an erasure request is durable, under this id.
  case erasureAccepted(id: UUID16, ResponseBody)
  /// 200: the state of an erasure request.
  case erasure(ResponseBody)
  /// 404: there is no such request of this app family.
  case erasureNotFound
  /// The result of a notification of the App Store.
  case notification(NotificationResponse)
  /// 422: every problem that was found.
  case refused([FieldProblem])
  /// 503: the problems of an upload that will be valid once this clock has reached the App Store's.
  case later([FieldProblem], afterSeconds: Int)
  /// 404: there is no such receipt of this app family.
  case notFound
  /// 503: too much is in progress, or the log cannot be appended to.
  case unavailable(retryAfterSeconds: Int)
}

/// One upload as received.
package struct ClientUpload<Fields: Sendable>: Sendable {
  package let fields: Fields
  /// The app family of the token.
  package let appFamily: UUID16
  /// The client's address, for uploads that name none themselves.
  package let peerAddress: String?
  /// Epoch milliseconds.
  package let receivedAtMs: Int64

  package init(fields: Fields, appFamily: UUID16, peerAddress: String?, receivedAtMs: Int64) {
    (self.fields, self.appFamily) = (fields, appFamily)
    (self.peerAddress, self.receivedAtMs) = (peerAddress, receivedAtMs)
  }
}

/// The service that answers the client API.
package protocol ClientService: AnyObject, Sendable {
  /// Accepts an upload and calls `completion` exactly once, on any thread, possibly before it returns. Never blocks for
  /// long: what can't be queued is answered `unavailable`.
  func upload(
    _ upload: ClientUpload<UploadFields>, completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Accepts an upload of signed transactions in the same way.
  func transactions(
    _ upload: ClientUpload<SignedUploadFields>,
    completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Accepts a notification of the App Store in the same way; the response comes once it is durable, before any fold.
  func notification(
    _ notification: PostedNotification, completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Looks up a receipt by its id. Another family's receipt is not found.
  func receipt(
    _ id: UUID16, of appFamily: UUID16, completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Answers a question about a user of an app family.
  func answer(
    _ question: UserQuestion, completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Accepts a request to erase a user; the response comes once it is durable, before anything is erased. It never
  /// reveals whether the user exists.
  func erase(_ order: ErasureOrder, completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Looks up an erasure request. Another family's is not found.
  func erasure(
    _ id: UUID16, of appFamily: UUID16, completion: @escaping @Sendable (ClientResponse) -> Void)
  /// Whether events can be appended.
  var canAppend: Bool { get }
  /// Why an upload would not be accepted now; nil if it would.
  var refusal: UploadRefusal? { get }
}

/// Why no upload is accepted now; the text continues "not ready: ".
package enum UploadRefusal: String, Sendable, CaseIterable {
  case stopping = "the server is stopping"
  case appendsFail = "events cannot be appended"
  case foldsFail = "the projections cannot be brought up to date"
  case busy = "the server is busy"
}

// MARK: - Questions about users

extension ClientResponse {
  /// The result under which a response to a question about a user is counted.
  var questionResult: Metrics.QuestionResult {
    switch self {
    case .ownership: .answered
    case .unavailable: .unavailable
    default: .refused
    }
  }
}

/// A back end's question about one user, as received.
package struct UserQuestion: Sendable {
  package let question: OwnershipQuestion
  /// In the form in which uploads name the user, or `token:` and an `appAccountToken`. No message contains it.
  package let user: String
  /// The app family of the token.
  package let appFamily: UUID16

  package init(_ question: OwnershipQuestion, user: String, appFamily: UUID16) {
    self.question = question
    self.user = user
    self.appFamily = appFamily
  }
}
