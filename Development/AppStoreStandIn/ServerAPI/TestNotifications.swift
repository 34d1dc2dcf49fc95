// The test notification of the App Store Server API: asked for, and asked about.
import AppStore
import AppStoreAuthority
import Base

extension ServerAPIDesk {
  /// A test notification of the app.
  func test(
    _ environment: AppStoreEndpoint, uuid: String, atMs: Int64
  ) -> CustomerTransactions.Notification {
    var receipt = options.customers.receipt(customer: 0, ordinal: 0)
    receipt.environment = environment == .sandbox ? "ProductionSandbox" : "Production"
    return sales.notification(Incident("TEST", nil, nil, atMs: atMs), of: receipt, uuid: uuid)
  }

  func requestTest(_ request: ServerAPIRequest, _ moment: Moment) throws -> [UInt8] {
    guard let dispatcher else { throw ServerAPIError.noNotificationURL }
    var json = JSONWriter()
    json.beginObject()
    json.member("testNotificationToken", try dispatcher.sendTest(request.environment, moment))
    json.endObject()
    return json.bytes
  }

  func testStatus(_ token: String, _ request: ServerAPIRequest) throws -> [UInt8] {
    guard let test = dispatcher?.test(token), test.isSandbox == (request.environment == .sandbox) else {
      throw ServerAPIError.noTest
    }
    var json = JSONWriter()
    json.beginObject()
    json.member("signedPayload", text: test.payload)
    Self.write(test.attempts, to: &json)
    json.endObject()
    return json.bytes
  }

  static func write(_ attempts: [NotificationDispatcher.Attempt], to json: inout JSONWriter) {
    json.key("sendAttempts")
    json.beginArray()
    for attempt in attempts {
      json.beginObject()
      json.member("attemptDate", attempt.atMs)
      json.member("sendAttemptResult", attempt.result.name)
      json.endObject()
    }
    json.endArray()
  }
}
