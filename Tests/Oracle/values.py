# Lenient reading of JSON values (revenue rules, "Words"); a number keeps its digits as written.
import json
import re
from dataclasses import dataclass

# R2: the years 0001 to 9999.
FIRST_DATE_MS = -62_135_596_800_000
LAST_DATE_MS = 253_402_300_799_999


@dataclass(frozen=True)
class Number:
    """A JSON number as its text, so that no digit passes through binary floating point."""

    text: str

    @property
    def is_integer(self):
        return re.fullmatch(r"-?[0-9]+", self.text) is not None


class NotJSON(Exception):
    """The text is not a JSON document, or holds a string that UTF-8 cannot represent."""


def _refuse_constant(name):
    raise NotJSON(name)


def parse(data):
    """The JSON document in `data` (bytes); NaN, Infinity and lone surrogates are refused."""
    try:
        value = json.loads(
            data.decode("utf-8"),
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse_constant,
        )
        compact(value).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise NotJSON(str(error)) from None
    return value


def compact(value):
    """The value as JSON without white space."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        members = (f"{compact(name)}:{compact(member)}" for name, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def members(value):
    """The members of an object; of anything else none."""
    return value if isinstance(value, dict) else {}


def elements(value):
    """The elements of an array; of anything else none."""
    return value if isinstance(value, list) else []


def identifier(value):
    """A non-empty string, or the digits of a JSON integer; else None."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Number) and value.is_integer:
        return value.text
    return None


# An app account token after an erasure.
FORGOTTEN_TOKEN = re.compile(r"\(redacted (0|[1-9][0-9]{0,17})(?:\.[1-9][0-9]{0,17})?\)", re.ASCII)
TOKEN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def token_user(value):
    """R6: the user that an app account token names: a UUID in lower case, or an erasure's name; else None."""
    token = identifier(value)
    if token is None or not (TOKEN.fullmatch(token) or FORGOTTEN_TOKEN.fullmatch(token)):
        return None
    return f"token:{token.lower()}"


def integer(value):
    """A JSON integer or a string of digits; else None."""
    if isinstance(value, Number) and value.is_integer:
        text = value.text
    elif isinstance(value, str) and re.fullmatch(r"[0-9]+", value):
        text = value
    else:
        return None
    digits = text.lstrip("-").lstrip("0") or "0"
    # No rule distinguishes such numbers, and Python converts only a limited number of digits.
    magnitude = int(digits) if len(digits) <= 40 else 10**40
    return -magnitude if text.startswith("-") else magnitude


def date_ms(value):
    """An integer of epoch milliseconds within the years that count; else None."""
    number = integer(value)
    if number is None or not FIRST_DATE_MS <= number <= LAST_DATE_MS:
        return None
    return number


def flag(value):
    """True for `true`, `"true"`, `1` and `"1"`, and for nothing else."""
    return value is True or value in ("true", "1") or value == Number("1")


def as_text(value):
    """A value of any type as an exception's detail shows it; nothing for null and absent."""
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)


# A user or a token after the erasure at the first number.
FORGOTTEN = re.compile(
    r"(?:token:)?\(redacted (0|[1-9][0-9]{0,17})(?:\.[1-9][0-9]{0,17})?\)", re.ASCII)


def forgotten_at(user):
    """The position of the erasure of the user; None for any other user."""
    found = FORGOTTEN.fullmatch(user)
    return None if found is None else int(found[1])


def is_forgotten(user, position):
    """Whether the user was erased before the position, so that nobody can know any more who it was."""
    erasure = forgotten_at(user)
    return erasure is not None and position > erasure
