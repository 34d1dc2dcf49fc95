# Hand-worked cases of refunds: shares, replies with signed statements, Advanced Commerce (rule R12).
import csv
import io
import itertools
import random
import unittest
from dataclasses import replace

import events
import four_ways
import reports
from journal import Book
from sales import Fold
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
    """A notification without a refund."""
    return told(signed(at=at, **PAID, **fields))


def reply(asked, on=None, at="2026-04-01", **fields):
    """A reply that shows the sale, cancelled if `on` gives a date."""
    if on is not None:
        fields |= {"cancellation_date_ms": str(ms(on)), "cancellation_reason": "0"}
    return line(row(quantity="3", **fields), asked=asked, at=at)


def advanced(*refunds, at="2026-03-01", **fields):
    """A notification of Advanced Commerce; `refunds`: (date, milliunits)."""
    entries = [{"refundDate": None if on is None else ms(on), "refundAmount": amount}
               for on, amount in refunds]
    return told(signed(at=at, advancedCommerceInfo={"items": [{"refunds": entries}]}, **(PAID | fields)))


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
                 # More than 0.0005 % off: a share that refunds no units.
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
        # Units never have the opposite sign, and units that were not refunded do not come back.
        self.assertEqual(found[1], ("Reversal", "2026-03-02", "0", "1.67"))
        found = lines(revoked(50_000, "2026-03-01"), revoked(33_333, "2026-03-02"), whole("2026-03-03"))
        self.assertEqual(found[2], ("Reversal", "2026-03-03", "0", "3.33"))
        shown = table("revenue", book(revoked(50_000, "2026-03-01"), revoked(33_333, "2026-03-02")),
                      "returned_units", "returns", "reversed_units", "reversals", "net")
        self.assertEqual(shown, [("0", "5.00", "0", "1.67", "6.67")])

    def test_equal_times_count_in_their_order_replies_first(self):
        self.assertEqual(lines(whole("2026-03-02"), revoked(33_333, "2026-03-02")), [RETURN_ONE])
        self.assertEqual(len(lines(revoked(33_333, "2026-03-02"), whole("2026-03-02"))), 2)
        # Whichever came first, the signed one counts last.
        for order in ((whole(), reply("2026-03-01", DAY)), (reply("2026-03-01", DAY), whole())):
            self.assertEqual(table("sales", book(*order), "cancelled"), [("false",)])
        # Within one event, the total at its end counts.
        two = upload(signed(at="2026-03-01", **PAID, revocationDate=ms(DAY)), signed(at="2026-03-01", **PAID))
        self.assertEqual(table("journal", book(two), "line"), [("Sale",)])

    def test_units_follow_from_the_quantity_known_at_the_end(self):
        found = lines(revoked(33_333, quantity=0), whole("2026-03-02"), revoked(33_333, "2026-03-03"))
        self.assertEqual(found, [RETURN_ONE, RETURN_ONE, ("Reversal", "2026-03-02", "1", "3.33")])

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
        self.assertEqual(exceptions(found), [self.CREDIT])
        for later in (revoked(at="2026-03-03"), reply("2026-03-03", DAY)):
            found = [whole("2026-03-02"), whole("2026-03-01", isUpgraded=True), later]
            self.assertEqual(lines(*found), [])
            self.assertIn(self.CREDIT, exceptions(book(*found)))

    def test_an_upgrade_that_is_told_later_takes_what_is_newer_back(self):
        upgraded = whole("2026-03-01", isUpgraded=True)
        self.assertEqual(lines(revoked(33_333, "2026-03-02"), upgraded), [RETURN_ONE])
        for newer in (revoked(at="2026-03-02"), reply("2026-03-02", DAY)):
            found = lines(newer, upgraded, columns=("line", "quantity", "amount"))
            self.assertEqual(found, [("Return", "-3", "-10.00"), ("Reversal", "3", "10.00")])
            self.assertEqual(lines(upgraded, newer), [])
        # No older cancellation.
        older = reply("2026-02-20", DAY)
        for order in ((older, upgraded), (upgraded, older)):
            self.assertEqual(lines(*order), [RETURN_ALL])

    def test_a_reply_without_any_time_upgrades_the_column_alone(self):
        timeless = reply(None, is_upgraded="true")
        for order in ((timeless, revoked()), (revoked(), timeless)):
            found = book(*order)
            self.assertEqual(table("sales", found, "is_upgraded", "cancelled"), [("true", "true")])
            self.assertEqual(exceptions(found), [])

    def test_what_was_returned_before_stays(self):
        found = [revoked(33_333), whole("2026-03-02", isUpgraded=True)]
        self.assertEqual(lines(*found), [RETURN_ONE])
        # A newer reply without the cancellation takes it back.
        reversal = reply("2026-03-02", is_upgraded="true")
        self.assertEqual(lines(*found, reversal)[1], ("Reversal", "2026-04-01", "1", "3.33"))


class Replies(unittest.TestCase):
    def test_a_reply_counts_at_its_time_whenever_it_comes(self):
        for asked in ("2026-02-28", "2026-03-01", None):
            self.assertEqual(lines(whole(), reply(asked, DAY)), [])
            self.assertEqual(lines(revoked(33_333), reply(asked)), [RETURN_ONE])
        self.assertEqual(lines(reply("2026-03-02"), revoked(33_333)), [])

    def test_a_reply_without_a_time_has_that_of_its_cancellation(self):
        self.assertEqual(lines(reply(None, DAY), told(signed("gems", "2"))), [("Return", DAY, "-3", "")])
        timeless, newer = reply(None, DAY), reply("2026-02-02")
        self.assertEqual(len(lines(timeless, newer)), 2)
        self.assertEqual(lines(newer, timeless), [])
        # The reply is not newer than the one that reversed.
        self.assertEqual(len(lines(reply("2026-02-01", DAY), newer, timeless)), 2)

    def test_a_newer_reply_returns_and_reverses_all(self):
        self.assertEqual(lines(whole(), reply("2026-03-02", DAY)), [RETURN_ALL])
        self.assertEqual(lines(revoked(33_333), reply("2026-03-02")),
                         [RETURN_ONE, ("Reversal", "2026-04-01", "1", "3.33")])

    def test_a_reply_that_still_shows_a_known_cancellation_changes_nothing(self):
        self.assertEqual(lines(revoked(33_333), reply("2026-03-02", DAY + "T00:00:00.999Z")), [RETURN_ONE])
        # Yet it showed the refund: only a newer reply reverses it.
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
        # With another date, or with a line in between, it is compared.
        self.assertEqual(lines(assumed, revoked(33_333, on=OTHER)),
                         [RETURN_ALL, ("Reversal", "2026-03-01", "2", "6.67")])
        followed = [assumed, whole("2026-03-02"), revoked(33_333, "2026-03-03")]
        names = [name for name, *_ in lines(*followed)]
        self.assertEqual(names, ["Return", "Return", "Reversal"])
        # An older one does as well, and the second is compared.
        self.assertEqual(lines(assumed, revoked(33_333, "2026-02-28")), [RETURN_ONE])
        self.assertEqual(lines(assumed, revoked(33_333), revoked(66_667, "2026-03-02"))[1][0], "Return")
        confirmed = lines(assumed, revoked(), revoked(33_333, "2026-03-02"))
        self.assertEqual(confirmed, [RETURN_ALL, ("Reversal", "2026-03-02", "2", "6.67")])

    def test_a_corrected_return_is_never_below_nothing(self):
        on_top = [revoked(33_333), reply("2026-03-02", OTHER)]
        less = revoked(0, "2026-03-03", OTHER)
        self.assertEqual(lines(*on_top, less), [
            RETURN_ONE, ("Return", OTHER, "0", "0.00"), ("Reversal", "2026-03-03", "1", "3.33")])

    def test_the_last_that_changed_the_total_dates_the_line(self):
        # The reply of March 4 reported a further refund, until its date's share became known.
        first, on_top = revoked(33_333), reply("2026-03-04", OTHER)
        newer = [reply("2026-03-05", DAY), whole("2026-03-06"), revoked(33_333, "2026-03-07")]
        found = lines(first, on_top, *newer, columns=("line", "date", "amount"))
        self.assertEqual(found, [("Return", DAY, "-3.33"), ("Return", DAY, "-3.33"),
                                 ("Return", OTHER, "-6.67"), ("Reversal", "2026-03-06", "10.00")])
        # An older statement that fills a gap has no line of its own.
        self.assertEqual(lines(revoked(33_333, "2026-03-07"), revoked(66_667, "2026-03-02")), [RETURN_ONE])

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
        self.assertCountEqual(lines(*story),
                              [self.returned(DAY, "-9.00"), ("Return", OTHER, "-3", "-1.00")])
        self.assertEqual(table("exceptions", book(*story), "exception", "position", "detail"),
                         [("refund_exceeds_amount", "1", "")])
        exact = [advanced((DAY, 10_000))]
        self.assertEqual(exceptions(book(*exact)), [])
        unpriced = told(signed(advancedCommerceInfo={"items": [{"refunds": [
            {"refundDate": ms(DAY), "refundAmount": 5}]}]}))
        self.assertEqual(exceptions(book(unpriced)), [("unpriced", "no_price")])

    def test_sums_beside_a_full_share_may_exceed_the_amount(self):
        replies = [reply("2026-03-01", DAY), reply("2026-03-03", OTHER)]
        for amount, found in [(10_005, [("refund_exceeds_amount", "")]), (10_000, [])]:
            story = [*replies, advanced((DAY, amount), at="2026-03-02")]
            self.assertEqual(lines(*story), [RETURN_ALL])
            self.assertEqual(exceptions(book(*story)), found)

    def test_an_assumed_return_takes_the_amount_of_its_date(self):
        found = lines(reply("2026-03-01", DAY), advanced((DAY, 1000), (OTHER, 500)))
        self.assertEqual(found, [self.returned(DAY, "-1.00"), self.returned(OTHER, "-0.50")])
        found = lines(reply("2026-03-01", DAY), advanced((OTHER, 500)))
        self.assertCountEqual(found, [RETURN_ALL, ("Reversal", "2026-03-01", "3", "10.00"),
                                      self.returned(OTHER, "-0.50")])
        # The refund before the reply is reversed by itself.
        found = lines(revoked(33_333), reply("2026-03-02", OTHER), advanced((OTHER, 500), at="2026-03-03"))
        self.assertEqual(found, [RETURN_ONE, self.returned(OTHER, "-0.50"),
                                 ("Reversal", "2026-03-03", "1", "3.33")])

    def test_what_is_less_comes_first(self):
        found = lines(advanced((DAY, 9000)), advanced((OTHER, 9000), at="2026-03-02"))
        self.assertCountEqual(found, [self.returned(DAY, "-9.00"), self.returned(OTHER, "-9.00"),
                                      ("Reversal", "2026-03-02", "0", "9.00")])
        found = lines(revoked(66_667), advanced((DAY, 1000), at="2026-03-02"))
        self.assertCountEqual(found, [("Return", DAY, "-2", "-6.67"), self.returned(DAY, "-1.00"),
                                      ("Reversal", "2026-03-02", "2", "6.67")])

    def test_a_sum_equal_to_the_amount_takes_all_units(self):
        for total, units in ((9999, "0"), (10_000, "-3"), (10_001, "-3")):
            self.assertEqual(lines(advanced((DAY, total)))[0][2], units)
        found = lines(advanced((DAY, 10_000)), advanced((DAY, 4000), at="2026-03-02"))
        self.assertEqual(found[1], ("Reversal", "2026-03-02", "3", "6.00"))
        unpriced = lines(advanced((DAY, 10_000), price=None))
        self.assertEqual(unpriced, [("Return", DAY, "0", "")])

    def test_a_refund_on_top_does_not_exceed_the_amount(self):
        found = book(advanced((DAY, 9000)), reply("2026-03-02", OTHER))
        self.assertEqual(exceptions(found), [])
        newer = advanced((DAY, 9000), at="2026-03-03")
        found = lines(advanced((DAY, 9000)), reply("2026-03-02", OTHER), newer)
        self.assertEqual(found[2], ("Reversal", "2026-03-03", "3", "1.00"))

    def test_replies_beside_it(self):
        first = advanced((DAY, 1000))
        self.assertEqual(lines(first, reply("2026-03-02", DAY)), [self.returned(DAY, "-1.00")])
        self.assertEqual(lines(first, reply("2026-03-02", OTHER))[1], ("Return", OTHER, "-3", "-9.00"))
        self.assertEqual(lines(first, reply("2026-03-02"))[1], ("Reversal", "2026-04-01", "0", "1.00"))
        # After a Reversal its dates give no Return, and other dates in the statement name nothing.
        self.assertEqual(len(lines(first, reply("2026-03-02"), reply("2026-03-03", DAY))), 2)
        beside = advanced((DAY, 1000), revocationDate=ms(OTHER))
        self.assertEqual(lines(beside, reply("2026-03-02", OTHER))[1], ("Return", OTHER, "-3", "-9.00"))

    def test_what_is_no_list_of_refunds_refunds_nothing(self):
        for info in ({}, {"items": 5}, {"items": [5, {"refunds": [5]}, {"refunds": {}}]}):
            sale = told(signed(advancedCommerceInfo=info, revocationDate=ms(DAY), **PAID))
            self.assertEqual(lines(sale), [])
        for info in ([], "x", None):
            statement = told(signed(advancedCommerceInfo=info, revocationDate=ms(DAY), **PAID))
            self.assertEqual(lines(statement), [RETURN_ALL])


class AllOrders(unittest.TestCase):
    AMOUNTS = (1000, 4000, 10_000, 12_000)

    def draw(self, source):
        """Up to six statements of different times."""
        days = source.sample(range(10, 28), source.choice((3, 3, 4, 4, 4, 5, 5, 6)))
        return [self.told_on(source, day, is_first=day == days[0]) for day in days]

    def told_on(self, source, day, is_first):
        """The first is always priced; a reply without a time has a cancellation's."""
        at, on = f"2026-03-{day:02}", source.choice((DAY, OTHER))
        upgraded = source.random() < 0.15
        form = "signed" if is_first else source.choice(("signed", "advanced", "reply", "reply"))
        if form == "advanced":
            dates = source.choice(((), (DAY,), (DAY, OTHER)))
            return advanced(*((date, source.choice(self.AMOUNTS)) for date in dates), at=at)
        if form == "reply":
            fields = {"is_upgraded": "true"} if upgraded else {}
            if source.random() < 0.2:
                return reply(None, source.choice((at, None)), **fields)
            return reply(at, source.choice((on, None)), **fields)
        if source.random() < 0.4:
            return whole(at, isUpgraded=upgraded)
        return revoked(source.choice((33_333, 66_667, 40_000, 0, None)), at, on, isUpgraded=upgraded)

    def test_a_story_has_one_net(self):
        seed = random.randrange(10**6)
        source = random.Random(seed)
        for number in range(25):
            story = self.draw(source)
            positions = events.Positions()
            told_of = list(events.Importer(positions, ms("2026-11-01")).events("\n".join(story).encode()))
            nets = set()
            for order in itertools.permutations(told_of):
                fold = Fold()
                for position, event in enumerate(order):
                    fold.add(replace(event, position=position))
                found = Book(fold)
                (sale,) = found.sales
                nets.add((sum(line.amount_micros for line in found.lines()), sale.refunds.total.share,
                          sale.refunds.total.sum))
            self.assertEqual(len(nets), 1, f"seed {seed}, story {number}: {story}")


class FourWays(unittest.TestCase):
    def test_the_order_of_arrival_changes_no_net(self):
        found = book(*four_ways.lines(unsigned))
        shown = [reports.csv_text(*reports.REPORTS[name](found, reports.Options(by=by, refunds="sale-date")))
                 for name, by in (("sales", ()), ("revenue", ("app", "country", "product", "basis")))]
        rows = [list(csv.DictReader(io.StringIO(text, newline=""))) for text in shown]
        self.assertEqual(four_ways.differences(rows), [])
        nets = {row["bundle_id"].split(".")[2]: row["net"] for row in rows[1] if row["product_id"] == "pro"}
        self.assertEqual(nets, {"kept": "19.98", "units": "9.99", "part": "13.39", "whole": "0.00",
                                "reversed": "19.98", "amounts": "18.75"})
        sales = [line for (line,) in table("journal", found, "line") if line == "Sale"]
        self.assertEqual(len(sales), 2 * 24 * len(four_ways.STORIES))
        users = {(row["product_id"], row["user_identifier"], row["user_basis"]) for row in rows[0]}
        self.assertEqual(users, {("pro", "42", "upload"), ("gift", "42", "account")})

    def test_an_order_that_differs_is_told(self):
        row = {"bundle_id": "com.example.kept.order00", "product_id": "pro", "net": "1"}
        found = four_ways.differences([[row, row | {"net": "2"}]])
        self.assertTrue(any("order00" in line for line in found), found)


if __name__ == "__main__":
    unittest.main()
