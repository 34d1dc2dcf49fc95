// What an operator should look at, as `doctor` asks for it: waiting receipts, missing prices, old rates.
import AppStore
package import Base
import Ledger
import Revenue

/// Queries of one generation of the projections, as it is. Each reads as much as a report of the same figures.
package struct HealthQueries {
  private let database: Database

  package init(_ database: Database) { self.database = database }

  private func asking<Result>(
    _ body: () throws -> Result
  ) throws(ProjectionError) -> Result {
    do { return try body() } catch { throw Projector.projectionError(error) }
  }

  /// How many receipts wait for the App Store, and when the oldest waiting upload was received, in epoch milliseconds.
  package func waiting() throws(ProjectionError) -> (receipts: Int, oldestMs: Int64?) {
    try asking { try WaitingQueries(database).summary() }
  }

  /// The app families with receipts that wait because the App Store knows them by another shared secret, or by one
  /// that was not sent.
  package func familiesWithRefusedSecret() throws(ProjectionError) -> [String] {
    try asking {
      let rows = try database.prepare(
        """
        SELECT DISTINCT f.text FROM verifications v JOIN open_uploads o ON o.upload = v.upload
        JOIN receipts r ON r.id = o.receipt JOIN symbols f ON f.id = r.app_family
        WHERE v.status = \(ReplyStatus.wrongSharedSecret)
        AND o.is_accepted = 1 AND o.is_refused = 0
        ORDER BY 1
        """)
      var families: [String] = []
      while try rows.step() { families.append(rows.text(0)) }
      return families
    }
  }

  /// The bundle ids of no app family of which receipts came, signed by the App Store, and how many.
  package func unregisteredBundles() throws(ProjectionError) -> [(bundleID: String, receipts: Int)]
  {
    try asking {
      let rows = try database.prepare(
        """
        SELECT b.text, count(*) FROM receipts r JOIN symbols b ON b.id = r.bundle
        WHERE r.bundle NOT IN (SELECT s.id FROM symbols s JOIN app_bundles a ON a.bundle_id = s.text)
        AND r.fraud_reason IN (SELECT id FROM symbols
          WHERE text = '\(TransactionsReceived.FraudReason.bundleIDMismatch.rawValue)')
        GROUP BY 1 ORDER BY 1
        """)
      var bundles: [(bundleID: String, receipts: Int)] = []
      while try rows.step() { bundles.append((rows.text(0), try rows.ordinal(1))) }
      return bundles
    }
  }

  /// How many sales of Production have no price.
  package func unpricedSaleCount() throws(ProjectionError) -> Int {
    try asking {
      let row = try database.prepare(
        """
        SELECT count(*) FROM sales WHERE price_basis = \(PriceBasis.none.rawValue)
        AND environment IN (SELECT id FROM symbols WHERE text = '\(EnvironmentName.production)')
        """)
      return try row.step() ? row.ordinal(0) : 0
    }
  }

  /// A currency whose rates end too long before its sales.
  package struct StaleRate: Equatable, Sendable {
    package let currency: String
    package let lastRate: CivilDate
    package let lastSale: CivilDate
  }

  /// The currencies that have rates, none of them from the days before the newest sale that a report would take.
  package func staleRates() throws(ProjectionError) -> [StaleRate] {
    try asking {
      let rows = try database.prepare(
        """
        SELECT c.code, c.day, s.day FROM
        (SELECT code, max(day) AS day FROM
          (SELECT base AS code, day FROM rates UNION ALL SELECT quote, day FROM rates) GROUP BY code) c
        JOIN (SELECT currency, max(sale_date_ms) / 86400000 AS day FROM sales
          WHERE environment IN (SELECT id FROM symbols WHERE text = '\(EnvironmentName.production)')
          GROUP BY currency) s
        ON s.currency = (SELECT id FROM symbols WHERE text = c.code)
        WHERE s.day > c.day + \(ReportRequest.ratesAgeMaxDaysStandard) ORDER BY 1
        """)
      var stale: [StaleRate] = []
      while try rows.step() {
        stale.append(
          StaleRate(
            currency: rows.text(0), lastRate: CivilDate(dayNumber: try rows.day(1)),
            lastSale: CivilDate(dayNumber: try rows.day(2))))
      }
      return stale
    }
  }
}
