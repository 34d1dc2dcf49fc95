#!/usr/bin/env python3
# Loses notifications, fetches what was missed, and holds the sales against those of a ledger that lost none.
#
# Three ledgers know the same customers by one signed transaction each. One is told every notification, one
# every second, one none. Then each asks the stand-in's App Store Server API. All must come to the same sales,
# amounts and subscriptions, and a second synchronization must ask for no history again.
import argparse
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import serving

SEED = 3
KEPT = {"all": 1, "half": 2, "none": None}


class StandIn:
    """The stand-in with customers, half an hour after their last purchases."""

    def __init__(self, programs, work, customers):
        self.programs = programs
        at_ms = (int(time.time()) - 1_800) * 1000
        self.customers = ["--authority", str(work / "authority"), "--customers", str(customers)]
        self.customers += ["--seed", str(SEED), "--at", str(at_ms), "--environment", "mixed"]
        self.key = work / "AuthKey.p8"
        self.process = subprocess.Popen(
            [programs / "app-store-stand-in", *self.customers, "--server-api-key", str(self.key)]
            + ["--until-stdin-ends"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.facts = json.loads(self.process.stdout.readline())

    def sign(self, command):
        """Lines of an import file."""
        done = subprocess.run(
            [self.programs / "app-store-stand-in", command, *self.customers, "--format", "import"],
            capture_output=True, check=True,
        )
        return done.stdout.splitlines(keepends=True)

    def calls(self):
        """Calls of the App Store Server API so far, by name."""
        control = self.facts["control_url"]
        done = subprocess.run(["curl", "-sS", control], capture_output=True, check=True)
        return json.loads(done.stdout)["calls"]["server_api"]["by_call"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def make_ledger(programs, work, name, stand_in):
    ledger = serving.Ledger(programs, work / name, stand_in.facts)
    (ledger.directory / "keys").mkdir(mode=0o700)
    key = ledger.directory / "keys/AuthKey.p8"
    key.touch(mode=0o600)
    key.write_bytes(stand_in.key.read_bytes())
    path = ledger.directory / "config.json"
    config = json.loads(path.read_text())
    for url in ["server_api_production_url", "server_api_sandbox_url"]:
        config["app_store"][url] = stand_in.facts[url]
    config["app_store"]["server_api_calls_per_second"] = 1000
    config.setdefault("apps", {}).setdefault(ledger.app_family, {})["server_api"] = {
        "issuer_id": "57246542-96fe-1a63-e053-0824d011072a",
        "key_id": "2X9R4HXF34",
        "private_key_file": "keys/AuthKey.p8",
    }
    path.write_text(json.dumps(config))
    return ledger


def without_positions(row):
    """A row without what depends on the order in which events came."""
    return {key: row[key] for key in row if not key.endswith(("position", "positions"))}


def state(ledger):
    """Each sale, with what its lines come to. A refund that was reversed before anybody heard of it makes no
    lines, so that the lines themselves may differ."""
    sales = {}
    for line in ledger.report("sales").splitlines():
        row = json.loads(line)
        sale = sales.setdefault((row["environment"], row["bundle_id"], row["sale_key"]), {})
        sale.update(without_positions(row), net=decimal.Decimal(0), units=0)
    for line in ledger.report("journal").splitlines():
        row = json.loads(line)
        sale = sales[row["environment"], row["bundle_id"], row["sale_key"]]
        sale["net"] += decimal.Decimal(row["amount"] or 0)
        sale["units"] += row["quantity"]
    subscriptions = [
        tuple(without_positions(json.loads(line)).items())
        for line in ledger.report("subscriptions").splitlines()
    ]
    found = [str(sales[key]) for key in sorted(sales)]
    return {"sales": found, "subscriptions": sorted(map(str, subscriptions))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--customers", type=int, default=60)
    arguments = parser.parse_args()
    programs = arguments.programs.resolve()
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        stand_in = StandIn(programs, work, arguments.customers)
        transactions = stand_in.sign("sign-transactions")
        notifications = stand_in.sign("sign-notifications")
        found = {}
        for name, every in KEPT.items():
            ledger = make_ledger(programs, work, name, stand_in)
            told = notifications[::every] if every else []
            (work / "import.ndjson").write_bytes(b"".join(transactions + told))
            ledger.run("import", str(work / "import.ndjson"))
            sync = json.loads(ledger.run("app-store", "sync", "--json"))
            before = stand_in.calls()
            ledger.run("app-store", "sync")
            after = stand_in.calls()
            if after.get("history") != before.get("history"):
                problems.append(f"{name}: the second synchronization asks for histories again")
            found[name] = state(ledger)
            counts = {report: len(lines) for report, lines in found[name].items()}
            print(
                f"{name}: {len(told)} notifications told, {sync['new_notifications']} and "
                f"{sync['histories']} histories fetched, {counts}", flush=True
            )
        stand_in.stop()
    for name, reports in found.items():
        for report, lines in reports.items():
            other = set(found["all"][report]) ^ set(lines)
            if other or not lines:
                problems.append(f"{name}: {report} differs in {len(other)} rows: {sorted(other)[:2]}")
    for problem in problems:
        print(problem)
    print(f"{len(KEPT) - bool(problems)} passed, {len(problems)} failed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
