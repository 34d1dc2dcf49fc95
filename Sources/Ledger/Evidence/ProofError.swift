// Why a key, a signed note, a checkpoint or a proof is not accepted.

/// A refusal: the object that was checked and what is wrong with it. Never contains a private key.
package struct ProofError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was checked: "signed note", "checkpoint", "inclusion proof".
  package let object: String
  /// What is wrong with it.
  package let cause: String
  /// Whether the bytes lack the object's form. They are then evidence of nothing.
  package let lacksForm: Bool

  package init(_ object: String, _ cause: String, lacksForm: Bool = false) {
    self.object = object
    self.cause = cause
    self.lacksForm = lacksForm
  }

  package var description: String { "\(object): \(cause)" }
}
