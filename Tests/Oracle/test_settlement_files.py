# Tests of Apple's files: what is refused, with its cause, and what is taken, as it stands.
import gzip
import pathlib
import random
import unittest

from generate_settlement_files import one_region, paid, refused, taken, title_of, whole
from settlement import Refusal
from settlement_files import event_data, read_file
from settlement_support import Imports
from settlement_values import (
    Refused, day, integer, is_rate, micros, month_from_name, month_name, month_span,
)
from settlement_writing import detailed, financial, sale

PUBLISHED = pathlib.Path(__file__).resolve().parents[3] / "shared/fixtures/apple-reports"
MONTH = "FY2012-P04"


def cause(data, name="85_ZZ.txt", **options):
    """Why the file is refused; None if it is taken."""
    try:
        read_file(data, name, **options)
    except Refused as error:
        return error.cause
    return None


class Refusals(unittest.TestCase):
    def test_each_is_refused_for_its_cause(self):
        for file in refused():
            with self.subTest(file.situation):
                found = cause(file.data, file.name, **file.options)
                self.assertIsNotNone(found)
                self.assertIn(file.cause, found)

    def test_each_situation_stands_once(self):
        names = [file.situation for file in refused()]
        self.assertEqual(len(names), len(set(names)))

    def test_line_of_a_refusal(self):
        text = whole(MONTH).replace("\t4.99\t", "\t4,99\t")
        with self.assertRaises(Refused) as caught:
            read_file(text.encode(), "85_ZZ.txt")
        self.assertEqual(caught.exception.line, 4)


class Taken(unittest.TestCase):
    def test_each_is_taken_with_its_exceptions(self):
        made = Imports()
        for file in taken():
            with self.subTest(file.situation):
                report = made.add(file.data, file.name, **file.options)
                own = [name for position, name, _ in made.files.findings()
                       if position == made.files.current[report.identity].position]
                self.assertEqual(sorted(own), sorted(file.exceptions))

    def test_the_odd_ones_say_what_the_plain_one_says(self):
        # Those that only write the same rows in another way.
        same = ("UTF-", "CR", "no end", "blank", "gzip", "columns", "names", "SKU", "cells", "empty cells",
                "plus", "totals with", "codes", "a detailed report (", "a detailed report with columns",
                "the list", "Total_Units")
        made, found = Imports(), {}
        for file in taken():
            report = made.add(file.data, file.name, **file.options)
            if file.situation.startswith(same) and report.rows:
                found[file.situation] = [
                    (row.is_return, row.country, row.currency, row.price, row.units, row.unit_share,
                     row.share, row.share_currency) for row in report.rows]
        self.assertGreater(len(found), 18)
        plain = [(False, "DE", "EUR", 9_990_000, 3, 5_880_000, 17_640_000, "EUR"),
                 (True, "DE", "EUR", 9_990_000, -1, 5_880_000, -5_880_000, "EUR"),
                 (False, "FR", "EUR", 4_990_000, 2, 2_930_000, 5_860_000, "EUR"),
                 (False, "JP", "JPY", 1_500_000_000, 1, 955_000_000, 955_000_000, "JPY")]
        for situation, rows in found.items():
            self.assertEqual(rows, plain, situation)


class Cuts(unittest.TestCase):
    """Every prefix of a file is refused, or says the same as the whole."""

    def check(self, text, kind):
        whole_report = read_file(text, "85_EU.txt")
        kept = [(row.number, row.units, row.share) for row in whole_report.rows]
        for length in range(len(text)):
            try:
                report = read_file(text[:length], "85_EU.txt")
            except Refused:
                continue
            self.assertEqual([(row.number, row.units, row.share) for row in report.rows], kept)
            self.assertEqual(report.kind, kind)

    def test_financial(self):
        self.check(one_region(MONTH).encode(), "financial")
        self.check(whole(MONTH).encode(), "financial")

    def test_detailed(self):
        rows = [sale(2, "9.99"), sale(1, "4.99", country="FR"), sale(-1, "9.99", flag="R")]
        self.check(detailed(MONTH, *rows).encode(), "detailed")

    def test_gzip(self):
        data = gzip.compress(whole(MONTH).encode(), mtime=0)
        for length in range(2, len(data)):
            self.assertEqual(cause(data[:length]), "damaged gzip")

    @unittest.skipUnless(PUBLISHED.is_dir(), "the published reports are missing")
    def test_published(self):
        for path in sorted(PUBLISHED.glob("*.txt")):
            self.check(path.read_bytes(), "financial")

    def test_random_damage_is_refused_or_taken_never_more(self):
        seed = random.randrange(2**32)
        source = random.Random(seed)
        texts = [whole(MONTH), detailed(MONTH, sale(2, "9.99")), paid(title=title_of(MONTH))]
        for _ in range(2000):
            data = bytearray(source.choice(texts).encode())
            for _ in range(source.randrange(1, 4)):
                at = source.randrange(len(data))
                change = source.randrange(3)
                if change == 0:
                    data[at] = source.randrange(256)
                elif change == 1:
                    del data[at : at + source.randrange(1, 9)]
                else:
                    data[at:at] = source.choice(
                        [b"\t", b"\n", b",", b'"', b"0", b"-", b"\xff", b"Total_Rows"])
            with self.subTest(seed=seed):
                cause(bytes(data))


class Values(unittest.TestCase):
    def test_integers(self):
        cases = {"0": 0, "-1": -1, "+7": 7, "1,234": 1234, "-1,234,567.00": -1234567, "12.000": 12,
                 "007": 7, "999999999999": 999999999999, "1000000000000": None, "1,23": None, "1.5": None,
                 "": None, "1.": None, "0,123": None, "01,234": None, "1e3": None, "-": None, " 1": None,
                 "１": None, "1,234,5": None, "+-1": None}
        for text, value in cases.items():
            self.assertEqual(integer(text), value, text)

    def test_amounts_and_rates(self):
        cases = {"-0.00": 0, "1.5": 1_500_000, "1,263.38": 1_263_380_000, "0.000001": 1, "5.": None,
                 "0.0000001": None, ".5": None, "1.234,5": None, "-12.17": -12_170_000, "(1)": None}
        for text, value in cases.items():
            self.assertEqual(micros(text), value, text)
        for text, value in {"0.80030": True, "0.000000000001": True, "0.0000000000001": False}.items():
            self.assertEqual(is_rate(text), value)

    def test_days(self):
        cases = {"01/01/1970": 0, "02/29/2024": 19782, "02/29/2023": None, "1/1/1970": None,
                 "1970-01-01": None, "00/10/2020": None, "01/01/0000": None}
        for text, value in cases.items():
            self.assertEqual(day(text), value, text)

    def test_months_by_name_and_days(self):
        for year in range(2007, 2100):
            for month in range(1, 13):
                name = f"FY{year}-P{month:02}"
                number = month_from_name(name)
                self.assertEqual(month_name(number), name)
                self.assertEqual(month_span(number)[1] + 1, month_span(number + 1)[0])
        for text in ("FY2006-P12", "FY2100-P01", "FY2026-P13", "FY2026-P00", "FY2026-P1", "2026-P01"):
            self.assertIsNone(month_from_name(text))
        self.assertEqual(title_of("FY2014-P12"), "September, 2014")
        self.assertEqual(title_of("FY2015-P01"), "October, 2014")


class Identity(unittest.TestCase):
    def refusal(self, *steps):
        """What the last import's refusal says."""
        made = Imports()
        *before, (text, options) = steps
        for known, known_options in before:
            made.add(known, **known_options)
        with self.assertRaises(Refusal) as caught:
            made.add(text, **options)
        return str(caught.exception)

    def test_one_file_as_two_regions(self):
        text = one_region(MONTH)
        self.assertIn("as two", self.refusal((text, {"region": "EU"}), (text, {"region": "US"})))
        self.assertIn("as two", self.refusal(
            (text, {"region": "EU"}), (text, {"region": "US", "replaces": True})))

    def test_one_overview_as_two_months(self):
        self.assertIn("as two", self.refusal((paid(), {"month": MONTH}), (paid(), {"month": "FY2012-P05"})))

    def test_another_file_needs_replace(self):
        texts = [one_region(MONTH), financial(MONTH, sale(1, "1.99"))]
        self.assertIn("another", self.refusal(*((text, {"region": "EU"}) for text in texts)))

    def test_the_same_again_appends_nothing_and_a_superseded_one_comes_back(self):
        made, texts = Imports(), [one_region(MONTH), financial(MONTH, sale(1, "1.99"))]
        for text, position in ((texts[0], 101), (texts[0], 101), (texts[1], 102), (texts[0], 103)):
            report = made.add(text, region="EU", replaces=True)
            self.assertEqual(made.position, position)
            self.assertEqual(made.files.current[report.identity].report.digest, report.digest)

    def test_events_of_several_parts_hold_every_line_once(self):
        text = whole(MONTH)
        report = read_file(text.encode(), "85_ZZ.txt")
        for most in (1, 100, 200, 10_000):
            events = list(event_data(report, "85_ZZ.txt", most))
            lines = [line for event in events for line in event["head"] + event["rows"] + event["totals"]]
            self.assertEqual(lines, text.splitlines())
            self.assertEqual([event["part"] for event in events], list(range(1, len(events) + 1)))
            self.assertEqual([bool(event["head"]) for event in events], [True] + [False] * (len(events) - 1))


if __name__ == "__main__":
    unittest.main()
