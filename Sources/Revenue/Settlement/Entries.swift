// Entries of double-entry accounts: balanced postings, collected and put in order (settlement rule S15).
import Base

/// What an entry records, in the order of the rules.
package enum EntryKind: Int, CaseIterable, Sendable {
  case sales, settlement, unsettled, payment

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .sales: "sales"
    case .settlement: "settlement"
    case .unsettled: "unsettled"
    case .payment: "payment"
    }
  }
}

/// What identifies an entry.
package struct Entry: Hashable, Sendable {
  package let kind: EntryKind
  /// Days since 1970-01-01.
  package let day: Int
  /// `noMonth` for sales.
  package let month: FiscalMonthOrdinal
  /// The currency of a sale or of the customer; `Symbol.none` for a payment.
  package let currency: Symbol
  /// The overview's row of a payment; 0 for others.
  package let row: Int

  package init(
    _ kind: EntryKind, day: Int, month: FiscalMonthOrdinal = .noMonth, currency: Symbol = .none,
    row: Int = 0
  ) {
    (self.kind, self.day, self.month) = (kind, day, month)
    (self.currency, self.row) = (currency, row)
  }

  /// `FY2026-P01`; empty for sales.
  package var monthName: String {
    month == .noMonth ? "" : Period(.fiscalMonth, ordinal: Int(month)).description
  }

  /// `sales 2026-03-14 EUR`, `settlement FY2026-P01 EUR`, `unsettled FY2026-P01 EUR`, `payment FY2026-P01 3`.
  package func name(_ symbols: StringInterner) -> String {
    let subject = kind == .sales ? CivilDate(dayNumber: day).description : monthName
    return "\(kind.word) \(subject) \(kind == .payment ? "\(row)" : symbols.string(currency))"
  }
}

/// What an entry adds to an account in a currency; debit is positive.
package struct Posting: Sendable {
  package let entry: Entry
  /// The account's name, after mapping.
  package let account: String
  package let currency: Symbol
  package let micros: Int128
}

/// An entry does not add up to 0: a fault of this program.
package struct EntriesFault: ReportableError, CustomStringConvertible {
  package let cause: String

  package var description: String { "entries: \(cause); this is a fault of the program" }
}

/// The sums of entries by account and currency.
package struct EntryBook {
  private struct Key: Hashable {
    let entry: Entry
    /// An index in `names`.
    let account: Int
    let currency: Symbol
  }

  private struct Balance: Hashable {
    let entry: Entry
    let currency: Symbol
  }

  /// The names of all accounts, each once, sorted as bytes.
  private var names: [String] = []
  /// The index of each account's name.
  private var indexes: [EntryAccount: Int] = [:]
  private var sums: [Key: Int128] = [:]
  /// What all postings to the receivable come to, by currency, whatever other account has its name. In micros.
  package private(set) var receivable: [Symbol: Int128] = [:]

  package init(_ accounts: EntryAccounts) {
    let sorted = EntryAccount.allCases.sorted {
      accounts[$0].utf8.lexicographicallyPrecedes(accounts[$1].utf8)
    }
    for account in sorted {
      let name = accounts[account]
      // Strings are equal in more cases than their bytes.
      if names.last.map({ $0.utf8.elementsEqual(name.utf8) }) != true { names.append(name) }
      indexes[account] = names.count - 1
    }
  }

  /// Adds an amount to an account.
  package mutating func post(
    _ micros: Int128, to account: EntryAccount, _ currency: Symbol, in entry: Entry
  ) {
    guard micros != 0, let index = indexes[account] else { return }
    sums[Key(entry: entry, account: index, currency: currency), default: 0] += micros
    if account == .receivable { receivable[currency, default: 0] += micros }
  }

  /// All postings but those of 0, in the order of the rules. Throws unless every entry adds up to 0 in each of its
  /// currencies.
  package func postings(_ symbols: StringInterner) throws(EntriesFault) -> [Posting] {
    try checkBalances(symbols)
    let order = SettlementOrder(symbols)
    let keys = sums.filter { $0.value != 0 }.keys.sorted { Self.precedes($0, $1, order) }
    return keys.map { key in
      Posting(
        entry: key.entry, account: names[key.account], currency: key.currency,
        micros: sums[key] ?? 0)
    }
  }

  private func checkBalances(_ symbols: StringInterner) throws(EntriesFault) {
    var balances: [Balance: Int128] = [:]
    for (key, micros) in sums {
      balances[Balance(entry: key.entry, currency: key.currency), default: 0] += micros
    }
    for (balance, micros) in balances where micros != 0 {
      throw EntriesFault(
        cause: "'\(balance.entry.name(symbols))' does not add up to 0 in "
          + "'\(symbols.string(balance.currency))'")
    }
  }

  /// Names of one day and kind sort as their months and currencies do.
  private static func precedes(_ left: Key, _ right: Key, _ order: SettlementOrder) -> Bool {
    let (one, other) = (left.entry, right.entry)
    if one.day != other.day { return one.day < other.day }
    if one.kind != other.kind { return one.kind.rawValue < other.kind.rawValue }
    if one.month != other.month { return one.month < other.month }
    if one.currency != other.currency {
      return order.place(one.currency) < order.place(other.currency)
    }
    if one.row != other.row { return one.row < other.row }
    if left.account != right.account { return left.account < right.account }
    return order.place(left.currency) < order.place(right.currency)
  }
}
