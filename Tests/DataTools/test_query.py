# `ledgerctl query` as other programs use it: formats, interruption, read-only ledgers.
#
# LEDGERCTL names the program.
import csv
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from shop import HOSTILE_USER, LEDGERCTL, ShopTests

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
# One step of SQLite that takes hours.
STUCK = "SELECT instr(zeroblob(8000000), CAST(zeroblob(4000000) || 'x' AS BLOB))"


class QueryTests(ShopTests):
    def query(self, *arguments, check=True, stdin=None):
        done = subprocess.run(
            [LEDGERCTL, "query", *arguments], cwd=self.shop.folder, env=self.shop.environment,
            capture_output=True, text=True, input=stdin)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_every_format_has_the_same_rows(self):
        sql = ("SELECT user_identifier, product_id, quantity, amount_micros, 0.25 AS part, NULL AS none "
               "FROM journal_view ORDER BY sale, ordinal")
        whole = json.loads(self.query(sql, "--format", "json").stdout)
        rows = whole["rows"]
        self.assertEqual(whole["row_count"], len(rows))
        lines = self.query(sql, "--format", "ndjson").stdout.splitlines()
        self.assertEqual([json.loads(line) for line in lines], rows)
        read = list(csv.DictReader(io.StringIO(self.query(sql, "--format", "csv").stdout)))
        self.assertEqual(len(read), len(rows))
        for cells, row in zip(read, rows):
            for name, value in row.items():
                text = "" if value is None else str(value)
                # Only text that a spreadsheet would run is marked.
                self.assertIn(cells[name], (text, "'" + text if text.startswith("=") else text))
        self.assertIn(HOSTILE_USER, [row["user_identifier"] for row in rows])

    @unittest.skipIf(importlib.util.find_spec("openpyxl") is None, "openpyxl is not installed")
    def test_an_excel_file_has_the_rows_and_what_they_rest_on(self):
        import openpyxl

        sql = ("SELECT user_identifier, quantity, amount_micros, 0.25 AS part, NULL AS none "
               "FROM journal_view ORDER BY sale, ordinal")
        whole = json.loads(self.query(sql, "--format", "json").stdout)
        self.query(sql, "-o", "query.xlsx")
        book = openpyxl.load_workbook(self.shop.folder / "query.xlsx")
        rows = list(book.worksheets[0].iter_rows(values_only=True))
        self.assertEqual(list(rows[0]), whole["columns"])
        self.assertEqual(
            [list(row) for row in rows[1:]], [list(row.values()) for row in whole["rows"]])
        about = {str(cell) for row in book.worksheets[1].iter_rows(values_only=True) for cell in row}
        self.assertIn(whole["head"]["root"], about)
        self.assertIn(sql, about)

    def test_bytes_that_are_no_text_are_written_as_valid_utf_8(self):
        done = self.query("SELECT CAST(x'ff41' AS TEXT) AS a, x'ff41' AS b", "--format", "ndjson")
        self.assertEqual(json.loads(done.stdout), {"a": "\ufffdA", "b": "ff41"})

    def test_a_long_statement_comes_from_standard_input(self):
        sql = "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(400))
        self.assertEqual(json.loads(
            self.query("-", "--format", "ndjson", stdin=sql).stdout)["c399"], 399)
        refused = self.query("-", stdin="SELECT 1 -- " + "x" * (256 << 10), check=False)
        self.assertNotEqual(refused.returncode, 0)

    def interrupted(self, sql):
        environment = dict(self.shop.environment, TMPDIR=str(self.shop.folder / "temporary"))
        folder = pathlib.Path(environment["TMPDIR"])
        folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [LEDGERCTL, "query", sql, "-o", "cut.csv"], cwd=self.shop.folder, env=environment,
            stderr=subprocess.PIPE, text=True)
        # The private folder shows that the query has begun.
        end = time.monotonic() + 60
        while not list(folder.iterdir()) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(errors, "ledgerctl: query: interrupted\n")
        self.assertEqual(list(folder.iterdir()), [])
        self.assertFalse((self.shop.folder / "cut.csv").exists())

    def test_an_interrupted_query_leaves_nothing(self):
        self.interrupted(ENDLESS)
        self.assertEqual(self.begun_files(), [])

    def begun_files(self):
        return [path for path in self.shop.folder.iterdir() if ".cut.csv" in path.name]

    def test_a_query_that_is_stuck_in_one_step_can_be_interrupted(self):
        self.interrupted(STUCK)
        # As after a kill, the unfinished file stays hidden next to its target.
        for path in self.begun_files():
            path.unlink()

    def test_a_closed_pipe_ends_quietly(self):
        done = self.shop.sh(
            "ledgerctl query --format csv 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
            " FROM n WHERE i < 200000) SELECT i FROM n' | head -n 2", check=False)
        self.assertEqual((done.stdout, done.stderr), ("i\n1\n", ""))

    def test_sorting_more_than_memory_uses_a_private_folder_and_succeeds(self):
        sql = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) "
               "SELECT length(group_concat(substr(x, 1, 1), '')) AS n FROM "
               "(SELECT hex(randomblob(50000)) AS x FROM n ORDER BY x)")
        self.assertEqual(json.loads(self.query(sql, "--format", "ndjson").stdout), {"n": 4000})

    @unittest.skipIf(os.geteuid() == 0 and not os.path.exists("/usr/bin/setpriv"), "needs setpriv")
    def test_a_ledger_that_may_not_be_written_is_read(self):
        done = self.shop.sh(
            '. "$SHOP"; ledgerctl status >/dev/null; chmod -R a-w shop; unprivileged ledgerctl query'
            " --format ndjson 'SELECT count(*) AS n FROM sale_view'; chmod -R u+w shop")
        self.assertGreater(json.loads(done)["n"], 5)

    def test_the_projections_are_brought_up_to_date_and_the_head_is_theirs(self):
        before = json.loads(self.query("SELECT 1 AS one", "--format", "json").stdout)["head"]
        self.shop.sh(
            "printf 'date,base,quote,rate\\n2026-01-02,EUR,USD,1.1\\n' > rates.csv\n"
            "ledgerctl rates import rates.csv")
        answer = json.loads(
            self.query("SELECT rate FROM rate_view", "--format", "json").stdout)
        self.assertEqual(answer["rows"], [{"rate": "1.1"}])
        self.assertEqual(answer["head"]["size"], before["size"] + 1)
        position = str(before["size"] - 1)
        earlier = self.query("SELECT rate FROM rate_view", "--as-of", position, "--format", "json")
        self.assertEqual(json.loads(earlier.stdout)["head"], before)
        self.assertEqual(json.loads(earlier.stdout)["rows"], [])

    def test_a_file_of_before_stays_when_a_query_fails(self):
        path = self.shop.folder / "kept.csv"
        self.query("SELECT 1 AS one", "-o", "kept.csv")
        done = self.query("SELECT sale FROM sale_view", "--rows-max", "1", "-o", "kept.csv", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(path.read_text(), "one\n1\n")


if __name__ == "__main__":
    unittest.main()
