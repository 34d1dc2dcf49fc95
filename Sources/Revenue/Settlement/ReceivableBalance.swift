// What the receivable's balance is made of: what is open and what Apple owes (settlement rule S15).
import Base

/// The balance of the receivable by currency, from what it should be and not from postings. In micros.
package struct ReceivableBalance {
  /// The parts of a currency's balance, with their signs.
  package struct Parts: Equatable, Sendable {
    /// Of the ledger, which Apple may still settle.
    package var open: Int128 = 0
    /// Of the ledger, in months without a report.
    package var notReported: Int128 = 0
    /// Of the ledger, in months that are not closed.
    package var rounding: Int128 = 0
    /// Of the rows that count.
    package var share: Int128 = 0
    /// What paid rows of overviews have settled: at most 0, unless Apple was owed.
    package var paid: Int128 = 0

    package init() {}

    package var total: Int128 { open + notReported + rounding + share + paid }
  }

  private var parts: [Symbol: Parts] = [:]

  package init() {}

  package subscript(currency: Symbol) -> Parts { parts[currency] ?? Parts() }

  /// Adds what Apple's reports have not settled yet, where the entries of sales are the ledger's.
  package mutating func add(_ rows: [ReconciliationRow], _ months: SettlementMonths) {
    for row in rows {
      guard let ledger = row.ledger, let micros = row.ledgerMicros else { continue }
      let part: WritableKeyPath<Parts, Int128>
      switch row.kind {
      case .open: part = \.open
      case .notReported: part = \.notReported
      case .rounding where !months.isClosed(ledger.month): part = \.rounding
      default: continue
      }
      parts[ledger.currency, default: Parts()][keyPath: part] += micros
    }
  }

  /// Adds the share of a row that counts.
  package mutating func add(_ row: AppleReport.Row) {
    parts[row.shareCurrency, default: Parts()].share += Int128(row.shareMicros)
  }

  /// Takes off what the paid rows of an overview settle: what was owed, without taxes and adjustments.
  package mutating func addPayments(_ overview: AppleReport) {
    for list in overview.lists where list.payment != nil {
      for row in list.rows where row.proceeds != nil {
        let notEarned = Int128(row.inputTax) + Int128(row.adjustments) + Int128(row.withholdingTax)
        parts[row.currency, default: Parts()].paid -= Int128(row.owed) - notEarned
      }
    }
  }

  /// The currencies in which something was posted or should have been, sorted as bytes. Throws unless the postings of
  /// each come to its balance.
  package func currencies(
    checking book: EntryBook, _ symbols: StringInterner
  ) throws(EntriesFault) -> [Symbol] {
    let order = SettlementOrder(symbols)
    let currencies = Set(parts.keys).union(book.receivable.keys)
    for currency in currencies where book.receivable[currency, default: 0] != self[currency].total {
      throw EntriesFault(
        cause: "the receivable's balance in '\(symbols.string(currency))' is not what is open "
          + "and owed")
    }
    return currencies.sorted { order.place($0) < order.place($1) }
  }
}
