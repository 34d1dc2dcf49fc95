# Exact prices and amounts in micros: forms, problems, currencies, rates (revenue rules, R7, R10).
import re
from dataclasses import dataclass
from fractions import Fraction

from currencies import MINOR_DIGITS
from values import Number

MICROS = 1_000_000


@dataclass(frozen=True)
class Price:
    """A unit price: micros of a currency."""

    micros: int
    currency: str

    def of(self, quantity):
        """The amount of this many units."""
        return Price(self.micros * quantity, self.currency)

    def fits(self, quantity):
        """Whether the amount of this many units fits in 64 bits."""
        return self.of(quantity).micros < 2**63

    def __str__(self):
        return f"{amount_text(self.micros, self.currency)} {self.currency}"


class PriceProblem(Exception):
    """Why a price cannot be used; its text is the exception's name in the reports."""


def micros_from_text(text):
    """R7, forms: a decimal of up to 11 integer digits, half to even to six decimals; or None."""
    match = re.fullmatch(r"([0-9]{1,11})(?:\.([0-9]+))?", text)
    if match is None:
        return None
    whole, decimals = match.group(1), match.group(2) or ""
    micros = int(whole) * MICROS + int(decimals[:6].ljust(6, "0"))
    rest = decimals[6:].rstrip("0")
    if rest > "5" or (rest == "5" and micros % 2 == 1):
        micros += 1
    return micros


def _decimal_form(value):
    if isinstance(value, Number):
        return micros_from_text(value.text)
    return micros_from_text(value) if isinstance(value, str) else None


def _integer_form(value, digits, factor):
    if isinstance(value, Number) and re.fullmatch(rf"[0-9]{{1,{digits}}}", value.text):
        return int(value.text) * factor
    return None


FORMS = {
    "price": _decimal_form,
    "price_micros": lambda value: _integer_form(value, 17, 1),
    "price_milliunits": lambda value: _integer_form(value, 14, 1000),
}


def has_form(entry):
    """Whether the object states a price in any form; null is absent."""
    return any(entry.get(form) is not None for form in FORMS)


def read_price(entry):
    """R7, problems: the entry's price, or PriceProblem with the first problem found."""
    stated = [read(entry[form]) for form, read in FORMS.items() if entry.get(form) is not None]
    if not stated or None in stated:
        raise PriceProblem("price_unreadable")
    if len(set(stated)) > 1:
        raise PriceProblem("price_forms_disagree")
    if stated[0] == 0:
        raise PriceProblem("price_zero")
    return Price(stated[0], read_currency(entry.get("currency")))


def read_currency(value):
    """R7, `currency`: trimmed, upper case, in the table."""
    if value is None:
        raise PriceProblem("currency_missing")
    if not isinstance(value, str):
        raise PriceProblem("currency_unknown")
    code = value.strip(" \t\r\n")
    if not code:
        raise PriceProblem("currency_missing")
    # Only ASCII letters have an upper case here: a long s is not an S.
    code = code.upper() if code.isascii() else code
    if code not in MINOR_DIGITS:
        raise PriceProblem("currency_unknown")
    return code


def amount_text(micros, currency):
    """R9: the currency's minor digits, more where the amount needs them, never fewer."""
    whole, decimals = divmod(abs(micros), MICROS)
    kept = f"{decimals:06}".rstrip("0").ljust(MINOR_DIGITS.get(currency, 0), "0")
    sign = "-" if micros < 0 else ""
    return f"{sign}{whole}.{kept}" if kept else f"{sign}{whole}"


@dataclass(frozen=True)
class Rate:
    """1 `base` = `value` `quote` on `day` (from 1970-01-01); a later one has a greater `order`."""

    day: int
    base: str
    quote: str
    value: Fraction
    order: tuple


class RateTable:
    """R10: the declared rates, looked up by pair and day."""

    def __init__(self, rates):
        self._pairs = {}
        for rate in rates:
            self._pairs.setdefault((rate.base, rate.quote), []).append(rate)
        self._bases = sorted({rate.base for rate in rates})

    def _declared(self, base, quote, day, max_age):
        """The pair's rate of that day or the latest before; for one day, the latest declared."""
        known = [
            rate
            for rate in self._pairs.get((base, quote), [])
            if rate.day <= day and (max_age is None or day - rate.day <= max_age)
        ]
        return max(known, key=lambda rate: (rate.day, rate.order), default=None)

    def _legs(self, own, target, day, max_age):
        """The declared rates between two currencies, and whether the first of them divides."""
        direct = self._declared(own, target, day, max_age)
        if direct is not None:
            return [direct], False
        opposite = self._declared(target, own, day, max_age)
        if opposite is not None:
            return [opposite], True
        for base in self._bases:
            to_target = self._declared(base, target, day, max_age)
            to_own = self._declared(base, own, day, max_age)
            if to_target is not None and to_own is not None:
                return [to_target, to_own], False
        return [], False

    def factor(self, own, target, day, max_age=None):
        """What 1 `own` is in `target`, exactly, and the day of the older rate used.

        (None, None) if no rate is at most `max_age` days old.
        """
        if own == target:
            return Fraction(1), day
        legs, divides = self._legs(own, target, day, max_age)
        if not legs:
            return None, None
        first = 1 / legs[0].value if divides else legs[0].value
        factor = first / legs[1].value if len(legs) == 2 else first
        return factor, min(leg.day for leg in legs)

    def told(self, own, target, day, max_age=None):
        """The factor as declared rates say it, the days of the rates, and their declarations."""
        legs, divides = self._legs(own, target, day, max_age)
        texts = ["1"] if divides else []
        texts += [_decimal_text(leg.value) for leg in legs]
        return "/".join(texts), [leg.day for leg in legs], [leg.order[0] for leg in legs]


def _decimal_text(value):
    """A finite decimal in its shortest form."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    whole, decimals = divmod((value * 10**digits).numerator, 10**digits)
    return f"{whole}.{decimals:0{digits}}" if digits else str(whole)


def minor_unit(currency):
    """The micros of a currency's smallest unit."""
    return 10 ** (6 - MINOR_DIGITS[currency])


def part_of(micros, part, divisor):
    """micros × part ÷ divisor, exactly, rounded half to even."""
    return round(Fraction(micros * part, divisor))


def converted(micros, factor):
    """R10: rounded once, half to even, to the micro."""
    return round(micros * factor)


def in_64_bits(micros):
    """R9: an amount is micros in 64 bits, or an error, never a wrap."""
    if not -(2**63) <= micros < 2**63:
        raise OverflowError("an amount exceeds 64 bits of micros")
    return micros
