# Reading the whole log, building and opening what is derived from it.
import json
import shutil
import statistics

from . import tools
from .runs import MeasurementError, figures, in_turn, output, peak_anonymous_mib, ratios, seconds, spread


def whole_log(bench):
    """Rebuild, audit and replay beside what only inflates, and beside DuckDB."""
    data = bench.data
    ledger = data.ledger(bench.size.uploads)
    segments = data.segments(ledger)
    ways = {
        "gzip": lambda: seconds(["gzip", "-dc", *segments]),
        "rebuild": lambda: seconds(data.command(ledger, "rebuild")),
        "audit": lambda: seconds(data.command(ledger, "audit")),
        "replay": lambda: seconds(data.command(ledger, "replay")),
    }
    igzip, igzip_environment = bench.tools.igzip()
    if igzip:
        ways["igzip"] = lambda: seconds([igzip, "-dc", *segments], igzip_environment)
    duckdb, duckdb_problem = bench.tools.duckdb()
    queries = []
    if duckdb:
        query = tools.HERE / "duckdb_revenue.py"

        def ask():
            queries.append(figures([duckdb, query, *segments]))
            return queries[-1]["seconds"]

        ways["duckdb"] = ask
    taken = in_turn(bench.rounds, ways)
    median = {name: statistics.median(taken[name]) for name in taken}
    status = data.status(ledger)
    events, sales = status["events"], status["projections"]["sales"]
    size = f"{events:,} events"
    goals = {"rebuild": "≤ 0.35 ×", "audit": "≤ 0.35 ×", "replay": ""}
    names = {"rebuild": "full rebuild", "audit": "full audit", "replay": "replay of all"}
    for name, goal in goals.items():
        to_gzip = ratios(taken[name], taken["gzip"])
        bench.table.row(
            f"{names[name]}, {size}, against gzip -dc",
            f"{spread(to_gzip)} × ({median[name]:.2f} : {median['gzip']:.2f} s)",
            goal, statistics.median(to_gzip) <= 0.35 if goal else None,
        )
        if igzip:
            bench.table.row(
                f"{names[name]}, against igzip -dc",
                f"{spread(ratios(taken[name], taken['igzip']))} × ({median['igzip']:.2f} s)",
            )
    if not igzip:
        bench.table.row("the same, against igzip -dc", "not measured: igzip could not be had")
    if not duckdb:
        bench.table.row("full rebuild, against DuckDB", f"not measured: {duckdb_problem}")
        return
    to_query = ratios(taken["rebuild"], taken["duckdb"])
    bench.table.row(
        "full rebuild, against DuckDB's query for revenue over the same files",
        f"{spread(to_query)} × ({median['duckdb']:.2f} s; it finds {queries[-1]['units']:,} units, the "
        f"rebuild {units(bench, ledger):,} in {sales:,} sales)",
        "< 1 ×", statistics.median(to_query) < 1,
    )


def units(bench, ledger):
    command = bench.data.command(ledger, "export", "revenue", "--by", "period,country", "--format", "json")
    return sum(int(row["units"]) for row in json.loads(output(command))["rows"])


def scaling(bench):
    """Time and memory of a rebuild over ledgers of growing size, in turn."""
    data, sizes = bench.data, bench.size.scaling_uploads
    ledgers = {uploads: data.ledger(uploads) for uploads in sizes}
    ways = {
        uploads: lambda ledger=ledger: seconds(data.command(ledger, "rebuild"))
        for uploads, ledger in ledgers.items()
    }
    taken = in_turn(bench.rounds, ways)
    first = None
    for uploads, ledger in ledgers.items():
        status = data.status(ledger)
        events, sales = status["events"], status["projections"]["sales"]
        per_event = [1e6 * value / events for value in taken[uploads]]
        memory = peak_anonymous_mib(data.command(ledger, "rebuild"))
        first = first or per_event
        growth = statistics.median(ratios(per_event, first))
        is_first, is_last = per_event is first, uploads == sizes[-1]
        bench.table.row(
            f"full rebuild, {events:,} events, {sales:,} sales",
            f"{spread(taken[uploads])} s, {statistics.median(per_event):.1f} µs an event"
            + ("" if is_first else f", {growth:.2f} × the first size's")
            + f"; {memory:.0f} MiB of its own",
            "" if is_first else "time within 15 % of linear" if is_last else "≤ 400 MiB for 300,000",
            None if is_first else growth <= 1.15 if is_last else memory <= 400,
        )


def reports(bench):
    data = bench.data
    ledger = data.ledger(bench.size.uploads)
    target = data.directory / "revenue.csv"
    by_default = data.command(ledger, "export", "revenue", "-o", target)
    # Kept data may have been made by another version: the first report brings its projections up to date.
    seconds(by_default)
    sales = data.status(ledger)["projections"]["sales"]
    ways = {
        "export revenue": lambda: seconds(by_default),
        "export revenue --by period,product,country": lambda: seconds(
            [*by_default, "--by", "period,product,country"]
        ),
    }
    taken = in_turn(max(11, bench.rounds) if not bench.is_quick else bench.rounds, ways)
    for name, values in taken.items():
        is_goal = name == "export revenue"
        bench.table.row(
            f"{name}, {sales:,} sales, projections ready",
            f"{spread([1000 * value for value in values], 0)} ms",
            "≤ 60 ms" if is_goal else "",
            1000 * statistics.median(values) <= 60 if is_goal else None,
        )


def start_up(bench):
    """A whole process that prints its version, beside one that does nothing."""
    programs = {
        "version": [bench.data.ledgerctl, "--version"],
        "empty": [bench.empty],
    }
    count = 20 if bench.is_quick else 200
    ways = {name: lambda command=command: seconds(command) for name, command in programs.items()}
    taken = in_turn(count, ways)
    # Of so many short runs single ratios mean little; medians do.
    median = {name: 1000 * statistics.median(values) for name, values in taken.items()}
    ratio = median["version"] / median["empty"]
    libraries = {name: tools.needed_libraries(command[0]) for name, command in programs.items()}
    note = "" if libraries["version"] == libraries["empty"] else "; it is linked with other libraries"
    bench.table.row(
        "ledgerctl --version, against an empty program linked alike",
        f"{ratio:.2f} × ({median['version']:.1f} : {median['empty']:.1f} ms, {count} runs{note})",
        "≤ 1.5 ×", ratio <= 1.5,
    )


def catch_up(bench):
    data = bench.data
    copy = data.directory / "catch-up"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(data.ledger(bench.size.uploads), copy, symlinks=True)
    count = 5 if bench.is_quick else 50
    done = figures(
        [bench.benchmark, "catch-up", "--ledger", copy, "--count", str(count)]
        + ["--events", data.events(bench.size.new_uploads, seed=2)]
    )
    sales = data.status(copy)["projections"]["sales"]
    shutil.rmtree(copy)
    named = {"held_ms": "projections held open", "opened_ms": "log and projections opened for it"}
    for name, how in named.items():
        bench.table.row(
            f"catch-up after one new upload and its result, {sales:,} sales, {how}",
            f"{spread(done[name], 1)} ms, {count} uploads",
            "≤ 10 ms", statistics.median(done[name]) <= 10,
        )


def opening(bench):
    ledger = bench.data.ledger(bench.size.scaling_uploads[-1])
    byte_count = sum(path.stat().st_size for path in bench.data.segments(ledger))
    done = figures([bench.benchmark, "open", "--ledger", ledger, "--count", str(5 if bench.is_quick else 20)])
    for name, how in {"reading_ms": "reading", "writing_ms": "writing"}.items():
        bench.table.row(
            f"open a ledger of {byte_count / 1e9:.2f} GB of segments for {how}, warm cache",
            f"{spread(done[name], 1)} ms", "≤ 50 ms", statistics.median(done[name]) <= 50,
        )


def snapshot(bench):
    """After projections/ was lost: restore and catch up by 1 %, beside a rebuild."""
    data, uploads = bench.data, bench.size.uploads
    commands = [line.split()[:2] for line in output([data.ledgerctl, "help"]).splitlines()]
    if ["snapshot", "restore"] not in commands:
        bench.table.row("snapshot restore", "not measured: this ledgerctl has no snapshots")
        return
    early = uploads - uploads // 100

    def make(path):
        bench.say(f"  (making a ledger of {2 * uploads:,} events with a snapshot before its last 1 %)")
        output([data.ledgerctl, "init", path, "--origin", "bench.example"])
        data.import_lines(path, uploads, 1, first=early)
        output(data.command(path, "snapshot", "create"))
        data.import_lines(path, uploads, 1, after=early)

    ledger = data.once(f"ledger-{uploads}-snapshot", make)
    target = data.directory / "restored.csv"
    export = data.command(ledger, "export", "revenue", "-o", target)
    contents = set()

    def restore():
        for path in [*ledger.glob("projections.sqlite*"), ledger / "projections"]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        return checked(seconds(data.command(ledger, "snapshot", "restore")))

    def rebuild():
        return checked(seconds(data.command(ledger, "rebuild")))

    def checked(taken):
        output(export)
        contents.add(target.read_bytes())
        return taken

    taken = in_turn(bench.rounds, {"restore": restore, "rebuild": rebuild})
    if len(contents) != 1:
        raise MeasurementError("the report after a restore differs from that after a rebuild")
    to_rebuild = ratios(taken["restore"], taken["rebuild"])
    median = {name: statistics.median(values) for name, values in taken.items()}
    bench.table.row(
        f"snapshot restore and catch-up of 1 %, {2 * uploads:,} events, against a full rebuild",
        f"{spread(to_rebuild)} × ({median['restore']:.2f} : {median['rebuild']:.2f} s)",
        "≤ 0.15 ×", statistics.median(to_rebuild) <= 0.15,
    )
