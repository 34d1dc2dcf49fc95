# Prices at report position and the lines of the journal (revenue rules, R7.4–6, R8, R10, R12).
import bisect
from dataclasses import dataclass, replace

from dates import DAY_MS, period_name
from money import Price, RateTable, converted, in_64_bits, minor_unit, part_of
from refunds import RETURN, REVERSAL
from sales import Sale, about_sale, deduplicated
from users import Accounts

SALE = "Sale"
LINE_RANK = {SALE: 0, RETURN: 1, REVERSAL: 2}


@dataclass(frozen=True)
class Priced:
    """A sale's price as a report shows it: a unit's, the whole quantity's, its basis, and its event."""

    price: Price | None
    amount_micros: int | None
    basis: str
    position: int | None
    # R7: whether a carried or listed price was skipped because it does not fit.
    is_unfit: bool = False


UNPRICED = Priced(None, None, "none", None)
UNFIT = replace(UNPRICED, is_unfit=True)


@dataclass(frozen=True)
class Line:
    """A dated, signed entry of the journal; `price` and `amount` are None if unpriced."""

    date_ms: int
    name: str
    sale: Sale
    quantity: int
    unit_micros: int | None
    amount_micros: int | None
    currency: str
    basis: str
    reason: str
    position: int

    @property
    def order(self):
        """R8, order of the journal."""
        key = self.sale.key
        return (
            self.date_ms,
            key.environment.encode(),
            key.bundle_id.encode(),
            key.text.encode(),
            self.position,
            LINE_RANK[self.name],
            key.kind != "line item",
        )


class Book:
    """The sales as reports see them: priced, with their lines and exceptions."""

    def __init__(self, fold, price_list=(), rates=(), last_ms=None, files=None):
        """`last_ms`: when the last event was recorded, if known. `files`: Apple's, of a log."""
        self.files = files
        self.subscriptions = fold.subscriptions
        self.last_ms = last_ms
        self.sales = list(fold.sales.values())
        self.uploads = list(fold.uploads.values())
        self._accounts = Accounts(self.sales)
        self._findings = list(fold.findings)
        for sale in self.sales:
            sale.user = self._accounts.user_of_sale(sale)
            for name, position in sale.refunds.settle(sale.quantity):
                self._findings.append(about_sale(name, sale, position))
        self._rates = RateTable(rates)
        self._listed = {}
        for entry in price_list:
            self._listed.setdefault((entry.product_id, entry.country_code), []).append(entry)
        self._chains = {}
        for sale in self.sales:
            own = _own_price(sale)
            # R12: a signed 0 is a price that is not carried forward.
            if sale.kind == "regular" and own and own.price.micros and sale.original_transaction_id:
                self._chains.setdefault(_chain(sale), []).append(sale)
        for chain in self._chains.values():
            chain.sort(key=_chain_order)
        self.priced = {sale: self._priced(sale) for sale in self.sales}

    def _priced(self, sale):
        """R12's basis, else the first of R7's six that gives a price."""
        if not sale.is_paid:
            return Priced(None, 0, "", None)
        own = _own_price(sale)
        if own is not None:
            return own
        found = self._later_price(sale) if sale.kind == "regular" else None
        if found is None:
            return UNPRICED
        price, basis, position = found
        # R7: a price that does not fit is skipped, and no other is tried.
        return _by_unit(sale, price, basis, position) if price.fits(sale.quantity) else UNFIT

    def _later_price(self, sale):
        """R7, 4 and 5: (unit price, basis, position)."""
        earlier = self._carried_from(sale)
        if earlier is not None:
            carried = _own_price(earlier)
            return carried.price, "carried_forward", carried.position
        entry = self._list_entry(sale)
        return None if entry is None else (entry.price, "price_list", entry.order[0])

    def user_of_subscription(self, subscription, known):
        return self._accounts.user_of_subscription(subscription, known)

    def _carried_from(self, sale):
        """R7, 4: the latest earlier sale of the chain with a price by 1–3, or a signed one."""
        if sale.key.kind != "line item":
            return None
        chain = self._chains.get(_chain(sale), [])
        place = bisect.bisect_left(chain, _chain_order(sale), key=_chain_order)
        return chain[place - 1] if place else None

    def _list_entry(self, sale):
        """R7, 5: the country's own entries in effect, else those without a country."""
        country_code, _ = sale.country
        countries = [country_code, None] if country_code else [None]
        for country_code in countries:
            entries = self._listed.get((sale.product_id, country_code), [])
            in_effect = [e for e in entries if e.effective_from_ms <= sale.date_ms]
            if in_effect:
                return max(in_effect, key=lambda e: (e.effective_from_ms, e.order))
        return None

    def lines(self):
        """R8: the journal in its order, each line in its own currency."""
        return sorted((l for s in self.sales for l in self._lines(s)), key=lambda l: l.order)

    def in_currency(self, line, reporting_currency, max_age=None):
        """R10: the line converted, or as it is without a currency; None if no rate allows it."""
        if not line.currency or reporting_currency is None:
            return line
        day = line.date_ms // DAY_MS
        factor, _ = self._rates.factor(line.currency, reporting_currency, day, max_age)
        if factor is None:
            return None
        try:
            return replace(
                line,
                unit_micros=in_64_bits(converted(line.unit_micros, factor)),
                amount_micros=in_64_bits(converted(line.amount_micros, factor)),
                currency=reporting_currency,
            )
        except OverflowError:
            # A price that one client made up must not prevent every report in that currency.
            return None

    def converted(self, micros, own, at_ms, reporting_currency, max_age=None):
        """R10: (currency, micros) converted, or as they are where no rate allows it."""
        if reporting_currency is None:
            return own, micros
        factor, _ = self._rates.factor(own, reporting_currency, at_ms // DAY_MS, max_age)
        if factor is None:
            return own, micros
        try:
            return reporting_currency, in_64_bits(converted(in_64_bits(micros), factor))
        except OverflowError:
            return own, micros

    def told_rates(self, line, reporting_currency, max_age=None):
        """The rates that convert a line, as the journal shows them."""
        return self._rates.told(line.currency, reporting_currency, line.date_ms // DAY_MS, max_age)

    def _stale_rate_day(self, line, reporting_currency, max_age):
        """R10: the day of the rate that is too old to convert the line; None if there is none."""
        day = line.date_ms // DAY_MS
        if self._rates.factor(line.currency, reporting_currency, day, max_age)[0] is not None:
            return None
        return self._rates.factor(line.currency, reporting_currency, day)[1]

    def _lines(self, sale):
        priced = self.priced[sale]
        currency = priced.price.currency if priced.price else ""

        def line(name, date_ms, quantity, amount, reason, position):
            return Line(
                date_ms,
                name,
                sale,
                quantity,
                priced.price.micros if priced.price else None,
                amount,
                currency,
                priced.basis,
                reason,
                position,
            )

        # R8: a trial's and a family share's amount is 0; an unpriced sale has none.
        amount = priced.amount_micros
        yield line(SALE, sale.date_ms, sale.quantity, amount, "", sale.first_position)
        units, total = 0, 0
        for refund in sale.refunds.lines:
            # R12: what makes up the difference between before and after.
            units_before, total_before = units, total
            if amount is not None:
                total = _refunded(priced, refund.after)
            units = refund.units_after(units_before, sale.quantity, amount is not None and total == amount)
            yield line(
                refund.name,
                refund.date_ms,
                units_before - units,
                None if amount is None else total_before - total,
                refund.reason,
                refund.position,
            )

    def _excess(self, sale):
        """R12, Advanced Commerce: the first line after which more is refunded than was paid."""
        for refund in sale.refunds.lines:
            if refund.after.sum > self.priced[sale].amount_micros:
                yield about_sale(
                    "refund_exceeds_amount", sale, refund.position, date_ms=refund.date_ms
                )
                return

    def findings(self, shows, reporting_currency=None, holds=None, decides=None, max_age=None):
        """R9: the fold's exceptions and those that only a report knows.

        Of the environments that `shows`, and of the days that `holds` an instant. `decides` gives the
        instant that decides a line's period.
        """
        holds = holds or (lambda ms: True)
        decides = decides or (lambda line: line.date_ms)
        lines = [line for line in self.lines() if holds(decides(line))]
        sales = {line.sale.key for line in lines}
        found = list(self._findings)
        for sale in self.sales:
            if self.priced[sale].basis == "none":
                unfit = "price_unreadable" if self.priced[sale].is_unfit else "no_price"
                reason = sale.price_problem or unfit
                found.append(about_sale("unpriced", sale, sale.first_position, reason))
            elif sale.is_paid:
                found.extend(self._excess(sale))
        # Each is listed once, with the first position, whatever days a report covers.
        found = [
            finding
            for finding in deduplicated(found)
            if (finding.subject in sales if finding.subject else _is_held(finding, holds))
        ]
        # For each line by itself, which is converted in this report or not.
        for line in lines:
            if self.in_currency(line, reporting_currency, max_age) is None:
                detail = f"{line.name} {line.currency}"
                found.append(
                    about_sale("unconverted", line.sale, line.position, detail, line.date_ms)
                )
                stale = self._stale_rate_day(line, reporting_currency, max_age)
                if stale is not None:
                    detail = f"{line.currency} {period_name(stale, 'day')}"
                    found.append(
                        about_sale("stale_rate", line.sale, line.position, detail, line.date_ms)
                    )
        # A malformed event has no environment and no day: it is never left out.
        return [
            finding
            for finding in deduplicated(found)
            if finding.name == "malformed_event" or shows(finding.environment)
        ]


def _own_price(sale):
    """R12, or R7, 1–3: the sale's own price; None if it has none."""
    if sale.signed_price is not None:
        total = sale.signed_price
        unit = Price(part_of(total.micros, 1, sale.quantity), total.currency)
        return Priced(unit, total.micros, "signed_transaction", sale.signed_position)
    if sale.client_price is not None:
        return _by_unit(sale, sale.client_price, sale.client_basis, sale.client_position)
    return None


def _by_unit(sale, price, basis, position):
    return Priced(price, price.of(sale.quantity).micros, basis, position)


def _refunded(priced, total):
    """R12: the refunded total in micros, at most the amount."""
    amount, share = priced.amount_micros, total.share.part
    if share == 1:
        return amount
    smallest = minor_unit(priced.price.currency) if priced.price else 1
    return min(amount, part_of(amount, share, smallest) * smallest + total.sum)


def _is_held(finding, holds):
    """Whether a finding without a sale is within the requested days; one without a time is within
    all."""
    return finding.verified_at_ms is None or holds(finding.verified_at_ms)


def _chain(sale):
    key = sale.key
    return key.environment, key.bundle_id, sale.original_transaction_id, sale.product_id


def _chain_order(sale):
    return sale.date_ms, sale.key.text.encode()
