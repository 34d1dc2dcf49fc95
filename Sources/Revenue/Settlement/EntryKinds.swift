// How the entries of each kind are made from the ledger, the comparison and Apple's reports (settlement rule S15).

/// The amounts of the journal's lines of a day and currency, as the revenue report has them. In micros.
package struct DaySums {
  package var gross: Int128 = 0
  package var returns: Int128 = 0
  package var reversals: Int128 = 0

  package init() {}

  package init(gross: Int128, returns: Int128, reversals: Int128) {
    (self.gross, self.returns, self.reversals) = (gross, returns, reversals)
  }
}

/// Gross and share of the rows that count, by what entries tell apart.
package struct CountingSums {
  fileprivate struct Key: Hashable {
    let month: FiscalMonthOrdinal
    /// The customer's.
    let currency: Symbol
    let shareCurrency: Symbol
    /// What the gross is income of.
    let income: EntryAccount
  }

  fileprivate var sums: [Key: (gross: Int128, share: Int128)] = [:]

  package init() {}

  /// Adds a row of a report of `month`.
  package mutating func add(_ row: AppleReport.Row, month: FiscalMonthOrdinal) {
    let key = Key(
      month: month, currency: row.currency, shareCurrency: row.shareCurrency,
      income: !row.isInApp ? .apps : row.isReturn ? .refunds : .sales)
    sums[key, default: (0, 0)].gross += Int128(row.units) * Int128(row.priceMicros)
    sums[key, default: (0, 0)].share += Int128(row.shareMicros)
  }
}

extension EntryBook {
  /// What was sold on a day, according to the ledger.
  package mutating func addSales(_ sums: DaySums, day: Int, currency: Symbol) {
    let entry = Entry(.sales, day: day, currency: currency)
    let refunds = sums.returns - sums.reversals
    post(sums.gross - refunds, to: .receivable, currency, in: entry)
    post(-sums.gross, to: .sales, currency, in: entry)
    post(refunds, to: .refunds, currency, in: entry)
  }

  // MARK: Settlement

  private static func settlement(_ month: FiscalMonthOrdinal, _ currency: Symbol) -> Entry {
    Entry(
      .settlement, day: FiscalMonth(ordinal: month).lastDay, month: month, currency: currency)
  }

  /// What Apple has more than the ledger, where the entries of sales are the ledger's.
  package mutating func addDifferences(_ rows: [ReconciliationRow]) {
    for row in rows {
      guard let apple = row.apple, let account = row.kind.account else { continue }
      if row.kind == .currencyDiffers {
        addIncome(row.appleMicros ?? 0, account, apple.month, apple.currency)
        addIncome(-(row.ledgerMicros ?? 0), account, apple.month, row.ledger?.currency ?? .none)
      } else {
        addIncome(row.differenceMicros ?? 0, account, apple.month, row.differenceCurrency)
      }
    }
  }

  /// What Apple sold, where no other entry says what was sold.
  package mutating func addGross(_ counting: CountingSums) {
    for (key, sum) in counting.sums { addIncome(sum.gross, key.income, key.month, key.currency) }
  }

  private mutating func addIncome(
    _ micros: Int128, _ account: EntryAccount, _ month: FiscalMonthOrdinal, _ currency: Symbol
  ) {
    let entry = Self.settlement(month, currency)
    post(micros, to: .receivable, currency, in: entry)
    post(-micros, to: account, currency, in: entry)
  }

  /// What is left of the gross: the share, perhaps in another currency.
  package mutating func addShares(_ counting: CountingSums) {
    for (key, sum) in counting.sums {
      let entry = Self.settlement(key.month, key.currency)
      if key.shareCurrency == key.currency {
        post(sum.gross - sum.share, to: .kept, key.currency, in: entry)
        post(sum.share - sum.gross, to: .receivable, key.currency, in: entry)
      } else {
        post(-sum.gross, to: .receivable, key.currency, in: entry)
        post(sum.gross, to: .conversion, key.currency, in: entry)
        post(sum.share, to: .receivable, key.shareCurrency, in: entry)
        post(-sum.share, to: .conversion, key.shareCurrency, in: entry)
      }
    }
  }

  // MARK: Unsettled

  /// What the ledger has more than Apple, of months after which Apple has closed two more.
  package mutating func addUnsettled(_ rows: [ReconciliationRow], _ months: SettlementMonths) {
    for row in rows where row.kind == .missingThere || row.kind == .rounding {
      guard let ledger = row.ledger, let micros = row.ledgerMicros,
        months.isClosed(ledger.month)
      else { continue }
      let entry = Entry(
        .unsettled, day: FiscalMonth(ordinal: ledger.month + 2).lastDay, month: ledger.month,
        currency: ledger.currency)
      let account: EntryAccount = row.kind == .rounding ? .differences : .unsettled
      post(micros, to: account, ledger.currency, in: entry)
      post(-micros, to: .receivable, ledger.currency, in: entry)
    }
  }

  // MARK: Payments

  /// What Apple paid, by an overview's rows.
  /// - Parameter paidDay: in days since 1970-01-01; nil is the day on which payment is expected.
  package mutating func addPayments(
    _ overview: AppleReport, of month: FiscalMonth, paidDay: Int? = nil
  ) {
    for list in overview.lists where list.payment != nil {
      for row in list.rows {
        guard let proceeds = row.proceeds else { continue }
        let entry = Entry(
          .payment, day: paidDay ?? month.expectedPaymentDay,
          month: FiscalMonthOrdinal(month.ordinal), row: row.number)
        addOwed(row, to: entry)
        post(Int128(proceeds), to: .bank, row.bankCurrency, in: entry)
        post(-Int128(proceeds), to: .conversion, row.bankCurrency, in: entry)
      }
    }
  }

  private mutating func addOwed(_ row: AppleReport.PaymentRow, to entry: Entry) {
    let parts: [(Int64, EntryAccount)] = [
      (row.inputTax, .inputTax), (row.adjustments, .adjustments), (row.withholdingTax, .withheld),
    ]
    for (micros, account) in parts {
      post(Int128(micros), to: .receivable, row.currency, in: entry)
      post(-Int128(micros), to: account, row.currency, in: entry)
    }
    post(-Int128(row.owed), to: .receivable, row.currency, in: entry)
    // In one currency conversion gets the difference to the proceeds alone.
    post(Int128(row.owed), to: .conversion, row.currency, in: entry)
  }
}

extension SettlementClass {
  /// The account of what Apple has more; nil if both sides agree or Apple's is not there.
  fileprivate var account: EntryAccount? {
    switch self {
    case .matched, .settledLater, .settledEarlier, .open, .missingThere, .notReported, .rounding:
      nil
    case .unpricedHere, .priceDiffers, .currencyDiffers, .countryDiffers: .differences
    case .missingHere: .unseen
    case .free, .notInApp: .apps
    }
  }
}

extension FiscalMonth {
  fileprivate init(ordinal: FiscalMonthOrdinal) {
    let (year, month) = Int(ordinal).quotientAndRemainder(dividingBy: 12)
    self = Self.months(ofYear: year)[month]
  }
}
