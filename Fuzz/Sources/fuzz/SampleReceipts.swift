// Receipts signed by an authority of the fuzzer's own, and verifiers that trust it.
@testable import AppStore
@testable import AppStoreAuthority
@testable import Base
import Glibc

/// Receipt files that decode, in all the forms that are met.
struct SampleReceipts {
  let files: [[UInt8]]

  /// The authority whose keys lie where `FUZZ_AUTHORITY` says, made where there are none: what one run
  /// signed another one's verifier takes.
  private static let authority: TestAuthority = {
    do {
      guard let path = getenv("FUZZ_AUTHORITY") else { return try TestAuthority() }
      return try AuthorityDirectory.open(String(cString: path))
    } catch { fatalError("the authority cannot be made: \(error)") }
  }()

  /// Trusts the authority.
  static let verifier = verifier(authority.configuration)
  /// Trusts Apple alone.
  static let strictVerifier = verifier(ReceiptVerifier.Configuration())

  private static func verifier(_ configuration: ReceiptVerifier.Configuration) -> ReceiptVerifier {
    do { return try ReceiptVerifier(configuration: configuration) } catch {
      fatalError("the verifier cannot be made: \(error)")
    }
  }

  init() throws {
    let authority = Self.authority
    let several = [
      UnifiedReceiptPlan.purchase(),
      UnifiedReceiptPlan.purchase(
        product: "monthly", transaction: "2", webOrder: 0,
        extra: UnifiedReceiptPlan.attribute(1713, DER.integer(1))
          + UnifiedReceiptPlan.attribute(1721, DER.utf8("offer"))),
    ]
    let plans = [
      UnifiedReceiptPlan(), UnifiedReceiptPlan(isIndefinite: true),
      UnifiedReceiptPlan(purchases: several, digest: .sha1),
      UnifiedReceiptPlan(environment: "Xcode", purchases: []),
      UnifiedReceiptPlan(
        creationDate: nil,
        extraAttributes: [UnifiedReceiptPlan.attribute(21, DER.ia5("2030-01-01T00:00:00.5+02:00"))]),
      UnifiedReceiptPlan(trailing: [0]),
    ]
    var files = try plans.map { try $0.signed(by: authority) }
    // Without their certificates, mutations meet the rest more often.
    files += plans.map {
      $0.frame(content: $0.content, certificates: [], signer: authority.signer, signature: [1, 2])
    }
    for version: UInt8 in [2, 3] {
      files.append(
        try TransactionReceiptPlan(version: version).signed(by: authority.purchaseSigner))
    }
    let plan = TransactionReceiptPlan()
    files.append(plan.file(signature: [1], certificate: [2], purchaseInfo: plan.purchaseInfo))
    self.files = files
  }
}
