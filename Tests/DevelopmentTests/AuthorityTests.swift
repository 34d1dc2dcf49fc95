// Receipts of the test authority: trusted where its root is pinned, by any process with its keys.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import Glibc
import TestSupport
import Testing

/// A directory with an authority, shared by the whole run because making keys is slow.
enum SharedAuthority {
  nonisolated(unsafe) static let directory: Result<TemporaryDirectory, any Error> = Result {
    let directory = try TemporaryDirectory()
    _ = try AuthorityDirectory.open(directory.path("authority"))
    // Static values are never released.
    atexit {
      if case .success(let directory) = SharedAuthority.directory {
        try? FileManager.default.removeItem(atPath: directory.path)
      }
    }
    return directory
  }
}

@Suite("The test authority")
struct AuthorityTests {
  @Test("its receipts verify with its root pinned and are refused without")
  func pinning() throws {
    let authority = try TestAuthority.shared.get()
    let signer = ReceiptSigner(authority: authority)
    let receipt = StandInShop.receipt([StandInShop.coins, StandInShop.plus])
    for file in [try signer.unified(receipt), try signer.transaction(receipt)] {
      let decoded = try ReceiptFile.decode(file)
      try expectEqual(authority.verifier().verify(file, receipt: decoded), .valid)
      let shipped = try ReceiptVerifier(configuration: .init())
      let verdict = shipped.verify(file, receipt: decoded)
      expectEqual(
        verdict,
        (decoded.style == .unified
          ? .invalid(.untrustedRoot) : .undecided(.intermediateNotConfigured)))
    }
  }

  @Test("signed content decodes to what was requested")
  func roundTrip() throws {
    let signer = ReceiptSigner(authority: try TestAuthority.shared.get())
    let customers = CustomerReceipts(
      seed: 7, bundleID: "com.example.game", environment: .mixed, atMs: StandInShop.nowMs)
    for customer in 0..<20 {
      let receipt = customers.receipt(customer: customer, ordinal: customer % 3)
      try expectEqual(ReceiptFile.decode(signer.unified(receipt)), receipt)
      var transaction = try ReceiptFile.decode(signer.transaction(receipt)).purchases[0]
      transaction.productType = receipt.purchases[0].productType
      expectEqual(transaction, receipt.purchases[0])
    }
  }

  @Test("customers' receipts differ, and have the size of real ones")
  func customers() throws {
    let directory = try SharedAuthority.directory.get()
    let authority = try AuthorityDirectory.load(directory.path("authority"))
    let signer = ReceiptSigner(authority: authority)
    let customers = CustomerReceipts(
      seed: 1, bundleID: "com.example.game", environment: .production, atMs: StandInShop.nowMs)
    var files: Set<[UInt8]> = []
    var transactions: Set<String> = []
    var purchaseCount = 0
    for customer in 0..<60 {
      let receipt = customers.receipt(customer: customer, ordinal: 0)
      let file = try signer.unified(receipt)
      #expect((4_000...8_192).contains(Base64.characterCount(byteCount: file.count) * 3 / 4))
      files.insert(file)
      purchaseCount += receipt.purchases.count
      transactions.formUnion(receipt.purchases.compactMap(\.transactionID))
    }
    expectEqual(files.count, 60)
    expectEqual(transactions.count, purchaseCount)
  }

  @Test("a directory gives each process the same authority; its keys are the owner's alone")
  func directory() throws {
    let path = try SharedAuthority.directory.get().path("authority")
    let first = try AuthorityDirectory.open(path)
    let second = try AuthorityDirectory.open(path)
    expectEqual(first.chain, second.chain)
    expectEqual(first.transactionIntermediates, second.transactionIntermediates)
    let file = try ReceiptSigner(authority: first).unified(StandInShop.receipt([StandInShop.coins]))
    let receipt = try ReceiptFile.decode(file)
    try expectEqual(second.verifier().verify(file, receipt: receipt), .valid)
    var status = stat()
    #expect(stat(path + "/signer.key", &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
  }

  @Test("a directory keeps the authority of signed objects, certificates included")
  func signedObjectsDirectory() throws {
    let path = try SharedAuthority.directory.get().path("authority")
    _ = try AuthorityDirectory.open(path)
    let first = try AuthorityDirectory.loadSignedObjects(path)
    let second = try AuthorityDirectory.loadSignedObjects(path)
    expectEqual(first.chain, second.chain)
    let payload = Array(#"{"environment":"Sandbox","signedDate":1767323045678}"#.utf8)
    let object = try SignedObject(first.sign(payload: payload))
    expectEqual(
      second.verifier.verify(object, nowMs: 1_767_323_045_678),
      .valid(root: second.root.fingerprint))
  }

  @Test("a directory without an authority is refused by name")
  func badDirectory() throws {
    let temporary = try TemporaryDirectory()
    #expect(throws: AuthorityError.self) { try AuthorityDirectory.open(temporary.path) }
    #expect(throws: AuthorityError.self) {
      try AuthorityDirectory.open(temporary.path("missing/authority"))
    }
    let error = #expect(throws: AuthorityError.self) { try SigningKey(pem: Array("no key".utf8)) }
    #expect(error?.description.hasPrefix("read a private key in PEM: ") == true)
  }
}
