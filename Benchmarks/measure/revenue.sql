-- Revenue by month, country and currency, from the log's event lines: what somebody who knows DuckDB would
-- write. First observation of a sale, its country, and the price its own upload tells. Left out of the
-- revenue rules: refunds, corrected replies, prices told later, carried forward or listed, bad prices,
-- legacy replies' own rows, and exceptions.
WITH events AS MATERIALIZED (
  SELECT seq, type, data
  FROM read_json(
    $log,
    format = 'newline_delimited',
    maximum_object_size = 20000000,
    columns = {
      seq: 'BIGINT',
      type: 'VARCHAR',
      data: 'STRUCT(
        upload BIGINT, authority VARCHAR, outcome VARCHAR, environment VARCHAR, country_code VARCHAR,
        metadata STRUCT(prices JSON, price VARCHAR, price_micros VARCHAR, price_milliunits VARCHAR,
                        currency VARCHAR),
        reply STRUCT(receipt STRUCT(bundle_id VARCHAR, in_app JSON), latest_receipt_info JSON))'
    }
  )
),
uploads AS (
  SELECT seq, data.country_code AS country_code, data.metadata AS metadata
  FROM events
  WHERE type = 'receipt.uploaded'
),
results AS (
  SELECT
    seq, data.upload AS upload, data.reply.receipt.bundle_id AS bundle_id,
    list_concat(rows_of(data.reply.latest_receipt_info), rows_of(data.reply.receipt.in_app)) AS purchases
  FROM events
  WHERE type = 'receipt.verified' AND data.authority = 'app_store' AND data.outcome = 'valid'
    AND data.environment = 'Production'
),
purchases AS (
  SELECT seq, upload, bundle_id, unnest(purchases) AS purchase
  FROM results
),
keyed AS (
  SELECT
    seq, upload, bundle_id, purchase,
    coalesce(
      CASE WHEN purchase.web_order_line_item_id NOT IN ('', '0')
        THEN 'line ' || purchase.web_order_line_item_id END,
      purchase.original_transaction_id, purchase.transaction_id) AS sale_key
  FROM purchases
  WHERE purchase.product_id IS NOT NULL
),
sales AS (
  SELECT
    bundle_id, sale_key, arg_min(purchase, seq) AS purchase, min(seq) AS seq,
    arg_min(upload, seq) AS upload
  FROM keyed
  GROUP BY bundle_id, sale_key
),
priced AS (
  SELECT
    s.purchase, u.country_code,
    coalesce(
      list_filter(prices_of(u.metadata.prices), lambda p: p.transaction_id = s.purchase.transaction_id)[1],
      list_filter(
        prices_of(u.metadata.prices),
        lambda p: p.transaction_id IS NULL AND p.product_id = s.purchase.product_id)[1],
      price_entry(u.metadata)) AS price
  FROM sales AS s JOIN uploads AS u ON u.seq = s.upload
  WHERE coalesce(s.purchase.is_trial_period, '') NOT IN ('true', '1')
    AND coalesce(s.purchase.in_app_ownership_type, '') <> 'FAMILY_SHARED'
)
SELECT
  strftime(make_timestamp_ms(try_cast(purchase.purchase_date_ms AS BIGINT)), '%Y-%m') AS period,
  coalesce(country_code, 'ZZ') AS country_code,
  upper(price.currency) AS currency,
  sum(coalesce(try_cast(purchase.quantity AS INTEGER), 1)) AS units,
  sum(coalesce(try_cast(purchase.quantity AS INTEGER), 1) * amount(price)) AS gross
FROM priced
GROUP BY ALL
ORDER BY ALL
