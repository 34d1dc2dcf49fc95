# Values of Apple's reports: months, integers, amounts, days, codes (settlement rules, S3, S7).
import datetime
import functools
import re

from currencies import MINOR_DIGITS
from dates import UNIX_EPOCH_ORDINAL, fiscal_month, fiscal_month_weeks, fiscal_year_end
from money import MICROS

FIRST_YEAR, LAST_YEAR = 2007, 2099
# White space around a cell: that of ASCII.
SPACE = " \t\n\v\f\r"
MONTH_NAMES = ("January February March April May June July August September October November"
               " December").split()
DIGITS = r"(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)"
INTEGER = re.compile(rf"([+-]?)({DIGITS})(?:\.0+)?")
AMOUNT = re.compile(rf"([+-]?)({DIGITS})(?:\.([0-9]{{1,6}}))?")
RATE = re.compile(rf"([+-]?)({DIGITS})(?:\.([0-9]{{1,12}}))?")
MOST_DIGITS = 12


class Refused(Exception):
    """Why a file is not taken: the cause, and the line from 1 (0: the file as a whole)."""

    def __init__(self, cause, line=0):
        super().__init__(f"line {line}: {cause}" if line else cause)
        self.cause, self.line = cause, line


# Months, numbered so that the next one is one more.


def month_number(year, month):
    return 12 * year + month - 1


@functools.cache
def month_of_day(day):
    return month_number(*fiscal_month(day))


def month_name(number):
    return f"FY{number // 12:04}-P{number % 12 + 1:02}"


def month_from_name(text):
    """The number of `FY2026-P01`; None for other texts and for years without a calendar."""
    match = re.fullmatch(r"FY([0-9]{4})-P(0[1-9]|1[0-2])", text, re.ASCII)
    if match is None or not FIRST_YEAR <= int(match[1]) <= LAST_YEAR:
        return None
    return month_number(int(match[1]), int(match[2]))


def month_from_words(name, year):
    """S6: the fiscal month that Apple calls by this calendar month; None outside the calendar."""
    month = MONTH_NAMES.index(name)
    # October is the first month of the next year.
    number = month_number(year, month + 4)
    return number if FIRST_YEAR <= number // 12 <= LAST_YEAR else None


@functools.cache
def month_span(number):
    """The first and the last day of a month."""
    year, month = divmod(number, 12)
    weeks = fiscal_month_weeks(year)
    start = fiscal_year_end(year - 1) + 1 + 7 * sum(weeks[:month])
    return start, start + 7 * weeks[month] - 1


def month_from_span(start, end):
    """S5: the month whose days these are; None if there is none."""
    number = month_of_day(start)
    is_known = FIRST_YEAR <= number // 12 <= LAST_YEAR
    return number if is_known and month_span(number) == (start, end) else None


# Numbers.


def integer(text):
    """S3: an integer; None for anything else."""
    match = INTEGER.fullmatch(text)
    digits = match[2].replace(",", "") if match else ""
    if not 1 <= len(digits) <= MOST_DIGITS:
        return None
    return -int(digits) if match[1] == "-" else int(digits)


def micros(text):
    """S3: an amount, in micros; None for anything else."""
    match = AMOUNT.fullmatch(text)
    digits = match[2].replace(",", "") if match else ""
    if not 1 <= len(digits) <= MOST_DIGITS:
        return None
    value = int(digits) * MICROS + int((match[3] or "").ljust(6, "0"))
    return -value if match[1] == "-" else value


def is_rate(text):
    match = RATE.fullmatch(text)
    return match is not None and len(match[2].replace(",", "")) <= MOST_DIGITS


def day(text):
    """S3: `MM/DD/YYYY`, a day that exists; None for anything else."""
    match = re.fullmatch(r"([0-9]{2})/([0-9]{2})/([0-9]{4})", text, re.ASCII)
    if match is None:
        return None
    try:
        date = datetime.date(int(match[3]), int(match[1]), int(match[2]))
    except ValueError:
        return None
    return date.toordinal() - UNIX_EPOCH_ORDINAL


def day_text(number):
    """A day as Apple writes it."""
    date = datetime.date.fromordinal(number + UNIX_EPOCH_ORDINAL)
    return f"{date.month:02}/{date.day:02}/{date.year:04}"


def letters(text, count):
    """A country (2) or a currency (3), in upper case; None for anything else."""
    return text.upper() if re.fullmatch(rf"[A-Za-z]{{{count}}}", text, re.ASCII) else None


def amount_text(amount, currency):
    """R9's amount; S3: a currency outside the table has 2 minor digits."""
    whole, decimals = divmod(abs(amount), MICROS)
    kept = f"{decimals:06}".rstrip("0").ljust(MINOR_DIGITS.get(currency, 2), "0")
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{kept}" if kept else f"{sign}{whole}"
