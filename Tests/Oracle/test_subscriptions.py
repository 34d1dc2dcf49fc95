# Hand-worked cases for subscriptions: statements, renewal information, status, months (rule R13).
import unittest

import subscription_reports
from dates import DAY_MS, Zone, month_of, month_start, period_name
from support import (
    OTHER_TOKEN, TOKEN, book, jws, line, ms, notification, period, renewal, row, table, told, upload,
)

AUTO = "Auto-Renewable Subscription"
PAID = {"price": 9990, "currency": "EUR"}


def shown(a_book, *columns, at="2026-01-20", **options):
    """Cells of the only subscription."""
    rows = table("subscriptions", a_book, *columns, at_ms=ms(at), **options)
    assert len(rows) == 1, rows
    return rows[0]


def states(a_book, *moments):
    return [shown(a_book, "status", at=at)[0] for at in moments]


def first(until="2026-02-02", line_item="7", at="2026-01-03", date="2026-01-02", **fields):
    """A signed period of subscription 1."""
    fields = {"expiresDate": ms(until), **fields}
    return renewal(line_item, date=date, at=at, **fields)


def renews(line_item, date, until, **fields):
    """A later period with a transaction of its own."""
    fields = {"originalPurchaseDate": ms("2026-01-02"), **fields}
    return first(until, line_item, date=date, transaction=line_item, **fields)


def informed(name, at, payload=None, bundle="app", **fields):
    """A notification with renewal information, and with a transaction if one is given."""
    info = {"originalTransactionId": "1", "signedDate": ms(at), **fields}
    signed_info = jws({key: value for key, value in info.items() if value is not None})
    return notification(payload, name, at, signedRenewalInfo=signed_info, bundleId=bundle)


def replied(*rows, asked="2026-01-04", **members):
    return line(*rows, asked=asked, reply=members)


def pending(**fields):
    return {"pending_renewal_info": [{"original_transaction_id": "1", **fields}]}


class Statements(unittest.TestCase):
    def subscriptions(self, *lines):
        return table("subscriptions", book(*lines), "original_transaction_id", "expires_at", at_ms=0)

    def test_only_auto_renewables_with_an_expiry(self):
        for fields in ({"type": AUTO}, {}, {"type": ""}, {"type": None}):
            self.assertEqual(len(self.subscriptions(told(first(**fields)))), 1)
        for fields in ({"type": "Non-Renewing Subscription"}, {"expiresDate": None}, {"expiresDate": "x"}):
            self.assertEqual(self.subscriptions(told(first(**fields))), [])
        self.assertEqual(self.subscriptions(line(period("7"))), [])

    def test_a_rows_expiry_in_each_form(self):
        good, other = str(ms("2026-02-02")), "2026-03-03 00:00:00 Etc/GMT"
        cases = [{"expires_date_ms": good, "expires_date": other}, {"expires_date": good},
                 {"expires_date": "2026-02-02 00:00:00 Etc/GMT", "expires_date_formatted": other},
                 {"expires_date_formatted": "2026-02-01 16:00:00 America/Los_Angeles"},
                 {"expires_date_ms": "soon", "expires_date": ms("2026-02-02")}]
        for fields in cases:
            found = self.subscriptions(line(period("7", **fields)))
            self.assertEqual(found, [("1", "2026-02-02T00:00:00.000Z")])

    def test_a_malformed_row_and_a_reply_that_does_not_count_show_none(self):
        good = {"expires_date_ms": ms("2026-02-02")}
        self.assertEqual(self.subscriptions(line(period("7", product_id=None, **good))), [])
        self.assertEqual(self.subscriptions(line(period("7", **good), reply={"status": 21003})), [])

    def test_the_original_transaction_names_it_else_the_transaction(self):
        lines = [told(first()), told(first(original="2", line_item="8")),
                 told(first(original=None, transaction="3", line_item="9")),
                 told(first(environment="Sandbox", line_item="10"))]
        found = table("subscriptions", book(*lines), "environment", "original_transaction_id", at_ms=0,
                      environments=None)
        self.assertEqual(found, [("Production", "1"), ("Production", "2"), ("Production", "3"),
                                 ("Sandbox", "1")])


class Current(unittest.TestCase):
    def test_the_latest_period_counts_whatever_came_last(self):
        later = renews("8", "2026-02-02", "2026-03-02", at="2026-02-03", productId="plus", offerType=2)
        expected = ("plus", "2026-01-02T00:00:00.000Z", "2026-02-02T00:00:00.000Z",
                    "2026-03-02T00:00:00.000Z", "promotional")
        for lines in ([told(first(at="2026-02-20")), told(later)], [told(later), told(first())]):
            self.assertEqual(shown(book(*lines), "product_id", "started_at", "current_period_start_at",
                                   "expires_at", "offer"), expected)

    def test_of_one_start_the_newest_then_the_later_then_the_last_of_a_list(self):
        def expiry(*lines):
            return shown(book(*lines), "expires_at")[0][:10]

        new, old = first("2026-02-05", at="2026-01-05"), first("2026-02-03", at="2026-01-03")
        self.assertEqual(expiry(told(new), told(old)), "2026-02-05")
        again = first("2026-02-06", at="2026-01-05")
        self.assertEqual(expiry(told(new), told(again)), "2026-02-06")
        self.assertEqual(expiry(upload(again, new)), "2026-02-05")
        undated = line(period("7", expires_date_ms=ms("2026-02-09")))
        self.assertEqual(expiry(told(old), undated), "2026-02-03")
        reply = replied(period("7", expires_date_ms=ms("2026-02-09")), asked="2026-01-05")
        self.assertEqual(expiry(told(new), reply), "2026-02-09")
        self.assertEqual(expiry(reply, told(new)), "2026-02-05")

    def test_within_a_reply_the_first_by_the_order_of_rows(self):
        rows = [period("7", "3", expires_date_ms=ms("2026-02-03")),
                period("7", "2", expires_date_ms=ms("2026-02-02"))]
        self.assertEqual(shown(book(line(*rows)), "expires_at")[0][:10], "2026-02-02")
        latest = {"latest_receipt_info": [period("7", "9", expires_date_ms=ms("2026-02-09"))]}
        self.assertEqual(shown(book(line(*rows, reply=latest)), "expires_at")[0][:10], "2026-02-09")

    def test_a_missing_start_is_the_original_one(self):
        found = book(told(first(purchaseDate=None)))
        self.assertEqual(shown(found, "current_period_start_at")[0][:10], "2026-01-02")
        found = book(told(first(originalPurchaseDate=None)))
        self.assertEqual(shown(found, "started_at")[0][:10], "2026-01-02")

    def test_offers(self):
        signed_ones = [({"offerDiscountType": "FREE_TRIAL", "offerType": 2}, "trial"),
                       ({"offerType": 1}, "introductory"), ({"offerType": "2"}, "promotional"),
                       ({"offerType": 3}, "offer_code"), ({"offerType": 4}, "win_back"),
                       ({"offerType": 9}, "other"), ({"offerType": "new"}, ""), ({}, "")]
        for fields, expected in signed_ones:
            self.assertEqual(shown(book(told(first(**fields))), "offer"), (expected,))
        rows = [({"is_trial_period": "true", "is_in_intro_offer_period": "true"}, "trial"),
                ({"is_in_intro_offer_period": "true", "promotional_offer_id": "p"}, "introductory"),
                ({"promotional_offer_id": "p", "offer_code_ref_name": "c"}, "promotional"),
                ({"offer_code_ref_name": "c"}, "offer_code"), ({"is_trial_period": "false"}, "")]
        for fields, expected in rows:
            found = book(line(period("7", expires_date_ms=ms("2026-02-02"), **fields)))
            self.assertEqual(shown(found, "offer"), (expected,))

    def test_price_of_the_current_periods_sale(self):
        columns = ("price", "currency")
        self.assertEqual(shown(book(told(first(quantity=3, **PAID))), *columns), ("3.33", "EUR"))
        carried = book(told(first(**PAID)), told(renews("8", "2026-02-02", "2026-03-02")))
        self.assertEqual(shown(carried, *columns), ("9.99", "EUR"))
        listed = book(told(first()), prices=["pro,,USD,4.99,2026-01-01"])
        self.assertEqual(shown(listed, *columns), ("4.99", "USD"))
        for fields in ({"offerDiscountType": "FREE_TRIAL"}, {"inAppOwnershipType": "FAMILY_SHARED"}, {}):
            fields |= PAID if fields else {}
            self.assertEqual(shown(book(told(first(**fields))), *columns), ("", ""))

    def test_country_and_user_as_if_it_were_one_sale(self):
        columns = ("country_code", "user_identifier")
        self.assertEqual(shown(book(told(first())), *columns), ("ZZ", ""))
        client = {"country_code": "FR", "user_identifier": "42"}
        other = {"country_code": "JP", "user_identifier": "43"}
        second = renews("8", "2026-02-02", "2026-03-02", storefront="DEU", appAccountToken=TOKEN)
        lines = [upload(first(), line=client), upload(first(), line=other), told(second)]
        self.assertEqual(shown(book(*lines[:2]), *columns), ("FR", "42"))
        self.assertEqual(shown(book(*lines), *columns), ("DE", "42"))
        self.assertEqual(shown(book(lines[2]), *columns), ("DE", "token:" + TOKEN))
        unknown = told(first(storefront="QQQ", appAccountToken=OTHER_TOKEN))
        self.assertEqual(shown(book(unknown, *lines[1:]), *columns), ("DE", "43"))
        # The first by position, not by time.
        early = renews("9", "2026-01-03", "2026-02-03", storefront="USA", at="2026-01-02")
        self.assertEqual(shown(book(lines[2], told(early)), *columns), ("DE", "token:" + TOKEN))

    def test_an_upload_without_a_period_says_nothing(self):
        only = upload(renewal("7"), line={"country_code": "FR", "user_identifier": "42"})
        self.assertEqual(shown(book(only, told(first())), "country_code", "user_identifier"), ("ZZ", ""))


class RenewalInformation(unittest.TestCase):
    COLUMNS = ("auto_renew", "auto_renew_product_id", "expiration_intent", "in_billing_retry",
               "grace_period_expires_at")

    def test_of_replies(self):
        told_all = pending(auto_renew_status="1", auto_renew_product_id="plus", expiration_intent="2",
                           is_in_billing_retry_period="0", grace_period_expires_date_ms=str(ms("2026-02-08")))
        a_row = period("7", expires_date_ms=ms("2026-02-02"))
        self.assertEqual(shown(book(replied(a_row, **told_all)), *self.COLUMNS),
                         ("true", "plus", "2", "false", "2026-02-08T00:00:00.000Z"))
        self.assertEqual(shown(book(replied(a_row, **pending())), *self.COLUMNS), ("",) * 5)
        nameless = {"pending_renewal_info": [{"auto_renew_status": "1"}, 5]}
        self.assertEqual(shown(book(replied(a_row, **nameless)), *self.COLUMNS), ("",) * 5)

    def test_of_a_legacy_reply_with_one_subscription(self):
        flat = {"bid": "app", **period("7", expires_date=str(ms("2026-02-02")))}
        legacy = {"receipt": flat, "auto_renew_status": 0, "expiration_intent": "1"}
        other = period("8", original="2", expires_date_ms=ms("2026-02-02"))
        self.assertEqual(shown(book(line(reply=legacy)), *self.COLUMNS[:3]), ("false", "", "1"))
        two = book(line(reply=legacy | {"latest_receipt_info": other}))
        self.assertEqual(table("subscriptions", two, "auto_renew", at_ms=0), [("",), ("",)])
        # Outermost in a reply that is not legacy: it belongs to no subscription.
        found = book(replied(period("7", expires_date_ms=ms("2026-02-02")), auto_renew_status=1))
        self.assertEqual(shown(found, "auto_renew"), ("",))

    def test_of_signed_information(self):
        found = book(informed("n", "2026-01-05", first(), autoRenewStatus=0, autoRenewProductId="plus",
                              expirationIntent=1, isInBillingRetryPeriod=True,
                              gracePeriodExpiresDate=ms("2026-02-08")))
        self.assertEqual(shown(found, *self.COLUMNS),
                         ("false", "plus", "1", "true", "2026-02-08T00:00:00.000Z"))

    def test_the_newest_alone_counts(self):
        new = informed("a", "2026-01-09", autoRenewStatus=1)
        old = informed("b", "2026-01-05", autoRenewStatus=0, expirationIntent=1)
        for lines in ([new, old], [old, new]):
            found = book(told(first()), *lines)
            self.assertEqual(shown(found, *self.COLUMNS[:3]), ("true", "", ""))
        equal = informed("c", "2026-01-09", expirationIntent=2)
        self.assertEqual(shown(book(told(first()), new, equal), *self.COLUMNS[:3]), ("", "", "2"))
        a_row = period("7", expires_date_ms=ms("2026-02-02"))
        info = pending(auto_renew_status="1")["pending_renewal_info"]
        info = {"pending_renewal_info": info + [{**info[0], "auto_renew_status": "0"}]}
        self.assertEqual(shown(book(replied(a_row, **info)), "auto_renew"), ("false",))
        undated = line(a_row, reply=info)
        self.assertEqual(shown(book(old, undated), "auto_renew", "expiration_intent"), ("false", "1"))

    def test_it_is_kept_for_a_statement_that_comes_later(self):
        early = informed("n", "2026-01-05", autoRenewStatus=1)
        self.assertEqual(table("subscriptions", book(early), "auto_renew", at_ms=0), [])
        self.assertEqual(shown(book(early, told(first())), "auto_renew"), ("true",))

    def test_its_environment_is_its_own_else_the_notifications(self):
        for own, outer, expected in ((None, "Production", "true"), ("Production", "Sandbox", "true"),
                                     ("Sandbox", "Production", ""), (None, "Sandbox", "")):
            whole = {"originalTransactionId": "1", "signedDate": ms("2026-01-05"), "autoRenewStatus": 1}
            whole |= {"environment": own} if own else {}
            info = notification(None, "n", signedRenewalInfo=jws(whole), environment=outer)
            self.assertEqual(shown(book(told(first()), info), "auto_renew"), (expected,))
        elsewhere = informed("n", "2026-01-05", bundle="other", autoRenewStatus=1)
        self.assertEqual(shown(book(told(first()), elsewhere), "auto_renew"), ("",))

    def test_the_position_is_that_of_what_came_last(self):
        info = informed("n", "2026-01-05", autoRenewStatus=1)
        self.assertEqual(shown(book(told(first()), info), "position"), ("1",))
        self.assertEqual(shown(book(info, told(first())), "position"), ("1",))
        old = told(first("2026-02-01", at="2026-01-02"))
        self.assertEqual(shown(book(info, told(first()), old), "position"), ("1",))


class Status(unittest.TestCase):
    def test_active_until_the_expiry(self):
        found = book(told(first()))
        last = "2026-02-01T23:59:59.999Z"
        self.assertEqual(states(found, "2026-01-01", last, "2026-02-02"), ["active", "active", "expired"])

    def test_grace_period(self):
        found = book(informed("n", "2026-02-02", first(), gracePeriodExpiresDate=ms("2026-02-08"),
                              isInBillingRetryPeriod=True))
        self.assertEqual(states(found, "2026-02-01", "2026-02-02", "2026-02-08"),
                         ["active", "grace_period", "billing_retry"])

    def test_billing_retry_for_sixty_days_and_of_this_period(self):
        found = book(informed("n", "2026-02-02", first(), isInBillingRetryPeriod=True))
        self.assertEqual(states(found, "2026-02-02", "2026-04-02T23:59:59.999Z", "2026-04-03"),
                         ["billing_retry", "billing_retry", "expired"])
        old = book(informed("n", "2026-01-01", first(), isInBillingRetryPeriod=True))
        self.assertEqual(states(old, "2026-02-02"), ["expired"])
        at_start = book(informed("n", "2026-01-02", first(), isInBillingRetryPeriod="true"))
        self.assertEqual(states(at_start, "2026-02-02"), ["billing_retry"])
        undated = book(line(period("7", expires_date_ms=ms("2026-02-02")),
                            reply=pending(is_in_billing_retry_period="1")))
        self.assertEqual(states(undated, "2026-02-02"), ["expired"])

    def test_revoked_from_its_date_on(self):
        found = book(told(first(revocationDate=ms("2026-01-10"))))
        self.assertEqual(shown(found, "revoked_at")[0][:10], "2026-01-10")
        self.assertEqual(states(found, "2026-01-09", "2026-01-10", "2026-03-01"),
                         ["active", "revoked", "revoked"])
        cancelled = period("7", expires_date_ms=ms("2026-02-02"), cancellation_date_ms=ms("2026-01-10"))
        self.assertEqual(states(book(line(cancelled)), "2026-01-09", "2026-01-10"), ["active", "revoked"])

    def test_a_refund_of_an_earlier_period_changes_nothing(self):
        refunded = first(revocationDate=ms("2026-02-10"), at="2026-02-10")
        later = renews("8", "2026-02-02", "2026-03-02", at="2026-02-03")
        self.assertEqual(states(book(told(later), told(refunded)), "2026-02-20"), ["active"])
        self.assertEqual(shown(book(told(later), told(refunded)), "revoked_at"), ("",))

    def test_a_refund_taken_back_is_revoked_no_more(self):
        refunded = told(first(revocationDate=ms("2026-01-10"), at="2026-01-11"))
        back = told(first(at="2026-01-12"))
        for lines in ([refunded, back], [back, refunded]):
            self.assertEqual(states(book(*lines), "2026-01-20"), ["active"])

    def test_an_upgraded_period_is_not_revoked(self):
        revoked = first(revocationDate=ms("2026-01-10"), at="2026-01-11")
        self.assertEqual(states(book(told({**revoked, "isUpgraded": True})), "2026-01-20"), ["active"])
        before = told(first(isUpgraded=True, at="2026-01-10"))
        self.assertEqual(states(book(before, told(revoked)), "2026-01-20"), ["active"])
        after = told(first(isUpgraded=True, at="2026-01-10"))
        self.assertEqual(states(book(told(revoked), after), "2026-01-20"), ["active"])
        # By any statement of the sale, of a period or not, of either kind.
        other = told(first(isUpgraded=True, type="Consumable", at="2026-01-01"))
        row_of_it = line(period("7", is_upgraded="true"))
        for one in (other, row_of_it):
            for order in ((one, told(revoked)), (told(revoked), one)):
                self.assertEqual(states(book(*order), "2026-01-20"), ["active"])


class Moments(unittest.TestCase):
    def test_a_day_is_its_start_in_the_zone(self):
        found = book(told(first("2026-02-01T23:00:00Z")))
        day = ms("2026-02-02") // DAY_MS
        for zone, expected in (("UTC", "expired"), ("Europe/Berlin", "expired"), ("Europe/Athens", "active")):
            rows = table("subscriptions", found, "status", at_day=day, timezone=zone)
            self.assertEqual(rows, [(expected,)])

    def test_the_first_instant_of_a_day(self):
        # Clocks went from midnight to one.
        day = ms("2026-09-06") // DAY_MS
        self.assertEqual(Zone("America/Santiago").start_ms(day), ms("2026-09-06T04:00:00Z"))
        self.assertEqual(Zone("Asia/Tokyo").start_ms(day), ms("2026-09-05T15:00:00Z"))

    def test_months_are_counted_both_ways(self):
        for text in ("1970-01", "1969-12", "0001-01", "2024-02", "9999-12", "2000-01"):
            first_day = month_start(month_of(ms(f"{text}-28") // DAY_MS))
            self.assertEqual(period_name(first_day, "day"), f"{text}-01")


class Months(unittest.TestCase):
    COUNTS = ("month", "active", "new", "renewed", "converted", "recovered", "churned")

    def counts(self, *lines, at="2026-05-10", **options):
        rows = table("subscriptions", book(*lines), *self.COUNTS, by=("month",), at_ms=ms(at), **options)
        return [" ".join(cells) for cells in rows]

    def money(self, *lines, at="2026-05-10", column="gross"):
        columns = ("month", column, "currency")
        rows = table("subscriptions", book(*lines), *columns, by=("month",), at_ms=ms(at))
        months = {}
        for month, amount, currency in rows:
            months.setdefault(month[5:], []).extend([amount, currency] if amount not in ("", "0.00") else [])
        return [" ".join([month, *amounts]) for month, amounts in months.items()]

    def test_new_renewed_and_churned(self):
        lines = [told(first()), told(renews("8", "2026-02-02", "2026-03-02"))]
        self.assertEqual(self.counts(*lines), [
            "2026-01 1 1 0 0 0 0", "2026-02 1 0 1 0 0 0", "2026-03 0 0 0 0 0 1", "2026-04 0 0 0 0 0 0",
            "2026-05 0 0 0 0 0 0"])
        self.assertEqual(self.counts(*lines, at="2026-02-02"), [
            "2026-01 1 1 0 0 0 0", "2026-02 1 0 0 0 0 0"])
        self.assertEqual(self.counts(*lines, at="2026-01-02"), [])

    def test_a_trial_that_converts_and_one_that_lapses(self):
        trial = told(first("2026-01-09", offerDiscountType="FREE_TRIAL", offerType=1))
        pays = told(renews("8", "2026-01-09", "2026-02-09"))
        self.assertEqual(self.counts(trial, pays, at="2026-02-01")[0], "2026-01 1 1 0 1 0 0")
        self.assertEqual(self.counts(trial, at="2026-02-01")[0], "2026-01 0 1 0 0 0 1")
        again = told(renews("8", "2026-01-09", "2026-02-09", offerDiscountType="FREE_TRIAL", offerType=1))
        self.assertEqual(self.counts(trial, again, at="2026-02-01")[0], "2026-01 1 1 1 0 0 0")

    def test_a_lapse_is_churned_and_recovered(self):
        lines = [told(first()), told(renews("8", "2026-03-05", "2026-04-05"))]
        self.assertEqual(self.counts(*lines, at="2026-04-01"), [
            "2026-01 1 1 0 0 0 0", "2026-02 0 0 0 0 0 1", "2026-03 1 0 0 0 1 0", "2026-04 1 0 0 0 0 0"])

    def test_a_refund_ends_what_is_covered(self):
        refunded = told(first(revocationDate=ms("2026-01-20"), at="2026-01-21"))
        self.assertEqual(self.counts(refunded, at="2026-02-01")[0], "2026-01 0 1 0 0 0 1")
        back = told(first(at="2026-01-25"))
        self.assertEqual(self.counts(refunded, back, at="2026-02-01")[0], "2026-01 1 1 0 0 0 0")
        # Before the period began: it covers nothing.
        early = told(first(revocationDate=ms("2025-12-20"), at="2026-01-21"))
        self.assertEqual(self.counts(early, at="2026-02-01")[0], "2026-01 0 1 0 0 0 1")

    def test_an_upgrade_cuts_the_period_before(self):
        year = renews("8", "2026-01-12", "2027-01-12")
        lines = [told(first(**PAID)), told({**year, "price": 120_000, "currency": "EUR"})]
        self.assertEqual(self.counts(*lines, at="2026-02-01")[0], "2026-01 1 1 1 0 0 0")
        self.assertEqual(self.money(*lines, at="2026-02-01", column="mrr")[0], "01 10.00 EUR")

    def test_periods_of_one_start(self):
        lines = [told(first("2026-02-02")), told(renews("8", "2026-01-02", "2026-01-15")),
                 told(renews("9", "2026-01-20", "2026-02-20"))]
        self.assertEqual(self.counts(*lines, at="2026-03-01")[:2],
                         ["2026-01 1 1 2 0 0 0", "2026-02 0 0 0 0 0 1"])

    def test_what_counts(self):
        shared = told(first(inAppOwnershipType="FAMILY_SHARED"))
        nameless = told(first(original=None, transaction="3"))
        once = told(first(type="Non-Renewing Subscription"))
        sandbox = told(first(environment="Sandbox"))
        for one in (shared, nameless, once, sandbox, line(row())):
            self.assertEqual(self.counts(one), [])
        self.assertEqual(len(self.counts(sandbox, at="2026-01-20", environments=None)), 1)

    def test_the_period_end_is_the_newest_statements(self):
        longer, shorter = first("2026-04-02", at="2026-01-09"), first("2026-02-02", at="2026-01-05")
        for lines in ([longer, shorter], [shorter, longer]):
            found = self.counts(*map(told, lines), at="2026-04-10")
            self.assertEqual(found[-1], "2026-04 0 0 0 0 0 1")
        self.assertEqual(self.counts(upload(longer, {**shorter, "signedDate": longer["signedDate"]}))[1],
                         "2026-02 0 0 0 0 0 1")

    def test_each_bundle_from_its_first_month_on(self):
        other = {**first("2026-06-02", date="2026-03-02"), "bundleId": "b"}
        lines = [told(first()), notification(other, "x", bundleId="b")]
        rows = table("subscriptions", book(*lines), "month", "bundle_id", by=("month",),
                     at_ms=ms("2026-04-10"))
        self.assertEqual(rows, [("2026-01", "app"), ("2026-02", "app"), ("2026-03", "app"),
                                ("2026-03", "b"), ("2026-04", "app"), ("2026-04", "b")])

    def test_months_of_a_zone(self):
        lines = [told(first(date="2026-01-31T23:30:00Z", until="2026-02-28"))]
        self.assertEqual(self.counts(*lines, at="2026-02-10", timezone="Europe/Berlin"),
                         ["2026-02 1 1 0 0 0 0"])

    def test_gross_is_of_sale_lines_by_sale_date(self):
        lines = [told(first(**PAID)), told(renews("8", "2026-02-02", "2026-03-02", **PAID)),
                 told(first(original="9", line_item="9", quantity=2, price=4000, currency="USD",
                            revocationDate=ms("2026-01-09")))]
        self.assertEqual(self.money(*lines, at="2026-03-01"),
                         ["01 9.99 EUR 4.00 USD", "02 9.99 EUR", "03"])
        self.assertEqual(self.money(*lines, at="2026-02-02")[1], "02")

    def test_monthly_amounts(self):
        cases = [(30, 10, "10.00"), (27, 10, "10.00"), (365, 120, "10.00"), (91, 30, "10.00"),
                 (7, 7, "30.4375"), (1, 1, "30.4375"), (26, 26, "30.4375"), (61, 20, "10.00"),
                 (45, 10, "10.00"), (46, 10, "5.00"), (183, 1, "0.166667"), (3, 1, "10.145833")]
        for days, price, expected in cases:
            micros = subscription_reports.monthly_micros(price * 1_000_000, days * DAY_MS)
            self.assertEqual(subscription_reports.amount_text(micros, "EUR"), expected, days)
        half = subscription_reports.monthly_micros
        self.assertEqual(half(10_000_000, 26 * DAY_MS + DAY_MS // 2), 10_000_000)
        self.assertEqual(half(10_000_000, -5 * DAY_MS), 304_375_000)
        self.assertEqual(half(5, 61 * DAY_MS), 2)
        self.assertEqual(half(15, 61 * DAY_MS), 8)

    def test_mrr_is_of_what_is_active_and_priced(self):
        lines = [told(first(offerDiscountType="FREE_TRIAL", offerType=1)),
                 told(first(original="2", line_item="8", **PAID)),
                 told(first(original="3", line_item="9", productId="x")),
                 told(first(original="4", line_item="10", price=3000, currency="USD", quantity=3))]
        self.assertEqual(self.money(*lines, at="2026-02-10", column="mrr"), ["01 9.99 EUR 3.00 USD", "02"])


if __name__ == "__main__":
    unittest.main()
