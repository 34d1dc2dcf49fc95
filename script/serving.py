# A served ledger and a stand-in for the App Store: what the scripts that serve share.
import atexit
import copy
import gzip
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time
import urllib.request

BUNDLE_ID = "com.example.game"
TRANSACTIONS_PATH = "/client/app_store/transactions"
NOTIFICATIONS_PATH = "/app_store/notifications"
START_LIMIT_SECONDS = 120


class StandIn:
    """The stand-in's process; it ends when its standard input does, so never outlives us."""

    def __init__(self, programs, authority, *options):
        self.process = subprocess.Popen(
            [programs / "app-store-stand-in", "--authority", str(authority), "--until-stdin-ends", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.facts = json.loads(self.process.stdout.readline())

    def control(self, request=None):
        """Changes how it answers; without a request, what it has counted."""
        body = None if request is None else json.dumps(request).encode()
        with urllib.request.urlopen(self.facts["control_url"], data=body, timeout=10) as answer:
            return answer.read()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def wait_until(holds, limit_seconds, pause_seconds=0.05):
    """Whether a condition comes to hold before the limit."""
    end = time.monotonic() + limit_seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(pause_seconds)
    return False


def log_lines(directory, tolerated=()):
    """The lines of a log, read without the program.

    `tolerated`: errors of a block that a kill cut short; the tail that it was made from is there then."""
    for path in sorted((directory / "log").glob("*.jsonl.gz")):
        try:
            with gzip.open(path, "rb") as segment:
                yield from segment
        except tolerated:
            pass
    for path in sorted((directory / "log").glob("tail-*.log")):
        for line in path.read_bytes().splitlines(keepends=True):
            if not line.startswith(b"#"):
                yield line


class PlainLedger:
    """A fresh ledger, and the program that works on it."""

    def __init__(self, programs, directory, origin="example.com/load"):
        self.program = programs / "ledgerctl"
        self.directory = pathlib.Path(directory)
        self.run("init", str(directory), "--origin", origin, elsewhere=True)

    def command(self, *arguments):
        return [self.program, *map(str, arguments), "--ledger", str(self.directory)]

    def run(self, *arguments, allowed=(0,), elsewhere=False):
        done = self.done(*arguments, elsewhere=elsewhere)
        if done.returncode not in allowed:
            error = done.stderr.strip().splitlines()
            raise SystemExit(f"{arguments} exited with {done.returncode}: {error[-3:]}")
        return done.stdout

    def done(self, *arguments, before=(), elsewhere=False, **options):
        """A command that ended, however. `before`: a program that runs it."""
        command = [self.program, *map(str, arguments)] if elsewhere else self.command(*arguments)
        done = subprocess.run(
            [*before, *command], stdin=subprocess.DEVNULL, capture_output=True, check=False, **options
        )
        # By hand: as text, line ends would be others.
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode(errors="replace")
        return done

    def start(self, *arguments, before=(), **options):
        return subprocess.Popen(
            [*before, *self.command(*arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options,
        )  # fmt: skip

    def copied(self, directory):
        """A copy of the ledger, in place of what was there."""
        ledger = copy.copy(self)
        ledger.directory = directory
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self.directory, directory, symlinks=True)
        return ledger

    def report(self, name, form="ndjson"):
        return self.run("export", name, "--environment", "all", "--format", form)

    def events(self, without=("receipt", "reply")):
        """Types and data of all events in position order; no position twice, none missing.

        `without`: members of the data to leave out; receipts are large."""
        lines = {}
        for line in log_lines(self.directory):
            event = json.loads(line)
            if event["seq"] in lines:
                raise SystemExit(f"position {event['seq']} stands in the log twice")
            data = {name: value for name, value in event["data"].items() if name not in without}
            lines[event["seq"]] = (event["type"], data)
        if sorted(lines) != list(range(len(lines))):
            raise SystemExit("the log's positions have gaps")
        return [lines[position] for position in range(len(lines))]


class Ledger(PlainLedger):
    """A fresh ledger with one app family and a token for it, which trusts a stand-in."""

    def __init__(
        self, programs, directory, stand_in_facts, verification=None, bundle_id=BUNDLE_ID, settings=None
    ):
        super().__init__(programs, directory)
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


class WebhookReceiver(http.server.ThreadingHTTPServer):
    """An app's back end, on a free port: answers each webhook with the status that `receive` gives."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), WebhookHandler)
        self.url = f"http://127.0.0.1:{self.server_port}/hook"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A server that ends resets its connections."""


class WebhookHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            # A sender that is killed may leave a body unfinished: that is no delivery.
            self.close_connection = True
            return
        self.send_response(self.server.receive(self.headers, body))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server:
    """`ledgerctl serve`, ready to take requests once it is made."""

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
        # A check that fails must not leave it behind.
        atexit.register(self.process.kill)
        self.url, self.metrics_url = self.addresses()

    def errors(self):
        """What it has printed to standard error."""
        return pathlib.Path(self.errors_path).read_text(errors="replace")

    def addresses(self):
        def begun():
            match = re.search(r"listening on (http://\S+), metrics on (http://\S+)\n", self.errors())
            if match is None and self.process.poll() is not None:
                raise SystemExit(f"serve exited with {self.process.returncode}: {self.errors()[-500:]}")
            return match

        if not wait_until(begun, START_LIMIT_SECONDS, 0.02):
            raise SystemExit("serve does not begin to listen")
        return begun().groups()

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def terminate(self):
        """Ends it in order; its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)

    def processor_seconds(self):
        """User and system time of each thread, by the thread's number."""
        times = {}
        tick = os.sysconf("SC_CLK_TCK")
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                fields = (task / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                # The thread has ended meanwhile.
                continue
            times[int(task.name)] = (int(fields[11]) / tick, int(fields[12]) / tick)
        return times

    def memory_kib(self):
        """What is resident, and what of it belongs to no file."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        values = dict(re.findall(r"^(VmRSS|RssAnon):\s+(\d+)", status, re.MULTILINE))
        return int(values["VmRSS"]), int(values["RssAnon"])


def sign(programs, authority, command, path, customers, *options, seed=1):
    """Requests about invented customers, one a line, as a command of the stand-in signs them."""
    subprocess.run(
        [programs / "app-store-stand-in", command, "--authority", str(authority), "-o", str(path)]
        + ["--customers", str(customers), "--seed", str(seed), *options],
        check=True,
    )


def sign_bodies(programs, authority, path, count, seed=1, style="unified", bundle_id=BUNDLE_ID):
    """Upload requests, each with a receipt of its own."""
    options = ["--style", style, "--bundle-id", bundle_id, "--format", "uploads"]
    sign(programs, authority, "sign-receipts", path, count, *options, seed=seed)


def sign_transactions(programs, authority, path, count, transactions=1, seed=1):
    """Upload requests, each with a list of signed transactions."""
    sign(
        programs, authority, "sign-transactions", path, count, "--transactions", str(transactions), seed=seed
    )


def sign_notifications(programs, authority, path, customers, seed=1, bundle_id=BUNDLE_ID):
    """Requests with a notification, each with a UUID of its own: a few for each customer."""
    sign(
        programs, authority, "sign-notifications", path, customers, "--bundle-id", bundle_id, seed=seed
    )


def load(programs, server, ledger, bodies, *options, path="", **popen):
    """Starts the load generator; it prints its report as JSON."""
    # The App Store has no token, and its notifications tell themselves apart.
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
