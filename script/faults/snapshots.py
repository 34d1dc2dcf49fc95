# Kills `snapshot create` and `snapshot restore` before each call that changes files, then lets each fail.
import json
import re
import shutil
import sys

import serving
from harness import DONE, DONE_WITH_WARNINGS, FAILED, KILLED, generate_history, strace, traced_calls

OPTIONS = {"every": (1, "tries only every so-manieth call")}
REPORTS = ["revenue", "journal", "receipts"]
SYNCS = ("fsync", "fdatasync")
FULL = 21
LINES = 80


def reports(ledger):
    return [ledger.run("export", name, "--environment", "all") for name in REPORTS]


def files(ledger):
    """What lies in the ledger beside its log; generations without their number and SQLite's own files,
    snapshots by the first of their two names."""
    found = []
    for path in ledger.directory.rglob("*"):
        name = str(path.relative_to(ledger.directory))
        if not name.startswith("log/") and not re.search(r"-(wal|shm)$", name):
            name = re.sub(r"projections/\d+\.sqlite", "projections/N.sqlite", name)
            found.append(re.sub(r"(snapshots/\d{20})\.2\.", r"\1.", name))
    return sorted(found)


def disturb(ledger, command, rule, undisturbed, expected, checks):
    """One disturbed run: old projections serve on, the next run leaves what an undisturbed one does.

    `undisturbed`: the files that it leaves; `expected`: the reports."""
    where = f"{' '.join(command[:2])}, {rule}"
    code = ledger.done(*command, before=strace("inject=" + rule)).returncode
    checks.counts["killed" if code in KILLED else "refused" if code else "done all the same"] += 1
    checks.counts["left something behind"] += bool(set(files(ledger)) - set(undisturbed))
    if "SIGKILL" not in rule:
        checks.expect(code in (DONE, FAILED, DONE_WITH_WARNINGS, FULL), f"{where}: exit code {code}")
    checks.expect(reports(ledger) == expected, f"{where}: a report is another")
    checks.expect(ledger.done("snapshot", "verify").returncode == DONE, f"{where}: a snapshot is bad")
    again = ledger.done(*command)
    checks.expect(again.returncode == DONE, f"{where}: then {again.stderr}")
    left = set(files(ledger)) ^ set(undisturbed)
    checks.expect(files(ledger) == undisturbed, f"{where}: left {left}")
    checks.expect(reports(ledger) == expected, f"{where}: a report is another afterwards")


def make_baseline(programs, place):
    """A ledger with a snapshot of its first half."""
    history, prices = generate_history(programs, place, 2 * LINES, 1)
    lines = history.read_text().splitlines(keepends=True)
    ledger = serving.PlainLedger(programs, place / "baseline", "example.com/snapshots")
    ledger.run("prices", "import", prices)
    for part in (lines[:LINES], lines[LINES:]):
        history.write_text("".join(part))
        ledger.run("import", history, "--register-apps", allowed=(DONE, DONE_WITH_WARNINGS))
        if part[0] == lines[0]:
            ledger.run("snapshot", "create")
    return ledger


def run(arguments, place, _, checks):
    if shutil.which("strace") is None:
        sys.exit("script/test-faults: strace is needed: apt-get install strace")
    baseline = make_baseline(arguments.programs, place)
    expected = reports(baseline)
    size = json.loads(baseline.run("snapshot", "list", "--json"))["snapshots"][0]["events"]
    last = json.loads(baseline.run("status", "--json"))["events"] - 1
    # Of a moment that stays: each attempt may append an event.
    for command in (("snapshot", "create", "--as-of", str(last)), ("snapshot", "restore", str(size))):
        traced = baseline.copied(place / "traced")
        calls, undisturbed = traced_calls(traced, place / "trace", *command), files(traced)
        print(f"{' '.join(command[:2])}: {len(calls)} calls", flush=True)
        for call, ordinal in calls[:: arguments.every]:
            code = "EIO" if call in SYNCS else "ENOSPC"
            for fault in ("signal=SIGKILL", f"error={code}"):
                disturb(
                    baseline.copied(place / "disturbed"), command, f"{call}:{fault}:when={ordinal}",
                    undisturbed, expected, checks,
                )  # fmt: skip
    checks.expect(checks.counts["left something behind"], "nothing was interrupted")
