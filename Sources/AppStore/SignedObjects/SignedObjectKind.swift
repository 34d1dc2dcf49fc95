// What a signed object is about, and its certificates for people.
package import Base
private import JSON

/// What a payload is, by the members that only one kind has.
package enum SignedObjectKind: String, Sendable {
  case transaction
  case renewalInfo = "renewal_info"
  case appTransaction = "app_transaction"
  case notification
  /// It has no member by which it could be told.
  case unknown
}

extension SignedObject {
  package var kind: SignedObjectKind {
    payload.withUnsafeBytes { bytes in
      var kind = SignedObjectKind.unknown
      var cursor = JSONCursor(bytes)
      do throws(JSONError) {
        try cursor.beginObject()
        while let key = try cursor.nextKey() {
          if key == "notificationUUID" || key == "notificationType" { return .notification }
          if key == "receiptType" { return .appTransaction }
          if key == "autoRenewStatus" || key == "autoRenewProductId" { return .renewalInfo }
          if key == "transactionId" || key == "bundleId" { kind = .transaction }
          try cursor.skipValue()
        }
      } catch { return .unknown }
      return kind
    }
  }

  /// What a transaction, an app transaction or a notification must say and this one does not; nil if it says all,
  /// or is of another kind. A transaction that names no environment may still be in what names it.
  package var missingFact: SignedObjectFault? {
    let keeper = TextKeeper()
    return payload.withUnsafeBytes { bytes in
      do throws(JSONError) {
        switch kind {
        case .transaction:
          return try SignedTransaction(payload: bytes, keeper)
            .missingFact(hasEnvironment: true)
        case .notification: return try SignedNotification(payload: bytes, keeper).missingFact()
        case .appTransaction:
          return try SignedAppTransaction(payload: bytes, keeper)
            .missingFact(hasEnvironment: true)
        case .renewalInfo, .unknown: return nil
        }
      } catch { return .payloadNotJSON }
    }
  }

  /// One certificate of a signed object, as its header has it: nothing about it is verified.
  package struct CertificateSummary: Sendable {
    /// The subject's common name; empty if there is none or the certificate cannot be read.
    package let name: String
    /// SHA-256 of the certificate.
    package let fingerprint: SHA256Digest
    /// First and last second of validity in epoch milliseconds; nil if the certificate cannot be read.
    package let validityMs: ClosedRange<Int64>?
  }

  /// The certificates in the order of `x5c`.
  package var certificateSummaries: [CertificateSummary] {
    certificates.withUnsafeBytes { bytes in
      certificateEnds.indices.map { place in
        let der = UnsafeRawBufferPointer(rebasing: bytes[certificateRange(place)])
        let certificate = Certificate(der: der)
        return CertificateSummary(
          name: certificate?.commonName ?? "", fingerprint: SHA256.hash(der),
          validityMs: certificate.map {
            $0.validity.lowerBound * 1_000...$0.validity.upperBound * 1_000
          })
      }
    }
  }
}
