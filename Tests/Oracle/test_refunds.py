# Hand-worked cases of refunds: shares, replies beside signed statements, Advanced Commerce (rule R12).
import csv
import io
import unittest

import four_ways
import reports
from signing import unsigned
from support import book, exceptions, line, ms, row, signed, table, told, upload

PAID = {"quantity": 3, "price": 10_000, "currency": "EUR"}
DAY = "2026-02-01"
OTHER = "2026-02-05"


def revoked(percentage=None, at="2026-03-01", on=DAY, **fields):
    """A notification that shows a part refunded; without a percentage all of it."""
    fields = PAID | {"revocationDate": ms(on), "revocationReason": 1} | fields
    return told(signed(at=at, revocationPercentage=percentage, **fields))


def whole(at="2026-03-01", **fields):
    """A notification that shows nothing refunded."""
    return told(signed(at=at, **PAID, **fields))


def reply(asked, on=None, at="2026-04-01", **fields):
    """A reply that shows the sale, cancelled where `on` says when."""
    if on is not None:
        fields |= {"cancellation_date_ms": str(ms(on)), "cancellation_reason": "0"}
    return line(row(quantity="3", **fields), asked=asked, at=at)


def advanced(*refunds, at="2026-03-01", **fields):
    """A notification of Advanced Commerce; `refunds`: (date, milliunits)."""
    entries = [{"refundDate": None if on is None else ms(on), "refundAmount": amount}
               for on, amount in refunds]
    return told(signed(at=at, advancedCommerceInfo={"items": [{"refunds": entries}]}, **PAID, **fields))


def lines(*given, columns=("line", "date", "quantity", "amount")):
    """The journal's Returns and Reversals, each date without its time of day."""
    found = table("journal", book(*given), *columns)
    return [tuple(cell.split("T")[0] for cell in cells) for cells in found if cells[0] != "Sale"]


RETURN_ALL = ("Return", DAY, "-3", "-10.00")
RETURN_ONE = ("Return", DAY, "-1", "-3.33")


class Shares(unittest.TestCase):
    def test_a_share_of_whole_units_is_exact(self):
        cases = [(33_333, RETURN_ONE), (66_667, ("Return", DAY, "-2", "-6.67")),
                 (100_000, RETURN_ALL), (None, RETURN_ALL), (-1, RETURN_ALL), (100_001, RETURN_ALL),
                 ("x", RETURN_ALL), ("33333", RETURN_ONE),
                 # Farther than 0.0005 %: a share that takes no units.
                 (33_334, ("Return", DAY, "0", "-3.33")), (99_999, ("Return", DAY, "0", "-10.00")),
                 (1, ("Return", DAY, "0", "0.00")), (50_000, ("Return", DAY, "0", "-5.00"))]
        for percentage, expected in cases:
            self.assertEqual(lines(revoked(percentage)), [expected], percentage)
        self.assertEqual(lines(revoked(0)), [])

    def test_half_of_the_tolerance_still_is_a_unit(self):
        # Of 200,000 units 50 % and a thousandth is 100,002 of them; of a million every share is of units.
        for quantity, percentage, units in ((200_000, 50_001, "-100002"), (1_000_000, 1, "-10"),
                                            (1, 1, "0"), (7, 14_286, "-1"), (7, 14_285, "0")):
            (found,) = lines(revoked(percentage, quantity=quantity), columns=("line", "quantity"))
            self.assertEqual(found[1], units, (quantity, percentage))

    def test_amounts_are_rounded_half_to_even_to_the_minor_unit(self):
        cases = [(50_000, 10, "EUR", "0.00"), (50_000, 30, "EUR", "-0.02"), (50_000, 50, "EUR", "-0.02"),
                 (50_000, 5, "KWD", "-0.002"), (50_000, 5000, "JPY", "-2"), (50_000, 7000, "JPY", "-4"),
                 # The whole is the amount itself, and no part is more.
                 (None, 5, "EUR", "-0.005"), (99_000, 9, "EUR", "-0.009")]
        for percentage, price, currency, expected in cases:
            statement = revoked(percentage, quantity=1, price=price, currency=currency)
            found = table("journal", book(statement), "line", "amount")[1:]
            self.assertEqual(found, [("Return", expected)], (percentage, price))

    def test_more_is_a_return_and_less_a_reversal_at_the_statements_time(self):
        story = [revoked(33_333, "2026-03-01"), revoked(66_667, "2026-03-02", OTHER),
                 revoked(33_333, "2026-03-03"), whole("2026-03-04"), whole("2026-03-05")]
        expected = [RETURN_ONE, ("Return", OTHER, "-1", "-3.34"),
                    ("Reversal", "2026-03-03", "1", "3.34"), ("Reversal", "2026-03-04", "1", "3.33")]
        for count, shown in ((1, 1), (2, 2), (3, 3), (4, 4), (5, 4)):
            self.assertEqual(lines(*story[:count]), expected[:shown])

    def test_a_reason_stands_at_the_return(self):
        found = lines(revoked(33_333), whole("2026-03-02"), columns=("line", "reason"))
        self.assertEqual(found, [("Return", "1"), ("Reversal", "")])

    def test_another_share_takes_no_units_and_its_reversal_gives_all_back(self):
        found = lines(revoked(33_333, "2026-03-01"), revoked(50_000, "2026-03-02", OTHER),
                      revoked(40_000, "2026-03-03", OTHER))
        self.assertEqual(found, [RETURN_ONE, ("Return", OTHER, "0", "-1.67"),
                                 ("Reversal", "2026-03-03", "1", "1.00")])
        found = lines(revoked(50_000, "2026-03-01"), revoked(33_333, "2026-03-02"))
        self.assertEqual(found[1], ("Reversal", "2026-03-02", "-1", "1.67"))
        shown = table("revenue", book(revoked(50_000, "2026-03-01"), revoked(33_333, "2026-03-02")),
                      "returned_units", "returns", "reversed_units", "reversals", "net")
        self.assertEqual(shown, [("0", "5.00", "-1", "1.67", "6.67")])

    def test_an_older_statement_changes_nothing_and_an_equal_one_counts(self):
        self.assertEqual(lines(whole("2026-03-02"), revoked(33_333, "2026-03-01")), [])
        self.assertEqual(lines(whole("2026-03-02"), revoked(33_333, "2026-03-02")), [RETURN_ONE])
        self.assertEqual(lines(reply("2026-03-02"), revoked(33_333, "2026-03-01")), [])
        self.assertEqual(lines(revoked(33_333, "2026-03-02"), whole("2026-03-01")), [RETURN_ONE])
        two = upload(signed(at="2026-03-01", **PAID, revocationDate=ms(DAY)), signed(at="2026-03-01", **PAID))
        self.assertEqual([name for (name,) in table("journal", book(two), "line")],
                         ["Sale", "Return", "Reversal"])

    def test_cancelled_says_that_something_is_refunded(self):
        for given, expected in (([revoked(1)], "true"), ([revoked(1), whole("2026-03-02")], "false"),
                                ([advanced((DAY, 1))], "true"), ([advanced((DAY, 0))], "false")):
            self.assertEqual(table("sales", book(*given), "cancelled"), [(expected,)])
        found = book(revoked(1), whole("2026-03-02"), revoked(None, "2026-03-03"))
        self.assertEqual(table("sales", found, "cancellation_positions", "reversal_positions"),
                         [("0 2", "1")])

    def test_amounts_follow_a_price_that_comes_later(self):
        self.assertEqual(lines(revoked(33_333, price=None)), [("Return", DAY, "-1", "")])
        found = lines(revoked(33_333, price=None), whole("2026-02-02"))
        self.assertEqual(found, [RETURN_ONE])

    def test_trials_and_family_shares_have_lines_of_zero(self):
        for fields in ({"offerDiscountType": "FREE_TRIAL"}, {"inAppOwnershipType": "FAMILY_SHARED"}):
            found = book(revoked(33_333, **fields))
            self.assertEqual(table("journal", found, "amount"), [("0",), ("0",)])
            self.assertEqual(table("revenue", found, "returned_units"), [("0",)])
            self.assertEqual(exceptions(found), [])


class Upgrades(unittest.TestCase):
    CREDIT = ("upgrade_credit_unknown", "")

    def test_with_a_percentage_there_is_a_return(self):
        found = revoked(33_333, isUpgraded=True)
        self.assertEqual(lines(found), [RETURN_ONE])
        self.assertNotIn(self.CREDIT, exceptions(book(found)))

    def test_without_one_the_credit_is_unknown_with_or_without_a_date(self):
        for statement in (revoked(isUpgraded="true"), whole(isUpgraded=1)):
            self.assertEqual(lines(statement), [])
            self.assertEqual(exceptions(book(statement)), [self.CREDIT])

    def test_an_older_statement_says_so_and_it_sticks(self):
        found = book(whole("2026-03-02"), whole("2026-03-01", isUpgraded=True))
        self.assertEqual(table("sales", found, "is_upgraded"), [("true",)])
        self.assertEqual(exceptions(found), [])
        for later in (revoked(at="2026-03-03"), reply("2026-03-03", DAY)):
            found = [whole("2026-03-02"), whole("2026-03-01", isUpgraded=True), later]
            self.assertEqual(lines(*found), [])
            self.assertIn(self.CREDIT, exceptions(book(*found)))

    def test_what_was_returned_before_stays(self):
        found = [revoked(33_333), whole("2026-03-02", isUpgraded=True)]
        self.assertEqual(lines(*found), [RETURN_ONE])
        # A newer reply without the cancellation takes it back.
        reversal = reply("2026-03-02", is_upgraded="true")
        self.assertEqual(lines(*found, reversal)[1], ("Reversal", "2026-04-01", "1", "3.33"))


class Replies(unittest.TestCase):
    def test_an_older_reply_changes_nothing_once_there_is_a_signed_statement(self):
        for asked in ("2026-02-28", None):
            self.assertEqual(lines(whole(), reply(asked, DAY)), [])
            self.assertEqual(lines(revoked(33_333), reply(asked)), [RETURN_ONE])
        # Without one it follows R8: a reply without date can give a first Return.
        self.assertEqual(lines(reply(None, DAY), told(signed("gems", "2"))), [("Return", DAY, "-3", "")])

    def test_a_newer_reply_returns_and_reverses_all(self):
        self.assertEqual(lines(whole(), reply("2026-03-01", DAY)), [RETURN_ALL])
        self.assertEqual(lines(revoked(33_333), reply("2026-03-01")), [RETURN_ONE])
        self.assertEqual(lines(revoked(33_333), reply("2026-03-02")),
                         [RETURN_ONE, ("Reversal", "2026-04-01", "1", "3.33")])

    def test_a_reply_that_still_shows_a_known_cancellation_changes_nothing(self):
        self.assertEqual(lines(revoked(33_333), reply("2026-03-02", DAY + "T00:00:00.999Z")), [RETURN_ONE])
        # Yet it showed it: only a newer one reverses.
        shown = [revoked(33_333), reply("2026-03-03", DAY)]
        self.assertEqual(lines(*shown, reply("2026-03-03")), [RETURN_ONE])
        self.assertEqual(len(lines(*shown, reply("2026-03-04"))), 2)

    def test_another_date_is_a_return_of_all_on_top(self):
        on_top = ("Return", OTHER, "-2", "-6.67")
        self.assertEqual(lines(revoked(33_333), reply("2026-03-02", OTHER)), [RETURN_ONE, on_top])
        self.assertEqual(lines(revoked(33_333), reply("2026-03-01", OTHER)), [RETURN_ONE])
        self.assertEqual(lines(revoked(), reply("2026-03-02", OTHER)), [RETURN_ALL])
        found = [revoked(33_333), reply("2026-03-02", OTHER), revoked(66_667, "2026-03-02", OTHER)]
        self.assertEqual(lines(*found), [RETURN_ONE, ("Return", OTHER, "-1", "-3.34")])

    def test_a_signed_share_replaces_an_assumed_one(self):
        assumed = reply("2026-03-01", DAY + "T00:00:00.500Z")
        self.assertEqual(lines(assumed, revoked(33_333)), [RETURN_ONE])
        shown = table("journal", book(assumed, revoked(33_333)), "line", "date", "reason", "position")
        self.assertEqual(shown[1], ("Return", DAY + "T00:00:00.500Z", "0", "1"))
        # Of another date it is compared; so it is once a line follows.
        self.assertEqual(lines(assumed, revoked(33_333, on=OTHER)),
                         [RETURN_ALL, ("Reversal", "2026-03-01", "2", "6.67")])
        followed = [assumed, whole("2026-03-02"), revoked(33_333, "2026-03-03")]
        names = [name for name, *_ in lines(*followed)]
        self.assertEqual(names, ["Return", "Return", "Reversal"])
        # An older one replaces nothing, and the second compares.
        self.assertEqual(lines(assumed, revoked(33_333, "2026-02-28")), [RETURN_ALL])
        self.assertEqual(lines(assumed, revoked(33_333), revoked(66_667, "2026-03-02"))[1][0], "Return")

    def test_nothing_refunded_replaces_an_assumed_share_too(self):
        self.assertEqual(lines(reply("2026-03-01", DAY), revoked(0)), [("Return", DAY, "0", "0.00")])

    def test_a_new_return_is_of_the_known_share_and_needs_a_newer_reply(self):
        story = [revoked(33_333), whole("2026-03-02")]
        self.assertEqual(len(lines(*story, reply("2026-03-02", DAY))), 2)
        self.assertEqual(lines(*story, reply("2026-03-03", DAY)).count(RETURN_ONE), 2)
        self.assertIn(("Return", OTHER, "-3", "-10.00"), lines(*story, reply("2026-03-03", OTHER)))
        none = [revoked(0), whole("2026-03-02")]
        self.assertEqual(lines(*none, reply("2026-03-03", DAY)), [])


class AdvancedCommerce(unittest.TestCase):
    def returned(self, on, amount):
        return ("Return", on, "0", amount)

    def test_refunds_are_compared_date_by_date(self):
        story = [advanced((DAY, 1000)), advanced((DAY, 1500), (OTHER, 2000), at="2026-03-02"),
                 advanced((OTHER, 2500), at="2026-03-03"), advanced(at="2026-03-04")]
        expected = [[self.returned(DAY, "-1.00")],
                    [self.returned(DAY, "-0.50"), self.returned(OTHER, "-2.00")],
                    [self.returned(OTHER, "-0.50"), ("Reversal", "2026-03-03", "0", "1.50")],
                    [("Reversal", "2026-03-04", "0", "2.50")]]
        for count in range(1, 5):
            self.assertCountEqual(lines(*story[:count]), sum(expected[:count], []))

    def test_refunds_of_one_date_are_added_and_shares_are_not_read(self):
        found = advanced((DAY, 1000), (DAY, "500"), revocationDate=ms(OTHER), revocationPercentage=50_000)
        self.assertEqual(lines(found), [self.returned(DAY, "-1.50")])
        self.assertEqual(lines(found, revoked(33_333, "2026-03-02")), [self.returned(DAY, "-1.50")])

    def test_one_without_amount_or_date_is_told(self):
        for refund in ((DAY, None), (DAY, -1), (None, 5), (DAY, "x")):
            found = advanced(refund, (OTHER, 1000))
            self.assertEqual(lines(found), [self.returned(OTHER, "-1.00")])
            self.assertEqual(exceptions(book(found)), [("refund_amount_unknown", "")])

    def test_more_than_the_amount_is_capped(self):
        story = [advanced((DAY, 9000)), advanced((DAY, 9000), (OTHER, 2000), at="2026-03-02")]
        self.assertCountEqual(lines(*story), [self.returned(DAY, "-9.00"), self.returned(OTHER, "-1.00")])
        self.assertEqual(table("exceptions", book(*story), "exception", "position", "detail"),
                         [("refund_exceeds_amount", "1", "")])
        exact = [advanced((DAY, 10_000))]
        self.assertEqual(exceptions(book(*exact)), [])
        unpriced = told(signed(advancedCommerceInfo={"items": [{"refunds": [
            {"refundDate": ms(DAY), "refundAmount": 5}]}]}))
        self.assertEqual(exceptions(book(unpriced)), [("unpriced", "no_price")])

    def test_an_assumed_return_takes_the_amount_of_its_date(self):
        found = lines(reply("2026-03-01", DAY), advanced((DAY, 1000), (OTHER, 500)))
        self.assertEqual(found, [self.returned(DAY, "-1.00"), self.returned(OTHER, "-0.50")])
        found = lines(reply("2026-03-01", DAY), advanced((OTHER, 500)))
        self.assertCountEqual(found, [RETURN_ALL, self.returned(OTHER, "0.00"),
                                      ("Reversal", "2026-03-01", "3", "9.50")])

    def test_replies_beside_it(self):
        first = advanced((DAY, 1000))
        self.assertEqual(lines(first, reply("2026-03-02", DAY)), [self.returned(DAY, "-1.00")])
        self.assertEqual(lines(first, reply("2026-03-02", OTHER))[1], ("Return", OTHER, "-3", "-9.00"))
        self.assertEqual(lines(first, reply("2026-03-02"))[1], ("Reversal", "2026-04-01", "0", "1.00"))

    def test_what_is_no_list_of_refunds_refunds_nothing(self):
        for info in ({}, {"items": 5}, {"items": [5, {"refunds": [5]}, {"refunds": {}}]}):
            sale = told(signed(advancedCommerceInfo=info, revocationDate=ms(DAY), **PAID))
            self.assertEqual(lines(sale), [])
        for info in ([], "x", None):
            statement = told(signed(advancedCommerceInfo=info, revocationDate=ms(DAY), **PAID))
            self.assertEqual(lines(statement), [RETURN_ALL])


class FourWays(unittest.TestCase):
    def test_the_order_of_arrival_changes_no_net(self):
        found = book(*four_ways.lines(unsigned))
        shown = [reports.csv_text(*reports.REPORTS[name](found, reports.Options(by=by, refunds="sale-date")))
                 for name, by in (("sales", ()), ("revenue", ("app", "country", "product", "basis")))]
        rows = [list(csv.DictReader(io.StringIO(text, newline=""))) for text in shown]
        self.assertEqual(four_ways.differences(rows), [])
        nets = {row["bundle_id"].split(".")[2]: row["net"] for row in rows[1]}
        self.assertEqual(nets, {"kept": "19.98", "units": "9.99", "part": "13.39", "whole": "0.00",
                                "reversed": "19.98", "amounts": "18.75"})
        sales = [line for (line,) in table("journal", found, "line") if line == "Sale"]
        self.assertEqual(len(sales), 24 * len(four_ways.STORIES))

    def test_an_order_that_differs_is_told(self):
        row = {"bundle_id": "com.example.kept.order00", "net": "1"}
        found = four_ways.differences([[row, row | {"net": "2"}]])
        self.assertTrue(any("order00" in line for line in found), found)


if __name__ == "__main__":
    unittest.main()
