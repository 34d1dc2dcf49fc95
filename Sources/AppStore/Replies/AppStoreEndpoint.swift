// The App Store has two of each service: for purchases, and for tests.

/// The two endpoints of verifyReceipt.
package enum AppStoreEndpoint: String, Sendable, CaseIterable {
  case production, sandbox

  /// The endpoint that statuses 21007 and 21008 point to.
  package var other: AppStoreEndpoint { self == .production ? .sandbox : .production }
}
