# Random histories: everything that a ledger can hold, with declarations in between.

from __future__ import annotations

import contextlib
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
# Makes events, as types and data, from the lines of a log.
Events = Callable[[list[bytes], int], list[tuple[str, str]]]


class History:
    """A ledger determined by a seed, except for ids, times of recording and signatures."""

    def __init__(self, folder: pathlib.Path, seed: int, uploads: int, is_nasty: bool) -> None:
        print(f"history of seed {seed}, {uploads} uploads", flush=True)
        self.random = random.Random(seed)
        self.seed, self.folder = seed, folder
        folder.mkdir()
        self.ledger = folder / "source"
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
            self._leave_pending()
            if is_nasty:
                self._append(generate_malformed.events)

    def erase(self, count: int) -> list[str]:
        """Erases the users with the most events; returns them."""
        users = erasure.chosen(log_lines(self.ledger), count)
        for user in users:
            option = [f"--user={user}"] if user.startswith("-") else ["--user", user]
            self._run("redact", *option, "--reason", "user_request", "--yes")
        return users

    def _run(self, *arguments: object, allowed: tuple[int, ...] = (DONE,)) -> str:
        return run("ledgerctl", *arguments, "--ledger", self.ledger, allowed=allowed)

    def _begin(self, facts: dict[str, str]) -> None:
        run("ledgerctl", "init", self.ledger, "--origin", "example.com/spark")
        trust = {
            "additional_roots_sha256": [facts["root_sha256"], facts["signed_root_sha256"]],
            "transaction_intermediates": facts["transaction_intermediates"],
        }
        store = {name: facts[name] for name in ("production_url", "sandbox_url")}
        path = self.ledger / "config.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({"trust": trust, "app_store": store}))
        for bundle, products in [*DECLARED.items(), (GAME, {})]:
            names = [f"--product={product}={kind}" for product, kind in products.items()]
            self._run("app", "add", "--name", bundle, "--bundle-id", bundle, *names)

    def _import(self, path: pathlib.Path) -> None:
        self._run("import", path, "--register-apps", allowed=(DONE, DONE_WITH_WARNINGS))

    def _declare(self, kind: str, path: pathlib.Path) -> None:
        self._run(kind, "import", path)

    def _append(self, events: Events) -> None:
        lines = log_lines(self.ledger)
        append(self.ledger, lines, events(lines, self.seed))

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
        self._run("retry", allowed=(DONE, 1, DONE_WITH_WARNINGS))
        signed = self._signed("sign-transactions", "--format", "import")
        signed += self._signed("sign-notifications", "--format", "import")
        self.random.shuffle(signed)
        self._import(self._write("signed.ndjson", signed))

    def _leave_pending(self) -> None:
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
