# Hand-worked cases for the revenue rules, rule by rule.
import itertools
import json
import unittest

import reports
from dates import Zone, civil_from_days, days_from_text, fiscal_month_weeks, fiscal_year_end, period_name
from dates import readable_ms, time_from_text, time_text
from support import (
    RECEIPT, book, day, exceptions, line, ms, period, price, row, signed, table, told,
)
from values import Number, NotJSON, flag, identifier, integer, parse

EUR = {"price": "9.99", "currency": "EUR"}


class Values(unittest.TestCase):
    def test_an_id_is_a_non_empty_string_or_the_digits_of_an_integer(self):
        cases = [('"a"', "a"), ("12345678901234567890", "12345678901234567890"), ('""', None),
                 ("null", None), ("true", None), ("1.0", None), ("1e3", None)]
        for text, expected in cases:
            self.assertEqual(identifier(parse(text.encode())), expected, text)

    def test_an_integer_is_one_or_a_string_of_digits(self):
        cases = [("5", 5), ('"05"', 5), ('"-5"', None), ("-5", -5), ("5.0", None), ('" 5"', None),
                 ('"٥"', None), ("true", None), ('"5\\n"', None)]
        for text, expected in cases:
            self.assertEqual(integer(parse(text.encode())), expected, text)

    def test_four_values_set_a_flag(self):
        for text in ("true", '"true"', "1", '"1"'):
            self.assertTrue(flag(parse(text.encode())), text)
        for text in ("false", '"TRUE"', "1.0", "2", '"yes"', "null", "[]"):
            self.assertFalse(flag(parse(text.encode())), text)

    def test_what_is_no_json_is_refused(self):
        for text in (b"NaN", b"{", b"\xff", b'"\\ud800"', b"[" * 100_000):
            with self.assertRaises(NotJSON):
                parse(text)


class Calendar(unittest.TestCase):
    def test_days_and_times(self):
        self.assertEqual(civil_from_days(0), (1970, 1, 1))
        self.assertEqual(civil_from_days(days_from_text("9999-12-31") + 1), (10000, 1, 1))
        self.assertEqual(time_text(-1), "1969-12-31T23:59:59.999Z")
        shifted = time_from_text("2026-01-02T03:04:05.67+01:30")
        self.assertEqual(shifted, ms("2026-01-02") + 5_645_670)
        for text in ("2026-01-02", "2026-02-30T00:00:00Z", "2026-01-02T00:00:00.1234Z"):
            with self.assertRaises(ValueError):
                time_from_text(text)

    def test_names_of_periods(self):
        cases = [("2026-03-14", "quarter", "2026-Q1"), ("2026-12-31", "quarter", "2026-Q4"),
                 ("2026-03-01", "week", "2026-W09"), ("2026-03-02", "week", "2026-W10"),
                 ("2027-01-03", "week", "2026-W53"), ("2024-12-30", "week", "2025-W01"),
                 ("2021-01-03", "week", "2020-W53"), ("1969-12-29", "week", "1970-W01"),
                 ("2026-03-14", "year", "2026"), ("2026-03-14", "day", "2026-03-14")]
        for day, name, expected in cases:
            self.assertEqual(period_name(days_from_text(day), name), expected, day)

    def test_a_zone_decides_the_day(self):
        late = ms("2026-03-29T22:30:00Z")
        self.assertEqual(Zone("Europe/Berlin").day(late), days_from_text("2026-03-30"))
        self.assertEqual(Zone("America/New_York").day(late), days_from_text("2026-03-29"))


class FiscalMonths(unittest.TestCase):
    def name(self, day):
        return period_name(days_from_text(day), "fiscal-month")

    def test_years_of_53_weeks(self):
        long_years = [year for year in range(2006, 2035) if sum(fiscal_month_weeks(year)) == 53]
        self.assertEqual(long_years, [2006, 2012, 2017, 2023, 2028, 2034])
        for year in range(2006, 2035):
            december = 5 if year in long_years else 4
            weeks = [5, 4, december, 5, 4, 4, 5, 4, 4, 5, 4, 4]
            self.assertEqual(fiscal_month_weeks(year), weeks, year)

    def test_months_follow_each_other_without_gaps(self):
        for year in range(2006, 2035):
            days = range(fiscal_year_end(year - 1) + 1, fiscal_year_end(year) + 1)
            names = itertools.groupby(period_name(day, "fiscal-month") for day in days)
            found = [(name, len(list(same))) for name, same in names]
            lengths = [7 * weeks for weeks in fiscal_month_weeks(year)]
            expected = [(f"FY{year}-P{month:02}", length) for month, length in enumerate(lengths, 1)]
            self.assertEqual(found, expected)

    def test_first_and_last_days(self):
        # FY2014-P12 is Apple's sample report, FY2022-P01 and FY2023 are published.
        cases = [("FY2014-P12", "2014-08-31", "2014-09-27"), ("FY2022-P01", "2021-09-26", "2021-10-30"),
                 ("FY2023-P01", "2022-09-25", "2022-10-29"), ("FY2023-P03", "2022-11-27", "2022-12-31"),
                 ("FY2023-P12", "2023-09-03", "2023-09-30"), ("FY2025-P12", "2025-08-31", "2025-09-27"),
                 ("FY2026-P01", "2025-09-28", "2025-11-01"), ("FY2026-P02", "2025-11-02", "2025-11-29")]
        for name, first, last in cases:
            self.assertEqual((self.name(first), self.name(last)), (name, name))
            for outside in (days_from_text(first) - 1, days_from_text(last) + 1):
                self.assertNotEqual(period_name(outside, "fiscal-month"), name)

    def test_years_far_away(self):
        # The calendar and its weekdays repeat after 400 years.
        cycle = 146_097
        for cycles, name in ((-5, "FY0026-P01"), (1, "FY2426-P01"), (20, "FY10026-P01")):
            first = days_from_text("2025-09-28") + cycles * cycle
            self.assertEqual(period_name(first, "fiscal-month"), name)
            self.assertEqual(period_name(first + 34, "fiscal-month"), name)

    def test_a_zone_decides_the_month(self):
        found = book(line(row(date="2025-11-02T03:00:00Z")))
        for zone, name in (("UTC", "FY2026-P02"), ("America/Los_Angeles", "FY2026-P01")):
            rows = table("revenue", found, "period", by=("period",), period="fiscal-month", timezone=zone)
            self.assertEqual(rows, [(name,)])


class Rows(unittest.TestCase):
    def test_another_status_gives_no_sale_but_an_exception(self):
        found = book(line(row(), reply={"status": "21003"}), line(reply={"status": 21010}))
        self.assertEqual(
            exceptions(found),
            [("reply_not_valid", "status 21003 at 1"), ("reply_not_valid", "status 21010 at 3")],
        )
        self.assertEqual(table("sales", found, "sale_key"), [])

    def test_a_legacy_reply_takes_its_environment_from_the_endpoint(self):
        flat = {"bid": "old", **row()}
        recorded = {"endpoint": "sandbox", "reply": {"status": 21006, "receipt": flat}}
        found = book(line(upload={"verification": recorded}))
        self.assertEqual(table("sales", found, "sale_key"), [])
        shown = table("sales", found, "environment", "bundle_id", environments=None)
        self.assertEqual(shown, [("Sandbox", "old")])

    def test_a_receipt_with_in_app_is_no_row_itself(self):
        found = book(line(reply={"receipt": {"bid": "old", "in_app": [], **row()}}))
        self.assertEqual(table("sales", found, "sale_key") + exceptions(found), [])

    def test_the_sources_are_united_and_what_is_no_object_is_no_row(self):
        reply = {"latest_receipt_info": row(transaction="2"),
                 "latest_expired_receipt_info": row(transaction="3")}
        found = book(line("text", row(), 5, reply=reply))
        self.assertEqual(table("sales", found, "sale_key"), [("1",), ("2",), ("3",)])
        self.assertEqual([name for name, _ in exceptions(found)], ["unpriced"] * 3)

    def test_a_malformed_row_says_what_it_lacks_and_nothing_else(self):
        bad = row(quantity="0", original_transaction_id="", transaction_id=True)
        no_dates = row(purchase_date_ms="soon", original_purchase_date_ms=None)
        found = book(line(bad, no_dates, {}))
        expected = [("", ""), ("coins", ""), ("coins", "1")]
        shown = table("exceptions", found, "product_id", "transaction_id")
        self.assertEqual(shown, expected)
        details = ["product_id+transaction_id+purchase_date", "transaction_id", "purchase_date"]
        self.assertEqual([detail for _, detail in exceptions(found)], details)

    def test_the_latest_rows_come_first_then_the_earlier_purchase(self):
        late = period("7", "2", date="2026-01-09", quantity="3")
        early = period("7", "1", date="2026-01-02", quantity="2")
        found = book(line(late, early))
        self.assertEqual(table("sales", found, "quantity", "transaction_ids"), [("2", "1 2")])
        found = book(line(early, reply={"latest_receipt_info": [late]}))
        self.assertEqual(table("sales", found, "quantity"), [("3",)])


    def test_a_sale_before_the_app_store_opened_is_malformed(self):
        day_before, first_day = "2008-07-09T23:59:59.999Z", "2008-07-10"
        for date, count in ((day_before, 0), (first_day, 1)):
            found = book(line(row(date=date), **EUR))
            self.assertEqual(len(table("sales", found, "sale_key")), count)
        columns = ("exception", "sale_key", "product_id", "transaction_id", "detail")
        seconds = {"purchase_date_ms": "1767312000", "original_purchase_date_ms": "1767312000"}
        found = book(line(row(**seconds)), told(signed(transaction="2", purchaseDate=1_767_312_000,
                                                       originalPurchaseDate=1_767_312_000)))
        self.assertEqual(table("exceptions", found, *columns), [
            ("malformed_transaction", "", "coins", "1", "before_2008"),
            ("malformed_transaction", "", "coins", "2", "before_2008")])
        # The sale's own date is checked, and only if nothing is missing.
        self.assertEqual(len(table("sales", book(line(row(purchase_date_ms="1"))), "sale_key")), 1)
        self.assertEqual(exceptions(book(line(period("7", purchase_date_ms="1")))),
                         [("malformed_transaction", "before_2008")])
        self.assertEqual(exceptions(book(line(row(product=None, **seconds)))),
                         [("malformed_transaction", "product_id")])

    def test_a_date_outside_the_years_1_to_9999_is_missing(self):
        first, last = -62_135_596_800_000, 253_402_300_799_999
        missing = "purchase_date"
        for value, detail in ((first - 1, missing), (last + 1, missing), (first, "before_2008")):
            dated = row(purchase_date_ms=value, original_purchase_date_ms=None)
            self.assertEqual(exceptions(book(line(dated))), [("malformed_transaction", detail)])
        found = book(line(row(purchase_date_ms=last, original_purchase_date_ms=None)))
        self.assertEqual(table("sales", found, "sale_date"), [("9999-12-31T23:59:59.999Z",)])


class Version1(unittest.TestCase):
    def body(self, *rows, status=0, **fields):
        unified = {"status": status, "environment": "Production", "latest_receipt": RECEIPT,
                   "latest_receipt_info": list(rows)}
        return {"notification_type": "REFUND", "password": "secret", "bid": "app", "unified_receipt": unified,
                **fields}

    def line(self, body, at="2026-01-05"):
        return json.dumps({"notification_v1": body, "occurred_at": ms(at)})

    def sales(self, *lines):
        return table("sales", book(*lines), "sale_key", "bundle_id", "first_position", "user_identifier")

    def test_its_receipt_gives_sales(self):
        self.assertEqual(self.sales(self.line(self.body(row()))), [("1", "app", "1", "")])
        bare = json.dumps(self.body(row(), occurred_at=ms("2026-01-05")))
        self.assertEqual(self.sales(bare), [("1", "app", "1", "")])
        self.assertEqual(exceptions(book(self.line(self.body(row(), status=21003)))),
                         [("reply_not_valid", "status 21003 at 1")])

    def test_what_is_no_such_line(self):
        good = self.body(row())
        bad = [json.dumps({"notification_v1": good}), json.dumps(self.body()),
               self.line(good | {"bid": None}),
               self.line(good | {"unified_receipt": 5}), self.line([]),
               self.line(good | {"unified_receipt": {**good["unified_receipt"], "latest_receipt": "?"}}),
               json.dumps({"notification_v1": good, "occurred_at": 1, "receipt": RECEIPT})]
        self.assertEqual(self.sales(*bad), [])

    def test_a_bare_body_without_a_time_has_the_latest_of_what_happened(self):
        gone = row(purchase_date_ms=str(ms("2026-01-02")), cancellation_date_ms=str(ms("2026-02-01")))
        changed = {"auto_renew_status_change_date_ms": str(ms("2026-03-01"))}
        for rows, named, day in (([gone], {}, "2026-02-01"), ([gone], changed, "2026-03-01"),
                                 ([], changed, "2026-03-01")):
            found = book(json.dumps(self.body(*rows, status=21003, **named)))
            self.assertEqual(table("exceptions", found, "date"), [(f"{day}T00:00:00.000Z",)])

    def test_its_rows_have_no_time(self):
        gone = row(cancellation_date_ms=str(ms("2026-02-01")))
        for asked, cancelled in (("2026-01-31", "true"), ("2026-02-02", "false")):
            for order in ((0, 1), (1, 0)):
                given = (self.line(self.body(gone)), line(row(), asked=asked))
                found = book(*(given[place] for place in order))
                self.assertEqual(table("sales", found, "cancelled"), [(cancelled,)])

    def test_its_renewal_information_has_the_time_of_its_line(self):
        info = {"original_transaction_id": "1", "auto_renew_status": "0"}
        told_then = self.body(period("7", expires_date_ms=ms("2026-02-02")))
        told_then["unified_receipt"]["pending_renewal_info"] = [info]
        reply = {"pending_renewal_info": [info | {"auto_renew_status": "1"}]}
        for asked, expected in (("2026-01-04", "false"), ("2026-01-06", "true")):
            newer = line(period("7", expires_date_ms=ms("2026-02-02")), asked=asked, reply=reply)
            for order in ((self.line(told_then), newer), (newer, self.line(told_then))):
                self.assertEqual(table("subscriptions", book(*order), "auto_renew", at_ms=0), [(expected,)])


class Sales(unittest.TestCase):
    def test_one_line_item_under_two_transactions_is_one_sale(self):
        found = book(line(period("7", "1")), line(period(7, "2")))
        self.assertEqual(table("sales", found, "sale_key", "transaction_ids"), [("7", "1 2")])

    def test_a_restore_keeps_the_sale_and_its_date(self):
        moved = str(ms("2026-02-02"))
        again = row(transaction="9", original_transaction_id="1", purchase_date_ms=moved)
        found = book(line(row()), line(again, at="2026-02-03"))
        shown = table("sales", found, "sale_date", "transaction_ids")
        self.assertEqual(shown, [("2026-01-02T00:00:00.000Z", "1 9")])

    def test_a_line_item_is_dated_by_its_own_purchase_and_a_transaction_by_the_original(self):
        dates = {"purchase_date_ms": "1300000000001", "original_purchase_date_ms": "1300000000002"}
        for lost, expected in ((None, "12"), ("purchase_date_ms", "22"),
                               ("original_purchase_date_ms", "11")):
            left = {name: None if name == lost else value for name, value in dates.items()}
            found = book(line(period("7", **left), row(transaction="8", **left)))
            shown = [date[-2] for (date,) in table("sales", found, "sale_date")]
            self.assertEqual("".join(shown), expected)

    def test_a_renewal_without_line_item_is_told(self):
        for item in (None, "0", "", 0):
            found = book(line(period(item, "2", expires_date_ms="1")))
            self.assertIn(("renewal_without_line_item", "2"), exceptions(found))
        found = book(line(period(None, "1", expires_date_ms="1")))
        self.assertEqual(exceptions(found), [("unpriced", "no_price")])

    def test_the_first_observation_wins(self):
        later = row(product="other", quantity="3")
        found = book(line(row(quantity="2")), line(later))
        self.assertEqual(table("sales", found, "product_id", "quantity"), [("coins", "2")])
        conflicts = [d for n, d in exceptions(found) if n == "conflicting_observation"]
        self.assertEqual(conflicts, ["product_id", "quantity"])

    def test_a_quantity_outside_one_to_ten_is_one(self):
        for value, detail in [("0", "0"), (11, "11"), ("x", "x"), (True, "true"), (None, "")]:
            found = book(line(row(quantity=value)))
            self.assertEqual(table("sales", found, "quantity"), [("1",)])
            self.assertIn(("bad_quantity", detail), exceptions(found))

    def test_the_kind_is_the_first_that_matches(self):
        shared = {"in_app_ownership_type": "FAMILY_SHARED", "is_trial_period": "1"}
        cases = [(shared, "family_shared"),
                 ({"is_trial_period": True, "is_in_intro_offer_period": True}, "trial"),
                 ({"is_in_intro_offer_period": 1}, "offer"),
                 ({"promotional_offer_id": "p"}, "offer"),
                 ({"offer_code_ref_name": 5}, "offer"), ({"promotional_offer_id": ""}, "regular")]
        for fields, kind in cases:
            self.assertEqual(table("sales", book(line(row(**fields))), "kind"), [(kind,)])

    def test_country_and_user_come_from_the_first_upload_that_names_them(self):
        found = book(
            line(row(), upload={"country_code": None, "user_identifier": None}),
            line(row(), upload={"country_code": "fr", "user_identifier": None}),
            line(row(), upload={"country_code": "US", "user_identifier": "=7"}),
            line(row(), upload={"user_identifier": "8"}),
        )
        columns = ("country_code", "country_position", "user_identifier", "user_position")
        self.assertEqual(table("sales", found, *columns), [("FR", "2", "'=7", "4")])
        self.assertIn(("claimed_by_other_user", "8"), exceptions(found))
        nowhere = book(line(row(), upload={"country_code": None}))
        self.assertEqual(table("sales", nowhere, "country_code"), [("ZZ",)])


class Fraud(unittest.TestCase):
    OTHER = {"user_identifier": "8"}

    def test_a_product_that_is_not_declared_is_unknown(self):
        lines = (line(row("coins", "1"), row("gems", "2")), line(row("gems", "2"), at="2026-01-04"))
        found = book(*lines, products={"coins": "consumable"})
        columns = ("exception", "product_id", "transaction_id", "sale_key", "position", "detail")
        self.assertIn(("product_unknown", "gems", "2", "", "1", ""),
                      table("exceptions", found, *columns))
        names = [name for name, _ in exceptions(found)]
        self.assertEqual(names.count("product_unknown"), 1)
        self.assertNotIn("product_unknown", [name for name, _ in exceptions(book(*lines))])

    def test_only_a_declared_consumable_is_replayed(self):
        for kind, count in (("consumable", 1), ("non_consumable", 0), (None, 0)):
            found = book(line(row()), line(row(), upload=self.OTHER), line(row(), at="2026-01-05"),
                         products={"coins": kind} if kind else None)
            replays = [found for found in exceptions(found) if found[0] == "transaction_replayed"]
            self.assertEqual(replays, [("transaction_replayed", "upload at 2")] * count, kind)
            self.assertIn(("claimed_by_other_user", "8"), exceptions(found))


class Journal(unittest.TestCase):
    CANCELLED = {"cancellation_date_ms": str(ms("2026-02-01")), "cancellation_reason": 1}

    def lines(self, found):
        return table("journal", found, "line", "date", "quantity", "amount", "reason")

    def test_a_return_takes_back_what_the_sale_gave(self):
        found = book(line(row(quantity="2"), **EUR), line(row(quantity="2", **self.CANCELLED)))
        expected = [("Sale", "2026-01-02T00:00:00.000Z", "2", "19.98", ""),
                    ("Return", "2026-02-01T00:00:00.000Z", "-2", "-19.98", "1")]
        self.assertEqual(self.lines(found), expected)

    def test_a_sale_that_was_never_cancelled_is_not_reversed(self):
        upgraded = row(is_upgraded="true", **self.CANCELLED)
        found = book(line(upgraded, asked="2026-02-05"), line(row(), asked="2026-02-06"))
        self.assertEqual(table("journal", found, "line"), [("Sale",)])

    def test_only_a_newer_reply_reverses_and_only_a_newer_one_returns_again(self):
        whole, gone = row(), row(**self.CANCELLED)
        story = [(gone, "2026-02-05", ["Sale", "Return"]), (whole, "2026-02-05", []),
                 (whole, None, []), (gone, "2026-02-07", []), (whole, "2026-02-06", []),
                 (whole, "2026-02-08", ["Reversal"]), (gone, "2026-02-08", []), (gone, None, []),
                 (gone, "2026-02-09", ["Return"]), (gone, "2026-02-10", [])]
        lines, expected = [], []
        for index, (shown, asked, added) in enumerate(story):
            lines.append(line(shown, asked=asked, at=f"2026-03-{index + 1:02}"))
            expected.extend(added)
            names = table("journal", book(*lines), "line")
            self.assertCountEqual([name for (name,) in names], expected, index)
        found = table("journal", book(*lines), "line", "date")
        self.assertIn(("Reversal", "2026-03-06T00:00:00.000Z"), found)

    def test_a_return_without_request_date_has_the_time_of_its_cancellation(self):
        for asked, count in (("2026-02-08", 3), ("2026-02-01", 2)):
            found = book(line(row(**self.CANCELLED)), line(row(), asked=asked))
            self.assertEqual(len(table("journal", found, "line")), count)

    def test_an_upgrade_gives_no_line_but_an_exception(self):
        upgraded = row(is_upgraded="true")
        found = book(line(upgraded, asked="2026-01-31", **EUR), line(row(**self.CANCELLED)))
        self.assertEqual(table("journal", found, "line"), [("Sale",)])
        self.assertEqual(exceptions(found), [("upgrade_credit_unknown", "")])

    def test_trials_have_lines_of_zero_and_unpriced_sales_of_none(self):
        trial = row(transaction="2", is_trial_period="true", **self.CANCELLED)
        amounts = table("journal", book(line(row(), trial)), "line", "amount", "price_basis")
        self.assertEqual(amounts, [("Sale", "", "none"), ("Sale", "0", ""), ("Return", "0", "")])


class ReadableDates(unittest.TestCase):
    def test_the_forms_that_apple_used(self):
        cases = [
            ("2011-08-02 15:08:02 Etc/GMT", 1_312_297_682_000),
            ("2011-08-02 08:08:02 America/Los_Angeles", 1_312_297_682_000),
            ("2011-11-06 01:30:00 America/Los_Angeles", ms("2011-11-06T08:30:00Z")),
            ("2011-11-06 02:00:00 America/Los_Angeles", ms("2011-11-06T10:00:00Z")),
            ("2011-03-13 02:30:00 America/Los_Angeles", ms("2011-03-13T10:30:00Z")),
            ("2006-08-02 08:08:02 America/Los_Angeles", None),
            ("2011-08-32 15:08:02 Etc/GMT", None), ("2011-08-02", None), (None, None), (5, None),
        ]
        for text, expected in cases:
            self.assertEqual(readable_ms(text), expected, text)

    def test_a_reply_without_milliseconds_gives_its_sale_and_its_return(self):
        old = row(purchase_date_ms=None, original_purchase_date_ms=None,
                  purchase_date="2011-08-02 15:08:02 Etc/GMT",
                  original_purchase_date_pst="2011-08-02 08:08:03 America/Los_Angeles",
                  cancellation_date="2011-08-09 15:08:02 Etc/GMT")
        self.assertEqual(
            table("journal", book(line(old)), "line", "date"),
            [("Sale", "2011-08-02T15:08:03.000Z"), ("Return", "2011-08-09T15:08:02.000Z")])

    def test_when_a_reply_was_made_and_what_it_says_of_renewals(self):
        gone = row(cancellation_date_ms=str(ms("2026-02-01")))
        asked = {"bundle_id": "app", "in_app": [row()],
                 "request_date_pst": "2026-02-04 16:00:00 America/Los_Angeles"}
        for later, count in (("2026-02-04", 3), ("2026-02-06", 2)):
            found = book(line(gone, asked=later), line(reply={"receipt": asked}))
            self.assertEqual(len(table("journal", found, "line")), count)
        info = {"original_transaction_id": "1", "grace_period_expires_date": "2026-02-08 00:00:00 Etc/GMT"}
        shown = line(period("7", expires_date_pst="2026-02-01 16:00:00 America/Los_Angeles"),
                     reply={"pending_renewal_info": [info]})
        self.assertEqual(
            table("subscriptions", book(shown), "expires_at", "grace_period_expires_at", at_ms=0),
            [("2026-02-02T00:00:00.000Z", "2026-02-08T00:00:00.000Z")])

    def test_milliseconds_win(self):
        both = row(original_purchase_date="2011-08-02 15:08:02 Etc/GMT")
        self.assertEqual(table("sales", book(line(both)), "sale_date"),
                         [("2026-01-02T00:00:00.000Z",)])


class Reports(unittest.TestCase):
    CANCELLED = Journal.CANCELLED

    def test_revenue_adds_up_by_country_and_currency(self):
        found = book(
            line(row(quantity="3"), **EUR),
            line(row(quantity="3", **self.CANCELLED)),
            line(row(transaction="2"), price="1.5", currency="KWD"),
            line(row(transaction="3", is_trial_period=1), row(transaction="4", quantity="2")),
        )
        expected = [("DE", "", "2", "", "0", "", "2", "1"),
                    ("DE", "EUR", "3", "29.97", "3", "29.97", "0", "0"),
                    ("DE", "KWD", "1", "1.500", "0", "0.000", "0", "0")]
        columns = ("country_code", "currency", "units", "gross", "returned_units", "returns",
                   "unpriced_units", "trials")
        self.assertEqual(table("revenue", found, *columns), expected)
        self.assertEqual(table("revenue", found, "net"), [("",), ("0.00",), ("1.500",)])

    def test_a_reversal_adds_to_the_net_and_a_trials_return_makes_no_row(self):
        trial = row(transaction="2", is_trial_period=1, **self.CANCELLED)
        unpriced = row(transaction="3", **self.CANCELLED)
        found = book(
            line(row(), trial, unpriced, asked="2026-01-04", **EUR, product_id="coins"),
            line(row(**self.CANCELLED), asked="2026-02-05"),
            line(row(), asked="2026-02-06", at="2026-02-07"),
        )
        columns = ("period", "currency", "returns", "reversals", "net", "trials", "units")
        shown = table("revenue", found, *columns, by=("period",))
        expected = [("2026-01", "", "", "", "", "1", "0"),
                    ("2026-01", "EUR", "0.00", "0.00", "19.98", "0", "2"),
                    ("2026-02", "EUR", "19.98", "9.99", "-9.99", "0", "0")]
        self.assertEqual(shown, expected)

    def test_an_unpriced_return_is_no_second_unpriced_unit(self):
        found = book(line(row(quantity="2", **self.CANCELLED)))
        shown = table("revenue", found, "units", "returned_units", "unpriced_units", "net")
        self.assertEqual(shown, [("2", "2", "2", "")])

    def test_both_limits_are_days_within(self):
        found = book(line(row(), row(transaction="2", date="2026-01-04T23:59:59.999Z")))
        for first, last, expected in (("02", "04", "2"), ("02", "03", "1"), ("03", "04", "1")):
            limits = {"from_day": days_from_text(f"2026-01-{first}"),
                      "to_day": days_from_text(f"2026-01-{last}")}
            self.assertEqual(table("revenue", found, "units", **limits), [(expected,)])

    def test_refunds_stand_in_their_own_period_or_restate_the_sale(self):
        found = book(line(row(), **EUR), line(row(**self.CANCELLED)))
        options = {"by": ("period",)}
        columns = ("period", "gross", "returns", "net")
        expected = [("2026-01", "9.99", "0.00", "9.99"), ("2026-02", "0.00", "9.99", "-9.99")]
        self.assertEqual(table("revenue", found, *columns, **options), expected)
        options["refunds"] = "sale-date"
        self.assertEqual(table("revenue", found, *columns, **options),
                         [("2026-01", "9.99", "9.99", "0.00")])
        options["from_day"] = days_from_text("2026-02-01")
        self.assertEqual(table("revenue", found, *columns, **options), [])

    def test_each_line_is_converted_at_its_own_day(self):
        rates = ["2026-01-01,EUR,USD,1.25", "2026-01-31,EUR,USD,3", "2026-02-02,EUR,USD,9"]
        sale = line(row(), price="1", currency="USD")
        found = book(sale, line(row(**self.CANCELLED)), rates=rates)
        shown = table("journal", found, "amount", "currency", reporting_currency="EUR")
        self.assertEqual(shown, [("0.80", "EUR"), ("-0.333333", "EUR")])

    def test_a_cross_rate_goes_through_the_first_base_that_has_both(self):
        rates = ["2026-01-01,CHF,USD,2", "2026-01-01,CHF,EUR,3", "2026-01-01,AUD,EUR,7"]
        found = book(line(row(), price="1", currency="USD"), rates=rates)
        shown = table("journal", found, "amount", reporting_currency="EUR")
        self.assertEqual(shown, [("1.50",)])

    def test_of_the_rates_known_on_a_day_the_latest_day_counts_then_the_latest_position(self):
        rates = ["2026-01-02,EUR,USD,2", "2026-01-02,EUR,USD,4", "2026-01-01,EUR,USD,5"]
        found = book(line(row(), price="1", currency="USD"), rates=rates)
        shown = table("journal", found, "amount", reporting_currency="EUR")
        self.assertEqual(shown, [("0.25",)])

    def test_a_line_without_a_rate_keeps_its_currency(self):
        found = book(line(row(), **EUR), rates=["2026-01-03,EUR,USD,2"])
        shown = table("journal", found, "amount", "currency", reporting_currency="USD")
        self.assertEqual(shown, [("9.99", "EUR")])
        self.assertEqual(exceptions(found, reporting_currency="USD"), [("unconverted", "Sale EUR")])
        self.assertEqual(exceptions(found), [])

    def test_a_rate_that_is_too_old_converts_nothing_and_is_told(self):
        sale = line(row(), price="1", currency="USD")
        found = book(sale, rates=["2010-01-04,EUR,USD,2"])
        shown = table("journal", found, "amount", "currency", reporting_currency="EUR")
        self.assertEqual(shown, [("1.00", "USD")])
        self.assertEqual(exceptions(found, reporting_currency="EUR"),
                         [("stale_rate", "USD 2010-01-04"), ("unconverted", "Sale USD")])
        options = {"reporting_currency": "EUR", "rates_max_age": 10_000}
        self.assertEqual(table("journal", found, "amount", "currency", **options),
                         [("0.50", "EUR")])
        self.assertEqual(exceptions(found, **options), [])

    def test_the_age_of_each_leg_counts_and_a_younger_way_is_taken(self):
        sale = line(row(), price="1", currency="USD")
        cases = [
            # 35 days are within the limit, 36 are not.
            (["2025-11-28,EUR,USD,2"], "0.50", []),
            (["2025-11-27,EUR,USD,2"], "1.00", ["USD 2025-11-27"]),
            # A stale pair is replaced by its inverse, that by a base, and that by the next base.
            (["2025-01-01,USD,EUR,7", "2026-01-01,EUR,USD,4"], "0.25", []),
            (["2025-01-01,USD,EUR,7", "2026-01-01,CHF,USD,4", "2026-01-01,CHF,EUR,3"], "0.75", []),
            (["2025-01-01,AUD,USD,4", "2026-01-01,AUD,EUR,3", "2026-01-01,CHF,USD,4",
              "2026-01-01,CHF,EUR,2"], "0.50", []),
            # Of two legs the older is reported.
            (["2025-01-01,AUD,USD,4", "2026-01-01,AUD,EUR,3"], "1.00", ["USD 2025-01-01"]),
            (["2026-01-01,AUD,USD,4", "2025-02-01,AUD,EUR,3"], "1.00", ["USD 2025-02-01"]),
        ]
        for rates, amount, stale in cases:
            found = book(sale, rates=rates)
            self.assertEqual(table("journal", found, "amount", reporting_currency="EUR"),
                             [(amount,)], rates)
            details = [detail for name, detail in exceptions(found, reporting_currency="EUR")
                       if name == "stale_rate"]
            self.assertEqual(details, stale, rates)

    def test_a_line_beyond_64_bits_once_converted_keeps_its_currency(self):
        huge = line(row(quantity="10"), price="99999999999", currency="EUR")
        found = book(huge, rates=["2026-01-01,EUR,JPY,160"])
        shown = table("journal", found, "amount", "currency", reporting_currency="JPY")
        self.assertEqual(shown, [("999999999990.00", "EUR")])
        self.assertEqual(exceptions(found, reporting_currency="JPY"), [("unconverted", "Sale EUR")])

    def test_line_items_come_before_transactions(self):
        found = book(line(row(transaction="7"), asked="2026-02-01"), line(period("7")))
        self.assertEqual(table("sales", found, "transaction_ids"), [("1",), ("7",)])
        self.assertEqual(table("journal", found, "transaction_id"), [("7",), ("1",)])

    def test_an_exception_is_told_once_with_its_first_position(self):
        found = book(*(line(row(quantity="0"), asked=f"2026-01-0{day}") for day in (1, 2)))
        shown = table("exceptions", found, "exception", "position")
        self.assertEqual(shown, [("bad_quantity", "1"), ("unpriced", "1")])

    def test_a_month_shows_the_exceptions_of_its_lines(self):
        canceled = {"cancellation_date_ms": str(ms("2026-02-10"))}
        found = book(line(row(**canceled)), line(row(transaction="2", date="2026-03-05")),
                     rates=["2026-01-01,EUR,USD,2"])
        cases = [
            ({}, ["1", "2"]),
            ({"from_day": day("2026-01-02"), "to_day": day("2026-01-02")}, ["1"]),
            ({"from_day": day("2026-02-10"), "to_day": day("2026-02-10")}, ["1"]),
            ({"from_day": day("2026-02-10"), "refunds": "sale-date"}, ["2"]),
            ({"from_day": day("2026-02-11"), "to_day": day("2026-03-04")}, []),
            ({"to_day": day("2026-01-01"), "timezone": "America/New_York"}, ["1"]),
        ]
        for options, keys in cases:
            self.assertEqual(
                table("exceptions", found, "exception", "sale_key", **options),
                [("unpriced", key) for key in keys], options)

    def test_an_exception_without_a_sale_counts_when_it_was_verified(self):
        wrong = line(reply={"status": 21010}, at="2026-02-10")
        found = book(wrong, line(row(product=""), at="2026-03-05"))
        february = {"from_day": day("2026-02-01"), "to_day": day("2026-02-28")}
        self.assertEqual([name for name, _ in exceptions(found, **february)], ["reply_not_valid"])
        march = {"from_day": day("2026-03-01")}
        self.assertEqual([name for name, _ in exceptions(found, **march)],
                         ["malformed_transaction"])

    def test_a_status_beyond_64_bits_is_none_that_can_be_read(self):
        found = book(line(reply={"status": 10**20}))
        self.assertEqual(exceptions(found), [("reply_not_valid", "status none at 1")])

    def test_only_the_lines_of_a_period_are_unconverted_in_it(self):
        canceled = {"cancellation_date_ms": str(ms("2026-02-10"))}
        found = book(line(row(**canceled), **EUR))
        february = {"from_day": day("2026-02-01"), "reporting_currency": "USD"}
        self.assertEqual(exceptions(found, **february), [("unconverted", "Return EUR")])

    def test_cells_that_a_spreadsheet_would_run_are_text(self):
        cases = [("=1", "'=1"), ("-1", "'-1"), ("\tx", "'\tx"), ("\rx", '"\'\rx"'),
                 ("a,b", '"a,b"'), ('a"b', '"a""b"'), ("=a,b", "\"'=a,b\""), ("a=b", "a=b"),
                 ("\nx", '"\'\nx"'), ("\0x", "'\0x"), ("\uff1d1", "'\uff1d1"),
                 ("\uff0b1", "'\uff0b1"), ("\uff0d1", "'\uff0d1"), ("\uff20a", "'\uff20a"),
                 ("\uff1e1", "\uff1e1"), ("a;b", '"a;b"'), ("=a;b", "\"'=a;b\""),
                 (reports.number(-1), "-1")]
        for cell, expected in cases:
            self.assertEqual(reports.cell_text(cell), expected)


class Import(unittest.TestCase):
    def test_bad_and_repeated_lines_leave_no_events(self):
        good = line(row())
        bad = ["{", "[]", "{}", line(row(), upload={"receipt": "?"}),
               line(row(), upload={"country_code": "ZZ"}),
               line(row(), upload={"occurred_at": "yesterday"})]
        found = book(*bad, good, good, line(row(transaction="2")))
        self.assertEqual(table("sales", found, "first_position"), [("1",), ("3",)])

    def test_the_time_of_an_upload_falls_back_on_the_reply(self):
        whole = json.loads(line(row(), asked="2026-02-02", **EUR))
        del whole["occurred_at"]
        self.assertEqual(price(book(json.dumps(whole)))[0][0], "none")
        whole["verification"]["reply"]["receipt"]["request_date_ms"] = str(ms("2026-02-01"))
        self.assertEqual(price(book(json.dumps(whole)))[0][0], "client_single")

    def test_an_endpoint_is_told_by_the_replys_environment(self):
        for environment, expected in (("Sandbox", "Sandbox"), ("Production", "Production"), ("X", "X")):
            whole = json.loads(line(row(), reply={"environment": environment}))
            del whole["verification"]["endpoint"]
            found = table("sales", book(json.dumps(whole)), "environment", environments=None)
            self.assertEqual(found, [(expected,)])
        del whole["verification"]["reply"]["environment"]
        self.assertEqual(table("sales", book(json.dumps(whole)), "environment", environments=None), [])

    def test_a_line_without_verification_is_no_revenue(self):
        found = book(json.dumps({"marketplace": "itunes", "receipt": RECEIPT}))
        self.assertEqual(table("sales", found, "sale_key") + exceptions(found), [])


if __name__ == "__main__":
    unittest.main()
