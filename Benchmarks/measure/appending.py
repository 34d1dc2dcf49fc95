# Appending events, and what they take on disk.
import shutil
import statistics
import subprocess

from .runs import figures, in_turn, ratios, spread


# 64 appends under way at once, as a server has them: threads that submit the next one as soon as the
# oldest of theirs is durable. What is no ledger writes 64 lines at once.
AT_ONCE = {"threads": 4, "in-flight": 16}


def append(bench, way, events=None, program=None, **load):
    """Appends by one way into a fresh directory; what the benchmark program, or another's, reports."""
    place = bench.data.scratch(f"append-{way}")
    options = [text for name, value in load.items() for text in (f"--{name}", str(value))]
    events = events or bench.data.events(bench.size.uploads)
    try:
        command = [program or bench.benchmark, "append", "--way", way, "--events", events]
        return figures([*command, "--directory", place, *options])
    finally:
        shutil.rmtree(place)


def rates(bench, **load):
    """Events a second, each way in turn."""

    def way(name):
        def run():
            done = append(bench, name, **load)
            return done["events"] / done["seconds"]

        return run

    return in_turn(bench.rounds, {name: way(name) for name in ("ledger", "bare", "sqlite")}, False)


def rows(bench, what, taken, goal="", limit=None):
    to_bare = ratios(taken["ledger"], taken["bare"])
    met = None if limit is None else statistics.median(to_bare) >= limit
    rate = {name: statistics.median(taken[name]) for name in taken}
    bench.table.row(
        f"{what}, against bare writes + fdatasync",
        f"{spread(to_bare)} × ({rate['ledger']:,.0f} : {rate['bare']:,.0f} events/s)", goal, met,
    )
    bench.table.row(
        f"{what}, against SQLite (WAL, synchronous=FULL)",
        f"{spread(ratios(taken['ledger'], taken['sqlite']))} × ({rate['sqlite']:,.0f} events/s)",
    )


def append_one_by_one(bench):
    taken = rates(bench, count=bench.size.single_events)
    rows(bench, "append, one by one, durable", taken, "≥ 0.9 ×", 0.9)


def append_batches(bench):
    taken = rates(bench, count=10 * bench.size.single_events, group=100)
    rows(bench, "append, 100 in a batch, durable", taken)


def append_concurrently(bench):
    """Bursts beside one by one in the same rounds: of events of all sizes, and of the smallest."""
    uploads = bench.size.uploads
    burst_of(bench, bench.data.events(uploads), "")
    burst_of(bench, bench.data.local_results(uploads), " of local results")


def burst_of(bench, events, what):
    burst, size = bench.size.burst_seconds, bench.size

    def alone(way):
        def run():
            done = append(bench, way, events, count=size.single_events)
            return done["events"] / done["seconds"]

        return run

    def together(way):
        def run():
            # The others have no work that piles up: a shorter time tells as much, in less space.
            time = burst if way == "ledger" else min(burst, 3)
            done = append(bench, way, events, seconds=time, **AT_ONCE)
            return done["events"] / done["seconds"]

        return run

    ways = {"single": alone("ledger"), "bare single": alone("bare")}
    ways |= {name: together(name) for name in ("ledger", "bare", "sqlite")}
    taken = in_turn(bench.rounds, ways, False)

    def against_single(name, single):
        to_single = ratios(taken[name], taken[single])
        rate = {way: statistics.median(taken[way]) for way in (name, single)}
        speeds = f"({rate[name]:,.0f} : {rate[single]:,.0f} events/s)"
        return to_single, f"{spread(to_single)} × {speeds}"

    to_single, shown = against_single("ledger", "single")
    bench.table.row(
        f"append{what}, 64 at once, a burst of {burst} s, against one by one", shown, "≥ 10 ×",
        statistics.median(to_single) >= 10,
    )
    bench.table.row(
        f"bare writes{what} + fdatasync, 64 in one write, against one by one",
        against_single("bare", "bare single")[1],
    )
    rows(bench, f"append{what}, 64 at once (the others: 64 in one write)", taken)


def append_sustained(bench):
    """What is sealed for long is what can be appended for long."""
    size = bench.size
    events = bench.data.events(size.uploads)
    long, alone = [], []

    def speed(done, time):
        return done["bytes"] / done[time] / 1e6

    for _ in range(bench.rounds):
        command = [bench.benchmark, "deflate", "--events", events, "--seconds"]
        before = figures([*command, str(size.burst_seconds)])
        done = append(bench, "ledger", seconds=size.sustained_seconds, **AT_ONCE)
        after = figures([*command, str(size.burst_seconds)])
        long.append(speed(done, "seconds_with_closing"))
        alone.append((speed(before, "seconds") + speed(after, "seconds")) / 2)
    to_alone = ratios(long, alone)
    bench.table.row(
        f"append, 64 at once for {size.sustained_seconds} s, sealing and closing included, "
        "against libdeflate on one core",
        f"{spread(to_alone)} × ({statistics.median(long):,.0f} : {statistics.median(alone):,.0f} MB/s of "
        "events)",
        "≥ 0.8 ×", statistics.median(to_alone) >= 0.8,
    )


def compressed_bytes(segments, command):
    """What the events of segments take when another program compresses them."""
    plain = subprocess.Popen(["gzip", "-dc", *segments], stdout=subprocess.PIPE)
    packed = subprocess.Popen(command, stdin=plain.stdout, stdout=subprocess.PIPE)
    plain.stdout.close()
    count = subprocess.run(
        ["wc", "-c"], stdin=packed.stdout, stdout=subprocess.PIPE, check=True
    ).stdout
    packed.stdout.close()
    packed.wait()
    plain.wait()
    return int(count)


def log_size(bench):
    ledger = bench.data.ledger(bench.size.uploads)
    events, byte_count = bench.data.sealed(ledger)
    segments = bench.data.segments(ledger)

    gzip_bytes = compressed_bytes(segments, ["gzip", "-9"])
    bench.table.row(
        f"log of {events:,} events, against gzip -9 of the same events",
        f"{byte_count / gzip_bytes:.3f} × ({byte_count / 1e6:,.1f} : {gzip_bytes / 1e6:,.1f} MB)",
        "≤ 1.03 ×", byte_count <= 1.03 * gzip_bytes,
    )
    if not shutil.which("zstd"):
        bench.table.row("the same, against zstd -3", "not measured: there is no zstd here")
        return
    zstd_bytes = compressed_bytes(segments, ["zstd", "-3", "-c", "-q"])
    bench.table.row(
        "the same, against zstd -3", f"{byte_count / zstd_bytes:.3f} × ({zstd_bytes / 1e6:,.1f} MB)"
    )
