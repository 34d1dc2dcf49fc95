# A sale's user: an upload's user, else the Apple Account's, else the app account token (revenue rules, R6).
from dataclasses import dataclass


@dataclass(frozen=True)
class User:
    """`basis`: what names the user: `upload`, `account`, `token`, or nothing if there is no user."""

    name: str | None = None
    position: int | None = None
    basis: str = ""


class Accounts:
    """The sales of each Apple Account that uploads with a user show."""

    def __init__(self, sales):
        self._shown = {}
        for sale in sales:
            if sale.account is not None and sale.uploads:
                self._shown.setdefault(_identity(sale.key, sale.account), []).append(sale)

    def _user(self, place, account, token):
        """(user, position of the first such upload), or None if the account links nothing."""
        shown = self._shown.get(_identity(place, account), [])
        users = {user for sale in shown for user in sale.uploads}
        tokens = {sale.token[0] for sale in shown if sale.token is not None}
        if len(users) != 1 or (token is not None and tokens - {token}):
            return None
        (user,) = users
        return user, min(sale.uploads[user] for sale in shown)

    def user_of_sale(self, sale):
        if sale.uploader is not None:
            return User(sale.uploader, sale.uploader_position, "upload")
        token = sale.token and sale.token[0]
        found = self._user(sale.key, sale.account, token)
        if found is not None:
            return User(*found, "account")
        return User() if token is None else User(*sale.token, "token")

    def user_of_subscription(self, subscription, known):
        """The name alone; as for a sale, by the first account and token of its periods."""
        if known.user is not None:
            return known.user
        found = self._user(subscription, known.account, known.token)
        return known.token if found is None else found[0]


def _identity(place, account):
    return place.environment, place.bundle_id, account
