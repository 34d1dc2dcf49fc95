"""Runs after each other: what is read again, the same heads, what a late ledger changes."""

from __future__ import annotations

import json
import pathlib
import unittest

import expected
import programs
import spark
from expected import Options
from histories import History
from test_equality import SEED

UPLOADS = 40
OPTIONS = Options(environment="all")


@spark.needs_spark
class RunTests(spark.SparkTests):
    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.history = History(cls.folder / "history", SEED + 2, UPLOADS, is_nasty=True)

    def setUp(self) -> None:
        self.fleet = self.folder / self._testMethodName
        self.ledgers = programs.split(
            self.history.ledger, 3, SEED, self.fleet, "--spread-ms", 200_000)
        self.state = self.fleet / "state"

    def run_to(self, name: str, *options: object) -> pathlib.Path:
        out = self.fleet / name
        self.run_spark(
            out, self.ledgers, *OPTIONS.of_run(), "--state", self.state, *options)
        return out

    def scanned(self) -> dict[str, int]:
        """The scanned parts, and when each was written."""
        return {
            str(path.parent.relative_to(self.state)): path.stat().st_mtime_ns
            for path in self.state.glob("scan/*/*/summary.json")}

    def grow(self) -> None:
        """More uploads to one ledger, of customers that others know too."""
        lines = programs.run(
            "generate-history", "--uploads", 30, "--seed", SEED, "--small").splitlines()
        # And a sale that the fleet has already.
        more = self.fleet / "more.ndjson"
        text = (self.history.folder / "import-1.ndjson").read_bytes()
        more.write_bytes("".join(line + "\n" for line in lines).encode() + text)
        programs.run(
            "ledgerctl", "import", more, "--register-apps", "--ledger", self.ledgers[0],
            allowed=(0, 3))

    def assert_fleet(self, out: pathlib.Path, about: str) -> None:
        merged = self.fleet / f"merged-{out.name}"
        path = self.fleet / f"map-{out.name}.csv"
        programs.run(
            "fleet-ledgers", "merge", *self.ledgers, "-o", merged, "--map", path)
        self.assert_same(
            out, merged, OPTIONS, expected.read_map(path), f"seed {SEED}, {about}")

    def test_a_second_run_reads_only_new_parts(self) -> None:
        self.assert_fleet(self.run_to("first"), "first run")
        before = self.scanned()
        self.run_to("again")
        self.assertEqual(self.scanned(), before)
        self.grow()
        second = self.run_to("second")
        after = self.scanned()
        self.assertEqual({part: after.get(part) for part in before}, before)
        grown = {part for part in after if part not in before}
        self.assertTrue(grown)
        own = f"scan/{programs.ledger_id(self.ledgers[0])}/"
        self.assertEqual([part for part in grown if not part.startswith(own)], [])
        self.assert_fleet(second, "after growth")

    def test_the_same_heads_give_the_same_rows(self) -> None:
        first = self.run_to("first")
        wanted = {report: self.rows(first, report) for report in expected.REPORTS}
        self.grow()
        later = self.run_to("later", "--heads", first / "manifest.json")
        for report, rows in wanted.items():
            with self.subTest(report=report):
                self.assert_report(rows, later, report)
        heads = [
            [(ledger["id"], ledger["size"], ledger["root"]) for ledger in manifest["ledgers"]]
            for manifest in (
                json.loads((out / "manifest.json").read_text()) for out in (first, later))]
        self.assertEqual(heads[0], heads[1])

    def head_at(self, ledger: pathlib.Path, size: int) -> dict:
        plan = json.loads(programs.run(
            "ledger-rules", "plan", "--directory", ledger, "--size", size))
        return {"size": size, "root": plan["root"]}

    def test_a_ledger_that_lagged_is_shown_by_diff(self) -> None:
        size = json.loads(programs.run(
            "ledger-rules", "plan", "--directory", self.ledgers[1]))["size"]
        late = programs.write_fleet(
            self.fleet / "late.json", self.ledgers,
            shop_2={"head": self.head_at(self.ledgers[1], size // 3)})
        before = self.fleet / "before"
        self.command(
            "run", "--fleet", late, "-o", before, "--master", spark.MASTER, "--partitions", 2,
            *OPTIONS.of_run())
        after = self.run_to("after")
        shown = self.command("diff", before, after).output
        nothing = self.command("diff", after, after).output
        # Every sale whose row is another, or is new, is named.
        first, second = self.rows(before, "sales"), self.rows(after, "sales")
        key = second[0].index("sale_key")
        changed = {row[key] for row in second if row not in first}
        self.assertTrue(changed, f"seed {SEED}: the late ledger changed nothing")
        for sale in changed:
            if sale.isascii() and sale.isalnum():
                self.assertIn(sale, shown)
                self.assertNotIn(sale, nothing)

    def test_total_and_verify(self) -> None:
        out = self.run_to("out")
        header, *body = self.rows(out, "revenue")
        currency, net = header.index("currency"), header.index("net")
        totals: dict[str, int] = {}
        for row in body:
            if row[currency]:
                totals[row[currency]] = totals.get(row[currency], 0) + micros(row[net])
        shown = self.command("total", out).output.split()
        for name, amount in totals.items():
            with self.subTest(currency=name):
                place = shown.index(name)
                near = shown[max(0, place - 12): place + 13]
                numbers = [micros(word) for word in near if is_number(word)]
                self.assertIn(amount, numbers, f"{name} in {' '.join(near)}")
        self.command("verify", out)
        table = next(iter(sorted((out / "sales").rglob("*.parquet"))))
        table.chmod(0o600)
        data = bytearray(table.read_bytes())
        data[len(data) // 2] ^= 1
        table.write_bytes(data)
        damaged = spark.command("verify", out)
        self.assertNotEqual(damaged.code, 0)
        self.assertIn(table.name, damaged.errors + damaged.output)


def is_number(word: str) -> bool:
    return word.lstrip("-").replace(".", "", 1).isdigit()


def micros(text: str) -> int:
    """An exact amount in micros."""
    whole, _, part = text.lstrip("-").partition(".")
    value = int(whole) * 10**6 + int((part + "000000")[:6])
    return -value if text.startswith("-") else value


if __name__ == "__main__":
    unittest.main()
