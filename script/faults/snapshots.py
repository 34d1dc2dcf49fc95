#!/usr/bin/env python3
# Kills `snapshot create` and `snapshot restore` before each call that changes files, then lets each fail.
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

REPORTS = ["revenue", "journal", "receipts"]
CALLS = [
    "openat", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "renameat", "unlink", "unlinkat",
    "symlinkat", "mkdirat", "fchown",
]  # fmt: skip
SYNCS = ("fsync", "fdatasync")
LINES = 80


class Ledger:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory

    def run(self, *arguments, injecting=None, trace=os.devnull):
        command = [self.program, *arguments, "--ledger", str(self.directory)]
        if injecting is not None:
            command = ["strace", "-f", "-y", "-qq", "-o", trace, *injecting, *command]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True
        )

    def done(self, *arguments, allowed=(0,)):
        result = self.run(*arguments)
        if result.returncode not in allowed:
            raise SystemExit(f"{arguments} exited with {result.returncode}: {result.stderr}")
        return result.stdout

    def reports(self):
        return [self.done("export", name, "--environment", "all") for name in REPORTS]

    def files(self):
        """What lies in the ledger beside its log; generations without their number and SQLite's own files,
        snapshots by the first of their two names."""
        found = []
        for path in self.directory.rglob("*"):
            name = str(path.relative_to(self.directory))
            if not name.startswith("log/") and not re.search(r"-(wal|shm)$", name):
                name = re.sub(r"projections/\d+\.sqlite", "projections/N.sqlite", name)
                found.append(re.sub(r"(snapshots/\d{20})\.2\.", r"\1.", name))
        return sorted(found)


def points(program, baseline, place, command):
    """Each call of the command that touches the ledger's files: its name and its ordinal in its thread."""
    ledger = Ledger(program, place / "traced")
    shutil.copytree(baseline, ledger.directory, symlinks=True)
    trace = place / "trace"
    result = ledger.run(*command, injecting=["-e", f"trace={','.join(CALLS)}"], trace=str(trace))
    if result.returncode != 0:
        raise SystemExit(f"{command} cannot be traced: {result.stderr}")
    counts, found = collections.Counter(), set()
    for line in trace.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match:
            counts[match[1], match[2]] += 1
            if str(ledger.directory) in line:
                found.add((match[2], counts[match[1], match[2]]))
    files = ledger.files()
    shutil.rmtree(ledger.directory)
    return sorted(found), files


class Campaign:
    def __init__(self, program, baseline, place):
        self.program, self.baseline, self.place = program, baseline, place
        self.reports = Ledger(program, baseline).reports()
        self.failures = 0
        self.counts = collections.Counter()

    def expect(self, holds, what):
        if not holds:
            self.failures += 1
            print(f"FAILED: {what}", flush=True)

    def disturb(self, command, call, ordinal, fault, files):
        """One disturbed run: old projections serve on, the next run leaves what an undisturbed one does."""
        ledger = Ledger(self.program, self.place / "disturbed")
        shutil.copytree(self.baseline, ledger.directory, symlinks=True)
        rule = f"inject={call}:{fault}:when={ordinal}"
        where = f"{' '.join(command[:2])}, {call} {ordinal}, {fault}"
        code = ledger.run(*command, injecting=["-e", rule]).returncode
        # strace ends as the program does.
        was_killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        self.counts["killed" if was_killed else "refused" if code else "done"] += 1
        self.counts["left behind"] += bool(set(ledger.files()) - set(files))
        if "SIGKILL" not in fault:
            self.expect(code in (0, 1, 3, 21), f"{where}: exit code {code}")
        self.expect(ledger.reports() == self.reports, f"{where}: a report is another")
        self.expect(ledger.run("snapshot", "verify").returncode == 0, f"{where}: a snapshot is bad")
        again = ledger.run(*command)
        self.expect(again.returncode == 0, f"{where}: then {again.stderr}")
        self.expect(
            ledger.files() == files, f"{where}: left {set(ledger.files()) ^ set(files)}"
        )
        self.expect(ledger.reports() == self.reports, f"{where}: a report is another afterwards")
        shutil.rmtree(ledger.directory)


def make_baseline(programs, place):
    """A ledger with a snapshot of its first half."""
    history, prices = place / "history.ndjson", place / "prices.csv"
    subprocess.run(
        [programs / "generate-history", "--small", "--uploads", str(2 * LINES), "--seed", "1"]
        + ["-o", str(history), "--prices", str(prices)],
        check=True,
    )
    lines = history.read_text().splitlines(keepends=True)
    program = programs / "ledgerctl"
    ledger = Ledger(program, place / "baseline")
    subprocess.run(
        [program, "init", str(ledger.directory), "--origin", "example.com/snapshots"],
        check=True, capture_output=True,
    )  # fmt: skip
    ledger.done("prices", "import", str(prices))
    for part in (lines[:LINES], lines[LINES:]):
        history.write_text("".join(part))
        ledger.done("import", str(history), "--register-apps", allowed=(0, 3))
        if part[0] == lines[0]:
            ledger.done("snapshot", "create")
    ledger.reports()
    size = json.loads(ledger.done("snapshot", "list", "--json"))["snapshots"][0]["events"]
    last = json.loads(ledger.done("status", "--json"))["events"] - 1
    return ledger.directory, str(size), str(last)


def main():
    parser = argparse.ArgumentParser(description="Interrupts the work on snapshots at every call.")
    parser.add_argument("--programs", required=True, type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--every", type=int, default=1, help="tries only every so-manieth call")
    arguments = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("script/test-kills-snapshots: strace is needed: apt-get install strace")
    programs = arguments.programs.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary).resolve()
        baseline, size, last = make_baseline(programs, place)
        campaign = Campaign(programs / "ledgerctl", baseline, place)
        # Of a moment that stays: each attempt may append an event.
        create = ("snapshot", "create", "--as-of", last)
        for command in (create, ("snapshot", "restore", size)):
            found, files = points(campaign.program, baseline, place, command)
            print(f"{' '.join(command[:2])}: {len(found)} calls", flush=True)
            for call, ordinal in found[:: arguments.every]:
                campaign.disturb(command, call, ordinal, "signal=SIGKILL", files)
                code = "EIO" if call in SYNCS else "ENOSPC"
                campaign.disturb(command, call, ordinal, f"error={code}", files)
    counts = campaign.counts
    print(
        f"{counts['killed']} killed, {counts['refused']} refused, {counts['done']} done all the same; "
        f"{counts['left behind']} left something behind; {campaign.failures} failed"
    )
    # Where nothing was ever left behind, nothing was interrupted.
    sys.exit(1 if campaign.failures or not counts["left behind"] else 0)


if __name__ == "__main__":
    main()
