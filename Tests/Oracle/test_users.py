# Hand-worked cases of a sale's user: uploads, Apple Accounts, app account tokens (rule R6).
import unittest

from support import (
    OTHER_TOKEN, TOKEN, book, exceptions, line, ms, period, renewal, row, signed, table, told, upload,
)


def bought(number, account="A", **fields):
    """A signed purchase of an Apple Account."""
    return signed(transaction=number, appTransactionId=account, **fields)


def by(user, *payloads, **fields):
    """A client's upload, optionally with a user."""
    return upload(*payloads, line={"user_identifier": user} if user else {}, **fields)


def users(*lines):
    """(sale, user, position, basis) of every sale."""
    columns = ("sale_key", "user_identifier", "user_position", "user_basis")
    return table("sales", book(*lines), *columns, environments=None)


NOBODY = ("", "", "")


class Accounts(unittest.TestCase):
    def test_a_sale_that_no_upload_with_a_user_shows_has_its_accounts(self):
        mine, other = by("42", bought("1")), told(bought("2"))
        for order, position in (((mine, other), "0"), ((other, mine), "1")):
            found = [("1", "42", position, "upload"), ("2", "42", position, "account")]
            self.assertEqual(users(*order), found)
        # The first upload with a user that shows a sale of the account, whichever sale.
        found = users(by(None, bought("1")), by("42", bought("3")), by("42", bought("1")), other)
        self.assertEqual(found[1], ("2", "42", "1", "account"))

    def test_of_the_same_environment_and_bundle(self):
        elsewhere = told(bought("2", environment="Sandbox"))
        self.assertEqual(users(by("42", bought("1")), elsewhere)[1][1:], NOBODY)
        self.assertEqual(users(by("42", bought("1")), told(bought("2", bundleId="other")))[1][1:], NOBODY)
        self.assertEqual(users(by("42", bought("1")), told(bought("2", "B")))[1][1:], NOBODY)

    def test_one_account_with_two_users_links_nothing(self):
        both = [by("42", bought("1")), by("43", bought("3"))]
        self.assertEqual(users(*both, told(bought("2")))[1][1:], NOBODY)
        # Two uploads of one sale are two users as well, although the first keeps it.
        claimed = [by("42", bought("1")), by("43", bought("1"))]
        self.assertEqual(users(*claimed, told(bought("2"))), [("1", "42", "0", "upload"), ("2", *NOBODY)])
        self.assertEqual(users(*both, told(bought("2", appAccountToken=TOKEN)))[1][1:],
                         ("token:" + TOKEN, "2", "token"))

    def test_tokens_that_differ_keep_sales_apart(self):
        mine = by("42", bought("1", appAccountToken=TOKEN.upper()))
        cases = [(TOKEN, ("42", "0", "account")), (None, ("42", "0", "account")),
                 (OTHER_TOKEN, ("token:" + OTHER_TOKEN, "1", "token")), ("no token", ("42", "0", "account"))]
        for token, expected in cases:
            self.assertEqual(users(mine, told(bought("2", appAccountToken=token)))[1][1:], expected)
        # A sale without a token separates no users; nor does a token that no upload with a user shows.
        plain, strange = by("42", bought("1")), told(bought("3", appAccountToken=OTHER_TOKEN))
        found = users(plain, strange, told(bought("2", appAccountToken=TOKEN)))
        self.assertEqual([basis for *_, basis in found], ["upload", "account", "account"])
        # Of several such sales one is enough.
        found = users(plain, by("42", bought("3", appAccountToken=OTHER_TOKEN)),
                      told(bought("2", appAccountToken=TOKEN)))
        self.assertEqual(found[1][3], "token")

    def test_the_first_account_and_the_first_token_count(self):
        mine = by("42", bought("1"))
        later = [told(bought("2", account)) for account in (None, "A", "B")]
        self.assertEqual(users(mine, *later)[1][3], "account")
        self.assertEqual(users(mine, told(bought("2", "B")), told(bought("2")))[1][1:], NOBODY)
        self.assertEqual(users(by("42", bought("1", 77)), told(bought("2", "77")))[1][3], "account")
        shown = by("42", bought("1", appAccountToken=TOKEN), bought("1", appAccountToken=OTHER_TOKEN))
        self.assertEqual(users(shown, told(bought("2", appAccountToken=OTHER_TOKEN)))[1][3], "token")

    def test_an_upload_that_names_a_user_later_outranks_the_account(self):
        found = users(by("42", bought("1")), told(bought("2")), by("43", bought("2")))
        # Its upload is one of the account's, which has two users now.
        self.assertEqual(found, [("1", "42", "0", "upload"), ("2", "43", "2", "upload")])
        seven = line(row(transaction="2"), upload={"user_identifier": "7"})
        found = users(by("42", bought("1")), seven, told(bought("2")), told(bought("3")))
        self.assertEqual(found[2][1:], NOBODY)

    def test_it_is_no_claim(self):
        paid = {"price": 1, "currency": "EUR"}
        lines = [by("42", bought("1", **paid)), told(bought("2", **paid)), by("43", bought("2"))]
        for count in (2, 3):
            self.assertEqual(exceptions(book(*lines[:count])), [])

    def test_reports_show_it(self):
        found = book(by("42", bought("1", price=1000, currency="EUR")),
                     told(bought("2", price=2000, currency="EUR")), told(bought("3", "B", productId=None)))
        self.assertEqual(table("users", found, "user_identifier", "uploads", "sales", "net"),
                         [("42", "1", "2", "3.00 EUR")])
        self.assertEqual(table("journal", found, "user_identifier"), [("42",)] * 2)
        self.assertEqual(len(table("journal", found, "line", user="42")), 2)


class Subscriptions(unittest.TestCase):
    def user(self, *lines):
        return table("subscriptions", book(*lines), "original_transaction_id", "user_identifier", at_ms=0)

    def lived(self, original, line_item, account="A", **fields):
        return renewal(line_item, line_item, original, appTransactionId=account,
                       expiresDate=ms("2026-02-02"), **fields)

    def test_the_first_account_and_token_of_its_periods(self):
        mine = by("42", bought("1"))
        first, second = self.lived("9", "7", None), self.lived("9", "8", date="2026-02-02")
        self.assertEqual(self.user(mine, told(first), told(second)), [("9", "42")])
        self.assertEqual(self.user(mine, told(self.lived("9", "7", "B")), told(second)), [("9", "")])
        mine = by("42", bought("1", appAccountToken=TOKEN))
        tokens = [told(self.lived("9", "7", None, appAccountToken=OTHER_TOKEN)),
                  told(self.lived("9", "8", appAccountToken=TOKEN))]
        # The second period, as a sale, belongs to the account; the subscription's first token is
        # another.
        self.assertEqual(self.user(mine, *tokens), [("9", "token:" + OTHER_TOKEN)])
        self.assertEqual([basis for *_, basis in users(mine, *tokens)], ["upload", "token", "account"])

    def test_an_upload_outranks_the_account(self):
        found = self.user(by("42", bought("1")), by("43", self.lived("9", "7")))
        self.assertEqual(found, [("9", "43")])

    def test_a_rows_subscription_has_a_token_alone(self):
        shown = period("7", "7", "9", expires_date_ms=ms("2026-02-02"), app_account_token=TOKEN)
        found = self.user(line(shown, upload={"user_identifier": None}))
        self.assertEqual(found, [("9", "token:" + TOKEN)])


if __name__ == "__main__":
    unittest.main()
