// The SQL views for analysts: stable names, words for numbers, times in both forms.
import AppStore
import Ledger
import Revenue

extension Schema {
  /// The stable views, in the order of docs/projections.md, which describes every column.
  package static let viewNames = [
    "app_view", "receipt_view", "upload_view", "verification_view", "notification_view",
    "fetch_view", "user_view", "sale_view", "journal_view", "subscription_view", "exception_view",
    "price_view",
    "rate_view", "trust_view",
  ]

  /// Created with the indexes. The words are those of the reports, from the same enums.
  package static let views =
    [intakeViews, saleViews, subscriptionView, exceptionView, declarationViews].joined()

  // MARK: Parts of statements

  /// The text of a symbol's number; null if it is empty.
  private static func symbol(_ column: String) -> String {
    "(SELECT nullif(text, '') FROM symbols WHERE id = \(column))"
  }

  /// An instant as stored, then as RFC 3339 text: `sale_date_ms, sale_date`.
  private static func instant(_ column: String, _ name: String) -> String {
    // SQLite rounds the fraction to the millisecond, so nothing is lost.
    """
    \(column) AS \(name)_ms, \
    strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch') AS \(name)
    """
  }

  /// The name for a case's number; null if the name is empty.
  private static func word(_ column: String, _ words: [(number: Int8, word: String)]) -> String {
    let cases = words.filter { !$0.word.isEmpty }.map { "WHEN \($0.number) THEN '\($0.word)'" }
    return "CASE \(column) \(cases.joined(separator: " ")) END"
  }

  private static let kinds = SaleKind.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let trusts = ReplyTrust.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let bases = PriceBasis.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let userBases = UserBasis.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let problems = PriceProblem.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let lineTypes = LineType.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let states = ReceiptState.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let exceptionTypes = ExceptionType.allCases.map { ($0.rawValue, $0.word) }
  private static let fetchCalls = FetchCallCode.allCases.map { ($0.rawValue, $0.call.rawValue) }
  private static let offers = Subscription.Offer.allCases.map { ($0.rawValue, "\($0.word)") }
  private static let outcomes = [Outcome.valid, .invalid, .unreachable].map {
    (OutcomeCode($0).rawValue, $0.rawValue)
  }

  // MARK: Events

  private static let intakeViews = """
    CREATE VIEW app_view AS SELECT a.app_family_id, a.name,
      (SELECT group_concat(bundle_id, ' ') FROM
        (SELECT bundle_id FROM app_bundles WHERE app_family_id = a.app_family_id ORDER BY 1))
        AS bundle_ids,
      a.position
      FROM apps a;
    CREATE VIEW receipt_view AS SELECT r.receipt_id,
      \(symbol("r.app_family")) AS app_family_id, \(symbol("r.bundle")) AS bundle_id,
      iif(r.style = 1, 'transaction', 'unified') AS style,
      \(PendingEnvironment.ofReceiptSQL) AS environment, \(word("r.state", states)) AS state,
      r.fraud_reason IS NOT NULL AS is_fraud, \(symbol("r.fraud_reason")) AS fraud_reason,
      \(symbol("r.country")) AS country_code, u.user_identifier, r.uploads, r.purchases,
      r.first_position, r.last_position, r.reply_position,
      \(instant("r.created_at_ms", "created_at")), \(instant("r.updated_at_ms", "updated_at"))
      FROM receipts r LEFT JOIN users u ON u.id = r.user
      LEFT JOIN pending_receipts q ON q.receipt = r.id;
    CREATE VIEW upload_view AS SELECT p.position, r.receipt_id, g.upload_id, g.transactions,
      \(symbol("coalesce(r.bundle, g.bundle)")) AS bundle_id,
      \(symbol("p.country")) AS country_code,
      u.user_identifier, p.ip_address, p.identifier_for_vendor, p.metadata, p.line,
      f.upload IS NOT NULL AS is_fraud, \(symbol("f.fraud_reason")) AS fraud_reason,
      f.position AS fraud_position,
      \(instant("p.occurred_at_ms", "occurred_at")), \(instant("p.recorded_at_ms", "recorded_at"))
      FROM uploads p LEFT JOIN receipts r ON r.id = p.receipt
      LEFT JOIN signed_uploads g ON g.position = p.position AND p.receipt IS NULL
      LEFT JOIN users u ON u.id = p.user LEFT JOIN upload_verdicts f ON f.upload = p.position;
    CREATE VIEW verification_view AS SELECT v.position, v.upload AS upload_position, r.receipt_id,
      iif(v.authority = 1, '\(Authority.appStore.rawValue)', '\(Authority.local.rawValue)')
        AS authority,
      \(word("v.outcome", outcomes)) AS outcome, v.status,
      \(symbol("v.environment")) AS environment, v.reason, v.attempt,
      CASE v.endpoint WHEN 0 THEN 'production' WHEN 1 THEN 'sandbox' END AS endpoint,
      \(symbol("v.host")) AS host, \(word("v.trust", trusts)) AS trust,
      \(instant("v.occurred_at_ms", "occurred_at")),
      \(instant("v.request_date_ms", "request_date")), v.reply_position
      FROM verifications v LEFT JOIN receipts r ON r.id = v.receipt;
    CREATE VIEW notification_view AS SELECT n.position, n.notification_uuid,
      \(symbol("n.type")) AS type, \(symbol("n.subtype")) AS subtype,
      \(symbol("n.environment")) AS environment, \(symbol("n.app_family")) AS app_family_id,
      \(symbol("n.bundle")) AS bundle_id, n.original_transaction_id, n.transaction_id, n.line,
      \(instant("n.signed_at_ms", "signed_at")),
      \(instant("n.occurred_at_ms", "occurred_at")), \(instant("n.recorded_at_ms", "recorded_at"))
      FROM notifications n;
    CREATE VIEW fetch_view AS SELECT p.position, \(symbol("p.app_family")) AS app_family_id,
      \(symbol("p.bundle")) AS bundle_id, \(symbol("p.environment")) AS environment,
      \(word("p.call", fetchCalls)) AS call, p.transaction_id,
      \(instant("p.from_ms", "range_start")), \(instant("p.to_ms", "range_end")),
      p.revision, p.error_code, p.has_more, \(instant("p.occurred_at_ms", "occurred_at"))
      FROM fetched_pages p;
    \(userView)
    """

  /// A user without an upload is one that only a signed transaction names. The order of the join is forced: in the
  /// other order, it depends on the whole query whether SQLite creates an index or scans all users for each user.
  private static let userView = """
    CREATE VIEW user_view AS SELECT u.user_identifier, u.uploads, r.receipts,
      \(instant("u.first_seen_at_ms", "first_seen_at")),
      \(instant("u.last_seen_at_ms", "last_seen_at"))
      FROM (SELECT user, count(DISTINCT receipt) AS receipts FROM uploads WHERE user IS NOT NULL
        GROUP BY user UNION ALL SELECT id, 0 FROM users WHERE uploads = 0) r
      CROSS JOIN users u ON u.id = r.user;

    """

  // MARK: Sales and their journal

  private static let saleViews = """
    CREATE VIEW sale_view AS SELECT s.id AS sale, \(symbol("s.environment")) AS environment,
      \(symbol("s.bundle")) AS bundle_id, s.sale_key, \(symbol("s.product")) AS product_id,
      \(word("s.kind", kinds)) AS kind, s.quantity, \(instant("s.sale_date_ms", "sale_date")),
      \(instant("s.period_end_ms", "period_end")), s.original_transaction_id, s.transaction_id,
      (SELECT group_concat(transaction_id, ' ') FROM
        (SELECT transaction_id FROM sale_transactions WHERE sale = s.id
          UNION ALL SELECT s.transaction_id WHERE s.is_transaction_alias = 1 ORDER BY 1))
        AS transaction_ids,
      s.first_position, coalesce(\(symbol("s.country")), 'ZZ') AS country_code, s.country_position,
      u.user_identifier, s.user_position, \(word("s.user_basis", userBases)) AS user_basis,
      \(symbol("s.currency")) AS currency,
      s.unit_price_micros, s.amount_micros, \(word("s.price_basis", bases)) AS price_basis,
      s.price_position,
      iif(s.price_basis = \(PriceBasis.none.rawValue), \(word("s.price_problem", problems)), NULL)
        AS price_problem,
      s.is_upgraded, s.cancellation_state = \(CancellationState.returned.rawValue) AS cancelled,
      \(word("s.trust", trusts)) AS trust
      FROM sales s LEFT JOIN users u ON u.id = s.user;
    CREATE VIEW journal_view AS SELECT j.sale, j.ordinal, \(instant("j.date_ms", "date")),
      \(word("j.line", lineTypes)) AS line, \(symbol("s.environment")) AS environment,
      \(symbol("s.bundle")) AS bundle_id, s.sale_key, s.transaction_id,
      \(symbol("s.product")) AS product_id, coalesce(\(symbol("s.country")), 'ZZ') AS country_code,
      u.user_identifier, \(word("s.kind", kinds)) AS kind, j.quantity,
      \(symbol("s.currency")) AS currency, s.unit_price_micros, j.amount_micros,
      \(word("s.price_basis", bases)) AS price_basis, nullif(j.reason, '') AS reason, j.position,
      \(instant("s.sale_date_ms", "sale_date"))
      FROM (SELECT id AS sale, 0 AS ordinal, \(LineType.sale.rawValue) AS line,
          sale_date_ms AS date_ms, first_position AS position, NULL AS reason,
          quantity AS quantity, amount_micros AS amount_micros FROM sales
          UNION ALL SELECT sale, ordinal, line, date_ms, position, reason, quantity, amount_micros
          FROM later_lines) j
      JOIN sales s ON s.id = j.sale LEFT JOIN users u ON u.id = s.user;

    """

  /// Without a status, which depends on a moment. A subscription that only renewal information names is not shown.
  private static let subscriptionView = """
    CREATE VIEW subscription_view AS SELECT \(symbol("c.environment")) AS environment,
      \(symbol("c.bundle")) AS bundle_id, c.original_transaction_id,
      \(symbol("c.product")) AS product_id, u.user_identifier,
      coalesce(\(symbol("c.country")), 'ZZ') AS country_code,
      \(instant("c.started_at_ms", "started_at")),
      \(instant("c.current_period_start_at_ms", "current_period_start_at")),
      \(instant("c.expires_at_ms", "expires_at")),
      \(instant("c.grace_period_expires_at_ms", "grace_period_expires_at")), c.auto_renew,
      \(symbol("c.auto_renew_product")) AS auto_renew_product_id,
      \(symbol("c.expiration_intent")) AS expiration_intent, c.in_billing_retry,
      s.unit_price_micros, \(symbol("s.currency")) AS currency, \(word("c.offer", offers)) AS offer,
      \(instant("c.revoked_at_ms", "revoked_at")), s.is_upgraded, c.sale, c.statement_position,
      \(instant("c.renewal_ms", "renewal_at")), c.renewal_position,
      max(c.statement_position, coalesce(c.renewal_position, -1)) AS position
      FROM subscriptions c JOIN sales s ON s.id = c.sale LEFT JOIN users u ON u.id = c.user;

    """

  /// The recorded exceptions and those that follow from the sales, but not those that depend on a report's options.
  private static let exceptionView = """
    CREATE VIEW exception_view AS SELECT \(word("e.type", exceptionTypes)) AS exception,
      \(symbol("e.environment")) AS environment, \(symbol("e.bundle")) AS bundle_id, e.sale,
      s.sale_key, iif(e.sale IS NULL, nullif(e.product_id, ''), \(symbol("s.product")))
        AS product_id,
      iif(e.sale IS NULL, nullif(e.transaction_id, ''), s.transaction_id) AS transaction_id,
      e.position, e.detail
      FROM exceptions e LEFT JOIN sales s ON s.id = e.sale
      UNION ALL SELECT '\(ExceptionType.unpriced.word)', \(symbol("s.environment")),
      \(symbol("s.bundle")), s.id, s.sale_key, \(symbol("s.product")), s.transaction_id,
      s.first_position, \(word("s.price_problem", problems))
      FROM sales s WHERE s.price_basis = \(PriceBasis.none.rawValue)
      UNION ALL SELECT '\(ExceptionType.refundExceedsAmount.word)', \(symbol("s.environment")),
      \(symbol("s.bundle")), s.id, s.sale_key, \(symbol("s.product")), s.transaction_id,
      l.position, ''
      FROM later_lines l CROSS JOIN sales s ON s.id = l.sale WHERE l.is_first_excess = 1;

    """

  // MARK: Declarations

  private static let declarationViews = """
    CREATE VIEW price_view AS SELECT p.position, p.ordinal, d.source, d.source_sha256,
      \(symbol("p.product")) AS product_id, \(symbol("p.country")) AS country_code,
      \(symbol("p.currency")) AS currency, p.price_micros,
      \(instant("p.effective_from_ms", "effective_from"))
      FROM price_list p JOIN declarations d ON d.position = p.position;
    CREATE VIEW rate_view AS SELECT r.position, r.ordinal, d.source, d.source_sha256,
      date(r.day * 86400, 'unixepoch') AS date, r.base, r.quote, r.rate
      FROM rates r JOIN declarations d ON d.position = r.position;
    CREATE VIEW trust_view AS SELECT position, production_host, sandbox_host, is_apple, data
      FROM trust_declarations;

    """
}
