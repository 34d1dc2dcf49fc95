// Certificates for signed objects of the size of Apple's.

extension SignedObjectAuthority.Plan {
  /// Certificates of about 1.0, 0.8 and 0.6 KB, so that objects are as large as real ones.
  package static var realSize: Self {
    var plan = Self()
    plan.root.commentBytes = 136
    plan.intermediate.commentBytes = 261
    plan.leaf.commentBytes = 480
    return plan
  }
}
