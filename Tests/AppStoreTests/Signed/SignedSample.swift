// Payloads of signed objects for tests, and verdicts in one call.

import AppStore
import AppStoreAuthority
import Base

enum SignedSample {
  /// 2026-01-02T03:04:05.678Z, at which the test authority's certificates are valid.
  static let signedDateMs: Int64 = 1_767_323_045_678

  /// A small transaction, with members replaced by name.
  static func transaction(
    environment: String = "Sandbox", signedDate: String = "\(signedDateMs)", more: String = ""
  ) -> [UInt8] {
    let text = """
      {"transactionId":"2000000000000002","originalTransactionId":"2000000000000001",\
      "bundleId":"com.example.app","productId":"pro.month","purchaseDate":1767323040000,\
      "quantity":1,"type":"Auto-Renewable Subscription","environment":"\(environment)",\
      "signedDate":\(signedDate)\(more)}
      """
    return Array(text.utf8)
  }

  /// The verdict of a text that may not even be a signed object.
  static func verdict(
    _ text: [UInt8], _ verifier: SignedObjectVerifier, nowMs: Int64 = signedDateMs
  ) -> SignedObjectVerdict {
    do throws(SignedObjectFault) {
      return verifier.verify(try SignedObject(text), nowMs: nowMs)
    } catch { return .invalid(error) }
  }

  /// The parts of a text between its dots.
  static func parts(_ text: [UInt8]) -> [[UInt8]] {
    text.split(separator: 0x2E, omittingEmptySubsequences: false).map { Array($0) }
  }

  static func joined(_ parts: [[UInt8]]) -> [UInt8] { Array(parts.joined(separator: [0x2E])) }
}

/// A member of a payload as text.
func text(_ bytes: JSONBytes?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
