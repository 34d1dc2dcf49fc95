// Checks of `doctor` on what figures need: verified receipts, declared products, prices, rates, Apple's files.
import Base
import Ledger
import Projections
import Revenue
import Server

extension Examination {
  func examineFigures() {
    attempt(.verificationLate) {
      guard let database = try database(), standby == nil,
        let oldestMs = try HealthQueries(database).waiting().oldestMs,
        nowMs - oldestMs > DoctorLimits.verificationSeconds * 1000
      else { return }
      let count = try HealthQueries(database).waiting().receipts
      report(
        .verificationLate, counted(count, "receipt"),
        "the oldest upload is \(DoctorSurroundings.age(nowMs - oldestMs)) old")
    }
    attempt(.sharedSecretRefused) {
      guard let database = try database(), standby == nil else { return }
      for family in try HealthQueries(database).familiesWithRefusedSecret() {
        report(
          .sharedSecretRefused, "app \(family)", "the App Store answered with status 21004",
          command: "ledgerctl config set-shared-secret --app \(family)")
      }
    }
    attempt(.configUnknownFamily) {
      let configuration = try configuration()
      guard let database = try database() else { return }
      for setting in try configuration.unknownFamilies(IntakeLookup(database)) {
        report(.configUnknownFamily, setting.path, setting.cause)
      }
    }
    examineApps()
    examineMoney()
  }

  private func examineApps() {
    attempt(.productNotDeclared) {
      guard let database = try database() else { return }
      for product in try AppQueries(database).undeclaredProducts() {
        report(
          .productNotDeclared, "\(product.productID) of \(product.bundleID)",
          "it was sold in \(counted(product.transactionCount, "transaction"))",
          command: product.declaringCommand)
      }
    }
    attempt(.bundleNotRegistered) {
      guard let database = try database() else { return }
      for bundle in try HealthQueries(database).unregisteredBundles() {
        report(
          .bundleNotRegistered, bundle.bundleID,
          "\(counted(bundle.receipts, "receipt")) of it \(bundle.receipts == 1 ? "was" : "were") refused",
          command: "ledgerctl app add --name NAME --bundle-id \(shellQuoted(bundle.bundleID))")
      }
    }
    attempt(.appsUnmerged) {
      guard let database = try database() else { return }
      let apps = try AppQueries(database).apps().map(\.registration)
      for (index, app) in apps.enumerated() {
        let twin = apps[..<index].first { other in
          other.name.lowercased() == app.name.lowercased()
            || other.appAppleID != nil && other.appAppleID == app.appAppleID
        }
        guard let twin else { continue }
        let isNumber = app.appAppleID != nil && twin.appAppleID == app.appAppleID
        report(
          .appsUnmerged, "apps \(twin.appFamilyID) and \(app.appFamilyID)",
          "both have the \(isNumber ? "App Store number \(app.appAppleID ?? 0)" : "name \(app.name)"): users, "
            + "entitlements and products of each are apart")
      }
    }
  }

  private func examineMoney() {
    attempt(.salesUnpriced) {
      guard let database = try database() else { return }
      let count = try HealthQueries(database).unpricedSaleCount()
      if count > 0 {
        report(
          .salesUnpriced, counted(count, "sale"),
          "neither clients, the App Store nor a price list gave a price")
      }
    }
    attempt(.ratesStale) {
      guard let database = try database() else { return }
      for rate in try HealthQueries(database).staleRates() {
        report(
          .ratesStale, rate.currency,
          "its newest rate is of \(rate.lastRate), its newest sale of \(rate.lastSale)")
      }
    }
    attempt(.settlementIncomplete) {
      guard let database = try database() else { return }
      let books = try SettlementBooks(database, StringInterner(TextArena()))
      var named: Set<String> = []
      for listing in books.listings {
        let month = listing.file.identity.month
        if listing.state == .unfinished {
          report(
            .settlementIncomplete, listing.file.source,
            "its import ended before its last part: import it again",
            command: "ledgerctl settlement import \(shellQuoted(listing.file.source))")
        }
        let today = Int(nowMs / dayMs)
        guard listing.state == .counts, !listing.isComplete,
          let last = FiscalMonth(parsing: month)?.latestPaymentDay, last < today,
          named.insert(month).inserted
        else { continue }
        report(
          .settlementIncomplete, month,
          "its latest day of payment was \(CivilDate(dayNumber: last)), and reports of regions or the "
            + "payment overview are missing")
      }
    }
  }
}
