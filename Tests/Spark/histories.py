# Random histories: everything that a ledger can hold, with declarations in between; and fleets of
# ledgers that were created apart and have much in common.

from __future__ import annotations

import contextlib
import gzip
import json
import pathlib
import random
import subprocess
from collections.abc import Callable, Iterator

from programs import DONE, DONE_WITH_WARNINGS, PROGRAMS, log_lines, run

import erasure
import generate_fetched
import generate_malformed
import generate_subscriptions
from generate_cases import DECLARED, write_cases
from generate_malformed import append
from signing import StandIn

GAME = "com.example.game"
CUSTOMERS = 8
# What events are made from.
NEEDED = {"receipt.uploaded", "receipt.verified", "transactions.received", "notification.received"}
# Makes events, as types and data, from the lines of a log.
Events = Callable[[list[bytes], int], list[tuple[str, str]]]


class History:
    """Ledgers determined by a seed, except for ids, times of recording and signatures.

    Of several, each has its own app families, takes its share of every import file, some lines of
    which several take, and asks the App Store or not.
    """

    def __init__(
        self, folder: pathlib.Path, seed: int, uploads: int, is_nasty: bool, ledgers: int = 1
    ) -> None:
        print(f"history of seed {seed}, {uploads} uploads, {ledgers} ledgers", flush=True)
        self.random = random.Random(seed)
        self.seed, self.folder = seed, folder
        folder.mkdir()
        self.ledgers = [folder / f"shop-{number}" for number in range(1, ledgers + 1)]
        self.ledger = self.ledgers[0]
        self.sign = StandIn(PROGRAMS / "app-store-stand-in", folder / "authority")
        imports, prices, rates = write_cases(folder, seed, uploads, is_nasty, self.sign)
        lines = generate_subscriptions.lines(seed, max(3, uploads // 8), self.sign)
        lives = folder / "lives.ndjson"
        lives.write_text("".join(line + "\n" for line in lines))
        with stand_in(folder) as facts:
            self._begin(facts)
            self._import(imports[0])
            self._declare("prices", prices[0])
            self._verify_receipts()
            self._declare("rates", rates[0])
            self._import(lives)
            self._append(generate_fetched.events)
            self._declare("prices", prices[1])
            self._append(self._reused)
            self._append(self._verified_by_older_programs)
            self._import(imports[1])
            self._declare("rates", rates[1])
            self._withdraw()
            self.leave_pending()
            if is_nasty:
                self._append(generate_malformed.events)

    def erase(self, count: int) -> list[str]:
        """Erases the users with the most events in all ledgers, or in some; returns them."""
        lines = [line for ledger in self.ledgers for line in log_lines(ledger)]
        users = erasure.chosen(lines, count)
        for user in users:
            option = [f"--user={user}"] if user.startswith("-") else ["--user", user]
            for ledger in self._some(self.ledgers):
                self._run(ledger, "redact", *option, "--reason", "user_request", "--yes",
                          allowed=(DONE, DONE_WITH_WARNINGS))
        if len(self.ledgers) > 1:
            for ledger in self.ledgers:
                self._erase_content(ledger)
        return users

    def _erase_content(self, ledger: pathlib.Path) -> None:
        """Erases what an upload holds of a receipt that another one still has."""
        uploads: dict[str, list[int]] = {}
        for event in map(json.loads, log_lines(ledger)):
            if event["type"] == "receipt.uploaded" and event["data"] is not None:
                uploads.setdefault(event["data"]["receipt_id"], []).append(event["seq"])
        several = [positions for positions in uploads.values() if len(positions) > 1]
        if several:
            self._run(ledger, "redact", "--position", self.random.choice(several)[0],
                      "--reason", "user_request", "--yes")

    def _some(self, ledgers: list[pathlib.Path]) -> list[pathlib.Path]:
        """One, several or all, in any order."""
        return self.random.sample(ledgers, self.random.randint(1, len(ledgers)))

    def _run(
        self, ledger: pathlib.Path, *arguments: object, allowed: tuple[int, ...] = (DONE,)
    ) -> str:
        return run("ledgerctl", *arguments, "--ledger", ledger, allowed=allowed)

    def _begin(self, facts: dict[str, str]) -> None:
        trust = {
            "additional_roots_sha256": [facts["root_sha256"], facts["signed_root_sha256"]],
            "transaction_intermediates": facts["transaction_intermediates"],
        }
        store = {name: facts[name] for name in ("production_url", "sandbox_url")}
        for ledger in self.ledgers:
            run("ledgerctl", "init", ledger, "--origin", f"example.com/{ledger.name}")
            path = ledger / "config.json"
            path.touch(mode=0o600)
            path.write_text(json.dumps({"trust": trust, "app_store": store}))
            for bundle, products in [*DECLARED.items(), (GAME, {})]:
                names = [f"--product={product}={kind}" for product, kind in products.items()]
                # Another ledger may know it with fewer products.
                if ledger != self.ledger and names:
                    names.pop()
                self._run(ledger, "app", "add", "--name", bundle, "--bundle-id", bundle, *names)

    def _import(self, path: pathlib.Path) -> None:
        """In several rounds, so that the ledgers' times alternate."""
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as file:
            lines = file.readlines()
        if len(self.ledgers) == 1:
            rounds = [lines]
        else:
            third = len(lines) // 3 + 1
            rounds = [lines[at:at + third] for at in range(0, len(lines), third)]
        for part in rounds:
            for ledger, share in zip(self.ledgers, self._shares(part)):
                if not share:
                    continue
                chosen = self.folder / "share.ndjson"
                chosen.write_bytes(b"".join(share))
                self._run(ledger, "import", chosen, "--register-apps",
                          allowed=(DONE, DONE_WITH_WARNINGS))

    def _shares(self, lines: list[bytes]) -> list[list[bytes]]:
        """Each line goes to one ledger; some go to others too."""
        shares: list[list[bytes]] = [[] for _ in self.ledgers]
        for line in lines:
            owner = self.random.choice(shares)
            for share in shares:
                if share is owner or self.random.random() < 0.2:
                    share.append(line)
        return shares

    def _declare(self, kind: str, path: pathlib.Path) -> None:
        more = ["--allow-zero"] if kind == "prices" else []
        for ledger in self._some(self.ledgers):
            self._run(ledger, kind, "import", path, *more)

    def _withdraw(self) -> None:
        """Withdraws the first prices of a ledger."""
        for ledger in self._some(self.ledgers):
            events = map(json.loads, log_lines(ledger))
            declared = [each["seq"] for each in events if each["type"] == "prices.declared"]
            if declared:
                self._run(ledger, "prices", "withdraw", declared[0])
                return

    def _append(self, events: Events) -> None:
        for ledger in self.ledgers:
            lines = log_lines(ledger)
            types = {json.loads(line)["type"] for line in lines}
            if types >= NEEDED:
                append(ledger, lines, events(lines, self.seed))

    def _signed(self, command: str, *options: object) -> list[dict]:
        """Lines of an import file about the customers, by the stand-in."""
        shown = run(
            "app-store-stand-in", command, "--authority", self.folder / "authority",
            "--customers", CUSTOMERS, "--seed", self.seed, "--at", 1_767_225_600_000,
            "--environment", "mixed", *options)
        return [{"marketplace": "itunes"} | json.loads(line) for line in shown.splitlines()]

    def _receipts(self) -> list[dict]:
        lines = self._signed(
            "sign-receipts", "--receipts", 2, "--style", "mixed", "--format", "uploads")
        # A receipt is uploaded again, by its user or another user.
        for line in self.random.sample(lines, CUSTOMERS // 2):
            user = self.random.choice([line["user_identifier"], "user-1", "somebody", None])
            lines.append(line | {"user_identifier": user, "metadata": {"again": 1}})
        self.random.shuffle(lines)
        return lines

    def _write(self, name: str, lines: list[dict]) -> pathlib.Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def _verify_receipts(self) -> None:
        """Receipts that the App Store is asked about, and signed objects of the same sales."""
        lines = self._receipts()
        self.later = lines[: len(lines) // 3]
        self._import(self._write("receipts.ndjson", lines[len(lines) // 3:]))
        # In the others they are pending.
        for ledger in self._some(self.ledgers):
            self._run(ledger, "retry", allowed=(DONE, 1, DONE_WITH_WARNINGS))
        signed = self._signed("sign-transactions", "--format", "import")
        signed += self._signed("sign-notifications", "--format", "import")
        self.random.shuffle(signed)
        self._import(self._write("signed.ndjson", signed))

    def leave_pending(self) -> None:
        """Receipts that the App Store has not been asked about, of new sales and of known ones."""
        self._import(self._write("pending.ndjson", self.later))

    def _reused(self, lines: list[bytes], seed: int) -> list[tuple[str, str]]:
        """Uploads of receipts that are verified already: their verifications reuse a reply."""
        log = [json.loads(line) for line in lines]
        verified = [
            event for event in log
            if event["type"] == "receipt.verified" and "reply" in event["data"]]
        made: list[tuple[str, str]] = []
        for event in self.random.sample(verified, min(len(verified), 12)):
            upload = log[event["data"]["upload"]]["data"]
            position = log[-1]["seq"] + 1 + len(made)
            upload = upload | {"user_identifier": self.random.choice(["42", "u-1", "reader"])}
            # The reply is the last member.
            upload["receipt"] = upload.pop("receipt")
            data = {
                name: value for name, value in event["data"].items()
                if name not in ("reply", "mismatch")}
            data |= {"upload": position, "reply_of": event["seq"]}
            made.append(("receipt.uploaded", _text(upload)))
            made.append(("receipt.verified", _text(data)))
        return made


    def _verified_by_older_programs(self, lines: list[bytes], seed: int) -> list[tuple[str, str]]:
        """Verifications, of earlier uploads too, without the result of comparing the reply with the
        receipt.

        The fold then compares them itself, and needs the receipt.
        """
        log = [json.loads(line) for line in lines]
        verified = [
            event["data"] for event in log
            if event["type"] == "receipt.verified" and "host" in event["data"]
            and "reply" in event["data"]]
        made: list[tuple[str, str]] = []
        for data in self.random.sample(verified, min(len(verified), 10)):
            reply = self.random.choice([data, self.random.choice(verified)])["reply"]
            data = {
                name: value for name, value in data.items() if name not in ("reply", "mismatch")}
            if self.random.random() < 0.5:
                made.append(("receipt.uploaded", _text(log[data["upload"]]["data"])))
                data["upload"] = log[-1]["seq"] + len(made)
            made.append(("receipt.verified", _text(data | {"reply": reply})))
        return made


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextlib.contextmanager
def stand_in(folder: pathlib.Path) -> Iterator[dict]:
    """An App Store that fails from time to time; it ends when its standard input does."""
    control = [
        {"behaviour": "status", "status": 21005, "percent": 20},
        {"behaviour": "status", "status": 21010, "percent": 10},
    ]
    process = subprocess.Popen(
        [PROGRAMS / "app-store-stand-in", "--authority", folder / "authority",
         "--control", json.dumps(control), "--until-stdin-ends"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
