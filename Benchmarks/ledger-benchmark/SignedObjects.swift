// Verifications of signed objects whose chain is known, in one thread.
import AppStore
import AppStoreAuthority
import Glibc
import ProgramSupport

/// Takes apart and verifies transactions as large as Apple's. Compare with `openssl speed ecdsap256`, which
/// checks a signature over a digest and nothing else.
enum SignedObjects {
  private static let objectCount = 1_000
  private static let signedDateMs: Int64 = 1_767_323_045_678

  static func run(_ arguments: Arguments) throws {
    let seconds = Double(try arguments.integer("--seconds", 0...Int.max) ?? 5)
    var plan = SignedObjectAuthority.Plan()
    // Certificates of Apple's size.
    plan.leaf.commentBytes = 500
    plan.intermediate.commentBytes = 300
    plan.root.commentBytes = 100
    let authority = try SignedObjectAuthority(plan)
    let texts = try (0..<objectCount).map { try authority.sign(payload: payload($0)) }
    let verifier = authority.verifier
    let valid = SignedObjectVerdict.valid(root: authority.root.fingerprint)
    var count = 0
    let first = cpuSeconds()
    while cpuSeconds() - first < seconds {
      for text in texts {
        guard verifier.verify(try SignedObject(text), nowMs: signedDateMs) == valid else {
          throw ProgramError("verify: a good object is refused")
        }
      }
      count += texts.count
    }
    let taken = cpuSeconds() - first
    let bytes = texts.reduce(0) { $0 + $1.count }
    report([
      "verifications": Double(count), "cpu_seconds": taken,
      "verifications_per_second": Double(count) / taken,
      "bytes_each": Double(bytes) / Double(objectCount),
    ])
  }

  /// Processor time of this thread: what other processes take does not count.
  private static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private static func payload(_ number: Int) -> [UInt8] {
    let id = 2_000_000_000_000_000 + number
    let text = """
      {"transactionId":"\(id)","originalTransactionId":"2000000000000000",\
      "webOrderLineItemId":"\(id + 7)","bundleId":"com.example.app","productId":"pro.month",\
      "subscriptionGroupIdentifier":"21000000","purchaseDate":1767323040000,\
      "originalPurchaseDate":1760000000000,"expiresDate":1770001440000,"quantity":1,\
      "type":"Auto-Renewable Subscription","appAccountToken":"7e3fb20b-4cdb-47cc-936d-99d65f608138",\
      "inAppOwnershipType":"PURCHASED","signedDate":\(signedDateMs),"environment":"Production",\
      "transactionReason":"RENEWAL","storefront":"DEU","storefrontId":"143443","price":9990,\
      "currency":"EUR","appTransactionId":"700000000000000000"}
      """
    return Array(text.utf8)
  }
}
