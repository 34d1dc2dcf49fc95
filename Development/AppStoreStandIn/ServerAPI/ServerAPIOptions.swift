// Of whom the App Store Server API tells, and to whom.
package import AppStoreAuthority

/// What the stand-in needs to answer the App Store Server API.
package struct ServerAPIOptions: Sendable {
  /// Signs what the answers hold.
  package var authority: SignedObjectAuthority
  package var customers: CustomerReceipts
  package var customerCount: Int
  /// The app that all of them bought from.
  package var bundleID: String
  /// How many purchases each customer has made; nil for those of the first receipt, 2 to 5.
  package var transactionCount: Int?
  /// Whose tokens are good.
  package var key: SigningKey
  /// Of each environment; nil for no limit.
  package var callsPerSecond: Int?
  /// Who is notified of tests, and of what control requests make happen.
  package var notifications: NotificationTarget?

  package init(
    authority: SignedObjectAuthority, customers: CustomerReceipts, customerCount: Int,
    bundleID: String, key: SigningKey
  ) {
    self.authority = authority
    self.customers = customers
    self.customerCount = customerCount
    self.bundleID = bundleID
    self.key = key
  }
}
