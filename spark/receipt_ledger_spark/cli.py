# The command `receipt-ledger-spark`: options checked before any data is read, one line for a
# failure.

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any, List, NoReturn, Optional, Sequence

from . import __version__, errors, fleet, reading, reports, rules
from .errors import Failure
from .run import Request, run

PROGRAM = "receipt-ledger-spark"


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage as all failures are reported."""

    def error(self, message: str) -> NoReturn:
        raise errors.usage("parse arguments", self.prog, message)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs one command; returns the exit code."""
    _signals.clear()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        options = _parser().parse_args(arguments)
        return int(options.run(options) or errors.DONE)
    except Failure as failure:
        # An interrupted call of Java fails in many ways.
        if _signals:
            return _say_interrupted()
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return _say_interrupted()
    except BrokenPipeError:
        # Whoever read standard output has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return errors.DONE
    except OSError as error:
        cause = error.strerror or type(error).__name__
        print(f"{PROGRAM}: {Failure('run', error.filename or 'file', cause)}", file=sys.stderr)
        return errors.FAILED


# The signals that came.
_signals: List[int] = []


def _interrupt(number: int, _: Any) -> None:
    _signals.append(number)
    raise KeyboardInterrupt


def _say_interrupted() -> int:
    print(f"{PROGRAM}: interrupted", file=sys.stderr)
    return errors.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM, allow_abbrev=False,
        description="The reports of many ledgers, computed on Spark by the rules of ledgerctl.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_readers(commands)
    return parser


def _add_run(commands: Any) -> None:
    add = commands.add_parser(
        "run", allow_abbrev=False, help="compute the tables of a fleet",
        description="Reads ledgers, folds their events on Spark, writes the reports as Parquet.")
    source = add.add_mutually_exclusive_group(required=True)
    source.add_argument("--fleet", metavar="FILE", help="fleet.json: names and places of ledgers")
    source.add_argument(
        "--ledger", metavar="PLACE", nargs="+", action="extend",
        help="directories of ledgers, or URIs of their copies; their last part names them")
    add.add_argument("-o", "--output", metavar="OUT", required=True,
                     help="a new directory, or a URI that Spark writes")
    add.add_argument("--reports", metavar="LIST", default=",".join(reports.KINDS),
                     help="which tables (default: %(default)s)")
    add.add_argument("--by", metavar="LIST", default="period,app,product,country",
                     help="what revenue is split by (default: %(default)s)")
    add.add_argument("--period", choices=reports.GRANULARITIES, default="month",
                     help="the length of periods (default: %(default)s)")
    add.add_argument("--timezone", metavar="ZONE", default="UTC",
                     help="of days and periods (default: %(default)s)")
    add.add_argument("--in", metavar="CURRENCY", dest="currency",
                     help="convert with declared rates")
    add.add_argument("--rates-max-age", metavar="DAYS", type=int,
                     help="how old a rate may be (default: 35)")
    add.add_argument("--environment", metavar="LIST", default="Production",
                     help="environments, or all (default: %(default)s)")
    add.add_argument("--refunds", choices=reports.REFUNDS, default="event-date",
                     help="the date on which refunds count (default: %(default)s)")
    add.add_argument("--pending", action="store_true", help="include sales not yet confirmed")
    add.add_argument("--until", metavar="TIME",
                     help="take the events recorded until the end of this day (UTC) or this RFC "
                     "3339 time (default: of several ledgers, those before the smallest of their "
                     "newest times)")
    add.add_argument("--partitions", metavar="N", type=int,
                     help="how many folds (default: one for 50,000 events)")
    _add_master(add)
    add.set_defaults(run=_run)


def _add_master(command: Any) -> None:
    command.add_argument(
        "--master", help="of Spark (default: as spark-submit says, else local[*])")


def _add_readers(commands: Any) -> None:
    csv = commands.add_parser(
        "csv", allow_abbrev=False, help="print a table as ledgerctl export prints its rows")
    csv.add_argument("output", metavar="OUT")
    csv.add_argument("report", choices=reports.KINDS, metavar="REPORT")
    _add_master(csv)
    csv.set_defaults(run=_csv)
    total = commands.add_parser(
        "total", allow_abbrev=False, help="print the totals of revenue by currency")
    total.add_argument("output", metavar="OUT")
    _add_master(total)
    total.set_defaults(run=_total)


def _run(options: Any) -> None:
    ledgers = (fleet.of_file(options.fleet) if options.fleet is not None
               else fleet.of_directories(options.ledger))
    request = Request(
        ledgers=ledgers, output=options.output.rstrip("/"), options=_options(options),
        master=options.master, partitions=_count(options.partitions))
    with rules.found() as program:
        run(program, request)


def _options(options: Any) -> reports.Options:
    if options.currency is None and options.rates_max_age is not None:
        raise errors.usage("parse arguments", "--rates-max-age", "it needs --in")
    environments: Optional[List[str]] = options.environment.split(",")
    if environments == ["all"]:
        environments = None
    elif not all(environments or [""]):
        raise errors.usage("parse arguments", "--environment", "an environment has no name")
    return reports.Options(
        reports=reports.words("--reports", options.reports, reports.KINDS),
        by=reports.words("--by", options.by, reports.DIMENSIONS),
        period=options.period, timezone=options.timezone, currency=options.currency,
        rates_max_age=options.rates_max_age, environments=environments, refunds=options.refunds,
        pending=options.pending,
        until=None if options.until is None else reports.until(options.until))


def _count(partitions: Optional[int]) -> Optional[int]:
    if partitions is not None and not 1 <= partitions <= 1_000_000:
        raise errors.usage("parse arguments", "--partitions", "it must be from 1 to 1000000")
    return partitions


def _csv(options: Any) -> None:
    with rules.found() as program:
        reading.csv(
            program, options.master, options.output, options.report, sys.stdout.buffer)


def _total(options: Any) -> None:
    with rules.found() as program:
        reading.total(program, options.master, options.output, sys.stdout.buffer)
