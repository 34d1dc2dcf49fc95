// The example of docs/projections.md: active payers, month by month and country by country.
import Base
import Projections

/// Users of production with a paid sale that was not cancelled.
struct MonthlyActivePayers: Projection {
  let name = "monthly_active_payers"
  let version = 1

  let tables = [
    TableDefinition(
      "monthly_active_payers_sales",
      columns: """
        sale INTEGER PRIMARY KEY, month TEXT NOT NULL, country_code TEXT NOT NULL,
        user_identifier TEXT, is_counted INTEGER NOT NULL
        """)
  ]

  let views = [
    ViewDefinition(
      "monthly_active_payers_view",
      select: """
        SELECT month, country_code, count(DISTINCT user_identifier) AS payers
        FROM monthly_active_payers_sales WHERE is_counted = 1 GROUP BY month, country_code
        """)
  ]

  func fold(_ sale: FoldedSale, into rows: ProjectionRows) throws {
    let isCounted = sale.isPaid && !sale.isCancelled && sale.environment == "Production"
    try rows.replace(
      in: "monthly_active_payers_sales",
      [
        .integer(sale.number), .text(String(Timestamp.text(ms: sale.saleDateMs).prefix(7))),
        .text(sale.countryCode), .text(sale.userIdentifier), .integer(isCounted ? 1 : 0),
      ])
  }
}
