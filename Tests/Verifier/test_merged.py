# A merged ledger, its erasures included, before the independent verifier.
"""LEDGERCTL names the program; without it the one on the path is used."""

import datetime
import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import verify

LEDGERCTL = os.environ.get("LEDGERCTL", "ledgerctl")


def upload(number, user):
    row = {"product_id": "coins", "transaction_id": str(number), "original_transaction_id": str(number),
           "purchase_date_ms": "1767323040000", "quantity": "1"}
    receipt = {"bundle_id": "com.example.game", "request_date_ms": "1767323046000", "in_app": [row]}
    reply = {"status": 0, "environment": "Production", "receipt": receipt}
    return json.dumps({"receipt": "c2FtcGxlIHJlY2VpcHQ" + "ABCDEFGH"[number % 8], "user_identifier": user,
                       "verification": {"reply": reply}})


class MergedTests(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        for name in ("eu", "us"):
            self.ledgerctl("init", name, "--origin", f"example.com/{name}")
        # An empty ledger may be merged into.
        self.ledgerctl("init", "all", "--origin", "example.com/all")
        self.key = self.ledgerctl("key", "create", "--ledger", "all").decode().strip()

    def ledgerctl(self, *arguments, codes=(0,)):
        done = subprocess.run(
            [LEDGERCTL, *map(str, arguments)], cwd=self.folder, capture_output=True, check=False)
        self.assertIn(done.returncode, codes, done.stderr)
        return done.stdout

    def take(self, name, *lines):
        path = self.folder / "lines.ndjson"
        path.write_text("".join(line + "\n" for line in lines))
        self.ledgerctl("import", path, "--ledger", name, "--register-apps")

    def erase(self, name, user):
        self.ledgerctl("redact", "--ledger", name, "--user", user, "--reason", "test", "--yes")

    def merge(self, until=None):
        """Up to now, or to an earlier moment, which is returned."""
        time.sleep(0.05)
        now = datetime.datetime.now(datetime.timezone.utc)
        until = until or now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        time.sleep(0.05)
        self.ledgerctl("merge", "eu", "us", "-o", "all", "--until", until, codes=(0, 3))
        return until

    def check(self):
        log = self.folder / "all" / "log"
        command = "zcat {0}/*.jsonl.gz 2>/dev/null; grep -hv '^#' {0}/tail-*.log".format(log)
        lines = subprocess.run(["sh", "-c", command], capture_output=True, check=False).stdout
        note = self.ledgerctl("checkpoint", "--ledger", "all")
        checkpoint = verify.Checkpoint(note, verify.Key(self.key))
        checked = verify.check_log(lines.splitlines(keepends=True), checkpoint)
        self.assertEqual(checked.size, checkpoint.size)
        self.ledgerctl("audit", "--ledger", "all")
        self.ledgerctl("merge", "--verify", "all", "eu", "us")
        return lines

    def test_runs_and_erasures_before_between_and_after_them(self):
        self.take("eu", upload(1, "anna"), upload(2, "bob"))
        self.take("us", upload(3, "anna"), upload(4, "carl"))
        self.erase("us", "carl")
        first = self.merge()
        self.check()
        self.erase("eu", "bob")
        # Later than what the run takes.
        self.merge(first)
        self.assertNotIn(b'"bob"', self.check())
        self.take("eu", upload(5, "anna"))
        self.erase("us", "anna")
        self.merge()
        self.assertNotIn(b'"carl"', self.check())


if __name__ == "__main__":
    unittest.main()
