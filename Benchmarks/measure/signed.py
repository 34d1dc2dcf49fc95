# A log of which half is signed objects: what it takes on disk, and to read.
import statistics

from .appending import compressed_bytes
from .runs import in_turn, ratios, seconds, spread


def signed_log(bench):
    """The size beside gzip -9, a rebuild and an audit beside gzip -dc."""
    data = bench.data
    ledger = data.ledger(bench.size.signed_uploads, signed_percent=50)
    events, byte_count = data.sealed(ledger)
    segments = data.segments(ledger)
    gzip_bytes = compressed_bytes(segments, ["gzip", "-9"])
    bench.table.row(
        f"log of {events:,} events, half of them signed objects, against gzip -9",
        f"{byte_count / gzip_bytes:.3f} × ({byte_count / 1e6:,.1f} : {gzip_bytes / 1e6:,.1f} MB)",
        "≤ 1.05 ×", byte_count <= 1.05 * gzip_bytes,
    )
    ways = {
        "gzip": lambda: seconds(["gzip", "-dc", *segments]),
        "rebuild": lambda: seconds(data.command(ledger, "rebuild")),
        "audit": lambda: seconds(data.command(ledger, "audit")),
    }
    taken = in_turn(bench.rounds, ways)
    median = {name: statistics.median(taken[name]) for name in taken}
    for name, goal in {"rebuild": 0.35, "audit": None}.items():
        to_gzip = ratios(taken[name], taken["gzip"])
        bench.table.row(
            f"full {name} of it, against gzip -dc",
            f"{spread(to_gzip)} × ({median[name]:.2f} : {median['gzip']:.2f} s)",
            f"≤ {goal} ×" if goal else "", statistics.median(to_gzip) <= goal if goal else None,
        )
