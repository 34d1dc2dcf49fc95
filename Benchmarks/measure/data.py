# Ledgers of invented histories, made once a run and shared by the parts.
import gzip
import hashlib
import json
import pathlib
import shutil
import ssl
import subprocess

from .runs import MeasurementError, output

DONE, DONE_WITH_WARNINGS = 0, 3
EVENT_FILE_BYTES = 64 << 20


def run_pipeline(stages, errors):
    """Runs programs, each reading what the one before prints; their exit statuses."""
    processes = []
    source = subprocess.DEVNULL
    try:
        for stage in stages:
            target = subprocess.DEVNULL if stage is stages[-1] else subprocess.PIPE
            processes.append(subprocess.Popen(stage, stdin=source, stdout=target, stderr=errors))
            if source is not subprocess.DEVNULL:
                source.close()
            source = processes[-1].stdout
        return [process.wait() for process in processes]
    except BaseException:
        for process in processes:
            process.kill()
        raise


def trust_signed(ledger, authority):
    """Lets a ledger trust an authority's root for signed objects."""
    pem = (authority / "signed-root.pem").read_text(encoding="ascii")
    root = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    path = ledger / "config.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"trust": {"additional_roots_sha256": [root]}}), encoding="ascii")


class Data:
    def __init__(self, directory, programs, say):
        self.directory = directory
        self.ledgerctl = programs / "ledgerctl"
        self.generate = programs / "generate-history"
        self.say = say

    def scratch(self, name):
        """An empty directory."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def once(self, name, make):
        """Makes a directory or file unless an earlier part, or run, has finished it."""
        path, marker = self.directory / name, self.directory / f"{name}.complete"
        if not marker.exists():
            if path.is_dir():
                shutil.rmtree(path)
            make(path)
            marker.touch()
        return path

    def command(self, ledger, *arguments):
        return [self.ledgerctl, *arguments, "--ledger", ledger]

    def ledger(self, uploads, seed=1, signed_percent=None):
        """A ledger of so many uploads with their results: two events each, receipts of real size. With a
        percentage so many of its events are signed uploads and notifications: one event each."""

        def make(path):
            self.say(f"  (making a ledger of {uploads:,} uploads)")
            output([self.ledgerctl, "init", path, "--origin", "bench.example"])
            options = []
            if signed_percent:
                authority = path.with_suffix(".authority")
                options = ["--signed-percent", str(signed_percent), "--authority", str(authority)]
                # It makes the authority that the ledger must trust.
                output([self.generate, "--uploads", "1", "--seed", str(seed), *options])
                trust_signed(path, authority)
            self.import_lines(path, uploads, seed, options=options)

        kind = f"-signed-{signed_percent}" if signed_percent else ""
        return self.once(f"ledger-{uploads}-{seed}{kind}", make)

    def import_lines(self, ledger, uploads, seed, first=None, after=None, options=()):
        """Imports a history, or only its first lines, or those after so many."""
        stages = [[self.generate, "--uploads", str(uploads), "--seed", str(seed), *options]]
        if first is not None:
            stages.append(["head", "-n", str(first)])
        if after is not None:
            stages.append(["tail", "-n", f"+{after + 1}"])
        stages.append(self.command(ledger, "import", "-", "--register-apps"))
        # Warnings by the thousand: the histories hold bad prices and signatures on purpose.
        with open(self.directory / "import-warnings.txt", "wb") as warnings:
            statuses = run_pipeline(stages, warnings)
        # Where `head` has enough, the generator is cut off.
        if first is None and statuses[0] != DONE:
            raise MeasurementError(f"generate-history exited with {statuses[0]}")
        if statuses[-1] not in (DONE, DONE_WITH_WARNINGS):
            raise MeasurementError(f"the import exited with {statuses[-1]}")

    def segments(self, ledger):
        return sorted(pathlib.Path(ledger, "log").glob("*.jsonl.gz"))

    def status(self, ledger):
        return json.loads(output(self.command(ledger, "status", "--json")))

    def sealed(self, ledger):
        """Events in blocks, and bytes of the segments."""
        files = [file for file in self.status(ledger)["files"] if file["kind"] != "tail"]
        return sum(file["events"] for file in files), sum(file["bytes"] for file in files)

    def events(self, uploads, seed=1):
        """The first event lines of a ledger, as a file."""
        return self.lines(uploads, seed, "events", lambda line: True)

    def local_results(self, uploads, seed=1):
        """Event lines of local verifications, the smallest that a server appends, as a file."""
        is_local = b'"authority":"local"'
        return self.lines(uploads, seed, "local-results", lambda line: is_local in line[:512])

    def lines(self, uploads, seed, name, is_wanted):
        ledger = self.ledger(uploads, seed)

        def make(path):
            byte_count = 0
            with open(path, "wb") as file:
                for segment in self.segments(ledger):
                    with gzip.open(segment, "rb") as lines:
                        for line in filter(is_wanted, lines):
                            byte_count += file.write(line)
                            if byte_count >= EVENT_FILE_BYTES:
                                return

        return self.once(f"{name}-{uploads}-{seed}.jsonl", make)
