# Successive runs: what is read again, the same heads, what a late ledger changes.

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
        cls.fleet = cls.folder / "fleet"
        cls.ledgers = programs.split(
            cls.history.ledger, 3, SEED, cls.fleet, "--spread-ms", 200_000)
        cls.state = cls.folder / "state"

    def run_to(self, name: str, *options: object) -> pathlib.Path:
        out = self.folder / name
        self.run_spark(
            out, self.ledgers, *OPTIONS.of_run(), "--state", self.state, *options)
        return out

    def scanned(self) -> dict[str, int]:
        """The scanned parts, and when each was written."""
        return {
            str(path.parent.relative_to(self.state)): path.stat().st_mtime_ns
            for path in self.state.glob("scan/*/*/summary.json")}

    def grow(self) -> None:
        """More uploads to one ledger, of customers that other ledgers know too."""
        lines = programs.run(
            "generate-history", "--uploads", 30, "--seed", SEED, "--small").splitlines()
        # And a sale that the fleet has already.
        more = self.folder / "more.ndjson"
        text = (self.history.folder / "import-1.ndjson").read_bytes()
        more.write_bytes("".join(line + "\n" for line in lines).encode() + text)
        programs.run(
            "ledgerctl", "import", more, "--register-apps", "--ledger", self.ledgers[0],
            allowed=(0, 3))

    def assert_fleet(self, out: pathlib.Path, about: str) -> None:
        merged = self.folder / f"merged-{out.name}"
        path = self.folder / f"map-{out.name}.csv"
        programs.run(
            "fleet-ledgers", "merge", *self.ledgers, "-o", merged, "--map", path)
        self.assert_same(
            out, merged, OPTIONS, expected.read_map(path), f"seed {SEED}, {about}")

    def test_runs_of_a_fleet_that_grows(self) -> None:
        first = self.run_to("first")
        self.assert_fleet(first, "first run")
        wanted = {report: self.rows(first, report) for report in expected.REPORTS}
        before = self.scanned()
        self.check_late_ledger(first)
        self.check_total(first)
        self.grow()
        second = self.run_to("second")
        self.assert_fleet(second, "after growth")
        self.check_scanned(before, self.scanned())
        later = self.run_to("later", "--heads", first / "manifest.json")
        self.check_same(first, wanted, later)
        # Last, since it damages the output.
        self.check_verify(first)

    def check_scanned(self, before: dict[str, int], after: dict[str, int]) -> None:
        """Only parts of the ledger that grew may be new, and only its tail may be missing."""
        grown = f"scan/{programs.ledger_id(self.ledgers[0])}/"
        kept = {part: written for part, written in before.items() if part in after}
        self.assertEqual({part: after[part] for part in kept}, kept)
        changed = {part for part in {*before, *after} if part not in kept}
        self.assertTrue(changed)
        self.assertEqual([part for part in changed if not part.startswith(grown)], [])
        self.assertLessEqual(len(set(before) - set(after)), 1)

    def check_same(
        self, first: pathlib.Path, wanted: dict[str, list[list[str]]], later: pathlib.Path
    ) -> None:
        """The same heads give the same rows."""
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

    def check_late_ledger(self, after: pathlib.Path) -> None:
        """`diff` names every sale that differs since a ledger is no longer late."""
        sizes = [
            json.loads(programs.run("ledger-rules", "plan", "--directory", ledger))["size"]
            for ledger in self.ledgers]
        # The largest has sales that no other shows.
        number = sizes.index(max(sizes))
        late = programs.write_fleet(
            self.folder / "late.json", self.ledgers,
            **{f"shop_{number + 1}": {
                "head": self.head_at(self.ledgers[number], sizes[number] // 8)}})
        before = self.folder / "late"
        self.command(
            "run", "--fleet", late, "-o", before, "--master", spark.MASTER, "--partitions", 2,
            *OPTIONS.of_run())
        shown = self.command("diff", before, after, "--master", spark.MASTER).output
        nothing = self.command("diff", after, after, "--master", spark.MASTER).output
        first, second = self.rows(before, "sales"), self.rows(after, "sales")
        key = second[0].index("sale_key")
        changed = {row[key] for row in second if row not in first}
        self.assertTrue(changed, f"seed {SEED}: the late ledger changed nothing")
        for sale in changed:
            if sale.isascii() and sale.isalnum():
                self.assertIn(sale, shown)
                self.assertNotIn(sale, nothing)

    def check_total(self, out: pathlib.Path) -> None:
        """`total` prints the sum of each currency's rows."""
        header, *body = self.rows(out, "revenue")
        currency, net = header.index("currency"), header.index("net")
        totals: dict[str, int] = {}
        for row in body:
            if row[currency]:
                totals[row[currency]] = totals.get(row[currency], 0) + micros(row[net])
        lines = [line.replace(",", " ").split() for line in self.command("total", out)
                 .output.splitlines()]
        for name, amount in totals.items():
            with self.subTest(currency=name):
                shown = [
                    micros(word) for line in lines if name in line for word in line
                    if is_number(word)]
                self.assertIn(amount, shown)

    def check_verify(self, out: pathlib.Path) -> None:
        """`verify` finds a changed file."""
        self.command("verify", out)
        table = min((out / "sales").rglob("*.parquet"))
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
