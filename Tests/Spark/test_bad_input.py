# Bad input: one clear line, the documented exit code, no output and nothing left behind.

from __future__ import annotations

import json
import os
import pathlib
import shutil
import unittest
from collections.abc import Callable
from unittest import mock

import programs
import spark
from programs import RULES

from generate_malformed import append

USAGE, NO_LEDGER, NEWER_FORMAT, DAMAGE = 2, 10, 12, 20


@spark.needs_spark
class BadInputTests(spark.SparkTests):
    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.sources = [cls.folder / f"shop-{number}" for number in (1, 2)]
        for number, source in enumerate(cls.sources, start=1):
            history = cls.folder / f"history-{number}.ndjson"
            programs.run(
                "generate-history", "--uploads", 30, "--seed", number, "--small", "-o", history)
            programs.run("ledgerctl", "init", source, "--origin", f"example.com/bad-{number}")
            programs.run(
                "ledgerctl", "import", history, "--register-apps", "--ledger", source,
                allowed=(0, 3))

    def setUp(self) -> None:
        self.fleet = self.folder / self._testMethodName
        self.ledgers = programs.resegment(self.sources, self.fleet, 6_000)
        programs.write_fleet(self.fleet / "fleet.json", self.ledgers)
        self.first, self.second = self.ledgers
        self.out = self.fleet / "out" / "result"
        self.out.parent.mkdir()

    def arguments(self, *options: object) -> list[str]:
        words = ["run", "--fleet", self.fleet / "fleet.json", "-o", self.out, "--master",
                 spark.MASTER, "--partitions", 2, *options]
        return list(map(str, words))

    def refused(self, code: int, *texts: str, of: spark.Outcome | None = None) -> None:
        """The run must fail with the code and print the texts, in one line of plain words."""
        outcome = of or spark.command(*self.arguments())
        self.assertEqual(outcome.code, code, outcome.errors)
        # Lines before the last report the steps until then.
        *steps, last = outcome.errors.splitlines()
        self.assertTrue(last.startswith("receipt-ledger-spark: "), outcome.errors)
        for text in texts:
            self.assertIn(text, last)
        for line in steps:
            self.assertRegex(line, r"^(events before |[0-9]+ events of |folding in )")
        for text in ("Traceback", "java.", "org.apache", "Py4J"):
            self.assertNotIn(text, outcome.errors)
        self.assertEqual(list(self.out.parent.iterdir()), [], "something was left behind")

    def segments(self, ledger: pathlib.Path) -> list[pathlib.Path]:
        found = sorted((ledger / "log").glob("*.jsonl.gz"))
        self.assertGreater(len(found), 2)
        return found

    def change_identity(self, ledger: pathlib.Path, **members: object) -> None:
        path = ledger / "ledger.json"
        identity = json.loads(path.read_text()) | members
        path.write_text(json.dumps(identity, separators=(",", ":")) + "\n")

    def change_fleet(self, change: Callable[[dict], object]) -> None:
        path = self.fleet / "fleet.json"
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    def test_a_good_fleet_is_not_refused(self) -> None:
        self.command(*self.arguments())
        self.assertEqual(list(self.out.parent.iterdir()), [self.out])

    def test_a_damaged_segment(self) -> None:
        path = self.segments(self.second)[1]
        path.chmod(0o600)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x20
        path.write_bytes(data)
        path.chmod(0o400)
        self.refused(DAMAGE, path.name)

    def test_a_segment_that_is_cut_short(self) -> None:
        path = self.segments(self.second)[1]
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-40])
        path.chmod(0o400)
        self.refused(DAMAGE)

    def test_a_missing_segment(self) -> None:
        self.segments(self.second)[1].unlink()
        self.refused(DAMAGE)

    def test_a_segment_of_another_ledger(self) -> None:
        name = self.segments(self.second)[0].name
        path = self.second / "log" / name
        path.unlink()
        shutil.copy2(self.first / "log" / name, path)
        self.refused(DAMAGE)

    def test_a_newer_format(self) -> None:
        self.change_identity(self.first, format_version=99)
        self.refused(NEWER_FORMAT, "99")

    def test_an_event_of_a_newer_program(self) -> None:
        append(self.second, programs.log_lines(self.second), [("receipt.sold", '{"a":1}')])
        self.refused(NEWER_FORMAT, of=spark.command(*self.arguments("--until", programs.now())))

    def test_a_folder_that_is_no_ledger(self) -> None:
        self.change_fleet(lambda fleet: fleet["ledgers"][1].update(path=str(self.folder)))
        self.refused(NO_LEDGER)

    def test_two_ledgers_with_one_id(self) -> None:
        # A copy, which may have received other events since.
        shutil.rmtree(self.second)
        shutil.copytree(self.first, self.second)
        self.refused(USAGE, "shop-1", "shop-2")

    def test_two_ledgers_with_one_origin(self) -> None:
        self.change_identity(self.second, origin="example.com/bad-1")
        self.refused(USAGE, "shop-1", "shop-2", "origin")

    def test_a_ledger_without_events(self) -> None:
        shutil.rmtree(self.second)
        programs.run("ledgerctl", "init", self.second, "--origin", "example.com/empty")
        self.refused(USAGE, "shop-2", "--until")

    def test_wrong_times(self) -> None:
        for time in ("yesterday", "2026-13-01", "2999-01-01", "2026-01-01T00:00:00"):
            with self.subTest(time):
                self.refused(USAGE, "--until", of=spark.command(*self.arguments("--until", time)))

    def test_one_ledger_twice(self) -> None:
        path = str(self.first)
        self.change_fleet(lambda fleet: fleet["ledgers"][1].update(path=path))
        self.refused(USAGE, "shop-1", "shop-2")

    def test_two_names_that_are_the_same(self) -> None:
        self.change_fleet(lambda fleet: fleet["ledgers"][1].update(name="shop-1"))
        self.refused(USAGE, "shop-1")

    def test_a_typo_in_fleet_json(self) -> None:
        self.change_fleet(lambda fleet: fleet["ledgers"][1].update(regoin="eu"))
        self.refused(USAGE, "regoin")

    def test_fleet_json_that_is_no_json(self) -> None:
        (self.fleet / "fleet.json").write_text('{"ledgers":[')
        self.refused(USAGE, "fleet.json")

    def test_no_fleet_json(self) -> None:
        (self.fleet / "fleet.json").unlink()
        self.refused(USAGE, "fleet.json")

    def test_a_head_beyond_the_log(self) -> None:
        head = {"size": 1_000_000, "root": "ab" * 32}
        self.change_fleet(lambda fleet: fleet["ledgers"][1].update(head=head))
        outcome = spark.command(*self.arguments())
        self.assertNotEqual(outcome.code, 0)
        self.refused(outcome.code, "1000000", of=outcome)

    def test_a_head_of_another_history(self) -> None:
        head = {"size": 5, "root": "ab" * 32}
        self.change_fleet(lambda fleet: fleet["ledgers"][1].update(head=head))
        self.refused(DAMAGE, "shop-2")

    def test_an_output_that_is_there(self) -> None:
        self.out.mkdir()
        (self.out / "mine").write_text("text")
        outcome = spark.command(*self.arguments())
        self.assertEqual(outcome.code, USAGE, outcome.errors)
        self.assertEqual([path.name for path in self.out.iterdir()], ["mine"])

    def test_no_program(self) -> None:
        self.refused(USAGE, "no-rules", of=self.with_rules(self.fleet / "no-rules"))

    def test_a_program_with_other_streams(self) -> None:
        path = self.fleet / "other-rules"
        path.write_text(
            '#!/bin/sh\necho \'{"version":"9","streams":99,"format_version":1}\'\n')
        path.chmod(0o755)
        self.refused(USAGE, "99", of=self.with_rules(path))

    def test_a_program_that_fails_in_the_middle(self) -> None:
        # It plans and scans, but its fold ends like a killed one.
        path = self.fleet / "failing-rules"
        path.write_text(f'#!/bin/sh\n[ "$1" = fold ] && kill -9 $$\nexec {RULES} "$@"\n')
        path.chmod(0o755)
        self.refused(1, "SIGKILL", of=self.with_rules(path))

    def with_rules(self, path: pathlib.Path) -> spark.Outcome:
        with mock.patch.dict(os.environ, LEDGER_RULES=str(path)):
            return spark.command(*self.arguments())


if __name__ == "__main__":
    unittest.main()
