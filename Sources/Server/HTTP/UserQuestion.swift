// A question of a company's own back end, as it came over the network.
package import Base
package import Projections

extension ClientAnswer {
  /// How it counts as the answer to a question about a user.
  var questionResult: Metrics.QuestionResult {
    switch self {
    case .ownership: .answered
    case .unavailable: .unavailable
    default: .refused
    }
  }
}

/// A question about one user.
package struct UserQuestion: Sendable {
  package let question: OwnershipQuestion
  /// As uploads name the user, or `token:` and an `appAccountToken`. No message contains it.
  package let user: String
  /// The app family of the token.
  package let appFamily: UUID16

  package init(_ question: OwnershipQuestion, user: String, appFamily: UUID16) {
    self.question = question
    self.user = user
    self.appFamily = appFamily
  }
}
