# Copies of ledgers, in a directory and on S3: the tables are those of the ledgers, and what is
# damaged or missing is refused.

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import expected
import package
import programs
import spark
from expected import Options
from histories import History
from test_equality import SEED

sys.path.insert(0, str(package.ROOT / "Tests/Replication"))
import seaweed  # noqa: E402

DAMAGE, NO_LEDGER = 20, 10
OPTIONS = Options(environment="all")


def replicate(ledger: pathlib.Path, **settings: object) -> None:
    config = ledger / "config.json"
    members = json.loads(config.read_text()) if config.exists() else {}
    config.touch(mode=0o600)
    config.write_text(json.dumps(members | {"replication": settings}))
    programs.run("ledgerctl", "replicate", "--ledger", ledger)


@spark.needs_spark
class CopyTests(spark.SparkTests):
    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        history = History(cls.folder / "history", SEED + 3, 25, is_nasty=False, ledgers=2)
        cls.ledgers = programs.resegment(history.ledgers, cls.folder / "fleet")
        for ledger in cls.ledgers:
            copy = cls.folder / f"copy-{ledger.name}"
            copy.mkdir()
            replicate(ledger, target=f"file://{copy}")
        # Events that no block holds yet.
        programs.run(
            "ledgerctl", "app", "add", "--bundle-id", "com.example.late", "--name", "late",
            "--ledger", cls.ledgers[1])
        replicate(cls.ledgers[1], target=f"file://{cls.folder}/copy-shop-2")

    def copied(self, name: str) -> pathlib.Path:
        """A copy of the copy of the first ledger, with small segments."""
        place = self.folder / name
        shutil.copytree(self.folder / "copy-shop-1", place)
        return place

    def test_copies_give_the_tables_of_their_ledgers(self) -> None:
        places = [f"file://{self.folder}/copy-{ledger.name}" for ledger in self.ledgers]
        fleet = self.folder / "copies.json"
        fleet.write_text(json.dumps({"ledgers": [
            {"name": ledger.name, "path": place}
            for ledger, place in zip(self.ledgers, places)]}))
        outputs = [self.folder / name for name in ("of-copies", "of-ledgers")]
        self.command("run", "--fleet", fleet, "-o", outputs[0], "--master", spark.MASTER,
                     "--partitions", 2, *OPTIONS.of_run())
        self.run_spark(outputs[1], self.ledgers, *OPTIONS.of_run())
        found, wanted = (self.all_rows(out) for out in outputs)
        for report in expected.REPORTS:
            self.assert_rows(wanted[report], found[report], report)

    def test_a_copy_without_blocks(self) -> None:
        ledger, copy = self.folder / "young", self.folder / "copy-young"
        copy.mkdir()
        programs.run("ledgerctl", "init", ledger, "--origin", "example.com/young")
        programs.run("ledgerctl", "app", "add", "--bundle-id", "com.example.a", "--name", "a",
                     "--ledger", ledger)
        replicate(ledger, target=f"file://{copy}")
        out = self.folder / "young-out"
        self.command("run", "--ledger", f"file://{copy}", "-o", out, "--master", spark.MASTER)
        self.assertEqual(len(self.rows(out, "sales")), 1)

    def refused(self, code: int, text: str, place: str) -> None:
        outcome = spark.command(
            "run", "--ledger", place, "-o", self.folder / "refused", "--master", spark.MASTER)
        self.assertEqual(outcome.code, code, outcome.errors)
        self.assertIn(text, outcome.errors)
        self.assertFalse((self.folder / "refused").exists())

    def test_a_damaged_object(self) -> None:
        place = self.copied("damaged")
        path = sorted((place / "segments").iterdir())[0]
        path.chmod(0o600)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        self.refused(DAMAGE, path.name, f"file://{place}")

    def test_a_missing_object(self) -> None:
        place = self.copied("missing")
        path = sorted((place / "segments").iterdir())[0]
        path.unlink()
        self.refused(DAMAGE, path.name, f"file://{place}")

    def test_a_changed_step(self) -> None:
        place = self.copied("changed")
        path = sorted((place / "steps").iterdir())[-1]
        path.chmod(0o600)
        header, _, rest = path.read_bytes().partition(b"\n")
        step = json.loads(header)
        step["root"] = "ab" * 32
        path.write_bytes(json.dumps(step, separators=(",", ":")).encode() + b"\n" + rest)
        self.refused(DAMAGE, "root of its head", f"file://{place}")

    def test_a_directory_without_a_copy(self) -> None:
        place = self.folder / "empty"
        place.mkdir()
        self.refused(NO_LEDGER, "there is no copy", f"file://{place}")

    @unittest.skipUnless(seaweed.program(), "there is no weed: script/bootstrap --tests installs it")
    def test_a_copy_on_s3(self) -> None:
        server = seaweed.Store(self.folder / "server")
        self.addCleanup(server.kill)
        server.start()
        server.make_bucket("copies")
        ledger = self.ledgers[0]
        other = self.folder / "other" / ledger.name
        other.parent.mkdir()
        shutil.copytree(ledger, other)
        shutil.rmtree(other / "replication", ignore_errors=True)
        replicate(other, **server.settings("s3://copies/shop-1"))
        fleet = self.folder / "s3.json"
        fleet.write_text(json.dumps({"ledgers": [{
            "name": "shop-1", "path": "s3://copies/shop-1", "endpoint": server.endpoint,
            "region": seaweed.REGION}]}))
        out = self.folder / "of-s3"
        # In a process of its own: executors have the environment that Java was started with.
        spark.prepare()
        environment = os.environ | {
            "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key}
        done = subprocess.run(
            [sys.executable, "-m", "receipt_ledger_spark", "run", "--fleet", fleet, "-o", out,
             "--master", spark.MASTER, "--partitions", "2", *OPTIONS.of_run()],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same(out, ledger, OPTIONS)


if __name__ == "__main__":
    unittest.main()
