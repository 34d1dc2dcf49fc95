// The columns of each report, known before it is made: options that name a column are checked against them.
import Revenue

extension ReportRequest {
  /// The columns of the report, in their order.
  package var columns: [ReportColumn] {
    switch kind {
    case .revenue: RevenueReport.columns(dimensions)
    case .journal: JournalReport.columns(of: self)
    case .sales: SalesReport.columns(of: self)
    case .exceptions: ExceptionsReport.columns(ofVersion: version)
    case .receipts: ReceiptsReport.columns
    case .users: UsersReport.columns
    case .reconcile: ReconcileReport.columns
    case .proceeds: ProceedsReport.columns
    case .payout: PayoutReport.columns(payoutGroups)
    case .entries: isCheck ? EntriesReport.checkColumns : EntriesReport.columns
    case .subscriptions:
      isByMonth
        ? SubscriptionMonthsReport.columns(ofVersion: version) : SubscriptionsReport.columns
    }
  }
}

// MARK: - What each column of a report means, in a line: for manifests and for docs/reports.md

extension Report {
  /// The meaning of a column, without a full stop. A test requires one for every column.
  package static func meaning(of column: String, in kind: ReportKind) -> String? {
    own[kind]?[column] ?? shared[column]
  }

  /// Meanings that hold in every report but those that have their own.
  private static let shared: [String: String] = [
    "amount": "the amount of the line, signed; empty if it is not known",
    "app_family_id": "the app family",
    "bundle_id": "the app's bundle identifier",
    "country_code": "the country, ISO 3166-1 alpha-2; ZZ if unknown",
    "currency":
      "the currency of the amounts, ISO 4217; empty if nothing was charged or no price is known",
    "environment": "the App Store's environment",
    "kind": "regular, offer, trial or family_shared",
    "original_transaction_id": "the App Store's id of the first transaction",
    "position": "the event in the ledger",
    "price_basis": "where the price comes from",
    "proceeds":
      "with --with-settlement: what the developer gets by Apple's reports; empty unless that is a fact",
    "proceeds_currency": "with --with-settlement: its currency",
    "settlement_month": "with --with-settlement: the fiscal month in which Apple settled it",
    "product_id": "the product",
    "quantity": "how many units",
    "sale_key": "identifies the sale within environment and app",
    "transaction_id": "the App Store's id of the transaction",
    "trust": "the source of the statement that first showed the sale",
    "unit_price": "the price of one unit",
    "user_identifier": "the user, as clients name them",
  ]

  private static let own: [ReportKind: [String: String]] = [
    .revenue: [
      "period": "the period, as in 2026, 2026-Q1, 2026-03, FY2026-P06, 2026-W09 or 2026-03-14",
      "units": "regular and offer sales, in units",
      "gross": "the amount of these sales",
      "returned_units": "the units that Returns take away, as a positive number",
      "returns": "the amounts that Returns take away, as a positive number",
      "reversed_units": "the units that Reversals give back",
      "reversals": "the amounts that Reversals give back",
      "net": "gross less returns plus reversals",
      "unpriced_units": "those of units whose price is not known",
      "trials": "trials, one for each sale",
      "family_shared": "family-shared purchases, one for each sale",
    ],
    .journal: [
      "date": "the line's date",
      "line": "Sale, Return or Reversal",
      "quantity": "the units of the line, signed; 0 for a refund of no whole unit",
      "reason": "the App Store's reason of a refund",
      "position": "the event that made the line",
      "original_amount": "with --in: the amount before its conversion",
      "original_currency": "with --in: its currency",
      "rate":
        "with --in: by what it was multiplied, from declared rates, as in 0.92, 1/1.0854 or 0.85/1.0854; "
        + "empty if it was not converted",
      "rate_date": "with --in: the days of the rates, in the order of rate",
      "rate_position": "with --in: the events that declared them",
    ],
    .sales: [
      "sale_date": "the sale's date",
      "transaction_ids": "all transactions that showed it, separated by spaces",
      "first_position": "the event that showed it first",
      "country_position": "the event that named the country",
      "user_position": "the event that named the user",
      "user_basis": "how the user is known: an upload, the Apple Account, or its token",
      "price_position": "the event that gave the price",
      "is_upgraded": "whether an upgrade replaced it",
      "cancelled": "whether something of it is refunded",
      "cancellation_positions": "the events of its Returns, separated by spaces",
      "reversal_positions": "the events of its Reversals, separated by spaces",
      "pending": "whether the App Store has not confirmed it yet",
    ],
    .exceptions: [
      "exception": "its type",
      "product_id": "the product of the sale or of the row",
      "position": "the event that met it first",
      "detail": "what it is about, by its type",
      "date": "the date of the sale or line; without one, when the event happened",
      "country_code": "the country of the sale, or of the upload",
      "user_identifier": "the user of the sale, or of the upload",
    ],
    .reconcile: [
      "fiscal_month": "the month of Apple's report; without one, of the ledger's lines",
      "class": "how the units compare, as in matched, settled_later or missing_here",
      "line": "Sale or Return; a Reversal is a Sale",
      "ledger_country": "the country of the ledger's lines",
      "apple_country": "the country of Apple's rows",
      "ledger_currency": "the currency of the ledger's lines",
      "apple_currency": "the currency in which Apple's rows have the customer's price",
      "ledger_price": "the price of a unit in the ledger; empty if it is not known",
      "apple_price": "the customer's price of a unit in Apple's rows",
      "ledger_month": "the month of the ledger's lines, by their day in America/Los_Angeles",
      "transaction_month":
        "the month of the transactions in Apple's rows; empty where the report has no such dates",
      "ledger_units": "how many units of the ledger",
      "candidates": "how many units the ledger has that nothing tells apart from these",
      "ledger_amount": "units times price of the ledger, negative for a Return",
      "apple_units": "how many units of Apple's",
      "apple_amount": "units times price of Apple's, negative for a Return",
      "difference":
        "Apple's amount less the ledger's; empty if they are in different currencies",
      "positions":
        "the events of the ledger's lines, separated by spaces; of more than 20 the first, and how many more",
      "rows":
        "Apple's rows, each as the first digits of its file's digest and its number; of more than 20 the first, "
        + "and how many more",
    ],
    .proceeds: [
      "fiscal_month": "the month of Apple's report",
      "seller": "the company of Apple's that sold; empty where it is not known",
      "product_id": "the product: the vendor identifier, or what it is mapped to",
      "line": "Sale or Return",
      "currency": "the currency of the customer's price",
      "share_currency": "the currency of the share",
      "units": "the units as they stand, those of a Return negative",
      "gross": "units times the customer's price",
      "share": "what the developer gets, before withheld tax",
      "kept": "gross less share: commission and taxes; empty if their currencies differ",
    ],
    .payout: [
      "fiscal_month": "the month of the payment overview",
      "region": "the region, as it stands",
      "currency": "the currency of the amounts before conversion",
      "units": "the units sold, as they stand",
      "balance": "what was carried forward",
      "earned": "what the month's reports earned",
      "input_tax": "input tax",
      "adjustments": "adjustments",
      "withholding_tax": "tax that was withheld",
      "owed": "the total owed",
      "exchange_rate": "the rate as Apple rounds it",
      "effective_rate":
        "proceeds divided by owed, half to even to 9 decimals; empty if it was not paid",
      "proceeds": "what was paid, or of --by the part that is allocated to the group",
      "bank_currency": "the currency of the bank account",
      "paid": "whether it was paid, or carried forward",
      "expected_payment": "33 days after the month's end",
      "latest_payment": "45 days after the month's end",
      "seller": "with --by: the company of Apple's that sold",
      "product_id": "with --by: the product",
      "country_code": "with --by: the country",
      "share": "with --by: the share of the group's rows",
    ],
    .entries: [
      "date":
        "the day of the sales, the last day of the fiscal month (of unsettled sales, of the second after it), "
        + "or the day of the payment",
      "entry": "the name of the entry, which its postings share",
      "kind": "sales, settlement, unsettled or payment",
      "fiscal_month": "the month of Apple's report, or of unsettled sales; empty for sales by day",
      "description": "App Store, and the name of the entry",
      "account": "the account",
      "amount": "what is added to the account; debit is positive",
      "currency": "the currency of the amount, ISO 4217",
      "posted": "with --check: what all postings to the receivable come to",
      "open": "with --check: sales that Apple may still settle",
      "not_reported": "with --check: sales in months without a report of Apple's",
      "rounding": "with --check: rounding of months that are not closed",
      "share": "with --check: what Apple's reports say the developer gets",
      "paid": "with --check: what payments have settled of it, negative",
      "balance": "with --check: the sum of these parts, equal to posted",
    ],
    .receipts: [
      "receipt_id": "a UUID made from the app family and the receipt's content",
      "style": "unified or transaction",
      "environment": "as the App Store named it; until then as the receipt does, or Unknown",
      "state": "pending, valid, invalid or unavailable",
      "is_fraud": "whether it, or any of its uploads, is a fraud",
      "fraud_reason": "why it is a fraud",
      "country_code": "the country of the first upload that named one",
      "user_identifier": "the user of the first upload that named one",
      "uploads": "how many uploads",
      "purchases": "how many sales its newest reply shows",
      "first_position": "the first event about it",
      "last_position": "the last event about it",
      "created_at": "when the first event was recorded",
      "updated_at": "when the last event was recorded",
    ],
    .users: [
      "receipts": "how many receipts",
      "uploads": "how many uploads",
      "sales": "how many sales",
      "returns": "how many sales are refunded",
      "trials": "how many trials",
      "countries": "the countries of the sales, separated by spaces",
      "net": "the net amount in each currency, as in 9.99 EUR 4.00 USD",
      "first_seen_at": "the first upload",
      "last_seen_at": "the last upload",
    ],
    .subscriptions: [
      "month": "the month",
      "active": "subscriptions at its end",
      "new": "subscriptions that began",
      "renewed": "subscriptions that were renewed",
      "converted": "trials and offers that turned into regular subscriptions",
      "recovered": "subscriptions that came back",
      "churned": "subscriptions that ended",
      "gross": "what was charged in the month, by currency",
      "mrr": "what the active subscriptions bring in per month, by currency",
      "status": "active, grace_period, billing_retry, expired or revoked",
      "started_at": "when the first period began",
      "current_period_start_at": "when the current period began",
      "expires_at": "when it ends",
      "grace_period_expires_at": "until when it stays usable unpaid",
      "auto_renew": "whether it renews",
      "auto_renew_product_id": "the product that it renews to",
      "expiration_intent": "why it expired, as the App Store wrote it",
      "in_billing_retry": "whether the App Store tries to charge",
      "price": "the price of the current period",
      "offer": "the offer with which the period was bought",
      "revoked_at": "when the current period was refunded or revoked",
      "position": "the newest event about it",
    ],
  ]
}
