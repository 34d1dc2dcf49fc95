// The notifications of invented customers as messages: what is sent, and what is wrong with it on request.
package import AppStoreAuthority
private import Base

/// How a notification is sent otherwise than it should be.
package enum SendFault: String, CaseIterable, Sendable {
  /// Twice.
  case duplicate
  /// After others that are younger.
  case disorder
  /// Not at all.
  case loss
  /// An hour late.
  case delay
  /// Of an app that nobody registered.
  case wrongApp = "wrong_app"
  /// Under a certificate that had expired.
  case expiredLeaf = "expired_leaf"
  /// Signed an hour from now.
  case clockSkew = "clock_skew"
}

/// One notification to send: numbers, from which it is made for each attempt.
package struct PlannedNotification: Sendable {
  package let customer: Int
  /// Among the customer's notifications.
  package let ordinal: Int
  package let faults: Set<SendFault>

  package init(customer: Int, ordinal: Int, faults: Set<SendFault> = []) {
    self.customer = customer
    self.ordinal = ordinal
    self.faults = faults
  }
}

/// Makes the bodies of messages.
package struct NotificationComposer: Sendable {
  package let sales: CustomerTransactions
  package let signer: ObjectSigner
  /// When clocks are skewed, in epoch milliseconds.
  package let skewedMs: Int64

  package init(sales: CustomerTransactions, signer: ObjectSigner, skewedMs: Int64) {
    self.sales = sales
    self.signer = signer
    self.skewedMs = skewedMs
  }

  /// A message's notification, with its faults but unsigned.
  package func notification(_ message: PlannedNotification) -> CustomerTransactions.Notification {
    var told = sales.notifications(customer: message.customer)[message.ordinal]
    if message.faults.contains(.wrongApp) {
      told.payload.bundleID = "com.example.stranger"
      told.transaction?.bundleID = told.payload.bundleID
    }
    if message.faults.contains(.clockSkew) { told.payload.signedMs = skewedMs }
    return told
  }

  /// The body of a request.
  package func body(
    _ told: CustomerTransactions.Notification, _ faults: Set<SendFault> = []
  ) throws(AuthorityError) -> [UInt8] {
    var payload = told.payload
    payload.transaction = try told.transaction.map { transaction throws(AuthorityError) in
      try signer.sign(transaction.json)
    }
    payload.renewal = try told.renewal.map { renewal throws(AuthorityError) in
      try signer.sign(renewal.json)
    }
    return Self.body(
      try signer.sign(payload.json, faults.contains(.expiredLeaf) ? .expiredLeaf : nil))
  }

  static func body(_ object: [UInt8]) -> [UInt8] {
    var json = JSONWriter()
    json.reserve(object.count + 32)
    json.beginObject()
    json.member("signedPayload", text: object)
    json.endObject()
    return json.bytes
  }
}

/// Which notifications of a stream get which faults: the same each time, each fault for itself.
package struct FaultPlan: Sendable {
  package var percents: [SendFault: Int] = [:]
  package let seed: UInt64

  package init(seed: UInt64) { self.seed = seed }

  package func faults(of number: Int) -> Set<SendFault> {
    var faults: Set<SendFault> = []
    for (index, fault) in SendFault.allCases.enumerated() {
      guard let percent = percents[fault] else { continue }
      if Self.hash(seed, UInt64(number), UInt64(index)) % 100 < percent { faults.insert(fault) }
    }
    return faults
  }

  /// How many places later something out of order comes, from 1.
  package func shift(of number: Int) -> Int64 {
    1 + Int64(Self.hash(seed, UInt64(number), 99) % 32)
  }

  private static func hash(_ seed: UInt64, _ number: UInt64, _ kind: UInt64) -> UInt64 {
    var word = seed &+ number &* 0x9E37_79B9_7F4A_7C15 &+ kind &* 0xD129_0B26_8A1F_3C71
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}
