// The facts of the signed transactions in one event that tell whose they are.
import AppStore
import JSON
import Ledger
import Projections

/// Which transaction a signed object is about, and whose.
struct SignedFacts {
  let transactionID: [UInt8]?
  let originalTransactionID: [UInt8]?
  let appAccountToken: [UInt8]?

  private init(_ transaction: SignedTransaction) {
    transactionID = transaction.row.transactionID.map { Array($0) }
    originalTransactionID = transaction.row.originalTransactionID.map { Array($0) }
    appAccountToken = transaction.appAccountToken.map { Array($0) }
  }

  /// Those of an event's valid signed transactions; none for other events.
  /// - Parameter line: without its line feed.
  static func all(of line: [UInt8]) throws -> [SignedFacts] {
    read(line) { SignedFacts($0) }
  }

  /// The payloads of an event's valid signed transactions that `isWanted` chooses.
  static func payloads(of line: [UInt8], where isWanted: (SignedFacts) -> Bool) throws -> [[UInt8]]
  {
    read(line) { transaction in
      isWanted(SignedFacts(transaction)) ? transaction.row.object.map { Array($0) } : nil
    }
  }

  private static func read<Result>(
    _ line: [UInt8], _ body: (SignedTransaction) -> Result?
  ) -> [Result] {
    let text = line + [0x0A]
    return text.withUnsafeBytes { bytes in
      guard let position = EventLine(UnsafeRawBufferPointer(rebasing: bytes.dropLast()))?.position,
        let scan = EventScan(bytes, firstPosition: position, count: 1)
      else { return [] }
      return withExtendedLifetime(scan) {
        let transactions: [SignedTransaction?] =
          switch scan.events.first?.content {
          case .received(let upload): upload.transactions
          case .notified(let notification): [notification.transaction]
          case .fetched(let page): page.transactions
          case .uploaded, .verified, .other, nil: []
          }
        return transactions.compactMap { $0.flatMap(body) }
      }
    }
  }

  /// Passes the three texts as bytes.
  func withBytes<Result>(
    _ body: (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?, UnsafeRawBufferPointer?) -> Result
  ) -> Result {
    func with(
      _ text: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Result
    ) -> Result {
      guard let text else { return body(nil) }
      return text.withUnsafeBytes { body($0) }
    }
    return with(transactionID) { transaction in
      with(originalTransactionID) { original in
        with(appAccountToken) { body(transaction, original, $0) }
      }
    }
  }
}
