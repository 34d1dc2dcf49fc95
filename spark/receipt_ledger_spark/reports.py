# Which reports are made, and with which filters: as ledgerctl's manifests write them.

from __future__ import annotations

import contextlib
import datetime
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import errors

KINDS = ("sales", "journal", "exceptions", "users", "revenue", "receipts", "subscriptions")
DIMENSIONS = ("period", "app", "product", "country", "environment", "basis", "trust")
GRANULARITIES = ("year", "quarter", "month", "week", "day")
REFUNDS = ("event-date", "sale-date")
_RATES_AGE_MAX_DAYS = 35
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})")
_WITH_DAYS = ("sales", "journal", "exceptions", "revenue")
_WITH_REFUNDS = ("journal", "exceptions", "revenue")


class Options(NamedTuple):
    """What decides the rows of the reports, besides the events."""

    reports: Sequence[str] = KINDS
    by: Sequence[str] = ("period", "app", "product", "country")
    period: str = "month"
    timezone: str = "UTC"
    currency: Optional[str] = None
    rates_max_age: Optional[int] = None
    environments: Optional[Sequence[str]] = ("Production",)
    refunds: str = "event-date"
    pending: bool = False
    # The events of a day (UTC) or up to a time.
    until: Optional[datetime.datetime] = None

    def until_ms(self) -> Optional[int]:
        """The first time that does not count, in epoch milliseconds."""
        return None if self.until is None else (self.until - _EPOCH) // _MILLISECOND + 1

    def described(self) -> Dict[str, Any]:
        """As a manifest writes them."""
        return {
            "reports": list(self.reports), "by": list(self.by), "period": self.period,
            "timezone": self.timezone, "in": self.currency, "rates_max_age": self._age(),
            "environment": "all" if self.environments is None else list(self.environments),
            "refunds": self.refunds, "include_pending": self.pending,
            "until": None if self.until is None else time_text(self.until_ms() - 1),
        }

    def _age(self) -> Optional[int]:
        if self.currency is None:
            return None
        return _RATES_AGE_MAX_DAYS if self.rates_max_age is None else self.rates_max_age

    def of_task(self) -> List[Dict[str, Any]]:
        """The reports of a task file."""
        return [{"kind": kind, "filters": self.filters(kind)} for kind in self.reports]

    def filters(self, kind: str) -> Dict[str, Any]:
        """The filters of a report, as in the manifest of an export."""
        found: Dict[str, Any] = {}
        if kind == "revenue":
            found.update({"by": list(self.by), "period": self.period})
        if kind in _WITH_REFUNDS:
            found["refunds"] = self.refunds
        if kind in _WITH_DAYS:
            found.update({"timezone": self.timezone, "from": None, "to": None})
        if kind == "subscriptions":
            found.update({"by": None, "at": None, "timezone": self.timezone})
        found["environment"] = "all" if self.environments is None else list(self.environments)
        found["include_pending"] = self.pending
        if self.currency is not None:
            found.update({"in": self.currency, "rates_max_age": self._age()})
        if kind in ("receipts", "users") and self.timezone != "UTC":
            found["timezone"] = self.timezone
        return found


def until(text: str) -> datetime.datetime:
    """The end of a day (UTC), or an RFC 3339 time, as `ledgerctl merge` takes them."""
    found = None
    with contextlib.suppress(ValueError):
        if _DAY.fullmatch(text):
            day = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
            found = day + datetime.timedelta(days=1) - _MILLISECOND
        elif time := _TIME.fullmatch(text):
            zone = time[3].upper().replace("Z", "+00:00")
            found = datetime.datetime.fromisoformat(time[1].upper() + zone)
            found += int((time[2] or ".")[1:4].ljust(3, "0")) * _MILLISECOND
    if found is None:
        raise errors.usage("parse arguments", "--until", "it is not a day or an RFC 3339 time")
    if found >= datetime.datetime.now(datetime.timezone.utc):
        raise errors.usage("parse arguments", "--until", "it is not in the past")
    return found


def time_text(ms: int) -> str:
    """A time in epoch milliseconds as an event has it."""
    text = (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def words(option: str, text: str, allowed: Sequence[str]) -> List[str]:
    """A list separated by commas, each word once."""
    found = text.split(",")
    for word in found:
        if word not in allowed:
            raise errors.usage("parse arguments", option, f"'{word}' is not one of "
                               + ", ".join(allowed))
    if len(set(found)) != len(found):
        raise errors.usage("parse arguments", option, "a word is given twice")
    return found
