// The errors of the App Store Server API.
import Base

/// An error as the App Store tells it; the first three digits are the HTTP status.
struct ServerAPIError: Error, Equatable {
  let code: Int
  let message: String

  init(_ code: Int, _ message: String) {
    self.code = code
    self.message = message
  }

  static let revision = ServerAPIError(4_000_005, "Invalid request revision.")
  static let transactionID = ServerAPIError(4_000_006, "Invalid transaction id.")
  static let startTooEarly = ServerAPIError(
    4_000_012, "Invalid request. The start date is earlier than the allowed start date.")
  static let startAfterEnd = ServerAPIError(
    4_000_013, "Invalid request. The end date precedes the start date or the dates are the same.")
  static let paginationToken = ServerAPIError(
    4_000_014, "Invalid request. The pagination token is invalid.")
  static let startDate = ServerAPIError(
    4_000_015, "Invalid request. The start date is invalid or missing.")
  static let endDate = ServerAPIError(
    4_000_016, "Invalid request. The end date is invalid or missing.")
  static let testToken = ServerAPIError(
    4_000_020, "Invalid request. The test notification token is invalid.")
  static let sort = ServerAPIError(4_000_021, "Invalid request. The sort parameter is invalid.")
  static let status = ServerAPIError(
    4_000_031, "Invalid request. The status parameter is invalid.")
  static let noNotificationURL = ServerAPIError(
    4_040_007, "No App Store Server Notification URL found for provided app.")
  static let noTest = ServerAPIError(
    4_040_008, "Either the test notification token is expired or it was never issued.")
  static let noTransaction = ServerAPIError(4_040_010, "Transaction id not found.")
  static let rate = ServerAPIError(4_290_000, "Rate limit exceeded.")
  static let unknown = ServerAPIError(5_000_000, "An unknown error occurred.")

  private static let known = [
    revision, transactionID, startTooEarly, startAfterEnd, paginationToken, startDate, endDate,
    testToken, sort, status, noNotificationURL, noTest, noTransaction, rate, unknown,
  ]

  /// An error by its code, which may be none that the stand-in has itself.
  init(code: Int) {
    self = Self.known.first { $0.code == code } ?? ServerAPIError(code, "An error.")
  }

  var httpStatus: Int { code / 10_000 }

  var body: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.member("errorCode", code)
    json.member("errorMessage", message)
    json.endObject()
    return json.bytes
  }
}
