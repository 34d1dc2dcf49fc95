# Rounded amounts, rows of totals and selected columns, by hand.
import random
import unittest

import layout
from reports import CONTENTS, Numeral


class RoundingTests(unittest.TestCase):
    def test_the_largest_remainders_make_up_the_total_the_earlier_of_equals(self):
        for code, amounts, expected in (
            ("EUR", [], []),
            ("EUR", [333_333, 333_333, 333_333], [340_000, 330_000, 330_000]),
            ("EUR", [5_000], [0]),
            ("EUR", [15_000], [20_000]),
            ("EUR", [-3_000, -3_000, -3_000], [0, 0, -10_000]),
            ("JPY", [400_000, 400_000, 300_000], [1_000_000, 0, 0]),
            ("KWD", [1_000_400, 1_000_600], [1_000_000, 1_001_000]),
        ):
            with self.subTest(code=code, amounts=amounts):
                self.assertEqual(layout.by_largest_remainder(amounts, code), expected)

    def test_rows_add_up_and_none_moves_by_a_unit(self):
        seed = random.randrange(1_000_000)
        numbers = random.Random(seed)
        for _ in range(300):
            code = numbers.choice(["JPY", "EUR", "KWD"])
            amounts = [numbers.randrange(-10**9, 10**9) for _ in range(numbers.randrange(30))]
            rounded = layout.by_largest_remainder(amounts, code)
            with self.subTest(seed=seed, code=code, amounts=amounts):
                self.assertEqual(sum(rounded), layout.half_even(sum(amounts), code))
                for exact, shown in zip(amounts, rounded, strict=True):
                    self.assertLess(abs(exact - shown), layout.unit(code))

    def test_currencies_are_rounded_apart_and_net_follows_from_the_figures_shown(self):
        columns = ["country_code", "currency", "gross", "returns", "reversals", "net"]
        body = [
            ["DE", "EUR", "0.005", "0", "0", "0.005"], ["FR", "EUR", "0.006", "0.004", "0", "0.002"],
            ["JP", "JPY", "0.7", "0", "0", "0.7"], ["ZZ", "", "", "", "", ""],
        ]  # fmt: skip
        self.assertEqual(
            layout.rounded("revenue", columns, body, CONTENTS["revenue"], Numeral),
            [
                ["DE", "EUR", "0.00", "0.00", "0.00", "0.00"],
                ["FR", "EUR", "0.01", "0.00", "0.00", "0.01"],
                ["JP", "JPY", "1", "0", "0", "1"], ["ZZ", "", "", "", "", ""],
            ],  # fmt: skip
        )

    def test_lines_are_rounded_one_by_one(self):
        columns = ["sale_key", "currency", "unit_price", "amount"]
        body = [["1", "EUR", "0.005", "0.015"], ["2", "EUR", "0.006", "0.015"], ["3", "", "", ""]]
        self.assertEqual(
            layout.rounded("journal", columns, body, CONTENTS["journal"], Numeral),
            [["1", "EUR", "0.00", "0.02"], ["2", "EUR", "0.01", "0.02"], ["3", "", "", ""]],
        )

    def test_sums_of_users_are_rounded_currency_by_currency(self):
        body = [["anna", "0.004 EUR 2 JPY"], ["bob", "0.004 EUR"], ["eve", ""]]
        self.assertEqual(
            layout.rounded("users", ["user_identifier", "net"], body, CONTENTS["users"], Numeral),
            [["anna", "0.01 EUR 2 JPY"], ["bob", "0.00 EUR"], ["eve", ""]],
        )


if __name__ == "__main__":
    unittest.main()
