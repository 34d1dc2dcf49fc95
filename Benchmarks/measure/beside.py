# This version's programs beside another's: the same work on the same data, in turn.
import shutil
import statistics

from .appending import append
from .runs import MeasurementError, figures, in_turn, ratios, seconds, spread

GOAL, LIMIT = "range not above 1.02 ×", 1.02


class Pair:
    """The programs of both versions, each with its own copy of a ledger and its own projections."""

    def __init__(self, bench, other):
        self.bench = bench
        self.programs = {"this": bench.benchmark.parent, "other": other}
        self.ledgers = {}

    def ledger(self, name):
        if name not in self.ledgers:
            copy = self.bench.data.directory / f"beside-{name}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.bench.data.ledger(self.bench.size.uploads), copy, symlinks=True)
            self.ledgers[name] = copy
            seconds(self.command(name, "rebuild"))
        return self.ledgers[name]

    def command(self, name, *arguments):
        return [self.programs[name] / "ledgerctl", *arguments, "--ledger", self.ledger(name)]

    def row(self, what, taken, unit, digits, scale=1):
        """A row of times: each round's ratio, and the medians."""
        to_other = ratios(taken["this"], taken["other"])
        this, other = (scale * statistics.median(taken[name]) for name in ("this", "other"))
        self.bench.table.row(
            f"{what}, against the other version",
            f"{spread(to_other)} × ({this:,.{digits}f} : {other:,.{digits}f} {unit})",
            GOAL, min(to_other) <= LIMIT,
        )

    def times(self, run):
        return in_turn(
            self.bench.rounds, {name: lambda name=name: run(name) for name in self.programs}
        )

    def remove(self):
        for copy in self.ledgers.values():
            shutil.rmtree(copy)


def append_one_by_one(pair):
    bench = pair.bench

    def run(name):
        program = pair.programs[name] / "ledger-benchmark"
        done = append(bench, "ledger", program=program, count=bench.size.single_events)
        return done["seconds"] / done["events"]

    pair.row("append, one by one, durable", pair.times(run), "µs an event", 1, 1e6)


def whole_log(pair):
    for command, what in {
        "rebuild": "full rebuild", "audit": "full audit", "replay": "replay of all"
    }.items():
        taken = pair.times(lambda name, command=command: seconds(pair.command(name, command)))
        pair.row(what, taken, "s", 2)


def reports(pair):
    target = pair.bench.data.directory / "beside.csv"
    for options in ([], ["--by", "period,product,country"]):
        taken = pair.times(
            lambda name, options=options: seconds(
                pair.command(name, "export", "revenue", "-o", target, *options)
            )
        )
        pair.row(" ".join(["export revenue", *options]), taken, "ms", 0, 1000)


def catch_up(pair):
    bench = pair.bench
    events = bench.data.events(bench.size.new_uploads, seed=2)
    done = {name: [] for name in pair.programs}

    def run(name):
        command = [
            pair.programs[name] / "ledger-benchmark", "catch-up", "--ledger", pair.ledger(name),
            "--count", "5" if bench.is_quick else "20", "--events", events,
        ]
        done[name].append(figures(command))
        return 0

    pair.times(run)
    for figure, how in {
        "held_ms": "projections held open", "opened_ms": "log and projections opened for it"
    }.items():
        # The first run of each warmed it up.
        taken = {
            name: [statistics.median(run[figure]) for run in runs[1:]] for name, runs in done.items()
        }
        pair.row(f"catch-up after one new upload and its result, {how}", taken, "ms", 2)


PARTS = {
    "append": append_one_by_one, "read": whole_log, "report": reports, "catch-up": catch_up,
}


def measure(bench, other, part):
    """A part of both versions; the copies of the ledger go afterwards."""
    if part not in PARTS:
        raise MeasurementError(f"beside another version only {', '.join(PARTS)} can be measured")
    pair = Pair(bench, other)
    try:
        PARTS[part](pair)
    finally:
        pair.remove()
