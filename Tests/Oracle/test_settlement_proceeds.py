# Hand-worked checks of shares, payouts, the split of a payment, sellers and maps (settlement rules, S13,
# S16, S17).
import json
import random
import unittest

import sellers
from dates import days_from_text
from generate_settlement_files import BALANCE_HEADER as HEADER
from log import read_log
from settlement_exports import rows_of
from settlement_files import event_data, read_file
from settlement_overview import OWED, PaymentRow
from settlement_proceeds import effective_rate, payout, payout_by, proceeds, split
from settlement_support import Imports, line
from settlement_values import amount_text, micros, month_from_name
from settlement_writing import detailed, financial, overview, sale
from test_settlement import PUBLISHED, example_files

P01 = "FY2026-P01"
IRELAND = sellers.IRELAND


def paid(*rows):
    """P01's overview of rows (region, earned, proceeds, perhaps a balance) in a list paid in EUR."""
    lines = [f"{region},1,{''.join(balance) or 0},{earned},{earned},0,0,0,{earned},1.00000,{amount},EUR"
             for region, earned, amount, *balance in rows]
    total = amount_text(sum(micros(row[2] or "0") for row in rows), "EUR")
    return overview("October, 2025", *lines, ",,", f',,"{total}" EUR', columns=HEADER)


class Proceeds(unittest.TestCase):
    def test_the_worked_example(self):
        files = example_files([P01, "FY2026-P02", "FY2026-P03"]).files
        rows = rows_of(proceeds(files))
        self.assertEqual({row[2] for row in rows}, {"pro.month"})
        self.assertEqual([(*row[:2], *row[3:]) for row in rows], [
            (P01, IRELAND, "DE", "Sale", "EUR", "EUR", "3", "29.97", "17.64", "12.33"),
            (P01, IRELAND, "FR", "Sale", "EUR", "EUR", "1", "8.99", "5.29", "3.70"),
            (P01, sellers.US, "US", "Sale", "USD", "USD", "1", "9.99", "6.99", "3.00"),
            (P01, sellers.JAPAN, "JP", "Sale", "JPY", "JPY", "1", "1500", "955", "545"),
            ("FY2026-P02", IRELAND, "DE", "Sale", "EUR", "EUR", "1", "9.99", "5.88", "4.11"),
            ("FY2026-P02", IRELAND, "DE", "Return", "EUR", "EUR", "-1", "-9.99", "-5.88", "-4.11"),
            ("FY2026-P03", IRELAND, "DE", "Sale", "EUR", "EUR", "1", "9.99", "5.88", "4.11"),
        ])

    def test_a_share_in_another_currency_leaves_what_was_kept_empty(self):
        made = Imports()
        made.add(financial(P01, sale(2, "39.99", "PLN", "PL", Partner_Share="6.00",
                                     Extended_Partner_Share="12.00", Partner_Share_Currency="USD")))
        self.assertEqual(rows_of(proceeds(made.files), "gross", "share", "kept"), [("79.98", "12.00", "")])

    def test_rows_that_do_not_count_have_no_share(self):
        made = Imports()
        made.add(financial(P01, sale(1, "9.99")), name="85_ZZ.txt")
        made.add(financial(P01, sale(2, "9.99")), name="85_EU.txt")
        self.assertEqual(rows_of(proceeds(made.files), "units"), [("1",)])


class Payout(unittest.TestCase):
    @unittest.skipUnless(PUBLISHED.is_dir(), "the published reports are missing")
    def test_the_published_month(self):
        made = Imports()
        made.add((PUBLISHED / "financial_report.csv").read_bytes(), "financial_report.csv")
        month, days = "FY2014-P12", ("2014-10-30", "2014-11-11")
        self.assertEqual(rows_of(payout(made.files)), [
            (month, "Switzerland (CHF)", "CHF", "29", "0.00", "33.15", "0.00", "0.00", "0.00", "33.15",
             "0.80030", "0.800301659", "26.53", "EUR", "true", *days),
            (month, "Euro-Zone (EUR)", "EUR", "19", "0.00", "206.89", "0.00", "0.00", "0.00", "206.89",
             "1.00000", "1.000000000", "206.89", "EUR", "true", *days),
            (month, "Japan (JPY)", "JPY", "2", "0", "179", "0", "0", "-37", "142", "0.00817", "0.008169014",
             "1.16", "EUR", "true", *days),
        ])

    def test_effective_rates_are_rounded_half_to_even(self):
        for owed, amount, expected in (
            ("100.00", "80.03", "0.800300000"), ("3.00", "1.00", "0.333333333"),
            ("3.00", "2.00", "0.666666667"), ("-3.00", "2.00", "-0.666666667"),
            ("2000.00", "0.000001", "0.000000000"),
            ("2000.00", "0.000003", "0.000000002"), ("2000.00", "0.000005", "0.000000002"),
            ("2000.00", "-0.000005", "-0.000000002"), ("0.00", "1.00", ""),
            ("0.00817", "1.00", "122.399020808"),
        ):
            with self.subTest(owed=owed, amount=amount):
                row = PaymentRow(1, "", "JPY", 0, {OWED: micros(owed)}, "", micros(amount), "EUR")
                self.assertEqual(effective_rate(row), expected)

    def test_a_rate_keeps_its_digits_and_is_a_number(self):
        for text, expected in (('"+1,000.50"', "1000.50"), ("-0.5", "-0.5"), ("007.10", "007.10"), ("", "")):
            made = Imports()
            row = f"Euro (EUR),1,0,5.88,5.88,0,0,0,5.88,{text},5.88,EUR"
            made.add(overview("October, 2025", row, columns=HEADER))
            self.assertEqual(rows_of(payout(made.files), "exchange_rate"), [(expected,)])

    def test_a_list_without_a_payment_is_not_paid(self):
        made = Imports()
        made.add(overview("October, 2025", "Euro-Zone (EUR),1,0,5.88,5.88,0,0,0,5.88,1.00000,5.88,EUR", ",,",
                          "x", columns=HEADER))
        self.assertEqual(rows_of(payout(made.files), "effective_rate", "proceeds", "paid"),
                         [("", "5.88", "false")])


class Split(unittest.TestCase):
    # The payment in whole units, the weights, and what each gets.
    CASES = [
        (100, [1, 1], [50, 50]),
        (100, [1, 1, 1], [34, 33, 33]),
        (101, [1, 1, 1], [34, 34, 33]),
        (100, [1, 2, 3], [17, 33, 50]),
        (10, [1, 2, 4], [1, 3, 6]),
        (0, [3, 5], [0, 0]),
        (7, [0, 1], [0, 7]),
        # A group that gave back more than it sold: −12.5 and 112.5 units.
        (100, [-1, 9], [-12, 112]),
        (-100, [1, 1, 1], [-33, -33, -34]),
        (100, [-1, -2], [33, 67]),
        (-1, [1, 1], [0, -1]),
    ]

    def test_each_gets_whole_units_and_the_rest_goes_to_the_largest_remainders(self):
        for amount, weights, expected in self.CASES:
            with self.subTest(amount=amount, weights=weights):
                self.assertEqual(split(amount, weights), expected)

    def test_nothing_is_lost_and_none_is_off_by_a_unit(self):
        seed = random.randrange(1 << 32)
        print(f"split: seed {seed}")
        source = random.Random(seed)
        for _ in range(500):
            weights = [source.randint(-9, 99) for _ in range(source.randint(1, 9))]
            amount = source.randint(-1000, 1000)
            if sum(weights):
                parts = split(amount, weights)
                self.assertEqual(sum(parts), amount)
                for part, weight in zip(parts, weights):
                    self.assertLess(abs(part * sum(weights) - amount * weight), abs(sum(weights)))


class PayoutBy(unittest.TestCase):
    COLUMNS = ("country_code", "currency", "share", "proceeds", "bank_currency")

    def rows(self, rows, *overviews, columns=COLUMNS, names=("country",)):
        made = Imports()
        made.add(financial(P01, *rows))
        for text in overviews:
            made.add(text, name="report.csv")
        return rows_of(payout_by(made.files, list(names)), *columns)

    @unittest.skipUnless(PUBLISHED.is_dir(), "the published reports are missing")
    def test_the_published_month_to_the_cent(self):
        made = Imports()
        for path in sorted(PUBLISHED.iterdir()):
            if path.suffix in (".txt", ".csv"):
                made.add(path.read_bytes(), path.name)
        rows = rows_of(payout_by(made.files, ["country"]), *self.COLUMNS)
        self.assertEqual(rows, [
            ("CH", "CHF", "33.15", "26.53", "EUR"), ("DE", "EUR", "182.55", "182.55", "EUR"),
            ("FI", "EUR", "12.17", "12.17", "EUR"), ("FR", "EUR", "12.17", "12.17", "EUR"),
            ("JP", "JPY", "179", "1.16", "EUR"),
        ])
        self.assertEqual(sum(micros(row[3]) for row in rows), 234_580_000)

    def test_the_cents_that_remain_go_to_the_largest_remainders(self):
        rows = [sale(1, "9.99", country=country, share="1.00") for country in ("FR", "DE", "AT")]
        self.assertEqual(self.rows(rows, paid(("Euro-Zone (EUR)", "3.00", "1.00"))), [
            ("AT", "EUR", "1.00", "0.34", "EUR"), ("DE", "EUR", "1.00", "0.33", "EUR"),
            ("FR", "EUR", "1.00", "0.33", "EUR")])

    def test_groups_stand_in_the_order_given(self):
        rows = [sale(1, "9.99", product=product, country=country, share="1.00")
                for product, country in (("b", "DE"), ("a", "FR"))]
        self.assertEqual(
            self.rows(rows, paid(("Euro-Zone (EUR)", "2.00", "2.00")), columns=(),
                      names=("product", "seller", "country")),
            [(P01, "a", IRELAND, "FR", "EUR", "1.00", "1.00", "EUR"),
             (P01, "b", IRELAND, "DE", "EUR", "1.00", "1.00", "EUR")])

    def test_several_rows_of_one_currency_are_one_payment(self):
        rows = [sale(1, "9.99", "USD", country, share="1.00") for country in ("US", "AR", "VN")]
        self.assertEqual(
            self.rows(rows, paid(("Americas (USD)", "1.00", "0.90"), ("Other (USD)", "2.00", "1.90"))),
            [("AR", "USD", "1.00", "0.94", "EUR"), ("US", "USD", "1.00", "0.93", "EUR"),
             ("VN", "USD", "1.00", "0.93", "EUR")])

    # What is left out: the rows and the overview.
    LEFT_OUT = {
        "it does not tie": ([sale(1, "9.99", share="1.00")], paid(("Euro-Zone (EUR)", "1.01", "1.01"))),
        "a row was carried": ([sale(1, "9.99", share="1.00")], paid(
            ("Euro-Zone (EUR)", "1.00", ""), ("Other (USD)", "0.00", "0.00"))),
        "a balance": ([sale(1, "9.99", share="1.00")], paid(("Euro-Zone (EUR)", "1.00", "1.00", "0.50"))),
        "the weights are 0 together": (
            [sale(1, "9.99", share="1.00"), sale(-1, "9.99", share="1.00", flag="R", country="FR")],
            paid(("Euro-Zone (EUR)", "0.00", "0.50"))),
        "half a cent": ([sale(1, "9.99", share="1.00")], paid(("Euro-Zone (EUR)", "1.00", "1.005"))),
    }

    def test_a_month_and_currency_that_cannot_be_split_is_left_out(self):
        for situation, (rows, text) in self.LEFT_OUT.items():
            with self.subTest(situation):
                self.assertEqual(self.rows(rows, text), [])

    def test_without_an_overview_there_is_no_split(self):
        self.assertEqual(self.rows([sale(1, "9.99")]), [])


class Sellers(unittest.TestCase):
    # Country, month, region, transaction's day, seller.
    CASES = [
        ("DE", "FY2026-P01", "ZZ", None, IRELAND), ("KR", "FY2026-P01", "ZZ", None, sellers.SINGAPORE),
        ("KR", "FY2024-P12", "ZZ", None, IRELAND), ("KR", "FY2025-P01", "ZZ", None, ""),
        ("DE", "FY2025-P01", "ZZ", None, IRELAND), ("HK", "FY2026-P01", "ZZ", None, IRELAND),
        ("KR", "FY2025-P01", "AP", None, sellers.SINGAPORE),
        ("KR", "FY2025-P01", "Z1", "2024-10-25", IRELAND),
        ("KR", "FY2025-P01", "Z1", "2024-10-26", sellers.SINGAPORE),
        ("KR", "FY2025-P03", "Z1", "2024-10-25", IRELAND),
        ("BR", "FY2021-P01", "LL", None, sellers.LATIN), ("BR", "FY2020-P12", "LL", None, ""),
        ("KR", "FY2020-P12", "AP", None, ""), ("US", "FY2021-P01", "US", None, sellers.US),
        ("CA", "FY2021-P01", "CA", None, sellers.CANADA), ("NZ", "FY2021-P01", "NZ", None, sellers.AUSTRALIA),
        ("JP", "FY2021-P01", "JP", None, sellers.JAPAN), ("CU", "FY2026-P01", "ZZ", None, ""),
        ("ZZ", "FY2026-P01", "AP", None, ""),
    ]

    def test_by_the_transaction_s_day_else_by_the_month(self):
        for country, month, region, day, expected in self.CASES:
            with self.subTest(country=country, month=month, region=region, day=day):
                number = None if day is None else days_from_text(day)
                self.assertEqual(sellers.seller(country, month_from_name(month), region, number), expected)

    def test_every_country_has_one_entity_at_first_and_19_changed(self):
        self.assertEqual(len(sellers.TABLE), 175)
        self.assertEqual(sum(len(found) == 2 for found in sellers.TABLE.values()), 19)


class Maps(unittest.TestCase):
    # Events (SKU, product; None: withdrawn), and the product of the SKU's rows.
    CASES = [
        ([], "sku.1"), ([("sku.1", "pro")], "pro"), ([("sku.1", "pro"), ("sku.1", "other")], "other"),
        ([("sku.1", "pro"), ("sku.1", None)], "sku.1"), ([("sku.1", None)], "sku.1"),
        ([("sku.1", "pro"), ("sku.1", None), ("sku.1", "pro")], "pro"),
        ([("sku.2", "pro")], "sku.1"), ([("sku.1", "sku.2"), ("sku.2", "pro")], "sku.2"),
    ]

    def test_the_latest_counts_for_all_months_and_an_empty_one_withdraws(self):
        for events, product in self.CASES:
            with self.subTest(events=events):
                made = Imports()
                made.add(financial(P01, sale(1, "9.99", product="sku.1")))
                made.add(detailed("FY2026-P02", sale(1, "9.99", product="sku.1")))
                for event in events:
                    made.map(*event)
                found = made.table([line("2025-10-10"), line("2025-11-10")], "class", "product_id")
                expected = "matched" if product == "pro" else "missing_here"
                self.assertEqual([cells for cells in found if cells[1] == product],
                                 [(expected, product)] * 2)
                self.assertEqual(rows_of(proceeds(made.files), "product_id"), [(product,)] * 2)

    def test_a_log_maps_as_of_the_event_s_position_and_a_malformed_event_maps_nothing(self):
        report = read_file(financial(P01, sale(1, "9.99", product="sku.1")).encode(), "85_ZZ.txt")
        events = [
            ("settlement.declared", *event_data(report, "85_ZZ.txt")),
            ("settlement.mapped", {"sku": "sku.1", "product_id": "pro"}),
            ("settlement.mapped", {"sku": "sku.1", "product_id": 7}),
            ("settlement.mapped", {"product_id": "other"}),
            ("settlement.mapped", {"sku": "sku.1"}),
        ]
        about = {"v": 1, "at": "2026-11-01T00:00:00.000Z"}
        lines = [json.dumps({"seq": seq, "type": kind, "data": data} | about)
                 for seq, (kind, data) in enumerate(events)]
        for end, product, malformed in ((1, "sku.1", 0), (2, "pro", 0), (4, "pro", 2), (5, "sku.1", 2)):
            with self.subTest(end=end):
                book = read_log([one.encode() for one in lines[:end]])
                self.assertEqual(rows_of(proceeds(book.files), "product_id"), [(product,)])
                self.assertEqual(len(book.findings(lambda environment: True)), malformed)

    def test_two_skus_of_one_product_are_one_cell(self):
        made = Imports()
        made.add(financial(P01, sale(1, "9.99", product="sku.1"), sale(2, "9.99", product="sku.2")))
        for sku in ("sku.1", "sku.2"):
            made.map(sku, "pro")
        self.assertEqual(made.table([line("2025-10-10", units=3)], "class", "apple_units"),
                         [("matched", "3")])


if __name__ == "__main__":
    unittest.main()
