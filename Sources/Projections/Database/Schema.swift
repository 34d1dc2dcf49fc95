// The tables of the standard projections and their indexes.
import Revenue

/// The schema. The views for analysts are stable; tables may change with a version.
package enum Schema {
  /// The version of each projection's tables and fold. A database with other versions or other definitions is
  /// rebuilt. Only the version reveals that a fold changed.
  static let versions: [(name: String, version: Int)] = [
    ("apps", 2), ("receipts", 7), ("sales", 9), ("journal", 6), ("users", 4),
    ("verifications", 3), ("exceptions", 7), ("declarations", 4), ("uploads", 5),
    ("notifications", 3), ("statements", 1), ("fetches", 2), ("subscriptions", 4),
    ("redactions", 1), ("views", 10),
  ]

  /// All standard projections are one fold over connected tables, so a change to one changes the identity of all.
  static let identities: [ProjectionIdentity] = {
    let sql = tables + indexes
    return versions.map { projection in
      ProjectionIdentity(
        name: projection.name, version: projection.version,
        sql: projection.name == "views" ? views : sql)
    }
  }()

  /// The tables whose rows count as those of each projection. All use `symbols`; `sale_figures` and
  /// `statement_times` belong to the rows of `sales`.
  static let tableNames: [String: [String]] = [
    "apps": ["apps", "app_bundles", "known_bundles"],
    "receipts": [
      "receipts", "upload_verdicts", "open_uploads", "pending_receipts",
      "recent_replies",
    ],
    "sales": ["sales", "sale_transactions", "sale_claims"],
    "journal": ["later_lines", "refund_statements"],
    "users": ["users", "accounts", "account_users"],
    "verifications": ["verifications"], "exceptions": ["exceptions"],
    "declarations": [
      "declarations", "price_list", "rates", "settlement_files", "settlement_maps",
      "trust_declarations",
    ],
    "uploads": ["uploads", "signed_uploads", "held_receipts"],
    "notifications": ["notifications", "legacy_notifications"],
    "statements": ["signed_statements"], "fetches": ["fetched_pages", "signature_acceptances"],
    "subscriptions": ["subscriptions", "subscription_turns"], "redactions": ["redactions"],
    "views": [],
  ]

  /// Columns are in the order in which rows are written: only then can SQLite use their values without copying them.
  package static let tables = """
    CREATE TABLE progress(
      id INTEGER PRIMARY KEY CHECK (id = 0), position INTEGER NOT NULL, root BLOB NOT NULL,
      frontier BLOB NOT NULL, last_event_at_ms INTEGER);
    CREATE TABLE projections(
      name TEXT PRIMARY KEY, version INTEGER NOT NULL, definition TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE symbols(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE users(
      id INTEGER PRIMARY KEY, user_identifier TEXT NOT NULL, uploads INTEGER NOT NULL,
      first_seen_at_ms INTEGER, last_seen_at_ms INTEGER);
    CREATE TABLE accounts(
      id INTEGER PRIMARY KEY, environment INTEGER NOT NULL, bundle INTEGER NOT NULL,
      account_hash INTEGER NOT NULL, app_transaction_id TEXT NOT NULL, token INTEGER,
      has_several_tokens INTEGER NOT NULL, has_unknown_users INTEGER NOT NULL, user INTEGER,
      user_position INTEGER, has_later_users INTEGER NOT NULL);
    CREATE TABLE account_users(
      account INTEGER NOT NULL, ordinal INTEGER NOT NULL, user INTEGER NOT NULL,
      position INTEGER NOT NULL, PRIMARY KEY(account, ordinal)) WITHOUT ROWID;
    CREATE TABLE apps(
      app_family_id TEXT PRIMARY KEY, name TEXT NOT NULL, data TEXT NOT NULL,
      position INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE app_bundles(
      bundle_id TEXT PRIMARY KEY, app_family_id TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE known_bundles(bundle_id TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE uploads(
      position INTEGER PRIMARY KEY, receipt INTEGER, line_hash INTEGER,
      occurred_at_ms INTEGER NOT NULL, recorded_at_ms INTEGER NOT NULL, country INTEGER,
      user INTEGER, line INTEGER, line_sha256 BLOB, ip_address TEXT, identifier_for_vendor TEXT,
      metadata TEXT);
    CREATE TABLE signed_uploads(
      position INTEGER PRIMARY KEY, upload_hash INTEGER NOT NULL, upload_id TEXT NOT NULL,
      app_family INTEGER NOT NULL, bundle INTEGER, transactions INTEGER NOT NULL);
    CREATE TABLE held_receipts(upload INTEGER PRIMARY KEY, until_ms INTEGER NOT NULL);
    CREATE TABLE notifications(
      position INTEGER PRIMARY KEY, uuid_hash INTEGER NOT NULL, line_hash INTEGER,
      occurred_at_ms INTEGER NOT NULL, recorded_at_ms INTEGER NOT NULL, signed_at_ms INTEGER,
      type INTEGER NOT NULL, subtype INTEGER, environment INTEGER NOT NULL,
      bundle INTEGER NOT NULL, app_family INTEGER NOT NULL, line INTEGER, line_sha256 BLOB,
      notification_uuid TEXT NOT NULL, transaction_id TEXT, original_transaction_id TEXT,
      is_fetched INTEGER NOT NULL);
    CREATE TABLE legacy_notifications(
      position INTEGER PRIMARY KEY, occurred_at_ms INTEGER NOT NULL, type INTEGER NOT NULL,
      environment INTEGER NOT NULL, bundle INTEGER NOT NULL, transaction_id TEXT,
      original_transaction_id TEXT);
    CREATE TABLE signed_statements(transaction_hash INTEGER NOT NULL, position INTEGER NOT NULL);
    CREATE TABLE fetched_pages(
      position INTEGER PRIMARY KEY, app_family INTEGER NOT NULL, bundle INTEGER NOT NULL,
      environment INTEGER NOT NULL, call INTEGER NOT NULL, transaction_hash INTEGER,
      transaction_id TEXT, from_ms INTEGER, to_ms INTEGER, revision TEXT, error_code INTEGER,
      has_more INTEGER NOT NULL, occurred_at_ms INTEGER NOT NULL);
    CREATE TABLE signature_acceptances(
      position INTEGER PRIMARY KEY, page INTEGER NOT NULL, occurred_at_ms INTEGER NOT NULL);
    CREATE TABLE verifications(
      position INTEGER PRIMARY KEY, upload INTEGER NOT NULL, receipt INTEGER,
      authority INTEGER NOT NULL, outcome INTEGER NOT NULL, status INTEGER, environment INTEGER,
      reason TEXT, attempt INTEGER NOT NULL, endpoint INTEGER, occurred_at_ms INTEGER NOT NULL,
      request_date_ms INTEGER, reply_position INTEGER, host INTEGER, trust INTEGER);
    CREATE TABLE receipts(
      id INTEGER PRIMARY KEY, receipt_id TEXT NOT NULL, app_family INTEGER NOT NULL,
      bundle INTEGER NOT NULL, style INTEGER NOT NULL, environment INTEGER, state INTEGER NOT NULL,
      fraud_reason INTEGER, country INTEGER, user INTEGER, uploads INTEGER NOT NULL,
      purchases INTEGER NOT NULL, first_position INTEGER NOT NULL, last_position INTEGER NOT NULL,
      reply_position INTEGER, is_locally_valid INTEGER NOT NULL, is_final INTEGER NOT NULL,
      created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL,
      receipt_hash INTEGER NOT NULL,
      last_upload INTEGER NOT NULL, answer_position INTEGER, own_fraud_reason INTEGER,
      own_fraud_position INTEGER, upload_fraud_reason INTEGER, upload_fraud_position INTEGER);
    CREATE TABLE upload_verdicts(
      upload INTEGER PRIMARY KEY, receipt INTEGER, fraud_reason INTEGER NOT NULL,
      position INTEGER NOT NULL);
    CREATE TABLE open_uploads(
      upload INTEGER PRIMARY KEY, receipt INTEGER NOT NULL, is_accepted INTEGER NOT NULL,
      is_unreachable INTEGER NOT NULL, is_refused INTEGER NOT NULL);
    CREATE TABLE sales(
      id INTEGER PRIMARY KEY, environment INTEGER NOT NULL, bundle INTEGER NOT NULL,
      key_kind INTEGER NOT NULL, sale_key TEXT NOT NULL, product INTEGER NOT NULL,
      quantity INTEGER NOT NULL, sale_date_ms INTEGER NOT NULL, kind INTEGER NOT NULL,
      transaction_id TEXT NOT NULL, original_transaction_id TEXT NOT NULL,
      first_position INTEGER NOT NULL, country INTEGER, country_position INTEGER, user INTEGER,
      user_position INTEGER, unit_price_micros INTEGER, currency INTEGER,
      price_basis INTEGER NOT NULL, price_position INTEGER, price_problem INTEGER NOT NULL,
      is_upgraded INTEGER NOT NULL, cancellation_state INTEGER NOT NULL,
      version INTEGER NOT NULL, created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL,
      is_transaction_alias INTEGER NOT NULL, chain_hash INTEGER, trust INTEGER NOT NULL,
      flags INTEGER NOT NULL, client_country INTEGER, amount_micros INTEGER,
      period_end_ms INTEGER, user_basis INTEGER NOT NULL, account INTEGER, token INTEGER,
      token_user INTEGER, token_position INTEGER);
    CREATE TABLE subscriptions(
      id INTEGER PRIMARY KEY, environment INTEGER NOT NULL, bundle INTEGER NOT NULL,
      original_hash INTEGER NOT NULL, original_transaction_id TEXT NOT NULL, country INTEGER,
      user INTEGER, is_country_signed INTEGER NOT NULL, user_basis INTEGER NOT NULL,
      user_position INTEGER, is_taken_over INTEGER NOT NULL, sale INTEGER, product INTEGER,
      started_at_ms INTEGER, current_period_start_at_ms INTEGER,
      expires_at_ms INTEGER, offer INTEGER, revoked_at_ms INTEGER,
      statement_ms INTEGER, statement_position INTEGER, renewal_ms INTEGER,
      renewal_position INTEGER, auto_renew INTEGER, auto_renew_product INTEGER,
      expiration_intent INTEGER, in_billing_retry INTEGER, grace_period_expires_at_ms INTEGER,
      account INTEGER, token INTEGER, token_user INTEGER, token_position INTEGER);
    CREATE TABLE subscription_turns(
      position INTEGER NOT NULL, kind INTEGER NOT NULL, subscription INTEGER NOT NULL,
      expires_at_ms INTEGER, expiration_intent INTEGER, grace_period_expires_at_ms INTEGER,
      statement_ms INTEGER, PRIMARY KEY(position, kind, subscription)) WITHOUT ROWID;
    CREATE TABLE sale_figures(id INTEGER PRIMARY KEY, records BLOB NOT NULL);
    CREATE TABLE statement_times(id INTEGER PRIMARY KEY, records BLOB NOT NULL);
    CREATE TABLE sale_transactions(
      sale INTEGER NOT NULL, transaction_id TEXT NOT NULL,
      PRIMARY KEY(sale, transaction_id)) WITHOUT ROWID;
    CREATE TABLE later_lines(
      sale INTEGER NOT NULL, ordinal INTEGER NOT NULL, line INTEGER NOT NULL,
      date_ms INTEGER NOT NULL, position INTEGER NOT NULL, reason TEXT,
      quantity INTEGER NOT NULL, amount_micros INTEGER, share INTEGER NOT NULL,
      advanced_micros INTEGER NOT NULL, is_assumed INTEGER NOT NULL,
      is_first_excess INTEGER NOT NULL, statement_ms INTEGER, PRIMARY KEY(sale, ordinal)) WITHOUT ROWID;
    CREATE TABLE refund_statements(sale INTEGER PRIMARY KEY, statements BLOB NOT NULL);
    CREATE TABLE sale_claims(
      sale INTEGER PRIMARY KEY, user INTEGER NOT NULL, position INTEGER NOT NULL);
    CREATE TABLE exceptions(
      type INTEGER NOT NULL, sale INTEGER, environment INTEGER NOT NULL, bundle INTEGER NOT NULL,
      product_id TEXT NOT NULL, transaction_id TEXT NOT NULL, detail TEXT NOT NULL,
      position INTEGER NOT NULL);
    CREATE TABLE pending_receipts(
      receipt INTEGER PRIMARY KEY, environment TEXT NOT NULL, purchases TEXT NOT NULL);
    CREATE TABLE recent_replies(
      position INTEGER PRIMARY KEY, receipt INTEGER NOT NULL, recorded_at_ms INTEGER NOT NULL,
      content BLOB NOT NULL);
    CREATE TABLE price_list(
      position INTEGER NOT NULL, ordinal INTEGER NOT NULL, product INTEGER NOT NULL,
      country INTEGER, currency INTEGER NOT NULL, price_micros INTEGER NOT NULL,
      effective_from_ms INTEGER NOT NULL, PRIMARY KEY(position, ordinal)) WITHOUT ROWID;
    CREATE TABLE rates(
      position INTEGER NOT NULL, ordinal INTEGER NOT NULL, day INTEGER NOT NULL,
      base TEXT NOT NULL, quote TEXT NOT NULL, rate TEXT NOT NULL,
      PRIMARY KEY(position, ordinal)) WITHOUT ROWID;
    CREATE TABLE declarations(
      position INTEGER PRIMARY KEY, type INTEGER NOT NULL, source TEXT NOT NULL,
      source_sha256 TEXT NOT NULL, recorded_at_ms INTEGER NOT NULL, entries INTEGER NOT NULL,
      withdrawn_by INTEGER);
    CREATE TABLE settlement_files(
      position INTEGER PRIMARY KEY, kind TEXT NOT NULL, month TEXT NOT NULL, region TEXT,
      source TEXT NOT NULL, source_sha256 TEXT NOT NULL, part INTEGER NOT NULL,
      parts INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE TABLE settlement_maps(position INTEGER PRIMARY KEY, sku TEXT NOT NULL, product_id TEXT);
    CREATE TABLE trust_declarations(
      position INTEGER PRIMARY KEY, production_host TEXT NOT NULL, sandbox_host TEXT NOT NULL,
      is_apple INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE TABLE redactions(
      position INTEGER PRIMARY KEY, erasure INTEGER NOT NULL, request TEXT, scope TEXT,
      reason TEXT NOT NULL, part INTEGER, parts INTEGER, lines INTEGER NOT NULL,
      recorded_at_ms INTEGER NOT NULL);
    """

  /// The tables with a database's progress and signed heads. They do not follow from events, so comparisons of
  /// databases leave them out.
  static let ownTables = ["progress", "projections", "signed_heads"]

  /// The signed heads of the ledger. No event contains them, so each generation copies them from the previous one.
  /// Created when there is a head to record.
  static let signedHeads = """
    CREATE TABLE IF NOT EXISTS signed_heads(
      id INTEGER PRIMARY KEY CHECK (id = 0), checkpoints INTEGER NOT NULL, size INTEGER NOT NULL,
      root BLOB NOT NULL);
    """

  /// Created when most rows of a load from nothing are in their final order. Long texts are found by hashes: sorting
  /// integers takes a quarter of the time, and a lookup also compares the text.
  package static let indexes = (earlyIndexes + lateIndexes).joined(separator: "\n")

  /// For tables that are written while events are folded; closing steps create them.
  package static let earlyIndexes = [
    "CREATE UNIQUE INDEX users_identifier ON users(user_identifier);",
    "CREATE INDEX uploads_line_hash ON uploads(line_hash) WHERE line_hash IS NOT NULL;",
    "CREATE INDEX signed_uploads_hash ON signed_uploads(upload_hash);",
    "CREATE INDEX notifications_uuid_hash ON notifications(uuid_hash);",
    "CREATE INDEX notifications_line_hash ON notifications(line_hash) WHERE line_hash IS NOT NULL;",
    "CREATE INDEX signed_statements_hash ON signed_statements(transaction_hash, position);",
    """
    CREATE INDEX fetched_pages_transaction_hash ON fetched_pages(transaction_hash)
      WHERE transaction_hash IS NOT NULL;
    """,
    "CREATE INDEX receipts_receipt_hash ON receipts(receipt_hash);",
    "CREATE INDEX receipts_pending ON receipts(id) WHERE is_final = 0;",
    "CREATE INDEX subscriptions_hash ON subscriptions(original_hash);",
    "CREATE INDEX accounts_hash ON accounts(account_hash);",
    """
    CREATE INDEX subscriptions_account ON subscriptions(account)
      WHERE account IS NOT NULL AND NOT \(UserBasis.isByUploadSQL("user_basis"));
    """,
    """
    CREATE INDEX sales_account ON sales(account)
      WHERE account IS NOT NULL AND NOT \(UserBasis.isByUploadSQL("user_basis"));
    """,
    "CREATE INDEX subscriptions_user ON subscriptions(user) WHERE user IS NOT NULL;",
    "CREATE INDEX sales_key ON sales(sale_key);",
    "CREATE INDEX sales_chain_hash ON sales(chain_hash) WHERE chain_hash IS NOT NULL;",
    """
    CREATE INDEX sales_alias ON sales(CAST(transaction_id AS INTEGER))
      WHERE is_transaction_alias = 1;
    """,
    "CREATE INDEX sale_transactions_alias ON sale_transactions(CAST(transaction_id AS INTEGER));",
    // In the order in which a user's purchases are listed.
    "CREATE INDEX sales_user ON sales(user, sale_date_ms) WHERE user IS NOT NULL;",
  ]

  static let lateIndexes = [
    """
    CREATE INDEX open_uploads_waiting ON open_uploads(receipt, upload)
      WHERE is_accepted = 1 AND is_refused = 0;
    """,
    "CREATE INDEX exceptions_sale ON exceptions(sale) WHERE sale IS NOT NULL;",
    // Webhooks query what a range of events changed.
    "CREATE INDEX later_lines_position ON later_lines(position);",
    "CREATE INDEX upload_verdicts_position ON upload_verdicts(position);",
    "CREATE INDEX exceptions_transaction_id ON exceptions(transaction_id) WHERE sale IS NULL;",
    """
    CREATE INDEX exceptions_price_unmatched ON exceptions(detail)
      WHERE type = \(ExceptionType.priceUnmatched.rawValue);
    """,
    // A server queries the undeclared products every few seconds.
    """
    CREATE INDEX exceptions_product_unknown ON exceptions(bundle, product_id)
      WHERE type = \(ExceptionType.productUnknown.rawValue);
    """,
  ]
}
