# A file of Apple's: taken, with its month and region, or refused with a cause (settlement rules, S2 to S6).
import re
from dataclasses import dataclass, field

from settlement_overview import month_of_title, owed_findings, read_lists
from settlement_rows import Columns, Totals, begins_totals, row_findings, unknown_currencies
from settlement_text import DETAILED, FINANCIAL, OVERVIEW, cells, is_blank, kind_of, lines_of
from settlement_values import Refused, day, month_from_name, month_from_span, month_name, month_span

REGION = re.compile(r"[A-Z]{2}|Z1|ZZ", re.ASCII)
# What one event holds at most of a file.
MOST_IN_PART = 8 << 20


@dataclass
class Report:
    """A file that is taken. `head`, `body` and `totals`: its lines as its events hold them."""

    kind: str
    digest: str
    month: int
    region: str | None
    head: list
    body: list
    totals: list
    rows: list = field(default_factory=list)
    lists: list = field(default_factory=list)
    has_unread_totals: bool = False

    @property
    def identity(self):
        return self.kind == OVERVIEW, self.month, self.region

    @property
    def digest8(self):
        return self.digest[:8]

    def findings(self):
        """S3 to S6: (exception, detail) of the file alone."""
        month = month_name(self.month)
        codes = [code for row in self.rows for code in (row.currency, row.share_currency)]
        codes += [code for one in self.lists for row in one.rows for code in (row.currency, row.bank)]
        codes += [one.payment[1] for one in self.lists if one.payment]
        yield from (("currency_unknown", f"{code} {month}") for code in unknown_currencies(codes))
        yield from row_findings(self.rows, month_span(self.month), self.digest8)
        yield from owed_findings(self.lists, month)
        if self.has_unread_totals:
            yield "totals_unread", self.digest8


def read_file(data, name, region=None, month=None):
    """The report in a file's bytes. `region`, `month`: as the command's options name them."""
    if region is not None and not REGION.fullmatch(region):
        raise Refused("no region")
    digest, lines = lines_of(data)
    kind, header = kind_of(lines)
    if kind == OVERVIEW:
        return _overview(digest, lines, header, month)
    return _report(kind, digest, lines, header, name, region)


def _overview(digest, lines, header, month):
    if header is None:
        raise Refused("an overview without a list")
    named = month_of_title(lines)
    if named is None:
        named = None if month is None else month_from_name(month)
        if named is None:
            raise Refused("no month")
    lists = read_lists([(index + 1, lines[index]) for index in range(header, len(lines))])
    return Report(OVERVIEW, digest, named, None, lines[:header], lines[header:], [], lists=lists)


def _report(kind, digest, lines, header, name, region):
    columns = Columns(lines[header], kind, header + 1)
    end = header + 1
    while end < len(lines) and not begins_totals(lines[end]):
        end += 1
    numbered = [(i + 1, lines[i]) for i in range(header + 1, end) if not is_blank(lines[i])]
    rows = [columns.row(line, place, at) for place, (at, line) in enumerate(numbered, start=1)]
    if not rows:
        raise Refused("a report without rows")
    totals = Totals(rows)
    totals.check([(i + 1, lines[i]) for i in range(end, len(lines))], columns)
    if not (totals.has_list or (kind == FINANCIAL and totals.has_total)):
        raise Refused("cut: no totals")
    spans = {_span(lines[:header])} if kind == DETAILED else {row.span for row in rows}
    if len(spans) > 1:
        raise Refused("mixed months")
    number = month_from_span(*spans.pop())
    if number is None:
        raise Refused("no fiscal month")
    body = [line for _, line in numbered]
    return Report(
        kind, digest, number, _region(kind, rows, name, region), lines[: header + 1], body,
        lines[end:], rows, has_unread_totals=totals.is_unread,
    )


def _span(lines):
    """The days that a detailed report names before its header."""
    found = {}
    for number, line in enumerate(lines, start=1):
        row = cells(line)
        if row[0].lower() in ("start date", "end date"):
            value = day(row[1]) if len(row) > 1 else None
            if value is None or found.setdefault(row[0].lower(), value) != value:
                raise Refused(f"unreadable: {row[0].lower()}", number)
    if len(found) < 2:
        raise Refused("its days are missing")
    return found["start date"], found["end date"]


def _region(kind, rows, name, region):
    if kind == DETAILED:
        return "Z1"
    if region is not None:
        return region
    match = re.search(r"_([A-Z]{2}|Z1)\.txt(?:\.gz)?$", name, re.ASCII)
    if match:
        return match[1]
    if len({row.share_currency for row in rows}) > 1:
        return "ZZ"
    raise Refused("name the region")


# The events of a file.


def event_data(report, name, most=MOST_IN_PART):
    """The data of the events `settlement.declared` that hold the report, `most` bytes of rows each."""
    parts, size = [[]], 0
    for line in report.body:
        size += len(line.encode()) + 1
        if size > most and parts[-1]:
            parts.append([])
            size = len(line.encode()) + 1
        parts[-1].append(line)
    for number, rows in enumerate(parts, start=1):
        yield {
            "source": name,
            "source_sha256": report.digest,
            "kind": report.kind,
            "month": month_name(report.month),
            **({} if report.region is None else {"region": report.region}),
            "part": number,
            "parts": len(parts),
            "head": report.head if number == 1 else [],
            "rows": rows,
            "totals": report.totals if number == len(parts) else [],
        }


def report_of_events(kind, digest, month, region, head, body, totals):
    """The report whose lines events hold; Refused if they are none that an import takes."""
    if kind == OVERVIEW:
        lists = read_lists(list(enumerate(body, start=len(head) + 1)))
        return Report(kind, digest, month, None, head, body, [], lists=lists)
    if not head or (kind == FINANCIAL and region is None):
        raise Refused("no header or no region")
    report = _report(kind, digest, [*head, *body, *totals], len(head) - 1, "", region)
    if (report.month, report.region) != (month, region):
        raise Refused("of another month or region")
    return report
