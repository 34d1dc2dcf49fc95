// Apple's reports for tests, written from a few words a row.
package import Ledger

/// A financial or detailed report of a fiscal month.
package struct AppleReportText {
  /// `region` of a financial report; `Z1` makes a detailed one.
  package var region: String
  /// The first and the last day, as `MM/DD/YYYY`.
  package var days: (first: String, last: String)
  /// Of each `product S|R units unit-share share-currency country price currency`, perhaps with the day of the
  /// transaction before and `type=…` behind. The price is without a sign.
  package var rows: [String]

  package init(region: String, days: (first: String, last: String), _ rows: [String]) {
    (self.region, self.days, self.rows) = (region, days, rows)
  }

  private var isDetailed: Bool { region == "Z1" }

  package var head: [String] {
    if !isDetailed {
      return [
        "Start Date\tEnd Date\tVendor Identifier\tQuantity\tPartner Share\tExtended Partner Share\t"
          + "Partner Share Currency\tSales or Return\tProduct Type Identifier\tCountry Of Sale\t"
          + "Customer Price\tCustomer Currency"
      ]
    }
    return [
      "Financial Detail", "Start Date\t\(days.first)", "End Date\t\(days.last)",
      "Transaction Date\tSettlement Date\tSKU\tQuantity\tPartner Share\tExtended Partner Share\t"
        + "Partner Share Currency\tSale or Return\tProduct Type Identifier\tCountry of Sale\t"
        + "Customer Price\tCustomer Currency",
    ]
  }

  package var rowLines: [String] { rows.map(line) }

  /// Totals that hold: the number of rows, or the list by country of a detailed report.
  package var totals: [String] {
    if !isDetailed { return ["Total_Rows\t\(rows.count)"] }
    var sums: [String: (units: Int, cents: Int)] = [:]
    for row in rows.map(Row.init) {
      let place = "\(row.country)\t\(row.shareCurrency)"
      sums[place, default: (0, 0)].units += row.units
      sums[place, default: (0, 0)].cents += row.units * row.unitShareCents
    }
    return ["Country Of Sale\tPartner Share Currency\tQuantity\tExtended Partner Share"]
      + sums.sorted { $0.key < $1.key }.map {
        "\($0.key)\t\($0.value.units)\t\(Self.decimal($0.value.cents))"
      }
  }

  /// The whole file.
  package var text: String {
    (head + rowLines + totals).map { $0 + "\n" }.joined()
  }

  private struct Row {
    var day: String?
    var product, flag, shareCurrency, country, price, currency: String
    var units: Int
    var unitShareCents: Int
    var type = "IAY"

    init(_ words: String) {
      var parts = words.split(separator: " ").map(String.init)
      if parts[0].contains("/") { day = parts.removeFirst() }
      if let last = parts.last, last.hasPrefix("type=") {
        type = String(last.dropFirst(5))
        parts.removeLast()
      }
      (product, flag, shareCurrency, country) = (parts[0], parts[1], parts[4], parts[5])
      (price, currency) = (parts[6], parts[7])
      units = Int(parts[2]) ?? 0
      let share = parts[3].split(separator: ".")
      let cents = share.count > 1 ? Int(share[1].prefix(2)) ?? 0 : 0
      unitShareCents = (Int(share[0]) ?? 0) * 100 + cents
    }
  }

  private func line(_ words: String) -> String {
    let row = Row(words)
    let first = isDetailed ? [row.day ?? days.first, days.last] : [days.first, days.last]
    let cells =
      first + [
        row.product, "\(row.units)", Self.decimal(row.unitShareCents),
        Self.decimal(row.units * row.unitShareCents), row.shareCurrency, row.flag, row.type,
        row.country, row.flag == "R" ? "-\(row.price)" : row.price, row.currency,
      ]
    return cells.joined(separator: "\t")
  }

  private static func decimal(_ cents: Int) -> String {
    let rest = abs(cents) % 100
    return (cents < 0 ? "-" : "") + "\(abs(cents) / 100)." + (rest < 10 ? "0" : "") + "\(rest)"
  }
}

extension SettlementDeclared {
  /// The event of a report, or of one of its parts.
  /// - Parameter digit: a hex digit that fills the digest.
  package static func of(
    _ report: AppleReportText, _ month: String, digit: Character, part: Int = 1, partCount: Int = 1
  ) -> SettlementDeclared {
    var lines = Lines()
    let all = report.rowLines
    let size = (all.count + partCount - 1) / partCount
    let rows = all.dropFirst((part - 1) * size).prefix(size)
    if part == 1 { lines.head = bytes(report.head) }
    lines.rows = bytes(Array(rows))
    if part == partCount { lines.totals = bytes(report.totals) }
    return SettlementDeclared(
      source: "report_\(report.region).txt",
      sourceSHA256Hex: String(repeating: digit, count: 64),
      kind: report.region == "Z1" ? .detailed : .financial, month: month, region: report.region,
      part: part, partCount: partCount, lines: lines)
  }

  /// The event of a payment overview with a row `currency earned proceeds` for each currency, all paid in EUR.
  package static func overview(
    _ name: String, _ month: String, digit: Character, _ rows: [String]
  ) -> SettlementDeclared {
    var lines = Lines()
    lines.head = bytes(["\"Payments and Financial Reports (\(name))\""])
    var payment = 0
    var list = [
      "Region (Currency),Units Sold,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,Withholding Tax,Total Owed,"
        + "Exchange Rate,Proceeds,Bank Account Currency"
    ]
    for row in rows {
      let words = row.split(separator: " ").map(String.init)
      list.append(
        "Region (\(words[0])),1,\(words[1]),\(words[1]),0,0,0,\(words[1]),1,\(words[2]),EUR")
      payment += Int(words[2]) ?? 0
    }
    lines.rows = bytes(list + [",,,,,,,,,,", ",,,,,,,,,\"\(payment)\" EUR,"])
    return SettlementDeclared(
      source: "financial_report.csv", sourceSHA256Hex: String(repeating: digit, count: 64),
      kind: .overview, month: month, region: nil, lines: lines)
  }

  private static func bytes(_ lines: [String]) -> [UInt8] {
    lines.flatMap { Array($0.utf8) + [0x0A] }
  }

  package var draft: EventDraft { EventDraft(.settlementDeclared, data) }
}
