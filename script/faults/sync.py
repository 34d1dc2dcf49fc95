# Loses notifications, fetches what was missed, and holds the sales against those of a ledger that lost none.
#
# Three ledgers know the same customers by one signed transaction each. One is told every notification, one
# every second, one none. Then each asks the stand-in's App Store Server API. All must come to the same sales,
# amounts and subscriptions, and a second synchronization must ask for no history again.
import decimal
import json
import time

import serving

OPTIONS = {"customers": (60, "of the stand-in")}
SEED = 3
KEPT = {"all": 1, "half": 2, "none": None}


def make_ledger(programs, work, name, stand_in, server_key):
    ledger = serving.Ledger(programs, work / name, stand_in.facts)
    (ledger.directory / "keys").mkdir(mode=0o700)
    key = ledger.directory / "keys/AuthKey.p8"
    key.touch(mode=0o600)
    key.write_bytes(server_key.read_bytes())
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


def run(arguments, place, _, checks):
    programs, authority, key = arguments.programs, place / "authority", place / "AuthKey.p8"
    # Half an hour after their last purchases.
    at_ms = (int(time.time()) - 1_800) * 1000
    customers = ["--at", str(at_ms), "--environment", "mixed"]
    stand_in = serving.StandIn(
        programs, authority, "--customers", str(arguments.customers), "--seed", str(SEED), *customers,
        "--server-api-key", str(key),
    )  # fmt: skip

    def signed(command):
        """Lines of an import file."""
        path = place / command
        options = [*customers, "--format", "import"]
        serving.sign(programs, authority, command, path, arguments.customers, *options, seed=SEED)
        return path.read_bytes().splitlines(keepends=True)

    def calls():
        """Calls of the App Store Server API so far, by name."""
        return json.loads(stand_in.control())["calls"]["server_api"]["by_call"]

    transactions, notifications = signed("sign-transactions"), signed("sign-notifications")
    found = {}
    for name, every in KEPT.items():
        ledger = make_ledger(programs, place, name, stand_in, key)
        told = notifications[::every] if every else []
        (place / "import.ndjson").write_bytes(b"".join(transactions + told))
        ledger.run("import", place / "import.ndjson")
        sync = json.loads(ledger.run("app-store", "sync", "--json"))
        before = calls()
        ledger.run("app-store", "sync")
        checks.expect(
            calls().get("history") == before.get("history"),
            f"{name}: the second synchronization asks for histories again",
        )
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
            checks.expect(
                lines and not other, f"{name}: {report} differs in {len(other)} rows: {sorted(other)[:2]}"
            )
