# The command `receipt-ledger-spark`: options checked before any data is read, one line for a
# failure.

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from typing import Any, List, NoReturn, Optional, Sequence

import pyarrow

from . import __version__, errors, fleet, reports
from .errors import Failure

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
    except pyarrow.ArrowException as error:
        # Its message may show a cell.
        print(f"{PROGRAM}: {Failure('run', 'Arrow', type(error).__name__)}", file=sys.stderr)
        return errors.FAILED
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
        "--ledger", metavar="DIR", nargs="+", action="extend",
        help="ledgers, named by their directories")
    add.add_argument("-o", "--output", metavar="OUT", required=True, help="a new directory")
    add.add_argument("--state", metavar="DIR", help="keeps what was read for later runs")
    add.add_argument("--heads", metavar="MANIFEST", help="as of the heads of an earlier output")
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
    add.add_argument("--iceberg", metavar="DIR", help="also replace the tables of a catalog here")
    add.add_argument("--master", default="local[*]", help="of Spark (default: %(default)s)")
    add.add_argument("--partitions", metavar="N", type=int,
                     help="how many folds (default: one for 125,000 events)")
    add.add_argument("--rules", metavar="PATH", help="ledger-rules (default: LEDGER_RULES, PATH)")
    add.add_argument("--scratch", metavar="DIR", help="for temporary files on each machine")
    add.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[],
                     help="a setting of Spark")
    add.add_argument("--verbose", action="store_true", help="show Spark's log")
    add.set_defaults(run=_run)


def _add_readers(commands: Any) -> None:
    csv = commands.add_parser(
        "csv", allow_abbrev=False, help="print a table as ledgerctl export prints its rows")
    csv.add_argument("output", metavar="OUT")
    csv.add_argument("report", choices=reports.KINDS, metavar="REPORT")
    csv.add_argument("--rules", metavar="PATH")
    csv.set_defaults(run=_csv)
    total = commands.add_parser(
        "total", allow_abbrev=False, help="print the totals of revenue by currency")
    total.add_argument("output", metavar="OUT")
    total.add_argument("--rules", metavar="PATH")
    total.set_defaults(run=_total)
    diff = commands.add_parser(
        "diff", allow_abbrev=False, help="print what changed between two outputs")
    diff.add_argument("old", metavar="OUT1")
    diff.add_argument("new", metavar="OUT2")
    diff.add_argument("--master", default="local[*]")
    diff.add_argument("--json", action="store_true", help="one JSON object a line")
    diff.set_defaults(run=_diff)
    verify = commands.add_parser(
        "verify", allow_abbrev=False, help="check the files of an output against its manifest")
    verify.add_argument("output", metavar="OUT")
    verify.set_defaults(run=_verify)
    iceberg = commands.add_parser(
        "iceberg", allow_abbrev=False, help="publish an output as Iceberg tables")
    iceberg.add_argument("output", metavar="OUT")
    iceberg.add_argument("catalog", metavar="DIR")
    iceberg.set_defaults(run=_iceberg)


def _run(options: Any) -> None:
    ledgers = (fleet.of_file(options.fleet) if options.fleet is not None
               else fleet.of_directories(options.ledger))
    from . import manifest, output
    from .run import Request, run, say

    if options.heads is not None:
        folder = os.path.dirname(options.heads) if options.heads.endswith(
            manifest.NAME) else options.heads
        ledgers = fleet.with_heads(ledgers, manifest.read(folder or "."), options.heads)
    output.check_free(options.output)
    if options.iceberg is not None:
        from . import iceberg

        iceberg.check()
    content = run(Request(
        ledgers=ledgers, output=options.output, options=_options(options), state=options.state,
        master=options.master, partitions=_count(options.partitions), rules=options.rules,
        scratch=options.scratch and os.path.abspath(options.scratch),
        settings=_settings(options.conf), is_verbose=options.verbose))
    rows = ", ".join(f"{table['rows']} {kind}" for kind, table in content["tables"].items())
    say(f"{options.output}: {rows}")
    if options.iceberg is not None:
        iceberg.publish(options.output, options.iceberg, say)


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
        pending=options.pending)


def _count(partitions: Optional[int]) -> Optional[int]:
    if partitions is not None and not 1 <= partitions <= 1_000_000:
        raise errors.usage("parse arguments", "--partitions", "it must be from 1 to 1000000")
    return partitions


def _settings(settings: Sequence[str]) -> Sequence[str]:
    for setting in settings:
        if not re.match(r"spark\.[^=]+=", setting):
            raise errors.usage("parse arguments", "--conf", f"'{setting}' is not spark.KEY=VALUE")
    return settings


def _csv(options: Any) -> None:
    from . import reading, rules

    reading.csv(rules.find(options.rules), options.output, options.report, sys.stdout.buffer)


def _total(options: Any) -> None:
    from . import reading, rules

    reading.total(rules.find(options.rules), options.output, sys.stdout.buffer)


def _diff(options: Any) -> None:
    from . import difference

    difference.write(options.old, options.new, options.master, options.json, sys.stdout)


def _verify(options: Any) -> None:
    from . import manifest

    count = manifest.verify(options.output)
    print(f"{options.output}: {count} files are as the manifest says")


def _iceberg(options: Any) -> None:
    from . import iceberg
    from .run import say

    iceberg.check()
    iceberg.publish(options.output, options.catalog, say)
