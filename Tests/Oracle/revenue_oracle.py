# Follows the revenue rules from import files to a report, independently of the product's code.
import argparse
import csv
import sys
import time
import zlib

import dates
import reports
from currencies import MINOR_DIGITS
from events import Importer, Positions, Upload, declared_rates, listed_prices
from journal import Book
from sales import Fold


def read_book(imports, price_lists, rate_files, now_ms=None, refused=None, declared=None):
    """Imports the files in order, then declares the prices and the rates.

    `now_ms`: when, by default at this moment. `declared`: the types of products by bundle id, of apps
    registered before the first import.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    positions = Positions()
    importer = Importer(positions, now_ms)
    fold = Fold(declared)
    for path in imports:
        for event in importer.events(_bytes(path), path):
            fold.meet(event) if isinstance(event, Upload) else fold.add(event)
    prices = [e for path in price_lists for e in listed_prices(_bytes(path), positions.take())]
    rates = [r for path in rate_files for r in declared_rates(_bytes(path), positions.take())]
    if refused is not None:
        refused.extend(importer.refused)
    return Book(fold, prices, rates)


def _bytes(path):
    with open(path, "rb") as file:
        return file.read()


def _dimensions(text):
    names = tuple(text.split(","))
    # Of subscriptions.
    if names == ("month",):
        return names
    if not set(names) <= set(reports.DIMENSIONS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"dimensions: {', '.join(reports.DIMENSIONS)}")
    return names


def _zone(text):
    try:
        dates.Zone(text)
    except (ValueError, KeyError, OSError):
        raise argparse.ArgumentTypeError("not a time zone of the IANA database") from None
    return text


def _currency(text):
    if text not in MINOR_DIGITS:
        raise argparse.ArgumentTypeError("not a currency of ISO 4217")
    return text


def _moment(text):
    """A day as a tuple of one, or an instant."""
    try:
        return (dates.days_from_text(text),) if "T" not in text else dates.time_from_text(text)
    except ValueError:
        raise argparse.ArgumentTypeError("neither a day nor an RFC 3339 time") from None


def add_report_arguments(parser):
    """Adds a report's options; `report_options` reads them."""
    parser.add_argument("--by", type=_dimensions, default=("country",))
    periods = ["year", "quarter", "month", "week", "day", "fiscal-month"]
    parser.add_argument("--period", choices=periods, default="month")
    parser.add_argument("--timezone", type=_zone, default="UTC")
    parser.add_argument("--refunds", choices=["event-date", "sale-date"], default="event-date")
    parser.add_argument("--environment", default="Production")
    parser.add_argument("--from", dest="from_day", type=dates.days_from_text)
    parser.add_argument("--to", dest="to_day", type=dates.days_from_text)
    parser.add_argument("--in", dest="reporting_currency", type=_currency)
    parser.add_argument("--rates-max-age", type=int, default=35)
    parser.add_argument("--at", type=_moment, help="of subscriptions: a day or an instant")
    for name in ("app", "product", "country", "kind"):
        parser.add_argument(f"--{name}", type=lambda text: tuple(text.split(",")))
    parser.add_argument("--user")
    parser.add_argument("--sort", metavar="COLUMN[:asc|:desc]")
    parser.add_argument("--top", type=int)
    parser.add_argument("--amounts", choices=["exact", "minor"], default="exact")
    parser.add_argument("--columns", type=lambda text: tuple(text.split(",")))
    parser.add_argument("--total", action="store_true")


def report_options(arguments):
    names, moment = arguments.environment, arguments.at
    is_day = isinstance(moment, tuple)
    return reports.Options(
        by=arguments.by,
        period=arguments.period,
        timezone=arguments.timezone,
        refunds=arguments.refunds,
        environments=None if names == "all" else tuple(names.split(",")),
        from_day=arguments.from_day,
        to_day=arguments.to_day,
        reporting_currency=arguments.reporting_currency,
        rates_max_age=arguments.rates_max_age,
        at_ms=None if is_day else moment,
        at_day=moment[0] if is_day else None,
        apps=arguments.app,
        products=arguments.product,
        countries=arguments.country,
        user=arguments.user,
        kinds=arguments.kind,
        sort=arguments.sort,
        top=arguments.top,
        amounts=arguments.amounts,
        columns=arguments.columns,
        total=arguments.total,
    )


def main():
    parser = argparse.ArgumentParser(description="Computes a report from import files.")
    parser.add_argument("imports", nargs="+", metavar="FILE", help=".ndjson or .ndjson.gz")
    parser.add_argument("--prices", action="append", default=[], metavar="FILE")
    parser.add_argument("--rates", action="append", default=[], metavar="FILE")
    parser.add_argument("--declare", action="append", default=[], nargs=3,
                        metavar=("BUNDLE", "PRODUCT", "TYPE"), help="a product of an app")
    parser.add_argument("--report", choices=list(reports.REPORTS), required=True)
    parser.add_argument("--without-positions", action="store_true")
    parser.add_argument("--show-refused", action="store_true", help="bad lines, to standard error")
    add_report_arguments(parser)
    arguments = parser.parse_args()
    refused = []
    declared = {}
    for bundle, product, kind in arguments.declare:
        declared.setdefault(bundle, {})[product] = kind
    try:
        book = read_book(
            arguments.imports, arguments.prices, arguments.rates, None, refused, declared
        )
        columns, body = reports.report(arguments.report, book, report_options(arguments))
    except (OSError, ValueError, OverflowError, EOFError, csv.Error, zlib.error) as error:
        sys.exit(f"revenue_oracle: {arguments.report} can't be computed: {error}")
    if arguments.without_positions:
        columns, body = reports.without_positions(columns, body)
    sys.stdout.buffer.write(reports.csv_text(columns, body).encode())
    if arguments.show_refused:
        print(*refused, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
