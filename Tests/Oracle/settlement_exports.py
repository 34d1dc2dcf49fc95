# The reports on money by the words of ledgerctl's command line (settlement rules, S13 to S15).
import csv
import io

import settlement_entries
import settlement_facts
from dates import days_from_text
from reports import Options
from settlement_entries import Entries
from settlement_proceeds import payout, payout_by, proceeds
from settlement_values import month_from_name

# An option without a value.
WITH_SETTLEMENT = "--with-settlement"
WRITERS = {
    "csv": settlement_entries.as_csv,
    "hledger": settlement_entries.as_hledger,
    "beancount": settlement_entries.as_beancount,
}


def text_of(report, options, book, parts):
    """The text of `export REPORT`; `options`: {`--by`: `seller`}; `parts`: of the reconciliation."""
    if report == "proceeds":
        return proceeds(book.files)
    if report == "payout":
        return payout_by(book.files, options["--by"].split(",")) if "--by" in options else payout(book.files)
    if report == "entries":
        return WRITERS[options.get("--format", "csv")](entries(options, book, parts))
    selected = Options(
        environments=None if options.get("--environment") == "all" else ("Production",),
        reporting_currency=options.get("--in"),
        timezone=options.get("--timezone", "UTC"),
    )
    write = settlement_facts.journal if report == "journal" else settlement_facts.sales
    return write(book, selected, settlement_facts.Facts(parts))


def entries(options, book, parts):
    paid_on = [one.split("=") for one in options.get("--paid-on", "").split(",") if one]
    return Entries(
        book,
        book.files,
        parts,
        options.get("--timezone", "UTC"),
        options.get("--basis", "ledger"),
        {month_from_name(month): days_from_text(day) for month, day in paid_on},
        accounts_of(options.get("--accounts")),
    )


def accounts_of(path):
    """The accounts that a file of lines `name = account` names."""
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        return dict(map(str.strip, line.split("=", 1)) for line in file)


def rows_of(text, *columns):
    """The cells of a CSV in these columns, by default in all."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [tuple(row[column] for column in columns or row) for row in rows]
