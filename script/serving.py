# A served ledger and a stand-in for the App Store, shared by the scripts that serve.
import atexit
import gzip
import json
import os
import pathlib
import re
import subprocess
import time

BUNDLE_ID = "com.example.game"
TRANSACTIONS_PATH = "/client/app_store/transactions"
NOTIFICATIONS_PATH = "/app_store/notifications"
START_LIMIT_SECONDS = 120


class StandIn:
    """The stand-in's process; it ends with its standard input, so it never outlives this one."""

    def __init__(self, programs, authority, delay_ms=0):
        self.process = subprocess.Popen(
            [programs / "app-store-stand-in", "--authority", str(authority), "--until-stdin-ends"]
            + ["--delay-ms", str(delay_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.facts = json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Ledger:
    """A fresh ledger with one app family and a token for it."""

    def __init__(
        self, programs, directory, stand_in_facts, verification=None, bundle_id=BUNDLE_ID, settings=None
    ):
        self.program = programs / "ledgerctl"
        self.directory = pathlib.Path(directory)
        self.run("init", str(directory), "--origin", "example.com/load", elsewhere=True)
        roots = [stand_in_facts["root_sha256"], stand_in_facts["signed_root_sha256"]]
        trust = {"additional_roots_sha256": roots}
        trust["transaction_intermediates"] = stand_in_facts["transaction_intermediates"]
        app_store = {name: stand_in_facts[name] for name in ("production_url", "sandbox_url")}
        config = {"app_store": app_store, "trust": trust, "verification": verification or {}}
        # Some of the invented customers buy in the Sandbox, all at once.
        config["notifications"] = {"sandbox_per_second": 100_000}
        config |= settings or {}
        path = self.directory / "config.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        added = self.run("app", "add", "--name", "Game", "--bundle-id", bundle_id, "--json")
        self.app_family = json.loads(added)["app_family_id"]
        created = self.run("token", "create", "--app", self.app_family, "--json")
        self.token_id = json.loads(created)["id"]
        self.token_path = self.directory.with_suffix(".token")
        self.token_path.touch(mode=0o600)
        self.token_path.write_text(json.loads(created)["token"])

    def run(self, *arguments, allowed=(0,), elsewhere=False):
        ledger = [] if elsewhere else ["--ledger", str(self.directory)]
        done = subprocess.run(
            [self.program, *arguments, *ledger],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode not in allowed:
            error = done.stderr.decode(errors="replace").strip().splitlines()
            raise SystemExit(f"{arguments} exited with {done.returncode}: {error[-3:]}")
        return done.stdout.decode()

    def report(self, name):
        return self.run("export", name, "--environment", "all", "--format", "ndjson")

    def events(self):
        """All events in position order, read without the program; no position twice, none missing."""
        lines = {}
        for path in sorted((self.directory / "log").glob("*.jsonl.gz")):
            with gzip.open(path, "rb") as segment:
                for line in segment:
                    take_event(line, lines)
        for path in sorted((self.directory / "log").glob("tail-*.log")):
            for line in path.read_bytes().splitlines():
                if not line.startswith(b"#"):
                    take_event(line, lines)
        if sorted(lines) != list(range(len(lines))):
            raise SystemExit("the log's positions have gaps")
        return [lines[position] for position in range(len(lines))]


def take_event(line, lines):
    event = json.loads(line)
    if event["seq"] in lines:
        raise SystemExit(f"position {event['seq']} stands in the log twice")
    data = event["data"]
    # Receipts and replies are large, and not used here.
    data.pop("receipt", None)
    data.pop("reply", None)
    lines[event["seq"]] = (event["type"], data)


class Server:
    """`ledgerctl serve`, ready for requests once it is constructed."""

    def __init__(self, ledger, *options, listen="127.0.0.1:0"):
        self.errors_path = ledger.directory.with_suffix(".serve.txt")
        with open(self.errors_path, "wb") as errors:
            self.process = subprocess.Popen(
                [ledger.program, "serve", "--ledger", str(ledger.directory)]
                + ["--listen", listen, "--metrics-listen", "127.0.0.1:0", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        # A failed check must not leave it running.
        atexit.register(self.process.kill)
        self.url, self.metrics_url = self.addresses()

    def addresses(self):
        end = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < end:
            said = pathlib.Path(self.errors_path).read_text(errors="replace")
            match = re.search(r"listening on (http://\S+), metrics on (http://\S+)\n", said)
            if match:
                return match.groups()
            if self.process.poll() is not None:
                raise SystemExit(f"serve exited with {self.process.returncode}: {said[-500:]}")
            time.sleep(0.02)
        raise SystemExit("serve does not begin to listen")

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def terminate(self):
        """Stops it in order; returns its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)

    def processor_seconds(self):
        """User and system time of each thread, by the thread's number."""
        times = {}
        tick = os.sysconf("SC_CLK_TCK")
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            times[int(task.name)] = (int(fields[11]) / tick, int(fields[12]) / tick)
        return times

    def memory_kib(self):
        """The resident memory, and the part of it that belongs to no file."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        values = dict(re.findall(r"^(VmRSS|RssAnon):\s+(\d+)", status, re.MULTILINE))
        return int(values["VmRSS"]), int(values["RssAnon"])


def sign_bodies(programs, authority, path, count, seed=1, style="unified", bundle_id=BUNDLE_ID):
    """Upload requests, each with a receipt of its own."""
    subprocess.run(
        [programs / "app-store-stand-in", "sign-receipts", "--authority", str(authority)]
        + ["--customers", str(count), "--seed", str(seed), "--style", style, "--bundle-id", bundle_id]
        + ["--format", "uploads", "-o", str(path)],
        check=True,
    )


def sign_transactions(programs, authority, path, count, transactions=1, seed=1):
    """Upload requests, each with a list of signed transactions."""
    subprocess.run(
        [programs / "app-store-stand-in", "sign-transactions", "--authority", str(authority)]
        + ["--customers", str(count), "--seed", str(seed), "--transactions", str(transactions)]
        + ["-o", str(path)],
        check=True,
    )


def sign_notifications(programs, authority, path, customers, seed=1, bundle_id=BUNDLE_ID):
    """Requests with a notification, each with a UUID of its own: a few for each customer."""
    subprocess.run(
        [programs / "app-store-stand-in", "sign-notifications", "--authority", str(authority)]
        + ["--customers", str(customers), "--seed", str(seed), "--bundle-id", bundle_id, "-o", str(path)],
        check=True,
    )


def load(programs, server, ledger, bodies, *options, path="", **popen):
    """Starts the load generator; it prints its report as JSON."""
    # The App Store has no token, and its notifications are distinct by themselves.
    sender = ["--token-file", str(ledger.token_path), "--unique"]
    if path == NOTIFICATIONS_PATH:
        sender = ["--no-token"]
    process = subprocess.Popen(
        [programs / "upload-load", "--url", server.url + path, "--bodies", str(bodies)]
        + [*sender, "--json", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        **popen,
    )
    atexit.register(process.kill)
    return process
