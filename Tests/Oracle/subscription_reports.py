# The reports of subscriptions: one row each, and month by month (rule R13).
from fractions import Fraction

from dates import DAY_MS, Zone, month_of, month_start, period_name, time_text
from journal import SALE
from money import amount_text
from refunds import RETURN

COLUMNS = [
    "environment", "bundle_id", "original_transaction_id", "product_id", "user_identifier",
    "country_code", "status", "started_at", "current_period_start_at", "expires_at",
    "grace_period_expires_at", "auto_renew", "auto_renew_product_id", "expiration_intent",
    "in_billing_retry", "price", "currency", "offer", "revoked_at", "position",
]
MONTH_COLUMNS = [
    "month", "bundle_id", "currency", "active", "new", "renewed", "converted", "recovered", "churned",
    "gross", "mrr",
]
BILLING_RETRY_MS = 60 * DAY_MS
# A month's length, in days.
MONTH = Fraction(304_375, 10_000)
# From this many days on, a period is of whole months.
SHORTEST_MONTH = 27


def moment_ms(book, options):
    """R13: the instant asked for (a day is its start), else when the last event was recorded."""
    if options.at_day is not None:
        return Zone(options.timezone).start_ms(options.at_day)
    return book.last_ms if options.at_ms is None else options.at_ms


# One row each.


def status(current, is_upgraded, renewal, ms):
    """R13: the status at an instant; `is_upgraded`: by any statement of the current period's sale."""
    if current.revoked_ms is not None and current.revoked_ms <= ms and not is_upgraded:
        return "revoked"
    if ms < current.expires_ms:
        return "active"
    if renewal is None:
        return "expired"
    if renewal.grace_ms is not None and ms < renewal.grace_ms:
        return "grace_period"
    is_of_period = renewal.time_ms is not None and renewal.time_ms >= current.start_ms
    if renewal.in_billing_retry and is_of_period and ms < current.expires_ms + BILLING_RETRY_MS:
        return "billing_retry"
    return "expired"


def rows(book, options, number):
    """R13: the subscriptions that some statement shows."""
    at_ms = moment_ms(book, options)
    sales = {sale.key: sale for sale in book.sales}
    body = []
    for subscription, known in book.subscriptions.known.items():
        if known.statements and options.shows(subscription.environment):
            body.append(_row(book, subscription, known, at_ms, sales, number))
    return COLUMNS, sorted(body, key=lambda row: [cell.encode() for cell in row[:3]])


def _row(book, subscription, known, at_ms, sales, number):
    current, renewal = known.current, known.renewal
    sale = sales[current.key]
    priced = book.priced[sale]
    price = priced.price if sale.is_paid else None
    return [
        subscription.environment,
        subscription.bundle_id,
        subscription.original_transaction_id,
        current.product_id,
        book.user_of_subscription(subscription, known) or "",
        known.signed_country or known.client_country or "ZZ",
        status(current, sale.is_upgraded, renewal, at_ms),
        time_text(current.started_ms),
        time_text(current.start_ms),
        time_text(current.expires_ms),
        _time(renewal and renewal.grace_ms),
        _flag(renewal and renewal.auto_renew),
        (renewal and renewal.auto_renew_product_id) or "",
        (renewal and renewal.expiration_intent) or "",
        _flag(renewal and renewal.in_billing_retry),
        number(amount_text(price.micros, price.currency) if price else None),
        price.currency if price else "",
        current.offer,
        _time(current.revoked_ms),
        number(max(current.position, renewal.position if renewal else -1)),
    ]


def _time(ms):
    return "" if ms is None else time_text(ms)


def _flag(value):
    return "" if value is None else "true" if value else "false"


# Month by month.


class Coverage:
    """One subscription: its periods, each a sale, and the stretches of time that they cover.

    A stretch ends where no later period continues it.
    """

    def __init__(self, book, periods):
        self.book, self.periods = book, periods
        starts = [sale.date_ms for sale in periods]
        self.ends = [
            max(start, self._end_ms(sale, start, after))
            for sale, start, after in zip(periods, starts, [*starts[1:], None])
        ]
        self.happened, self.stretches = [], []
        for place, sale in enumerate(periods):
            start, end = sale.date_ms, self.ends[place]
            if place and start <= self.stretches[-1][1]:
                converts = periods[place - 1].kind == "trial" and sale.kind != "trial"
                self.happened.append((start, "converted" if converts else "renewed"))
                self.stretches[-1] = (self.stretches[-1][0], max(end, self.stretches[-1][1]))
                continue
            known = place or book.subscriptions.is_renewal(sale.key)
            self.happened.append((start, "recovered" if known else "new"))
            self.stretches.append((start, end))
        self.happened += [(end, "churned") for _, end in self.stretches]

    def _end_ms(self, sale, start_ms, next_ms):
        """R13: the end of coverage of a period."""
        ends = [self.book.subscriptions.period_end_ms(sale.key)]
        returned = [line.date_ms for line in sale.refunds.lines if line.name == RETURN]
        if sale.refunds.is_refunded and returned:
            ends.append(returned[-1])
        if next_ms is not None and next_ms > start_ms:
            ends.append(next_ms)
        return min(ends)

    def covering(self, ms):
        """The sale of the period that covers the instant; of several the last."""
        found = None
        for sale, end in zip(self.periods, self.ends):
            if sale.date_ms <= ms < end:
                found = sale
        return found


def by_month(book, options, number):
    """R13: the events before the moment, by month and bundle."""
    at_ms, zone = moment_ms(book, options), Zone(options.timezone)
    chains = {}
    for sale in book.sales:
        if _counts(book, sale, options):
            identity = (sale.key.environment, sale.key.bundle_id, sale.original_transaction_id)
            chains.setdefault(identity, []).append(sale)
    bundles = {}
    for (_, bundle_id, _), periods in chains.items():
        periods.sort(key=lambda sale: (sale.date_ms, sale.key.text.encode()))
        bundles.setdefault(bundle_id, []).append(Coverage(book, periods))
    gross = _gross(book, bundles, at_ms, zone, options)
    body = []
    for bundle_id, coverages in bundles.items():
        body += _months(bundle_id, coverages, gross, at_ms, zone, options, number)
    return MONTH_COLUMNS, sorted(body, key=lambda row: [cell.encode() for cell in row[:3]])


def _counts(book, sale, options):
    return (
        options.shows(sale.key.environment)
        and book.subscriptions.period_end_ms(sale.key) is not None
        and bool(sale.original_transaction_id)
        and sale.kind != "family_shared"
    )


def _gross(book, bundles, at_ms, zone, options):
    """The sums of these sales' Sale lines, as the journal has them, by bundle, month and currency."""
    counted = {s.key for all_of_it in bundles.values() for one in all_of_it for s in one.periods}
    sums = {}
    for line in book.lines():
        if line.name == SALE and line.sale.key in counted and line.currency and line.date_ms < at_ms:
            month = month_of(zone.day(line.date_ms))
            amounts = sums.setdefault((line.sale.key.bundle_id, month), {})
            code, micros = book.converted(
                line.amount_micros, line.currency, line.date_ms, options.reporting_currency,
                options.rates_max_age,
            )
            amounts[code] = amounts.get(code, 0) + micros
    return sums


def _months(bundle_id, coverages, gross, at_ms, zone, options, number):
    counts = {}
    for coverage in coverages:
        for ms, name in coverage.happened:
            if ms < at_ms:
                month = month_of(zone.day(ms))
                counts.setdefault(month, {}).setdefault(name, 0)
                counts[month][name] += 1
    if not counts:
        return
    before = 0
    for month in range(min(counts), month_of(zone.day(at_ms)) + 1):
        last_ms = min(zone.start_ms(month_start(month + 1)), at_ms) - 1
        covering = [sale for one in coverages if (sale := one.covering(last_ms)) is not None]
        happened = counts.get(month, {})
        told = [happened.get(name, 0) for name in ("new", "renewed", "converted", "recovered", "churned")]
        new, _, _, recovered, churned = told
        assert len(covering) == before + new + recovered - churned, (bundle_id, month)
        before = len(covering)
        charged = gross.get((bundle_id, month), {})
        monthly = {}
        for code, micros in _mrr(coverages[0].book, covering).items():
            # Worth what it is at the month's end.
            shown, amount = coverages[0].book.converted(
                micros, code, last_ms, options.reporting_currency, options.rates_max_age
            )
            monthly[shown] = monthly.get(shown, 0) + amount
        told_once = [number(before), *map(number, told)]
        for code in sorted({*charged, *monthly}) or [""]:
            yield [
                period_name(month_start(month), "month"),
                bundle_id,
                code,
                *told_once,
                number(amount_text(charged.get(code, 0), code) if code else ""),
                number(amount_text(monthly.get(code, 0), code) if code else ""),
            ]
            # Counts are of the month, whatever the currencies.
            told_once = [number("")] * len(told_once)


def _mrr(book, covering):
    sums = {}
    for sale in covering:
        priced = book.priced[sale]
        if sale.is_paid and priced.price is not None:
            end_ms = book.subscriptions.period_end_ms(sale.key)
            monthly = monthly_micros(priced.amount_micros, end_ms - sale.date_ms)
            sums[priced.price.currency] = sums.get(priced.price.currency, 0) + monthly
    return sums


def monthly_micros(micros, length_ms):
    """R13: a period's amount a month, half to even to the micro."""
    days = max(1, _nearest(Fraction(length_ms, DAY_MS)))
    if days >= SHORTEST_MONTH:
        return round(Fraction(micros, max(1, _nearest(days / MONTH))))
    return round(micros * MONTH / days)


def _nearest(fraction):
    """To the nearest integer, ties up."""
    return (2 * fraction + 1) // 2
