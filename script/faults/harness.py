# What the scenarios of script/test-faults share: checks, invented histories, kills, calls that are traced.
import collections
import os
import re
import signal
import subprocess
import time

import serving

DONE, FAILED, DONE_WITH_WARNINGS = 0, 1, 3
# strace ends as the program does.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
# The calls that change files.
CALLS = [
    "openat", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "renameat", "rename", "unlink",
    "unlinkat", "symlinkat", "mkdirat", "fchown",
]  # fmt: skip


class Checks:
    def __init__(self):
        self.passed = self.failed = 0
        # What happened, for the scenario's last lines.
        self.counts = collections.Counter()

    def expect(self, holds, what):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}", flush=True)


def generate_history(programs, place, uploads, seed):
    """An invented history of short lines and its price list."""
    history, prices = place / "history.ndjson", place / "prices.csv"
    subprocess.run(
        [programs / "generate-history", "--small", "--uploads", str(uploads), "--seed", str(seed)]
        + ["-o", str(history), "--prices", str(prices)],
        check=True,
    )
    return history, prices


def strace(rule, trace=os.devnull):
    """The beginning of a command that traces or disturbs its calls."""
    return ["strace", "-f", "-y", "-qq", "-o", str(trace), "-e", rule]


def traced_calls(ledger, trace, *command):
    """Each call of a command that touches the ledger's files: its name and its ordinal in its thread."""
    done = ledger.done(*command, before=strace(f"trace={','.join(CALLS)}", trace))
    if done.returncode != DONE:
        raise SystemExit(f"{command} cannot be traced: {done.stderr}")
    counts, found = collections.Counter(), set()
    for line in trace.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match:
            counts[match[1], match[2]] += 1
            if str(ledger.directory) in line:
                found.add((match[2], counts[match[1], match[2]]))
    return sorted(found)


def kill_under_load(arguments, ledger, server, loads, chance):
    """Kills a server at random moments and starts it again on the same port, while load generators run.

    `loads`: the options of each generator. Returns the last server, the generators' reports, and how often
    servers printed each line."""
    listen = server.url.removeprefix("http://")
    generators = [
        serving.load(
            arguments.programs, server, ledger, bodies, "--rate", str(arguments.rate),
            "--duration", "86400", "--reconnect", *options, path=path,
        )
        for bodies, path, options in loads
    ]  # fmt: skip
    notes = collections.Counter()
    for _ in range(arguments.kills):
        time.sleep(chance.uniform(0.2, 2 * arguments.mean_seconds))
        if any(generator.poll() is not None for generator in generators):
            raise SystemExit("the load generator ended by itself")
        code = server.kill()
        if code != -signal.SIGKILL:
            raise SystemExit(f"serve had exited by itself with {code}")
        server = serving.Server(ledger, listen=listen)
        notes.update(re.sub(r"[0-9]+", "N", line) for line in server.errors().splitlines())
    time.sleep(1)
    return server, [end_load(generator) for generator in generators], notes


def end_load(generator):
    """Ends a load generator in order; its report."""
    generator.send_signal(signal.SIGTERM)
    return generator.communicate(timeout=60)[0].decode().strip()
