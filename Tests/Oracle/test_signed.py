# Hand-worked cases for signed transactions: what counts, keys, kinds, country, user, price (rule R12).
import json
import unittest

from storefronts import ALPHA_2
from support import (
    OTHER_TOKEN, TOKEN, book, exceptions, jws, line, ms, notification, period, price, renewal, row,
    signed, table, told, upload,
)

PAID = {"price": 9990, "currency": "EUR"}
NINE = {"price": "9.99", "currency": "EUR"}


def names(a_book):
    return sorted(name for name, _ in exceptions(a_book))


class Counts(unittest.TestCase):
    def sales(self, *lines):
        return table("sales", book(*lines), "sale_key", environments=None)

    def test_uploads_and_notifications_give_sales(self):
        self.assertEqual(self.sales(upload(signed()), told(signed(transaction="2"))), [("1",), ("2",)])

    def test_an_environment_of_tests_is_refused(self):
        for environment in ("Xcode", "LocalTesting", "production", 5):
            self.assertEqual(self.sales(upload(signed(environment=environment))), [])
            self.assertEqual(self.sales(told(signed(environment=environment))), [])

    def test_an_object_without_environment_has_that_of_what_brought_it(self):
        def environments(*lines):
            return table("sales", book(*lines), "environment", environments=None)

        for none in (None, ""):
            nameless = signed() | ({} if none is None else {"environment": none})
            nameless = {n: v for n, v in nameless.items() if none is not None or n != "environment"}
            self.assertEqual(environments(upload(nameless)), [])
            for word in ("Production", "Sandbox"):
                self.assertEqual(environments(upload(nameless, line={"environment": word})), [(word,)])
                self.assertEqual(environments(notification(nameless, environment=word)), [(word,)])
        # An object's own environment comes first, and the line's must be one of the two.
        self.assertEqual(environments(upload(signed(), line={"environment": "Sandbox"})), [])
        for word in ("Xcode", "sandbox", "", 5):
            self.assertEqual(environments(upload(signed(), line={"environment": word})), [])

    def test_one_bad_transaction_refuses_the_whole_list(self):
        for bad in (signed(bundleId=None), signed(signedDate=None), signed(bundleId="other")):
            self.assertEqual(self.sales(upload(signed(), bad)), [])
        whole = json.loads(upload(signed()))
        for text in ("", "e30.e30", jws(signed()) + "=", jws(signed(), {"alg": "none"}),
                     jws(signed(), signature=b"short"), 5, None):
            whole["signed_transactions"] = [text]
            self.assertEqual(self.sales(json.dumps(whole)), [])
        for texts in ([], "text", [jws(signed())] * 101):
            whole["signed_transactions"] = texts
            self.assertEqual(self.sales(json.dumps(whole)), [])

    def test_a_line_has_one_of_three_forms(self):
        both = json.loads(upload(signed())) | json.loads(line(row()))
        self.assertEqual(self.sales(json.dumps(both)), [])

    def test_a_known_notification_appends_nothing(self):
        first, again = signed(), signed(transaction="2")
        self.assertEqual(self.sales(notification(first), notification(again)), [("1",)])
        self.assertEqual(self.sales(notification(), notification(again, name="m")), [("2",)])

    def test_an_upload_is_of_its_greatest_signed_date(self):
        whole = json.loads(upload(signed(at="2026-01-09"), signed(at="2026-02-03"), **NINE))
        del whole["occurred_at"]
        self.assertEqual(price(book(json.dumps(whole)))[0][0], "none")
        whole["signed_transactions"].pop()
        self.assertEqual(price(book(json.dumps(whole)))[0][0], "client_single")

    def test_a_malformed_statement_says_what_it_lacks(self):
        found = book(upload(signed(productId=5.5, transaction=None), signed(transaction="2")))
        self.assertIn(("malformed_transaction", "product_id+transaction_id"), exceptions(found))
        found = book(told(signed(purchaseDate=None, originalPurchaseDate="soon")))
        self.assertEqual(exceptions(found), [("malformed_transaction", "purchase_date")])

    def test_a_renewal_without_line_item_is_told(self):
        later = renewal("0", "2", expiresDate=ms("2026-02-02"))
        self.assertIn(("renewal_without_line_item", "2"), exceptions(book(told(later))))


class Sales(unittest.TestCase):
    def test_both_kinds_of_statement_speak_of_one_sale(self):
        lines = [line(period("7", "2")), upload(renewal("7", "2")), told(renewal(7, "3"))]
        for order in (lines, lines[::-1]):
            found = book(*order)
            self.assertEqual(table("sales", found, "sale_key", "transaction_ids"), [("7", "2 3")])
            self.assertEqual(table("journal", found, "line"), [("Sale",)])

    def test_the_date_falls_back_and_a_transaction_has_the_original(self):
        dates = {"purchaseDate": 1_300_000_000_001, "originalPurchaseDate": 1_300_000_000_002}
        for lost, expected in ((None, "12"), ("purchaseDate", "22"), ("originalPurchaseDate", "11")):
            left = {name: None if name == lost else value for name, value in dates.items()}
            found = book(upload(renewal("7", **left), signed(transaction="8", **left)))
            shown = [date[-2] for (date,) in table("sales", found, "sale_date")]
            self.assertEqual("".join(shown), expected)

    def test_kinds(self):
        shared = {"inAppOwnershipType": "FAMILY_SHARED", "offerDiscountType": "FREE_TRIAL"}
        cases = [(shared, "family_shared"), ({"offerDiscountType": "FREE_TRIAL"}, "trial"),
                 ({"offerType": 1}, "offer"), ({"offerType": "4"}, "offer"), ({"offerType": 9}, "offer"),
                 ({"offerDiscountType": "PAY_UP_FRONT"}, "regular"), ({"offerType": None}, "regular"),
                 ({"offerType": "one"}, "regular")]
        for fields, kind in cases:
            found = book(told(signed(**fields, **PAID)))
            self.assertEqual(table("sales", found, "kind"), [(kind,)], fields)
            self.assertEqual(price(found)[0][0], "" if kind in ("trial", "family_shared")
                             else "signed_transaction")

    def test_an_introductory_offer_can_turn_out_to_be_a_trial(self):
        offer = signed(offerType=1)
        entries = [{"transaction_id": "1", **NINE}]
        later = [upload(signed(offerDiscountType="FREE_TRIAL", price=0, currency="EUR")),
                 line(row(is_trial_period="true"))]
        for statement in later:
            found = book(upload(offer, prices=entries), told(signed(**PAID)), statement)
            self.assertEqual(table("sales", found, "kind", "price_basis"), [("trial", "")])
            self.assertEqual(table("journal", found, "amount"), [("0",)])
        fixed = [offer | {"offerType": 2}, offer | {"price": 5}, offer | {"offerDiscountType": "NEW"},
                 offer | {"offerType": None}]
        for first in fixed:
            found = book(told(first), *later)
            self.assertNotEqual(table("sales", found, "kind"), [("trial",)], first)
        # A reply's offer stays an offer.
        found = book(line(row(is_in_intro_offer_period=1)), *later)
        self.assertEqual(table("sales", found, "kind"), [("offer",)])

    def test_the_first_statement_stays_and_others_are_compared(self):
        found = book(upload(signed(), signed("gems", quantity=2)), line(row(quantity="3")))
        self.assertEqual(table("sales", found, "product_id", "quantity"), [("coins", "1")])
        shown = table("exceptions", found, "exception", "detail", "position")
        for expected in (("product_id", "0"), ("quantity", "0"), ("quantity", "2")):
            self.assertEqual(("conflicting_observation", *expected) in shown, expected[1] == "0")

    def test_quantities_to_a_million(self):
        for value, good in ((1, True), ("1000000", True), (1_000_001, False), (0, False), (1.5, False),
                            ("x", False), (None, False)):
            found = book(told(signed(quantity=value)))
            shown = str(value) if good else "1"
            self.assertEqual(table("sales", found, "quantity"), [(shown,)])
            bad = [] if good else [("bad_quantity", "" if value is None else str(value))]
            self.assertEqual([e for e in exceptions(found) if e[0] == "bad_quantity"], bad)

    def test_a_good_quantity_replaces_one_made_of_a_bad_one(self):
        found = book(line(row(quantity="11")), told(signed(quantity=11, price=22, currency="EUR")),
                     told(signed(quantity=12)))
        self.assertEqual(table("sales", found, "quantity", "unit_price"), [("11", "0.002")])
        conflicts = [e for e in table("exceptions", found, "exception", "position")
                     if e[0] == "conflicting_observation"]
        self.assertEqual(conflicts, [("conflicting_observation", "3")])
        # A good quantity is never replaced, and no reply replaces any.
        self.assertEqual(table("sales", book(told(signed()), told(signed(quantity=2))), "quantity"), [("1",)])
        found = book(told(signed(quantity=0)), line(row(quantity="2")))
        self.assertEqual(table("sales", found, "quantity"), [("1",)])


class CountryAndUser(unittest.TestCase):
    def country(self, *lines):
        found = book(*lines)
        conflicts = [e for e in table("exceptions", found, "exception", "position", "detail")
                     if e[0] == "country_conflict"]
        return table("sales", found, "country_code", "country_position"), conflicts

    def test_the_storefront_outranks_clients_before_and_after(self):
        french = line(row(), upload={"country_code": "FR"})
        store = told(signed(storefront="DEU"))
        self.assertEqual(self.country(french, store), ([("DE", "2")], [("country_conflict", "2", "FR")]))
        self.assertEqual(self.country(store, french), ([("DE", "0")], [("country_conflict", "2", "FR")]))
        german = upload(signed(), line={"country_code": "de"})
        self.assertEqual(self.country(store, german, french), ([("DE", "0")], []))
        both = upload(signed(storefront="DEU"), line={"country_code": "FR"})
        self.assertEqual(self.country(both), ([("DE", "0")], [("country_conflict", "0", "FR")]))

    def test_the_first_known_storefront_counts(self):
        first = upload(signed(storefront="QQQ"), signed(storefront="XKS"), signed(storefront="USA"))
        self.assertEqual(self.country(first), ([("XK", "0")], []))
        for unknown in ("deu", "DE", "", 5, None):
            self.assertEqual(self.country(told(signed(storefront=unknown)))[0], [("ZZ", "")])
        self.assertEqual(len(ALPHA_2), 250)

    def user(self, *lines):
        found = book(*lines)
        claims = [e for e in exceptions(found) if e[0] == "claimed_by_other_user"]
        return table("sales", found, "user_identifier", "user_position"), claims

    def test_a_token_stands_in_until_an_upload_names_a_user(self):
        token = told(signed(appAccountToken=TOKEN.upper()))
        named = upload(signed(), line={"user_identifier": "42"})
        self.assertEqual(self.user(token), ([("token:" + TOKEN, "0")], []))
        self.assertEqual(self.user(told(signed()), token, told(signed(appAccountToken=OTHER_TOKEN))),
                         ([("token:" + TOKEN, "1")], []))
        self.assertEqual(self.user(token, named), ([("42", "1")], []))
        self.assertEqual(self.user(named, token), ([("42", "0")], []))
        other = line(row(), upload={"user_identifier": "7"})
        self.assertEqual(self.user(token, named, other),
                         ([("42", "1")], [("claimed_by_other_user", "7")]))

    def test_a_token_of_a_row_counts_as_a_signed_one(self):
        rows = [row(), row(app_account_token=TOKEN.upper()), row(app_account_token=OTHER_TOKEN)]
        nameless = {"user_identifier": None}
        shown = [line(one, upload=nameless) for one in rows]
        self.assertEqual(self.user(*shown), ([("token:" + TOKEN, "3")], []))
        both = line(rows[0], rows[2], rows[1], upload=nameless)
        self.assertEqual(self.user(both), ([("token:" + OTHER_TOKEN, "1")], []))
        self.assertEqual(self.user(shown[2], told(signed(appAccountToken=TOKEN))),
                         ([("token:" + OTHER_TOKEN, "1")], []))
        named = line(row(), upload={"user_identifier": "42"})
        self.assertEqual(self.user(shown[1], named), ([("42", "2")], []))

    def test_other_text_is_no_token(self):
        for text in ("A-b", "", TOKEN[:-1], TOKEN + "0", TOKEN.replace("-", ""), "{" + TOKEN + "}", 7, None,
                     "token:" + TOKEN, TOKEN.replace("7", "g")):
            self.assertEqual(self.user(told(signed(appAccountToken=text))), ([("", "")], []))
            uploaded = line(row(app_account_token=text), upload={"user_identifier": None})
            self.assertEqual(self.user(uploaded), ([("", "")], []))

    def test_uploads_are_held_against_declared_products(self):
        other = upload(signed(), line={"user_identifier": "8"})
        gems = signed("gems", "2")
        found = book(line(row()), told(gems), other, products={"coins": "consumable"})
        self.assertIn(("transaction_replayed", "upload at 3"), exceptions(found))
        self.assertNotIn("product_unknown", names(found))
        self.assertIn("product_unknown", names(book(upload(gems), products={"coins": "consumable"})))

    def test_users_are_those_of_uploads_and_of_sales(self):
        user = {"user_identifier": "42", "country_code": "FR"}
        found = book(
            line(row(), at="2026-01-05", upload=user, **NINE), line(row(), upload=user),
            upload(signed(productId=None), at="2026-01-04", line={"user_identifier": "7"}),
            told(signed(transaction="2", appAccountToken=TOKEN, offerDiscountType="FREE_TRIAL")),
            told(signed(transaction="3", appAccountToken=OTHER_TOKEN, environment="Sandbox")),
            upload(signed(transaction="4", revocationDate=1, **PAID), line=user),
        )
        columns = ("user_identifier", "receipts", "uploads", "sales", "returns", "trials", "countries", "net",
                   "first_seen_at", "last_seen_at")
        first, last = "2026-01-03T00:00:00.000Z", "2026-01-05T00:00:00.000Z"
        self.assertEqual(table("users", found, *columns), [
            ("42", "1", "3", "2", "1", "0", "FR", "9.99 EUR", first, last),
            ("7", "0", "1", "0", "0", "0", "", "", first.replace("03", "04"), first.replace("03", "04")),
            ("token:" + TOKEN, "0", "0", "0", "0", "1", "", "", "", ""),
        ])


class Price(unittest.TestCase):
    def test_it_is_for_the_whole_quantity(self):
        found = book(told(signed(quantity=3, price=10, currency=" eur\t")))
        self.assertEqual(price(found), [("signed_transaction", "0.003333", "EUR")])
        self.assertEqual(table("journal", found, "quantity", "unit_price", "amount"),
                         [("3", "0.003333", "0.01")])
        # Half to even: 1 thousandth among 16 is 62.5 millionths.
        found = book(told(signed(quantity=16, price=1, currency="EUR")))
        self.assertEqual(price(found)[0][1], "0.000062")
        self.assertEqual(table("revenue", found, "units", "gross", "net"), [("16", "0.001", "0.001")])

    def test_what_is_no_price_is_no_exception(self):
        for fields in ({"price": -1}, {"price": 1.5}, {"price": 10**14}, {"price": "9,99"}, {"price": None},
                       {"currency": "XXX"}, {"currency": None}, {"currency": 5}):
            found = book(told(signed(**(PAID | fields))))
            self.assertEqual(exceptions(found), [("unpriced", "no_price")], fields)
        found = book(told(signed(price=10**14 - 1, currency="EUR")))
        self.assertEqual(price(found)[0][1], "99999999999.999")

    def test_it_outranks_every_other_basis(self):
        store = told(signed(price=5000, currency="EUR"))
        listed = ["coins,,USD,4,2026-01-01"]
        self.assertEqual(price(book(store, prices=listed))[0][:2], ("signed_transaction", "5.00"))
        entry = {"transaction_id": "1", **NINE}
        by_rule = [{"prices": [entry]}, {"prices": [{"product_id": "coins", **NINE}]}, NINE]
        for metadata in by_rule:
            client = upload(signed(), **metadata)
            for order in ((client, store), (store, client)):
                found = book(*order)
                self.assertEqual(price(found), [("signed_transaction", "5.00", "EUR")])
                shown = table("exceptions", found, "exception", "position", "detail")
                self.assertEqual(shown, [("price_conflict", "1", "9.99 EUR")])

    def test_clients_are_compared_by_amount(self):
        entry = {"transaction_id": "1", "price": "3.33", "currency": "EUR"}
        for total, conflicts in ((9990, []), (10_000, [("price_conflict", "3.33 EUR")])):
            store = told(signed(quantity=3, price=total, currency="EUR"))
            client = upload(signed(quantity=3), prices=[entry])
            for order in ((client, store), (store, client)):
                self.assertEqual(exceptions(book(*order)), conflicts)
        store = told(signed(price=3330, currency="USD"))
        self.assertEqual(exceptions(book(store, upload(signed(), prices=[entry]))),
                         [("price_conflict", "3.33 EUR")])

    def test_of_two_signed_ones_the_first_stays(self):
        for later in ({"price": 20_000, "currency": "EUR"}, {"price": 10_000, "currency": "USD"}):
            found = book(
                upload(signed(quantity=2, price=10_000, currency="EUR"), signed(quantity=2, **later)))
            self.assertEqual(price(found)[0][1:], ("5.00", "EUR"))
            expected = f"{later['price'] // 1000}.00 {later['currency']}"
            self.assertEqual(exceptions(found), [("price_conflict", expected)])

    def test_a_multi_seat_price_is_an_average(self):
        seats = signed(multiSeatInfo={}, **PAID)
        found = book(told(seats))
        self.assertEqual(exceptions(found), [("multi_seat_price", ""), ("unpriced", "multi_seat_price")])
        self.assertEqual(exceptions(book(told(seats | {"offerDiscountType": "FREE_TRIAL"}))), [])
        self.assertEqual(exceptions(book(told(seats | {"multiSeatInfo": []}))), [])
        self.assertEqual(price(book(told(seats), told(signed(**PAID))))[0][0], "signed_transaction")

    def test_a_signed_zero_is_a_price_that_is_not_carried_forward(self):
        free = told(renewal("6", "2", date="2026-02-02", price=0, currency="EUR"))
        first = told(renewal("5", "1", quantity=2, **PAID))
        third = told(renewal("7", "3", date="2026-03-02", quantity=3))
        self.assertEqual(price(book(free)), [("signed_transaction", "0.00", "EUR")])
        self.assertEqual(price(book(free, third)), [("signed_transaction", "0.00", "EUR"), ("none", "", "")])
        found = book(free, first, third)
        self.assertEqual(price(found)[2], ("carried_forward", "4.995", "EUR"))
        self.assertIn(("14.985",), table("journal", found, "amount"))

    def test_a_notification_takes_no_first_observation_away(self):
        for metadata in ({"prices": [{"product_id": "coins", **NINE}]}, NINE):
            for later in (upload(signed(), **metadata), line(row(), **metadata)):
                found = book(told(signed()), later, later.replace("9.99", "1.99"))
                self.assertEqual(price(found)[0][1:], ("9.99", "EUR"))
        found = book(told(signed()), upload(signed()), upload(signed(), **NINE))
        self.assertEqual(price(found)[0][0], "none")

    def test_kinds_of_clients_prices_fit_offer_types(self):
        offers = (("intro", 1), ("promo", 2), ("offer_code", 3), ("win_back", 4), ("regular", None))
        for kind, offer in offers:
            for said in ("intro", "promo", "offer_code", "regular", "win_back", None):
                entry = {"product_id": "coins", "kind": said, **NINE}
                found = book(upload(signed(offerType=offer), prices=[entry]))
                fits = (said == kind and offer != 4) or (offer is None and said is None)
                self.assertEqual(price(found)[0][0], "client_product" if fits else "none", (kind, said))

    def test_a_shorthand_is_for_one_new_regular_sale_of_the_list(self):
        two = upload(signed(), signed(transaction="2"), **NINE)
        self.assertIn(("price_ambiguous", "2 new sales at 0"), exceptions(book(two)))
        twice = upload(signed(), signed(), signed(transaction="2", offerType=2), **NINE)
        self.assertEqual(price(book(twice)), [("client_single", "9.99", "EUR"), ("none", "", "")])

    def test_a_clients_amount_beyond_64_bits_is_unreadable(self):
        many = upload(signed(quantity=1_000_000), price="9223372.036855", currency="EUR")
        self.assertEqual(price(book(many))[0][0], "none")
        self.assertEqual(names(book(many)), ["price_unreadable", "unpriced"])
        most = upload(signed(quantity=1_000_000), price="9223372.036854", currency="EUR")
        self.assertEqual(table("journal", book(most), "amount"), [("9223372036854.00", )])
        found = book(upload(signed(quantity=0), price="9223372.036855", currency="EUR"),
                     told(signed(quantity=1_000_000)))
        self.assertIn(("unpriced", "price_unreadable"), exceptions(found))
        listed = ["coins,,EUR,9223372.036855,2026-01-01"]
        found = book(told(signed(quantity=1_000_000)), prices=listed)
        self.assertEqual(exceptions(found), [("unpriced", "price_unreadable")])
        # A carried price comes before a listed one, whether it fits or not.
        first = upload(renewal("5"), price="9223372.036855", currency="EUR")
        later = told(renewal("6", "2", date="2026-02-02", quantity=1_000_000))
        found = book(first, later, prices=["pro,,EUR,1,2026-01-01"])
        self.assertEqual(price(found)[1], ("none", "", ""))
        self.assertEqual(exceptions(found), [("unpriced", "price_unreadable")])


if __name__ == "__main__":
    unittest.main()
