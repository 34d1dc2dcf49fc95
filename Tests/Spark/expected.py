# The expected reports of a fleet: those of the ledger that `ledgerctl merge` makes of it, with the
# fleet's positions.

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pathlib
import re
from collections import Counter

from programs import identity, log_lines, run

import reports as oracle_reports

REPORTS = (
    "sales", "journal", "exceptions", "users", "revenue", "receipts", "subscriptions")
# The exceptions whose details name a position.
DETAIL = re.compile(
    r"(status (?:none|-?[0-9]+)|[0-9]+ new sales|[a-z_]+) at ([0-9]+)(, [a-z]+\[[0-9]+\]|)")
WITH_POSITION = ("reply_not_valid", "price_ambiguous", "signature_refused", "transaction_replayed")

# The name of an erased user, by the erasure's position.
ERASED = re.compile(r"^((?:token:)?\(redacted )([0-9]+)(?=(?:\.[0-9]+)?\)$)")

csv.field_size_limit(2**31 - 1)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a run, by their names in ledgerctl, and which reports accept them."""

    by: str = "period,app,product,country"
    timezone: str | None = None
    currency: str | None = None
    rates_max_age: int | None = None
    environment: str | None = None
    refunds: str | None = None
    has_pending: bool = False

    def of_run(self) -> list[str]:
        """As `receipt-ledger-spark run` takes them."""
        words = self._valued(tuple(VALUED))
        return [*words, "--pending"] if self.has_pending else words

    def of_export(self, report: str) -> list[str]:
        """As `ledgerctl export` takes them, which refuses options that a report does not have."""
        names = tuple(name for name, (_, takers) in VALUED.items() if report in takers)
        words = self._valued(names)
        if self.has_pending and report in CONVERTED + ("sales",):
            words.append("--include-pending")
        return words

    def _valued(self, names: tuple[str, ...]) -> list[str]:
        words: list[str] = []
        for name in names:
            value = getattr(self, name)
            if value is not None:
                words += [VALUED[name][0], str(value)]
        return words


CONVERTED = ("revenue", "journal", "exceptions", "users")
DATED = ("revenue", "journal", "exceptions")
# Each option, and the reports that accept it.
VALUED: dict[str, tuple[str, tuple[str, ...]]] = {
    "by": ("--by", ("revenue",)),
    "timezone": ("--timezone", (*DATED, "sales")),
    "currency": ("--in", CONVERTED),
    "rates_max_age": ("--rates-max-age", CONVERTED),
    "environment": ("--environment", REPORTS),
    "refunds": ("--refunds", DATED),
}


def cells(text: str) -> list[list[str]]:
    """The cells of CSV. ValueError if it is not in the one form that ledgerctl writes."""
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    again = "".join(",".join(map(oracle_reports.quoted, row)) + "\n" for row in rows)
    if not rows or again != text:
        raise ValueError("CSV in another form than ledgerctl's")
    return rows


def export(ledger: pathlib.Path, report: str, options: Options) -> list[list[str]]:
    """A report by ledgerctl, cell by cell."""
    return cells(run("ledgerctl", "export", report, "--format", "csv", "--ledger", ledger,
                     *options.of_export(report)))


def places_of(merged: pathlib.Path, ledgers: list[pathlib.Path]) -> list[str]:
    """For each position of the merged ledger, the position in the fleet as reports show it."""
    names = {identity(ledger)["origin"]: ledger.name for ledger in ledgers}
    places = []
    for line in log_lines(merged):
        event = json.loads(line)
        data = event["redacted"]["kept"] if "redacted" in event else event["data"]
        source = data.get("merged")
        places.append(f"{names[source['ledger']]}:{source['position']}" if source else "")
    return places


def mapped(rows: list[list[str]], places: list[str]) -> list[list[str]]:
    """A report of the merged ledger with the fleet's positions."""
    header, *body = rows
    positions = [i for i, name in enumerate(header) if name.endswith(("position", "positions"))]
    is_exceptions = header[0] == "exception"
    result = [header]
    for row in body:
        row = list(row)
        for column in positions:
            row[column] = " ".join(places[int(word)] for word in row[column].split())
        row = [ERASED.sub(lambda name: f"{name[1]}{places[int(name[2])]}", cell) for cell in row]
        if is_exceptions and row[0] in WITH_POSITION:
            detail = header.index("detail")
            found = DETAIL.fullmatch(row[detail])
            if found is None:
                raise ValueError(f"the detail of {row[0]} has another form: {row[detail]}")
            row[detail] = f"{found[1]} at {places[int(found[2])]}{found[3]}"
        result.append(row)
    return result


def difference(expected: list[list[str]], found: list[list[str]], shown_max: int = 12) -> str:
    """The differences between two reports, whatever their rows' order; empty if they are equal."""
    if expected[0] != found[0]:
        return f"columns {expected[0]} expected, {found[0]} found"
    first, second = (Counter(map(tuple, rows[1:])) for rows in (expected, found))
    if first == second:
        return ""
    lines = [f"{len(expected) - 1} rows expected, {len(found) - 1} found"]
    for sign, missing in (("-", first - second), ("+", second - first)):
        lines += [f"{sign} {','.join(row)}" for row in sorted(missing.elements())[:shown_max]]
    return "\n".join(lines)
