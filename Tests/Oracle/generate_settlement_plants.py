# Faults in Apple's reports, each with the class where it must land (settlement rules, S10, S11).
from dataclasses import dataclass, field

from generate_settlement_sales import DIGITS, FIRST, PLACES, Purchase
from settlement_values import amount_text, day_text, month_span
from settlement_writing import sale

# The months from the first that have reports.
REPORTED = 10


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


def planted_purchases():
    """The sales that the plants need."""
    return [one for plant in PLANTS.values() for one in plant.purchases()]
