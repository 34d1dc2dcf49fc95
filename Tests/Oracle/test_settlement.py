# Hand-worked checks of settlement: the worked example, the published month, and each step of matching.
import pathlib
import unittest
from unittest import mock

import settlement_reports
from settlement import Files
from settlement_files import event_data, read_file
from settlement_reports import exceptions
from settlement_support import Imports, line
from settlement_values import month_from_name, month_name, month_span
from settlement_writing import detailed, financial, overview, sale

PUBLISHED = pathlib.Path(__file__).resolve().parents[3] / "shared/fixtures/apple-reports"
SHOWN = ("fiscal_month", "class", "line", "ledger_country", "ledger_units", "candidates",
         "ledger_amount", "apple_units", "apple_amount", "difference")
BRIEF = ("fiscal_month", "class", "ledger_month", "transaction_month", "ledger_units")


def example_ledger():
    return [
        *(line("2025-10-07", product="pro.month", position=position) for position in (10, 12, 14, 16, 18)),
        line("2025-10-08", country="FR", product="pro.month", position=19),
        line("2025-10-09", None, country="US", product="pro.month", position=20),
        line("2025-11-20", name="Return", product="pro.month", position=22),
        line("2025-12-02", product="pro.month", position=24),
    ]


def example_files(months):
    own = {"product": "pro.month", "price": "9.99", "share": "5.88"}
    rows = {
        "FY2026-P01": [
            sale(3, **own),
            sale(1, "8.99", country="FR", share="5.29", product="pro.month"),
            sale(1, "9.99", "USD", "US", share="6.99", product="pro.month"),
            sale(1, "1500", "JPY", "JP", share="955", product="pro.month"),
        ],
        "FY2026-P02": [sale(1, **own), sale(-1, **own, flag="R")],
        "FY2026-P03": [sale(1, **own)],
    }
    made = Imports()
    for month in months:
        made.add(financial(month, *rows[month]))
    return made


class WorkedExample(unittest.TestCase):
    P01, P02, P03 = "FY2026-P01", "FY2026-P02", "FY2026-P03"

    def rows(self, *months, columns=SHOWN):
        return example_files(months).table(example_ledger(), *columns)

    def test_all_three_months(self):
        self.assertEqual(self.rows(self.P01, self.P02, self.P03), [
            (self.P01, "matched", "Sale", "DE", "3", "5", "29.97", "3", "29.97", "0.00"),
            (self.P01, "unpriced_here", "Sale", "US", "1", "1", "", "1", "9.99", "9.99"),
            (self.P01, "price_differs", "Sale", "FR", "1", "1", "9.99", "1", "8.99", "-1.00"),
            (self.P01, "missing_here", "Sale", "", "", "", "", "1", "1500", "1500"),
            (self.P01, "missing_there", "Sale", "DE", "1", "5", "9.99", "", "", "-9.99"),
            (self.P02, "matched", "Return", "DE", "1", "1", "-9.99", "1", "-9.99", "0.00"),
            (self.P02, "settled_later", "Sale", "DE", "1", "5", "9.99", "1", "9.99", "0.00"),
            (self.P03, "matched", "Sale", "DE", "1", "1", "9.99", "1", "9.99", "0.00"),
        ])

    def test_positions_and_rows(self):
        found = self.rows(self.P01, self.P02, self.P03, columns=("class", "positions", "rows"))
        self.assertEqual([cells[1] for cells in found], [
            "10 12 14 16 18", "20", "19", "", "10 12 14 16 18", "22", "10 12 14 16 18", "24"])
        self.assertEqual([cells[2][8:] for cells in found], [":1", ":3", ":2", ":4", "", ":2", ":1", ":1"])

    def test_prices_currencies_and_months(self):
        columns = ("ledger_price", "apple_price", "ledger_currency", "apple_currency", "ledger_month",
                   "transaction_month", "apple_country", "product_id")
        found = self.rows(self.P01, self.P02, self.P03, columns=columns)
        self.assertEqual(found[1:6], [
            ("", "9.99", "", "USD", self.P01, "", "US", "pro.month"),
            ("9.99", "8.99", "EUR", "EUR", self.P01, "", "FR", "pro.month"),
            ("", "1500", "", "JPY", "", "", "JP", "pro.month"),
            ("9.99", "", "EUR", "", self.P01, "", "", "pro.month"),
            ("9.99", "9.99", "EUR", "EUR", self.P02, "", "DE", "pro.month"),
        ])

    def test_without_the_third_report_one_is_open(self):
        found = self.rows(self.P01, self.P02)
        self.assertIn((self.P01, "open", "Sale", "DE", "1", "5", "9.99", "", "", "-9.99"), found)
        self.assertIn((self.P03, "not_reported", "Sale", "DE", "1", "1", "9.99", "", "", "-9.99"), found)
        self.assertNotIn("missing_there", [cells[1] for cells in found])

    def test_without_the_second_report_two_are_open(self):
        found = self.rows(self.P01, self.P03)
        self.assertIn((self.P01, "open", "Sale", "DE", "2", "5", "19.98", "", "", "-19.98"), found)
        self.assertIn((self.P02, "not_reported", "Return", "DE", "1", "1", "-9.99", "", "", "9.99"), found)


@unittest.skipUnless(PUBLISHED.is_dir(), "the published reports are missing")
class PublishedMonth(unittest.TestCase):
    def setUp(self):
        self.made = Imports()
        self.reports = [self.made.add(path.read_bytes(), path.name)
                        for path in sorted(PUBLISHED.iterdir()) if path.suffix in (".txt", ".csv")]

    def test_month_regions_and_exceptions(self):
        self.assertEqual([report.region for report in self.reports], ["CH", "EU", "JP", None])
        self.assertEqual({month_name(report.month) for report in self.reports}, {"FY2014-P12"})
        self.assertEqual(self.made.files.findings(), [])
        self.assertTrue(self.made.files.is_complete(self.reports[0].month))

    def test_gross_by_currency(self):
        sums = {}
        for cells in self.made.table([], "class", "apple_currency", "apple_amount", "difference"):
            self.assertEqual(cells[0], "not_in_app")
            self.assertEqual(cells[2], cells[3])
            sums[cells[1]] = round(sums.get(cells[1], 0) + float(cells[2]), 2)
        # The Return is in 339.83 EUR.
        self.assertEqual(sums, {"CHF": 51.0, "EUR": 339.83, "JPY": 255.0})

    def test_payments(self):
        lists = self.reports[3].lists
        self.assertEqual([one.payment for one in lists], [(234_580_000, "EUR")])
        self.assertEqual([row.proceeds for row in lists[0].rows], [26_530_000, 206_890_000, 1_160_000])

    def test_without_a_region_the_overview_does_not_tie(self):
        del self.made.files.current[False, self.reports[0].month, "JP"]
        self.assertFalse(self.made.files.is_complete(self.reports[0].month))
        self.assertEqual(self.made.files.findings()[0][1:], ("earned_disagrees", "FY2014-P12 JPY 179 0"))


class Steps(unittest.TestCase):
    """Each step of pass A. FY2026-P02 is 2025-11-02 to 2025-11-29."""

    # The ledger's day, the report's month, the transaction's day (None: a single file), the class and
    # the ledger's month, or None where the two do not meet.
    CASES = [
        ("2025-11-10", "FY2026-P02", None, "matched", "FY2026-P02"),
        ("2025-10-10", "FY2026-P02", None, "settled_later", "FY2026-P01"),
        ("2025-10-10", "FY2026-P03", None, "settled_later", "FY2026-P01"),
        ("2025-10-10", "FY2026-P04", None, None, None),
        ("2025-11-30", "FY2026-P02", None, "settled_earlier", "FY2026-P03"),
        ("2025-12-01", "FY2026-P02", None, "settled_earlier", "FY2026-P03"),
        ("2025-12-02", "FY2026-P02", None, None, None),
        ("2025-12-30", "FY2026-P02", None, None, None),
        ("2025-11-10", "FY2026-P02", "11/05/2025", "matched", "FY2026-P02"),
        ("2025-10-10", "FY2026-P02", "11/01/2025", "settled_later", "FY2026-P01"),
        ("2025-10-10", "FY2026-P05", "09/28/2025", "settled_later", "FY2026-P01"),
        ("2025-10-10", "FY2026-P02", "11/02/2025", None, None),
        ("2025-10-31", "FY2026-P02", "11/02/2025", "settled_later", "FY2026-P01"),
        ("2025-11-01", "FY2026-P02", "11/02/2025", "settled_later", "FY2026-P01"),
        ("2025-10-30", "FY2026-P02", "11/02/2025", None, None),
        ("2025-11-30", "FY2026-P03", "11/29/2025", "matched", "FY2026-P03"),
        ("2025-12-01", "FY2026-P02", "11/29/2025", "settled_earlier", "FY2026-P03"),
        ("2025-12-02", "FY2026-P02", "11/29/2025", None, None),
        ("2025-09-20", "FY2026-P02", "11/29/2025", None, None),
    ]

    def test_one_unit_here_and_there(self):
        for day, month, transacted, name, of in self.CASES:
            with self.subTest(day=day, month=month, transacted=transacted):
                made = Imports()
                if transacted is None:
                    made.add(financial(month, sale(1, "9.99")))
                else:
                    made.add(detailed(month, sale(1, "9.99", day=transacted)))
                found = [cells for cells in made.table([line(day)], "class", "ledger_month", "apple_units")
                         if cells[1:] != ("", "1")]
                if name is None:
                    self.assertIn(found[0][0], ("open", "not_reported", "missing_there"))
                    self.assertEqual(found[0][2], "")
                else:
                    self.assertEqual(found, [(name, of, "1")])

    def test_own_month_goes_before_the_month_before_and_that_before_the_next(self):
        lines = [line("2025-10-10", units=2), line("2025-11-10", units=2), line("2025-11-30", units=2)]
        made = Imports()
        made.add(financial("FY2026-P02", sale(5, "9.99")))
        self.assertEqual(made.table(lines, *BRIEF), [
            ("FY2026-P02", "matched", "FY2026-P02", "", "2"),
            ("FY2026-P02", "settled_later", "FY2026-P01", "", "2"),
            ("FY2026-P02", "settled_earlier", "FY2026-P03", "", "1"),
            ("FY2026-P03", "not_reported", "FY2026-P03", "", "1"),
        ])

    def test_a_step_is_over_for_all_months_before_the_next_begins(self):
        # P02's second unit would be had from P01, but P01's own report comes first.
        made = Imports()
        made.add(financial("FY2026-P01", sale(2, "9.99")))
        made.add(financial("FY2026-P02", sale(1, "9.99")))
        self.assertEqual(made.table([line("2025-10-10", units=2)], *BRIEF), [
            ("FY2026-P01", "matched", "FY2026-P01", "", "2"),
            ("FY2026-P02", "missing_here", "", "", ""),
        ])

    def test_the_rest_goes_before_early_and_late_units(self):
        # P03: three early units of five. Its own report takes two: the rest. P02's then takes three.
        lines = [line("2025-11-30", units=3), line("2025-12-10", units=2)]
        for own, earlier in ((2, 3), (3, 2), (1, 3), (0, 3)):
            made = Imports()
            made.add(financial("FY2026-P02", sale(4, "9.99")))
            if own:
                made.add(financial("FY2026-P03", sale(own, "9.99")))
            found = made.table(lines, "class", "ledger_units")
            self.assertEqual([units for name, units in found if name == "settled_earlier"], [str(earlier)])

    def test_a_limited_step_lowers_what_it_takes_of(self):
        # Two late units: the first of P02's cells in order takes one, the second the other one.
        lines = [line("2025-11-01", units=2), line("2025-10-10", units=5)]
        made = Imports()
        made.add(detailed("FY2026-P02", sale(1, "9.99", day="11/02/2025")))
        made.add(detailed("FY2026-P03", sale(3, "9.99", day="11/02/2025")))
        self.assertEqual(made.table(lines, "fiscal_month", "class", "ledger_units", "apple_units"), [
            ("FY2026-P01", "not_reported", "5", ""),
            ("FY2026-P02", "settled_later", "1", "1"),
            ("FY2026-P03", "settled_later", "1", "1"),
            ("FY2026-P03", "missing_here", "", "2"),
        ])


    def test_of_two_reports_of_one_transaction_month_the_earlier_is_served_first(self):
        made = Imports()
        for month in ("FY2026-P03", "FY2026-P02"):
            made.add(detailed(month, sale(1, "9.99", day="10/10/2025")))
        self.assertEqual(made.table([line("2025-10-10")], "fiscal_month", "class", "transaction_month"), [
            ("FY2026-P02", "settled_later", "FY2026-P01"),
            ("FY2026-P03", "missing_here", "FY2026-P01"),
        ])

    def test_within_a_report_the_earlier_transaction_month_is_served_first(self):
        # Both T may have P01's late unit: T = P02 by step 2; T = P01 has it by step 1, which comes before.
        for days, expected in ((("11/02/2025", "10/31/2025"), "FY2026-P01"),
                               (("11/02/2025", "11/03/2025"), "FY2026-P02")):
            made = Imports()
            made.add(detailed("FY2026-P03", *(sale(1, "9.99", day=day) for day in days)))
            self.assertEqual(made.table([line("2025-11-01")], "class", "transaction_month")[0],
                             ("settled_later", expected))

    def test_one_month_late_goes_before_early_and_that_before_two_months_late(self):
        made = Imports()
        made.add(financial("FY2026-P03", sale(3, "9.99")))
        lines = [line("2025-10-10", units=2), line("2025-11-10"), line("2025-12-28", units=2)]
        for ledger, expected in (
            (lines, [("settled_later", "FY2026-P02", "1"), ("settled_earlier", "FY2026-P04", "2")]),
            (lines[:2], [("settled_later", "FY2026-P01", "2"), ("settled_later", "FY2026-P02", "1")]),
        ):
            found = made.table(ledger, "class", "ledger_month", "ledger_units", "apple_units")
            self.assertEqual([cells[:3] for cells in found if cells[3] and cells[2]], expected)


class Passes(unittest.TestCase):
    """The passes B to E, of the same month alone."""

    # The ledger's line, Apple's row, and the class.
    CASES = [
        (line("2025-10-10", None), sale(1, "9.99"), "unpriced_here"),
        (line("2025-10-10", None, country="FR"), sale(1, "9.99"), None),
        (line("2025-10-10", "8.99"), sale(1, "9.99"), "price_differs"),
        (line("2025-10-10", "9.99", "USD"), sale(1, "9.99"), "currency_differs"),
        (line("2025-10-10", "8.99", "USD"), sale(1, "9.99"), "currency_differs"),
        (line("2025-10-10", country="FR"), sale(1, "9.99"), "country_differs"),
        (line("2025-10-10", "8.99", country="FR"), sale(1, "9.99"), None),
        (line("2025-10-10", product="other"), sale(1, "9.99"), None),
        (line("2025-10-10", name="Return"), sale(1, "9.99"), None),
        (line("2025-11-10", "8.99"), sale(1, "9.99"), None),
        (line("2025-09-01", "8.99"), sale(1, "9.99"), None),
        (line("2025-10-10", "0"), sale(1, "9.99"), None),
        (line("2025-10-10"), sale(1, "0"), None),
        (line("2025-10-10"), sale(1, "9.99", kind="1F"), None),
        (line("2025-10-10"), sale(1, "9.99", kind="FI1"), "matched"),
        (line("2025-10-10"), sale(-1, "9.99"), None),
        (line("2025-10-10", name="Return"), sale(-1, "9.99", flag="R"), "matched"),
        (line("2025-10-10", name="Return"), sale(1, "9.99", flag="R"), None),
    ]

    def test_one_unit_here_and_there(self):
        for number, (here, there, name) in enumerate(self.CASES):
            with self.subTest(case=number):
                made = Imports()
                made.add(financial("FY2026-P01", there))
                found = made.table([here], "class", "ledger_units", "apple_units")
                if name is None:
                    self.assertEqual(len(found), 2)
                else:
                    self.assertEqual(found, [(name, "1", "1")])

    def test_unpriced_units_go_before_those_of_another_price(self):
        lines = [line("2025-10-10", None), line("2025-10-10", "8.99"), line("2025-10-10", "1.00", "USD"),
                 line("2025-10-10", country="AT")]
        for units, expected in ((1, 1), (2, 2), (3, 3), (4, 4)):
            made = Imports()
            made.add(financial("FY2026-P01", sale(units, "9.99")))
            found = [name for name, there in made.table(lines, "class", "apple_units") if there]
            names = ["unpriced_here", "price_differs", "currency_differs", "country_differs"]
            self.assertEqual(found, names[:expected])

    def test_cheaper_cells_and_countries_in_order_come_first(self):
        lines = [line("2025-10-10", "8.99"), line("2025-10-10", "10.00"), line("2025-10-10", "7.99")]
        made = Imports()
        made.add(financial("FY2026-P01", sale(1, "9.99"), sale(1, "9.50")))
        self.assertEqual(made.table(lines, "class", "ledger_price", "apple_price"), [
            ("price_differs", "7.99", "9.50"), ("price_differs", "8.99", "9.99"), ("open", "10.00", "")])


class Order(unittest.TestCase):
    def test_by_month_class_line_product_and_the_ledgers_side(self):
        made = Imports()
        made.add(financial(
            "FY2026-P01", sale(1, "9.99", product="b"), sale(1, "10.99", product="b"),
            sale(-1, "9.99", product="a", flag="R"), sale(1, "9.99", product="B"),
            sale(1, "9.99", "USD", product="b"), sale(1, "9.99", country="AT", product="b")))
        lines = [line("2025-11-10", product="a"), line("2025-10-10", "1.00", product="z", country="FR"),
                 line("2025-10-10", None, product="z"), line("2025-10-10", "10.00", product="z"),
                 line("2025-10-10", "9.00", product="z"), line("2025-10-10", product="B")]
        columns = ("fiscal_month", "class", "line", "product_id", "ledger_country", "ledger_price",
                   "apple_country", "apple_currency", "apple_price")
        p01, there = "FY2026-P01", ("missing_here", "Sale", "b", "", "")
        self.assertEqual(made.table(lines, *columns), [
            (p01, "matched", "Sale", "B", "DE", "9.99", "DE", "EUR", "9.99"),
            (p01, *there, "AT", "EUR", "9.99"),
            (p01, *there, "DE", "EUR", "9.99"),
            (p01, *there, "DE", "EUR", "10.99"),
            (p01, *there, "DE", "USD", "9.99"),
            (p01, "missing_here", "Return", "a", "", "", "DE", "EUR", "9.99"),
            (p01, "open", "Sale", "z", "DE", "", "", "", ""),
            (p01, "open", "Sale", "z", "DE", "9.00", "", "", ""),
            (p01, "open", "Sale", "z", "DE", "10.00", "", "", ""),
            (p01, "open", "Sale", "z", "FR", "1.00", "", "", ""),
            ("FY2026-P02", "not_reported", "Sale", "a", "DE", "9.99", "", "", ""),
        ])

    def test_a_report_that_does_not_add_up_is_an_error(self):
        made = Imports()
        made.add(financial("FY2026-P01", sale(2, "9.99")))
        matching = settlement_reports.Matching

        def one_too_many(ledger, apple):
            found = matching(ledger, apple)
            for key in found.taken:
                found.taken[key] += 1
            return found

        with mock.patch.object(settlement_reports, "Matching", one_too_many):
            with self.assertRaises(ArithmeticError):
                made.table([line("2025-10-10")], "class")


class Classes(unittest.TestCase):
    def test_units_that_are_not_positive(self):
        made = Imports()
        made.add(financial("FY2026-P01", sale(2, "9.99"), sale(-2, "9.99"), sale(-3, "8.99"),
                           sale(1, "0"), sale(-1, "0")))
        self.assertEqual(made.table([], "class", "apple_units", "apple_amount", "rows")[0][:3],
                         ("missing_here", "-3", "-26.97"))
        self.assertEqual(len(made.table([], "class")), 1)

    def test_free_here_and_there_are_apart(self):
        made = Imports()
        made.add(financial("FY2026-P01", sale(2, "0", flag="S")))
        found = made.table([line("2025-10-10", "0")], "class", "ledger_units", "apple_units", "difference")
        self.assertEqual(found, [("free", "", "2", "0.00"), ("free", "1", "", "0.00")])

    def test_rounding_is_a_row_of_its_own(self):
        made = Imports()
        made.add(financial("FY2026-P01", sale(3, "3.333333")))
        columns = ("class", "ledger_units", "candidates", "ledger_amount", "apple_units", "difference",
                   "positions")
        found = made.table([line("2025-10-10", "3.333333", units=3, amount="10.00", position=7)], *columns)
        self.assertEqual(found, [
            ("matched", "3", "3", "9.999999", "3", "0.00", "7"),
            ("rounding", "0", "3", "0.000001", "", "-0.000001", "7"),
        ])

    def test_a_month_of_53_weeks(self):
        # FY2023-P03 has five weeks and ends on 2022-12-31.
        self.assertEqual(month_span(month_from_name("FY2023-P03")), (19323, 19357))
        made = Imports()
        made.add(financial("FY2023-P03", sale(1, "9.99")))
        self.assertEqual(made.table([line("2022-12-31")], "class"), [("matched",)])

    def test_positions_beyond_twenty(self):
        lines = [line("2025-10-10", position=position) for position in range(40, 60)]
        made = Imports()
        made.add(financial("FY2026-P01", *(sale(1, "9.99") for _ in range(23))))
        for more, end in ((0, "59"), (1, "59 +1"), (5, "59 +5")):
            every = lines + [line("2025-10-10", position=60 + place) for place in range(more)]
            positions, rows = made.table(every, "positions", "rows")[0]
            self.assertEqual(positions, " ".join(map(str, range(40, 59))) + f" {end}")
            self.assertTrue(rows.endswith(":20 +3"))

    def test_one_position_of_two_lines_stands_once(self):
        made = Imports()
        self.assertEqual(made.table([line("2025-10-10", position=5)] * 2, "candidates", "positions"),
                         [("2", "5")])


class State(unittest.TestCase):
    def names(self, made):
        return [finding[1:] for finding in made.files.findings()]

    def test_detailed_before_single_before_regional(self):
        made = Imports()
        made.add(financial("FY2026-P01", sale(1, "9.99", share="5.88")), "85_EU.txt")
        self.assertFalse(made.files.is_complete(month_from_name("FY2026-P01")))
        made.add(financial("FY2026-P01", sale(2, "9.99", share="5.88")), "85_ZZ.txt")
        self.assertTrue(made.files.is_complete(month_from_name("FY2026-P01")))
        self.assertEqual(self.names(made), [
            ("reports_disagree", "FY2026-P01 EU DE EUR units 1 2 share 5.88 11.76")])
        made.add(detailed("FY2026-P01", sale(1, "9.99", share="5.88")))
        self.assertEqual(made.files.findings(), [
            (101, "reports_disagree", "FY2026-P01 ZZ DE EUR units 2 1 share 11.76 5.88")])

    def test_an_overview_completes_regional_files_that_tie(self):
        made, month = Imports(), month_from_name("FY2026-P01")
        made.add(financial("FY2026-P01", sale(1, "9.99", share="5.88")), "85_EU.txt")
        row = "Euro-Zone (EUR),1,{0},{0},0,0,0,{0},1.00000,{0},EUR\n,,,\"{0}\" EUR"
        made.add(overview("October, 2025", row.format("5.89")))
        self.assertFalse(made.files.is_complete(month))
        self.assertEqual(self.names(made), [("earned_disagrees", "FY2026-P01 EUR 5.89 5.88")])
        made.add(overview("October, 2025", row.format("5.88")), replaces=True)
        self.assertTrue(made.files.is_complete(month))
        self.assertEqual(exceptions(made.files).count("\n"), 1)

    def test_a_set_counts_from_its_last_part(self):
        made = Imports()
        report = made.add(financial("FY2026-P01", *(sale(1, f"{n}.99") for n in range(1, 6))), most=80)
        self.assertGreater(made.position, 102)
        self.assertEqual(made.files.current[report.identity].position, made.position - 1)
        self.assertEqual(len(made.files.current[report.identity].report.rows), 5)

    def test_an_unfinished_or_disordered_set_counts_for_nothing(self):
        text = financial("FY2026-P01", *(sale(1, f"{n}.99") for n in range(1, 6)))
        report = read_file(text.encode(), "85_ZZ.txt")
        parts = list(event_data(report, "85_ZZ.txt", 120))
        self.assertGreaterEqual(len(parts), 3)
        for order, counts in ((parts[:-1], 0), (parts[1:], 0), ([parts[1], parts[0], *parts[2:]], 0),
                              (parts[:2] + parts, 1), (parts + parts[:1], 1)):
            files = Files()
            for position, data in enumerate(order):
                files.declare(position, data)
            self.assertEqual(len(files.current), counts)


if __name__ == "__main__":
    unittest.main()
