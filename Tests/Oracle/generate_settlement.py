# Sales of one fiscal year, and Apple's reports of them with faults planted, each with the class where it must
# land (settlement rules, S8 to S11).
import base64
import random
from dataclasses import dataclass, field

from dates import DAY_MS
from generate_metadata import encoded
from generate_signed import STOREFRONTS
from signing import Orders
from settlement_values import (
    MONTH_NAMES, amount_text, day_text, micros, month_from_name, month_name, month_span,
)
from settlement_writing import detailed, financial, list_by_country, overview, sale

BUNDLES = ("com.example.one", "com.example.two")
PRODUCTS = ("coins", "pro.month", "pro.year", "=hat", 'ring "gold", small', "book;used")
FIRST = month_from_name("FY2026-P01")
MONTHS, REPORTED = 12, 10
# Units of share currency that a country's sales are paid in, by region; the customer's currency.
REGIONS = {
    "EU": ("EUR", 1, {"EUR": "DE FR IT ES NL BE AT IE PT FI GR LU"}),
    "US": ("USD", 1, {"USD": "US"}), "GB": ("GBP", 1, {"GBP": "GB"}), "JP": ("JPY", 1, {"JPY": "JP"}),
    "CA": ("CAD", 1, {"CAD": "CA"}), "AU": ("AUD", 1, {"AUD": "AU"}), "CH": ("CHF", 1, {"CHF": "CH"}),
    "MX": ("MXN", 1, {"MXN": "MX"}), "KR": ("KRW", 1, {"KRW": "KR"}), "SE": ("SEK", 1, {"SEK": "SE"}),
    "AP": ("USD", 1, {"USD": "VN NP KH LA MO"}),
    # Billed in the country's currency, paid in another.
    "WW": ("USD", 4, {"PLN": "PL", "THB": "TH", "KWD": "KW", "AED": "AE", "USD": "AR CO PE UY KE NG PK UA"}),
}
PLACES = {
    country: (region, currency, share_currency, rate)
    for region, (share_currency, rate, currencies) in REGIONS.items()
    for currency, countries in currencies.items()
    for country in countries.split()
}
DIGITS = {"JPY": 0, "KRW": 0}
SHARES = (70, 85)
MODES = ("detailed", "single", "regional")
# A form for each month, in turn.
MIXED = "mixed"
TIERS = (990_000, 4_990_000, 9_990_000, 49_990_000, 99_990_000, 1_990_000)


@dataclass(frozen=True)
class Sold:
    """Units at one price, as Apple's row has them; `month`: of its report, `day`: of the transaction."""

    month: int
    day: int
    is_return: bool
    product: str
    country: str
    currency: str
    price: int
    kind: str = "IAY"
    share: int = 70

    def row(self, units, **cells):
        region, _, share_currency, rate = PLACES[self.country]
        smallest = 10 ** (6 - DIGITS.get(share_currency, 2))
        share = self.price * self.share // 100 // rate // smallest * smallest
        sign = -1 if self.is_return else 1
        row = sale(
            sign * units, amount_text(self.price, self.currency), self.currency, self.country,
            self.product, flag="R" if self.is_return else "S", kind=self.kind, day=day_text(self.day),
            Partner_Share=amount_text(share, "EUR"),
            Extended_Partner_Share=amount_text(sign * units * share, "EUR"),
            Partner_Share_Currency=share_currency,
            Settlement_Date=day_text(month_span(self.month)[1]), Region=region,
        )
        return row | {name.replace("_", " "): cell for name, cell in cells.items()}


# The sales.


@dataclass
class Purchase:
    """What statements say of one sale; the price is the whole quantity's, in thousandths."""

    product: str
    country: str
    day: int
    price: int | None
    currency: str
    quantity: int = 1
    kind: str = "regular"
    is_signed: bool = True
    refunded: int = 0
    is_reversed: bool = False
    environment: str = "Production"


class Sales:
    """Draws the import lines of a ledger; the seed decides them all."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.orders = Orders()
        self.serial = 0

    def chance(self, part):
        return self.random.random() < part

    def purchase(self):
        pick = self.random.choice
        country = list(PLACES)[min(int(self.random.expovariate(0.12)), len(PLACES) - 1)]
        product, currency = pick(PRODUCTS), PLACES[country][1]
        first, last = month_span(FIRST + self.random.randrange(MONTHS))
        day = self.random.randint(first, last)
        if self.chance(0.12):
            day = pick((first, first + 1, last - 1, last))
        price = tier(product, currency) + (self.chance(0.1) * 1_000_000)
        if self.chance(0.3):
            # Few cells, with many units each, at the edges of few months.
            product, country, currency = PRODUCTS[0], pick(["DE", "DE", "FR", "AT"]), "EUR"
            first, last = month_span(FIRST + self.random.randrange(5))
            day = pick((first, first + 1, first + 2, first + 15, last - 2, last - 1, last))
            price = pick((990_000, 990_000, 1_990_000))
        kind = pick(["regular"] * 12 + ["intro", "intro", "trial", "family"])
        quantity = pick([1] * 9 + [2, 3])
        whole = price * quantity // 1000 + int(quantity > 1 and self.chance(0.4))
        found = Purchase(product, country, day, whole, currency, quantity, kind, self.chance(0.6))
        if self.chance(0.08):
            found.price = None
        elif found.is_signed and self.chance(0.03):
            found.price = 0
        if self.chance(0.08):
            found.refunded = 100_000
            if found.is_signed:
                found.refunded = pick([100_000, 100_000, 50_000, round(100_000 / quantity)])
            found.is_reversed = self.chance(0.2)
        if self.chance(0.03):
            found.environment = "Sandbox"
        return found

    def lines(self, count):
        """Import lines of that many sales and of the planted ones, in the order of their days."""
        purchases = [self.purchase() for _ in range(count)]
        purchases += [one for plant in PLANTS.values() for one in plant.purchases()]
        purchases.sort(key=lambda one: one.day)
        return [line for one in purchases for line in self._statements(one)]

    def _statements(self, one):
        self.serial += 1
        # Noon in the store's zone, so that a planted day is that day.
        at_ms = one.day * DAY_MS + 20 * 3_600_000
        yield self._line(one, at_ms, at_ms + DAY_MS // 2, False)
        if one.refunded:
            yield self._line(one, at_ms, at_ms + 9 * DAY_MS, True)
            if one.is_reversed:
                yield self._line(one, at_ms, at_ms + 40 * DAY_MS, False)

    def _line(self, one, at_ms, told_ms, is_refunded):
        refund_ms = at_ms + 7 * DAY_MS
        line = self._signed(one, at_ms, told_ms, is_refunded and refund_ms) if one.is_signed else (
            self._reply(one, at_ms, told_ms, is_refunded and refund_ms))
        return encoded(line | {"occurred_at": told_ms, "user_identifier": str(self.serial % 97)})

    def _signed(self, one, at_ms, told_ms, refund_ms):
        number = f"{self.serial:07}"
        payload = {
            "bundleId": BUNDLES[self.serial % 2], "environment": one.environment,
            "productId": one.product, "transactionId": f"2{number}",
            "originalTransactionId": f"2{number}", "purchaseDate": at_ms, "originalPurchaseDate": at_ms,
            "signedDate": told_ms, "quantity": one.quantity, "storefront": STOREFRONTS[one.country],
        }
        if one.price is not None:
            payload |= {"price": one.price, "currency": one.currency}
        if one.kind in ("intro", "trial"):
            discount = "FREE_TRIAL" if one.kind == "trial" else "PAY_AS_YOU_GO"
            payload |= {"offerType": 1, "offerDiscountType": discount}
        if one.kind == "family":
            payload["inAppOwnershipType"] = "FAMILY_SHARED"
        if refund_ms:
            payload |= {"revocationDate": refund_ms, "revocationPercentage": one.refunded}
        return {"signed_transactions": [self.orders.add(payload)], "metadata": {}}

    def _reply(self, one, at_ms, told_ms, refund_ms):
        number = f"3{self.serial:07}"
        row = {
            "product_id": one.product, "transaction_id": number, "original_transaction_id": number,
            "purchase_date_ms": str(at_ms), "original_purchase_date_ms": str(at_ms),
            "quantity": str(one.quantity), "is_trial_period": str(one.kind == "trial").lower(),
            "is_in_intro_offer_period": str(one.kind == "intro").lower(),
        }
        if one.kind == "family":
            row["in_app_ownership_type"] = "FAMILY_SHARED"
        if refund_ms:
            row["cancellation_date_ms"] = str(refund_ms)
        prices = []
        if one.price is not None:
            unit = one.price // one.quantity * 1000
            prices = [{"transaction_id": number, "price_micros": unit, "currency": one.currency}]
        receipt = {"bundle_id": BUNDLES[self.serial % 2], "request_date_ms": str(told_ms), "in_app": [row]}
        reply = {"status": 0, "environment": one.environment, "receipt": receipt}
        endpoint = "sandbox" if one.environment == "Sandbox" else "production"
        return {
            "marketplace": "itunes", "receipt": base64.b64encode(number.encode()).decode(),
            "country_code": one.country, "metadata": {"prices": prices},
            "verification": {"endpoint": endpoint, "reply": reply},
        }


def tier(product, currency):
    """A product's usual price, in micros of the currency."""
    price = TIERS[PRODUCTS.index(product)]
    return price * 150 // 1_000_000 * 1_000_000 if currency in DIGITS else price


# The plants.


@dataclass
class Plant:
    """Three units of a product of their own in Germany at 9.99 EUR, and what Apple says of them.

    `at`: the ledger's day, as a month from the first and a day of it (from its end if negative); None: the
    ledger has none. `told`: (month, month of the day, day, changes of what Apple sold); None: Apple says
    nothing. `lands`: the classes of the three units, by month; of a detailed report `lands_detailed`.
    """

    at: tuple | None
    told: tuple | None
    lands: list
    lands_detailed: list | None = None
    changes: dict = field(default_factory=dict)
    price: int | None = 9990
    quantity: int = 1
    count: int = 3
    is_refunded: bool = False
    name: str = ""

    def purchases(self):
        if self.at is None:
            return []
        day = day_of(*self.at)
        one = Purchase(self.name, "DE", day, self.price, "EUR", self.quantity,
                       refunded=100_000 if self.is_refunded else 0)
        return [one] * self.count

    def sold(self):
        """(what Apple sold, units, cells that are not what they should be); none where Apple says nothing."""
        if self.told is None:
            return []
        month, at, day = self.told
        price = 9_990_000 if self.price is None else self.price * 1000 // self.quantity
        values = {"is_return": False, "country": "DE", "currency": "EUR", "price": price}
        names = values.keys() | {"kind"}
        values |= {name: value for name, value in self.changes.items() if name in names}
        cells = {name: value for name, value in self.changes.items() if name not in names}
        one = Sold(FIRST + month, day_of(at, day), product=self.name, **values)
        return [(one, self.count * self.quantity, cells)]

    def expected(self, mode):
        """{(month, class): units}."""
        lands = self.lands_detailed if mode == "detailed" and self.lands_detailed else self.lands
        return {(FIRST + month, name): units for month, name, units in lands}


def day_of(month, day):
    """The day of a month counted from the first; -1 is its last day."""
    first, last = month_span(FIRST + month)
    return first + day if day >= 0 else last + 1 + day


MID = 13
NOT_MET = [(2, "missing_there", 3)]
PLANTS = {
    "exact": Plant((2, MID), (2, 2, MID), [(2, "matched", 3)]),
    "late_by_one": Plant((2, MID), (3, 2, MID), [(3, "settled_later", 3)]),
    "late_by_two": Plant((2, MID), (4, 2, MID), [(4, "settled_later", 3)]),
    "late_by_three": Plant((2, MID), (5, 2, MID), [*NOT_MET, (5, "missing_here", 3)],
                           [(5, "settled_later", 3)]),
    "dated_a_day_late": Plant((2, -1), (3, 3, 0), [(3, "settled_later", 3)]),
    "dated_much_later": Plant((2, MID), (3, 3, 0), [(3, "settled_later", 3)],
                              [*NOT_MET, (3, "missing_here", 3)]),
    "second_to_last_day": Plant((2, -2), (3, 3, 1), [(3, "settled_later", 3)]),
    "third_to_last_day": Plant((2, -3), (3, 3, 1), [(3, "settled_later", 3)],
                               [*NOT_MET, (3, "missing_here", 3)]),
    "early": Plant((2, 0), (1, 1, -1), [(1, "settled_earlier", 3)]),
    "second_day_early": Plant((2, 1), (1, 1, -1), [(1, "settled_earlier", 3)]),
    "third_day_early": Plant((2, 2), (1, 1, -1), [(1, "missing_here", 3), *NOT_MET]),
    "dated_a_day_early": Plant((2, 0), (2, 1, -1), [(2, "matched", 3)]),
    "another_price": Plant((2, MID), (2, 2, MID), [(2, "price_differs", 3)], changes={"price": 8_990_000}),
    "another_currency": Plant((2, MID), (2, 2, MID), [(2, "currency_differs", 3)],
                              changes={"currency": "USD", "price": 10_990_000}),
    "another_country": Plant((2, MID), (2, 2, MID), [(2, "country_differs", 3)], changes={"country": "FR"}),
    "unpriced": Plant((2, MID), (2, 2, MID), [(2, "unpriced_here", 3)], price=None),
    "no_receipt": Plant(None, (2, 2, MID), [(2, "missing_here", 3)]),
    "never_settled": Plant((2, MID), None, NOT_MET),
    "still_open": Plant((REPORTED - 1, MID), None, [(REPORTED - 1, "open", 3)]),
    "not_reported": Plant((REPORTED, MID), None, [(REPORTED, "not_reported", 3)]),
    "free_there": Plant(None, (2, 2, MID), [(2, "free", 3)], price=0),
    "free_here": Plant((2, MID), None, [(2, "free", 3)], price=0),
    "not_in_app": Plant((2, MID), (2, 2, MID), [(2, "not_in_app", 3), *NOT_MET], changes={"kind": "1F"}),
    "rounding": Plant((2, MID), (2, 2, MID), [(2, "matched", 9), (2, "rounding", 0)], price=10_000,
                      quantity=3, changes={"price": 3_333_333}),
    "many": Plant((2, MID), (2, 2, MID), [(2, "matched", 23)], count=23),
    "refunded": Plant((2, MID - 7), (2, 2, MID), [(2, "matched", 3), *NOT_MET],
                      changes={"is_return": True}, is_refunded=True),
    # Rows with exceptions.
    "sign": Plant(None, (2, 2, MID), [(2, "missing_here", -3)], changes={"Quantity": "-3",
                  "Extended_Partner_Share": "-20.97"}),
    "share": Plant(None, (2, 2, MID), [(2, "missing_here", 3)], changes={"Extended_Partner_Share": "20.96"}),
    "outside": Plant(None, (2, 2, MID), [(2, "missing_here", 3)], changes={"Settlement_Date": "07/01/2026"}),
    "unknown_currency": Plant(None, (2, 2, MID), [(2, "missing_here", 3)], changes={"currency": "QQQ"}),
}
for _name, _plant in PLANTS.items():
    _plant.name = f"plant.{_name}"


# The reports.


class Reports:
    """Draws Apple's files of a ledger's lines, in one of the three forms, or in all."""

    def __init__(self, seed, mode, lines):
        self.random = random.Random(f"{seed} {mode}")
        self.mode = mode
        # Units by what Apple sold; then the rows of each month.
        self.sold = {}
        self.rows = {FIRST + month: [] for month in range(REPORTED)}
        for line in lines:
            if not line.product.startswith("plant."):
                self._settle(line)
        for one, units in self.sold.items():
            while units:
                part = self.random.randint(1, units) if self.chance(0.1) else units
                self._add(one, part)
                units -= part
        for plant in PLANTS.values():
            for one, units, cells in plant.sold():
                self._add(one, units, **cells)
        for rows in self.rows.values():
            self.random.shuffle(rows)

    def chance(self, part):
        return self.random.random() < part

    def _add(self, one, units, **cells):
        if one.month in self.rows:
            self.rows[one.month].append(one.row(units, **cells))

    def _settle(self, line):
        """What Apple says of a line: mostly the same, sometimes later, earlier, otherwise or nothing."""
        choice, pick = self.random.random(), self.random.choice
        if line.product == PRODUCTS[0]:
            choice *= 0.4
        currency = PLACES[line.country][1]
        price = line.price
        if price is None:
            usual = line.product in PRODUCTS
            price = tier(line.product, currency) if usual else 1_000_000
        values = {"product": line.product, "country": line.country, "price": price,
                  "currency": line.currency or currency, "is_return": line.line == "Return"}
        month, day = line.month, line.day + pick([0, 0, 0, 0, 0, 0, 1, -1])
        first, _ = month_span(line.month)
        if line.day < first + 2 and self.chance(0.3):
            month, day = month - 1, first - 1
        elif choice < 0.07:
            month += 1
        elif choice < 0.1:
            month += 2
        elif choice < 0.12:
            month += 3
        elif choice < 0.15:
            return
        elif choice < 0.17:
            values["price"] = price + 1_000_000
        elif choice < 0.18:
            values["currency"] = "GBP" if values["currency"] != "GBP" else "USD"
        elif choice < 0.19:
            values["country"] = pick(["DE", "FR", "AT", *PLACES])
        elif choice < 0.2:
            values["product"] = pick(PRODUCTS)
        elif choice < 0.21:
            values["kind"] = pick(["1", "1F", "F1", "7"])
        share = SHARES[line.position % 5 == 0]
        one = Sold(month, day, share=share, **{"kind": pick(["IA1", "IAY", "IAY", "FI1"])} | values)
        self.sold[one] = self.sold.get(one, 0) + line.units

    def form(self, month):
        return MODES[month % len(MODES)] if self.mode == MIXED else self.mode

    def files(self):
        """{name: text} of the files that count, in the order of their months."""
        found = {}
        for month, rows in self.rows.items():
            name, form = file_name(month), self.form(month)
            if form == "detailed":
                found[f"FINANCE_DETAIL_{name}_Z1.txt"] = detailed(month_name(month), *rows)
            elif form == "single":
                found[f"{name}_ZZ.txt"] = financial(month_name(month), *rows, totals=totals(rows))
            else:
                for region in REGIONS:
                    text = self.region(month, region)
                    if text:
                        found[f"{name}_{region}.txt"] = text
        return found

    def region(self, month, region):
        """The text of a region's report; None where nothing was sold."""
        rows = [row for row in self.rows[month] if row["Region"] == region]
        return financial(month_name(month), *rows, totals=totals(rows)) if rows else None

    def wrong_first(self):
        """{name: text} of files of the first month that lack a row of Europe's, to be replaced."""
        kept = self.rows[FIRST]
        lost = next(row for row in kept if row["Region"] == "EU")
        self.rows[FIRST] = [row for row in kept if row is not lost]
        found = self.files()
        self.rows[FIRST] = kept
        return {name: text for name, text in found.items() if file_name(FIRST) in name}

    def others(self):
        """{name: text} of files that do not count: of the third month, without one of Germany's rows."""
        month, kept = FIRST + 2, self.rows[FIRST + 2]
        if self.form(month) == "regional":
            return {}
        lost = next(row for row in kept if row["Country Of Sale"] == "DE")
        self.rows[month] = rest = [row for row in kept if row is not lost]
        name = file_name(month)
        found = {f"{name}_EU.txt": self.region(month, "EU")}
        if self.form(month) == "detailed":
            found[f"{name}_ZZ.txt"] = financial(month_name(month), *rest, totals=totals(rest))
        self.rows[month] = kept
        return found

    def overviews(self):
        """{name: text}: each ties, but the last, whose first row earned a cent more. One of the third
        month owes a cent more than its sum."""
        found = {}
        for month, rows in self.rows.items():
            is_last, is_third = month == FIRST + REPORTED - 1, month == FIRST + 2
            text = self._overview(month, rows, 10_000 * is_last, 10_000 * is_third)
            found[f"financial_report_{month_name(month)}.csv"] = text
        return found

    def _overview(self, month, rows, more_earned, more_owed):
        sums = {}
        for row in rows:
            key = row["Region"]
            units, share, _ = sums.get(key, (0, 0, ""))
            sums[key] = (units + int(row["Quantity"]), share + micros(row["Extended Partner Share"]),
                         row["Partner Share Currency"])
        paid, carried, total = [], [], 0
        for region, (units, share, currency) in sorted(sums.items()):
            earned = share + more_earned
            tax = -earned // 20 // 10_000 * 10_000 if region == "JP" else 0
            adjustment = self.random.choice([0, 0, 0, -1_230_000])
            owed = earned + tax + adjustment + more_owed
            more_earned = more_owed = 0
            amounts = [earned, earned, 0, adjustment, tax, owed]
            texts = ["0.00"] + [amount_text(amount, "EUR") for amount in amounts]
            start = [f"{region} ({currency})", str(units), *texts]
            if region in ("AP", "MX"):
                carried.append([*start, "", "", "EUR"])
            else:
                rate = self.random.randrange(10_000, 200_000)
                proceeds = owed * rate // 100_000 // 10_000 * 10_000
                total += proceeds
                paid.append([*start, f"{rate // 100_000}.{rate % 100_000:05}",
                             amount_text(proceeds, "EUR"), "EUR"])
        header = ("Region (Currency),Units Sold,Balance,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,"
                  "Withholding Tax,Total Owed,Exchange Rate,Proceeds,Bank Account Currency")
        lines = [",".join(row) for row in paid] + [",,", f',,,"{amount_text(total, "EUR")}" EUR',
                                                   ",,,Paid to BANK", ",,", header]
        lines += [",".join(row) for row in carried]
        calendar = month - 3
        title = f"{MONTH_NAMES[calendar % 12]}, {calendar // 12}"
        return overview(title, *lines, columns=header)

    def planted_exceptions(self):
        """The exceptions by name that must be there."""
        names = {"sign_disagrees", "share_disagrees", "currency_unknown", "owed_disagrees",
                 "earned_disagrees"}
        names |= {"settled_outside"} if self.mode == "detailed" else set()
        return names | ({"reports_disagree"} if self.mode != "regional" else set())


def totals(rows):
    """All that a financial report can say of its rows."""
    found = f"Total_Rows\t{len(rows)}\n"
    if len({row["Partner Share Currency"] for row in rows}) == 1:
        share = sum(micros(row["Extended Partner Share"]) for row in rows)
        found += f"Total_Amount\t{amount_text(share, 'EUR')}\n"
    units = sum(max(0, int(row["Quantity"])) for row in rows)
    return f"{found}Total_Units\t{units}\n" + list_by_country(rows)


def file_name(month):
    """A vendor and the month's calendar name, as Apple's files have them."""
    calendar = month - 3
    return f"85000001_{calendar % 12 + 1:02}{calendar // 12 % 100:02}"
