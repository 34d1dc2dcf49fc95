# Hand-worked cases for prices: their forms, and which of a client's prices counts (rule R7).
import unittest

from money import PriceProblem, amount_text, micros_from_text, read_price
from support import book, exceptions, line, ms, period, price, row, signed, table, told, upload
from values import Number

EUR = {"price": "9.99", "currency": "EUR"}


class Prices(unittest.TestCase):
    def test_a_decimal_is_rounded_half_to_even_to_six_places(self):
        cases = [("0.99000000000000000444", 990_000), ("0.0000005", 0), ("0.0000015", 2),
                 ("0.00000250", 2), ("0.00000250001", 3), ("0.0000004999", 0),
                 ("99999999999.9999995", 10**17), ("1." + "9" * 5000, 2_000_000),
                 ("1.", None), (".5", None), ("-1", None), ("1e2", None), ("123456789012", None),
                 (" 1", None), ("1\n", None), ("٣", None)]
        for text, expected in cases:
            self.assertEqual(micros_from_text(text), expected, text[:20])

    def test_the_first_problem_is_named_alone(self):
        cases = [({}, "price_unreadable"), ({"price": None}, "price_unreadable"),
                 ({"price": "9,99 €", "currency": "XXX"}, "price_unreadable"),
                 ({"price": "1", "price_micros": "1000000"}, "price_unreadable"),
                 ({"price": Number("-1")}, "price_unreadable"),
                 ({"price_micros": Number("1" * 18)}, "price_unreadable"),
                 ({"price_milliunits": Number("1" * 15)}, "price_unreadable"),
                 ({"price": "1", "price_micros": Number("1000001")}, "price_forms_disagree"),
                 ({"price": "0.0000001"}, "price_zero"), ({"price": "1"}, "currency_missing"),
                 ({"price": "1", "currency": "  "}, "currency_missing"),
                 ({"price": "1", "currency": "XAU"}, "currency_unknown"),
                 ({"price": "1", "currency": "XTS"}, "currency_unknown"),
                 ({"price": "1", "currency": "uſd"}, "currency_unknown")]
        for entry, expected in cases:
            with self.assertRaises(PriceProblem) as caught:
                read_price(entry)
            self.assertEqual(str(caught.exception), expected, entry)

    def test_forms_that_agree_and_a_currency_to_tidy(self):
        entry = {"price": Number("1.50"), "price_micros": Number("1500000"), "currency": " eur\t"}
        self.assertEqual(str(read_price(entry)), "1.50 EUR")
        entry = {"price_milliunits": Number("28000"), "currency": "JPY"}
        self.assertEqual(str(read_price(entry)), "28 JPY")

    def test_an_amount_has_at_least_its_minor_digits(self):
        cases = [(9_990_000, "EUR", "9.99"), (9_900_000, "EUR", "9.90"), (1, "EUR", "0.000001"),
                 (5_000_000, "JPY", "5"), (5_500_000, "JPY", "5.5"), (0, "KWD", "0.000"),
                 (-9_990_000, "EUR", "-9.99"), (-500_000, "JPY", "-0.5"), (1, "CLF", "0.000001"),
                 (0, "BYR", "0"), (0, "", "0")]
        for micros, currency, expected in cases:
            self.assertEqual(amount_text(micros, currency), expected)


class PriceRules(unittest.TestCase):
    def test_by_transaction_comes_before_by_product(self):
        entries = [{"product_id": "coins", **EUR},
                   {"transaction_id": 1, "price": "3", "currency": "USD"}]
        self.assertEqual(price(book(line(row(), prices=entries))),
                         [("client_transaction", "3.00", "USD")])

    def test_the_original_transaction_of_a_line_item_is_no_alias(self):
        entries = [{"transaction_id": "1", **EUR}]
        found = book(line(period("7", "2", original="1"), prices=entries))
        self.assertEqual(price(found), [("none", "", "")])

    def test_a_later_transaction_price_that_differs_is_a_conflict(self):
        later = [{"transaction_id": "1", "price": "3", "currency": "EUR"}]
        found = book(line(row(), **EUR), line(row(), prices=later))
        self.assertEqual(price(found), [("client_single", "9.99", "EUR")])
        self.assertEqual(exceptions(found), [("price_conflict", "3.00 EUR")])

    def test_a_bad_first_entry_gives_nothing_and_the_next_rule_is_tried(self):
        entries = [{"transaction_id": "1", "price": "0"}, {"transaction_id": "1", **EUR},
                   {"product_id": "coins", "price": "2", "currency": "EUR"}]
        found = book(line(row(), prices=entries))
        self.assertEqual(price(found), [("client_product", "2.00", "EUR")])
        self.assertEqual(exceptions(found), [("price_zero", "client_transaction")])

    def test_a_later_upload_prices_no_sale_by_product(self):
        entries = [{"product_id": "coins", **EUR}]
        found = book(line(row()), line(row(), prices=entries))
        self.assertEqual(exceptions(found), [("unpriced", "no_price")])

    def test_an_offer_needs_an_entry_of_its_kind(self):
        flags = {"intro": {"is_in_intro_offer_period": "true"},
                 "promo": {"promotional_offer_id": "p"},
                 "offer_code": {"offer_code_ref_name": "o"}, "regular": {}}
        for kind, fields in flags.items():
            for said in (*flags, None):
                entry = {"product_id": "coins", "kind": said, **EUR}
                basis = price(book(line(row(**fields), prices=[entry])))[0][0]
                fits = said == kind or (kind == "regular" and said is None)
                self.assertEqual(basis, "client_product" if fits else "none", (kind, said))

    def test_a_shorthand_prices_exactly_one_new_regular_sale(self):
        trial = row(transaction="2", is_trial_period="true")
        found = book(line(row(), trial, **EUR))
        self.assertEqual(price(found)[0], ("client_single", "9.99", "EUR"))
        found = book(line(row(), row(transaction="2"), **EUR))
        self.assertEqual(price(found), [("none", "", "")] * 2)
        self.assertIn(("price_ambiguous", "2 new sales at 1"), exceptions(found))
        found = book(line(row()), line(row(), **EUR))
        self.assertEqual(exceptions(found), [("unpriced", "no_price")])

    def test_a_shorthand_beside_a_product_is_an_entry_after_the_others(self):
        entries = [{"product_id": "coins", "price": "1", "currency": "EUR"}]
        found = book(line(row(), row(transaction="2"), product_id="coins", **EUR))
        self.assertEqual(price(found), [("client_product", "9.99", "EUR")] * 2)
        found = book(line(row(), prices=entries, product_id="coins", **EUR))
        self.assertEqual(price(found), [("client_product", "1.00", "EUR")])

    def test_a_price_is_evidence_for_thirty_days(self):
        limit = ms("2026-01-02") + 30 * 86_400_000
        for at, basis in ((limit, "client_single"), (limit + 1, "none")):
            found = book(line(row(), upload={"occurred_at": at}, **EUR))
            self.assertEqual(price(found)[0][0], basis)
        late = [("unpriced", "no_price"), ("price_observed_late", "client_single")]
        self.assertCountEqual(exceptions(found), late)
        entries = [{"transaction_id": "1", **EUR}]
        found = book(line(row(), upload={"occurred_at": limit + 1}, prices=entries))
        self.assertEqual(price(found)[0][0], "client_transaction")

    def test_a_renewal_carries_the_latest_earlier_price_of_its_chain(self):
        first = line(period("5", "1", date="2026-01-02"), **EUR)
        march = period("7", "3", date="2026-03-02")
        third = line(march, at="2026-03-03", price="5", currency="EUR")
        renewals = line(
            period("4", "0", date="2026-01-01"),
            period("6", "2", date="2026-02-02"),
            period("8", "4", date="2026-04-02"),
            period("9", "9", original="9", date="2026-04-02"),
        )
        expected = [("none", "", ""), ("client_single", "9.99", "EUR"),
                    ("carried_forward", "9.99", "EUR"), ("client_single", "5.00", "EUR"),
                    ("carried_forward", "5.00", "EUR"), ("none", "", "")]
        self.assertEqual(price(book(first, third, renewals)), expected)

    def test_no_price_is_carried_to_or_from_another_kind(self):
        intro = period("5", is_in_intro_offer_period=True)
        entries = [{"product_id": "pro", "kind": "intro", **EUR}]
        renewal = line(period("6", "2", date="2026-02-02"))
        found = book(line(intro, prices=entries), renewal)
        self.assertEqual(price(found)[1], ("none", "", ""))
        # A transaction sale carries no price forward, though its original transaction is the
        # chain's.
        plain = line(period(None, date="2026-03-02"))
        found = book(line(period("5"), **EUR), plain)
        self.assertEqual(price(found), [("none", "", ""), ("client_single", "9.99", "EUR")])

    def test_the_price_list_prefers_the_country_then_the_latest_entry(self):
        listed = ["coins,DE,EUR,1,2026-01-03", "coins,DE,EUR,0,2026-01-01",
                  "coins,DE,EUR,3,2025-12-01", "coins,,USD,4,2026-01-02"]
        self.assertEqual(price(book(line(row()), prices=listed)), [("price_list", "0.00", "EUR")])
        abroad = line(row(), upload={"country_code": "FR"})
        self.assertEqual(price(book(abroad, prices=listed)), [("price_list", "4.00", "USD")])
        early = line(row(date="2025-11-30"))
        self.assertEqual(price(book(early, prices=listed)), [("none", "", "")])
        offer = line(row(promotional_offer_id="p"))
        self.assertEqual(price(book(offer, prices=listed)), [("none", "", "")])

    def test_unpriced_names_the_first_problem(self):
        entries = [{"product_id": "coins", "price": "1"}, {"transaction_id": "1", "price": "x"}]
        found = book(line(row(), prices=entries))
        self.assertIn(("unpriced", "price_unreadable"), exceptions(found))


class OtherIds(unittest.TestCase):
    ENTRY = {"transaction_id": "9", "product_id": "coins", **EUR}
    UNMATCHED = ("price_unmatched", "9")

    def test_an_entry_with_an_id_of_its_own_counts_by_its_product(self):
        found = book(line(row(), row("gems", "2"), prices=[self.ENTRY]))
        self.assertEqual(price(found), [("client_product", "9.99", "EUR"), ("none", "", "")])
        self.assertNotIn(self.UNMATCHED, exceptions(found))
        # Like an entry without a transaction, in its order among these.
        first = {"product_id": "coins", "price": "1", "currency": "EUR"}
        self.assertEqual(price(book(line(row(), prices=[first, self.ENTRY])))[0][1], "1.00")
        self.assertEqual(price(book(line(row(), prices=[self.ENTRY, first])))[0][1], "9.99")
        self.assertEqual(price(book(line(row(), prices=[self.ENTRY | {"kind": "promo"}])))[0][0], "none")
        late = book(line(row(), at="2026-03-01", prices=[self.ENTRY]))
        self.assertIn(("price_observed_late", "client_product"), exceptions(late))
        self.assertEqual(price(book(upload(signed(), prices=[self.ENTRY])))[0][0], "client_product")
        self.assertEqual(price(book(line(row(), transaction_id="9", product_id="coins", **EUR)))[0][0],
                         "client_product")

    def test_it_counts_for_exactly_one_new_regular_sale(self):
        promo = row(transaction="2", promotional_offer_id="p")
        found = book(line(row(), promo, prices=[self.ENTRY, self.ENTRY | {"kind": "promo"}]))
        self.assertEqual([basis for basis, *_ in price(found)], ["client_product", "none"])
        for rows in ((row(), row(transaction="2")), (promo,), (row("gems"),), ()):
            found = book(line(*rows, prices=[self.ENTRY]))
            self.assertIn(self.UNMATCHED, exceptions(found))
            self.assertNotIn("client_product", [basis for basis, *_ in price(found)])
        # A notification does not replace the first observation; an upload does.
        found = book(told(signed()), line(row(), prices=[self.ENTRY]))
        self.assertEqual(price(found)[0][0], "client_product")
        found = book(line(row()), line(row(), prices=[self.ENTRY]))
        self.assertIn(self.UNMATCHED, exceptions(found))

    def test_else_it_is_told_once_for_each_upload(self):
        entry = {"transaction_id": 9, **EUR}
        entries = [entry, entry, {"transaction_id": "8"}]
        two = [line(row(), at=f"2026-01-0{day}", prices=entries) for day in (3, 4)]
        columns = ("exception", "bundle_id", "sale_key", "product_id", "transaction_id", "position", "detail",
                   "date", "country_code", "user_identifier")
        shown = table("exceptions", book(*two), *columns)
        shown = [cells for cells in shown if cells[0] == "price_unmatched"]
        expected = [("price_unmatched", "app", "", "", "", position, detail, f"2026-01-0{day}T00:00:00.000Z",
                     "DE", "42") for position, day in (("1", 3), ("3", 4)) for detail in ("8", "9")]
        self.assertEqual(shown, expected)

    def test_an_alias_of_any_sale_is_not_read(self):
        known = [told(signed(transaction="9", bundleId="other")),
                 told(signed(transaction="9", environment="Sandbox")), line(period("7", "9"))]
        for one in known:
            found = book(one, line(row(), prices=[self.ENTRY]))
            self.assertNotIn(self.UNMATCHED, exceptions(found, environments=None))
            self.assertNotIn("client_product", [basis for basis, *_ in price(found)])
        # Up to here; a later event resolves it.
        self.assertIn(self.UNMATCHED, exceptions(book(line(prices=[self.ENTRY]), *known)))
        self.assertEqual(exceptions(book(line(reply={"status": 21003}, prices=[self.ENTRY]))),
                         [("reply_not_valid", "status 21003 at 1")])


if __name__ == "__main__":
    unittest.main()
