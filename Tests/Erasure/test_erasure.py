# People whose identifiers are planted everywhere are erased: nothing of them is left, all else is as it was.
#
# PROGRAMS names the folder of the built programs. `grep` (GNU) looks for the identifiers.
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "script")]
import planted  # noqa: E402
import search  # noqa: E402
import serving  # noqa: E402

sys.path.insert(0, str(ROOT / "Tests/Oracle"))
import generate_malformed  # noqa: E402
import signing  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / ".build/debug")).resolve()
LIMIT_SECONDS = 60
SEED = 21
PEOPLE = 16
# Who is erased, and how. The others stay.
BESIDE_SERVER, OVER_HTTP, ALONE = range(0, 4), range(4, 8), range(8, 12)
ERASED = range(12)
# Of whom nobody says more than an app account token.
NAMELESS = (7, 11, 15)
# One who uploaded a receipt of another, who stays.
SHARING, OWNER = 3, 13
# Those whose tokens stand in replies of one who stays.
MENTIONED, MENTIONING = (0, 5, 7, 9), 14
PLANTED_AT_LEAST = 1000
REPORTS = [
    "revenue --by period,product,country,environment,basis",
    "journal", "sales", "exceptions", "receipts", "users",
    "subscriptions --at 2026-03-01", "subscriptions --by month --at 2026-03-01",
]  # fmt: skip
# What the stand-in's customers buy.
SOLD = {
    "coins.100": "consumable", "coins.1200": "consumable", "lifetime": "non_consumable",
    "season.pass": "non_renewing", "plus.monthly": "auto_renewable",
    "plus.yearly": "auto_renewable",
}  # fmt: skip
RECEIPTS_PATH = "/client/itunes_connect/receipts"
DONE, DONE_WITH_WARNINGS = 0, 3


class Answers:
    """Asks a server, and keeps all that it says."""

    def __init__(self):
        self.said = []

    def ask(self, url, token, body=None):
        """The status and the answer's JSON, if it is any."""
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
                status, headers, content = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            status, headers, content = error.code, error.headers, error.read()
        self.said.append((url, f"{headers}\n".encode() + content))
        try:
            return status, json.loads(content)
        except ValueError:
            return status, None


class Receiver(serving.WebhookReceiver):
    """A back end that takes no webhook until it is told to; then it keeps each."""

    def __init__(self):
        self.is_open = False
        self.refused, self.taken = [], []
        super().__init__()

    def receive(self, _, body):
        is_open = self.is_open
        (self.taken if is_open else self.refused).append(body)
        return 200 if is_open else 503


class Scene:
    """The ledger with all that was planted, and what was taken from it before the erasures."""

    def __init__(self, work):
        self.work = work
        self.stand_in = serving.StandIn(PROGRAMS, work / "authority")
        self.ledger = serving.Ledger(PROGRAMS, work / "ledger", self.stand_in.facts)
        family = self.ledger.app_family
        self.ledger.run("app", "edit", family, "--entitlement", "pro=pro.*,plus.*")
        self.tokens = {"upload": self.ledger.token_path.read_text()}
        for scope in ("read", "erase"):
            made = self.ledger.run("token", "create", "--app", family, "--scope", scope, "--json")
            self.tokens[scope] = json.loads(made)["token"]
        self.receiver = Receiver()
        self.ledger.run("app", "edit", family, "--webhook", self.receiver.url)
        self.history = planted.History(SEED, PEOPLE, nameless=NAMELESS)
        self.people = self.history.people
        self.history.share_receipt(self.people[OWNER], self.people[SHARING])
        for number in MENTIONED:
            self.history.mention(self.people[number], self.people[MENTIONING])
        self.erased = [self.people[number] for number in ERASED]
        self.others = self.people[len(ERASED) :]
        self.proofs, self.reports, self.manifests = [], {}, []
        self.logs = []

    def run(self, *arguments, **options):
        return self.ledger.run(*arguments, **options)

    def position(self):
        """That of the last event."""
        return json.loads(self.run("status", "--json"))["events"] - 1

    def named(self):
        return [person for person in self.people if not person.is_nameless]

    # Before.

    def fill(self):
        sign = signing.StandIn(PROGRAMS / "app-store-stand-in", self.work / "authority")
        lines = self.history.lines(sign, self.ledger.app_family)
        half = len(lines) // 2
        self.imports = [self.work / "first.ndjson", self.work / "second.ndjson"]
        for path, part in zip(self.imports, (lines[:half], lines[half:])):
            path.write_text("".join(line + "\n" for line in part))
        self.key = self.run("key", "create").strip()
        self.import_file(self.imports[0])
        self.run("snapshot", "create")
        self.keep_checkpoint()
        self.run("rebuild")
        self.import_file(self.imports[1])
        self.append_fetched()
        self.run("rebuild")
        self.run("snapshot", "create")
        self.keep_checkpoint()

    def import_file(self, path):
        return json.loads(self.run("import", str(path), "--json", allowed=(DONE, DONE_WITH_WARNINGS)))

    def append_fetched(self):
        """What no import brings: fetched pages, and answers of the App Store that are no JSON."""
        log = self.run("replay").splitlines()
        last = json.loads(log[-1])
        made = self.history.fetched(self.ledger.app_family, last["at"])
        uploads = {}
        for event in map(json.loads, log):
            if event["type"] == "receipt.uploaded":
                uploads.setdefault(event["data"].get("user_identifier"), event["seq"])
        for person in self.named():
            text = person.text("no_json")
            made.append(("receipt.verified", planted.compact({
                "upload": uploads[person.user], "authority": "app_store", "outcome": "unreachable",
                "attempt": 2, "endpoint": "production", "host": "buy.itunes.apple.com",
                "occurred_at": last["at"], "reply_base64": planted.base64_text(f"<p>{text}</p>"),
            })))  # fmt: skip
        generate_malformed.append(self.ledger.directory, log, made)

    def keep_checkpoint(self):
        path = self.work / f"checkpoint-{len(self.proofs)}"
        self.run("checkpoint", "-o", str(path))
        self.proofs.append(("checkpoint", path, path.read_text()))
        size = int(path.read_text().splitlines()[1])
        for position in range(0, size, 29):
            proof = self.work / f"proof-{len(self.proofs)}"
            self.run("prove", str(position), "-o", str(proof))
            self.proofs.append(("proof", proof, position))
        sizes = [text.splitlines()[1] for kind, _, text in self.proofs if kind == "checkpoint"]
        if len(sizes) > 1:
            proof = self.work / f"proof-{len(self.proofs)}"
            self.run("prove", "--consistency", *sizes[-2:], "-o", str(proof))
            self.proofs.append(("consistency", proof, sizes))

    def serve(self):
        self.server = serving.Server(self.ledger)

    def wait_for_webhooks(self):
        """Until those that had to wait were delivered."""
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            listed = json.loads(self.run("webhook", "list", "--json"))["webhooks"][0]
            if listed["behind"] == 0 and listed["waiting"] == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"webhooks are not delivered: {listed}")

    def end_server(self):
        code = self.server.terminate()
        self.logs.append(("log of the server", self.server.errors_path.read_bytes()))
        return code

    def upload(self, answers):
        """Receipts and signed transactions over HTTP."""
        for style in ("unified", "transaction"):
            path = self.work / f"{style}.ndjson"
            serving.sign_bodies(PROGRAMS, self.work / "authority", path, PEOPLE, style=style)
            for person, line in zip(self.named(), path.read_text().splitlines()):
                body = json.loads(line)
                data = planted.base64_bytes(body["receipt"])
                person.plant_receipt(data)
                person.plant_receipt_id(self.ledger.app_family, data)
                sent = body | person.fields()
                url = self.server.url + RECEIPTS_PATH
                status, said = answers.ask(url, self.tokens["upload"], sent)
                if status not in (200, 206):
                    raise SystemExit(f"a receipt was answered {status}: {said}")
        path = self.work / "transactions.ndjson"
        serving.sign_transactions(PROGRAMS, self.work / "authority", path, PEOPLE, transactions=2)
        for person, line in zip(self.named(), path.read_text().splitlines()):
            sent = json.loads(line) | person.fields()
            for text in sent["signed_transactions"]:
                payload = json.loads(planted.base64_bytes(text.split(".")[1]))
                if "appAccountToken" in payload:
                    person.plant("token", payload["appAccountToken"])
                person.plant("signature", text.rpartition(".")[2])
            url = self.server.url + serving.TRANSACTIONS_PATH
            status, said = answers.ask(url, self.tokens["upload"], sent)
            if status != 200:
                raise SystemExit(f"signed transactions were answered {status}")
            person.plant("upload_id", said["id"])
        end = time.monotonic() + LIMIT_SECONDS
        while json.loads(self.run("retry", "--json"))["waiting_before"]:
            if time.monotonic() > end:
                raise SystemExit("receipts still wait for the App Store")
            time.sleep(0.1)

    def ask(self, answers):
        """What a back end asks about everybody; the statuses."""
        statuses = Counter()
        for person in self.people:
            for path in ("/v1/purchases", "/v1/entitlements"):
                body = {"user_identifier": person.user}
                statuses[answers.ask(self.server.url + path, self.tokens["read"], body)[0]] += 1
            for kind, value in person.identifiers:
                if kind == "receipt_id":
                    url = f"{self.server.url}{RECEIPTS_PATH}/{value}"
                    statuses[answers.ask(url, self.tokens["upload"])[0]] += 1
        return statuses

    def export_all(self):
        for number, report in enumerate(REPORTS):
            path = self.work / f"report-{number}.csv"
            name, *options = report.split()
            self.run("export", name, "--environment", "all", *options, "-o", str(path), "--manifest")
            self.reports[report] = search.figures(path.read_text())
            self.manifests.append(path.with_name(path.name + ".manifest.json"))

    def exported(self, report, *options):
        name, *chosen = report.split()
        return search.figures(
            self.run("export", name, "--environment", "all", *chosen, "--format", "csv", *options)
        )

    # The erasures.

    def redact(self, person):
        user = [f"--user={person.user}"]
        said = self.run("redact", *user, "--reason", "user_request", "--yes", "--json")
        record = json.loads(said)
        if record["state"] != "done":
            raise SystemExit(f"redact of person {person.number} ended as {record}")
        return record

    def erase_over_http(self, people, answers):
        url, token = self.server.url + "/v1/erasures", self.tokens["erase"]
        ids = []
        for person in people:
            body = {"user_identifier": person.user, "reason": "user_request", "urgent": True}
            status, said = answers.ask(url, token, body)
            if status != 202:
                log = self.server.errors_path.read_text()[-500:]
                raise SystemExit(f"a request to erase was answered {status}: {said}; {log}")
            ids.append(said["id"])
        records = []
        end = time.monotonic() + LIMIT_SECONDS
        for request in ids:
            while True:
                _, said = answers.ask(f"{url}/{request}", token)
                if said["state"] in ("done", "failed"):
                    break
                if time.monotonic() > end:
                    raise SystemExit("an erasure does not end")
                time.sleep(0.1)
            if said["state"] != "done":
                raise SystemExit(f"an erasure over HTTP ended as {said}")
            records.append(said)
        return records


class ErasureTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.scene = scene = Scene(pathlib.Path(directory.name))
        cls.addClassCleanup(scene.stand_in.stop)
        scene.fill()
        scene.serve()
        cls.addClassCleanup(scene.server.kill)
        cls.answers_before = Answers()
        scene.upload(cls.answers_before)
        scene.ask(cls.answers_before)
        scene.last = scene.position()
        scene.export_all()
        cls.searcher = search.Searcher(scene.erased)
        # Some beside the server, some by it; then what it says, and its files while it has them open.
        cls.certificates = [scene.redact(scene.people[number]) for number in BESIDE_SERVER]
        # What a request says is the client's; what is asked afterwards, the server's.
        by_http = [scene.people[number] for number in OVER_HTTP]
        cls.erasure_answers = Answers()
        cls.certificates += scene.erase_over_http(by_http, cls.erasure_answers)
        cls.gone_first = [scene.people[number] for number in (*BESIDE_SERVER, *OVER_HTTP)]
        scene.receiver.is_open = True
        cls.answers_after = Answers()
        scene.ask(cls.answers_after)
        cls.first_search = search.Searcher(cls.gone_first).in_directory(scene.ledger.directory)
        cls.exit_code = scene.end_server()
        cls.first_webhooks, scene.receiver.taken = scene.receiver.taken, []
        # The others without a server, which then starts again.
        cls.certificates += [scene.redact(scene.people[number]) for number in ALONE]
        # They were refused so often that the next attempt is far off.
        scene.run("webhook", "replay", "--app", scene.ledger.app_family, "--from", "0")
        scene.serve()
        cls.addClassCleanup(scene.server.kill)
        cls.last_answers = Answers()
        scene.ask(cls.last_answers)
        scene.wait_for_webhooks()
        scene.end_server()

    def expect_nothing(self, found):
        said = []
        for where, meanings in sorted(found.items()):
            kinds = Counter((kind, how) for _, kind, how, _ in meanings)
            said.append(f"{where}: {dict(kinds)}, such as {sorted(meanings)[:3]}")
        self.assertEqual(said, [])

    def test_a_thousand_identifiers_of_every_kind_are_planted(self):
        count = sum(len(set(person.identifiers)) for person in self.scene.erased)
        self.assertGreaterEqual(count, PLANTED_AT_LEAST)

    def test_the_search_finds_what_is_planted(self):
        """Of those who stay everything is found, so that finding nothing of the others says something."""
        scene = self.scene
        found = search.Searcher(scene.others).in_directory(scene.ledger.directory)
        seen = {(number, kind, value) for all in found.values() for number, kind, _, value in all}
        missing = [
            (person.number, kind, value)
            for person in scene.others
            for kind, value in person.identifiers
            if (person.number, kind, value) not in seen
        ]
        self.assertEqual(Counter(kind for _, kind, _ in missing), {}, missing[:5])

    def test_no_file_of_a_served_ledger_tells_of_the_erased(self):
        self.expect_nothing(self.first_search)

    def test_no_answer_and_no_log_tells_of_the_erased(self):
        self.assertEqual(self.exit_code, 0)
        searcher = search.Searcher(self.gone_first)
        said = [*self.erasure_answers.said, *self.answers_after.said]
        self.expect_nothing(searcher.in_blobs(without_urls(said)))
        self.expect_nothing(self.searcher.in_blobs(without_urls(self.last_answers.said)))
        self.expect_nothing(self.searcher.in_blobs(self.scene.logs))

    def test_webhooks_that_waited_do_not_tell_of_the_erased(self):
        receiver = self.scene.receiver
        # Before, they did.
        self.assertNotEqual(self.searcher.in_blobs(numbered("refused", receiver.refused)), {})
        self.assertGreater(len(receiver.taken), len(self.scene.named()))
        self.expect_nothing(self.searcher.in_blobs(numbered("taken", receiver.taken)))
        first = search.Searcher(self.gone_first)
        self.expect_nothing(first.in_blobs(numbered("taken at first", self.first_webhooks)))

    def test_no_file_tells_of_the_erased_also_after_their_lines_were_imported_again(self):
        for path in self.scene.imports:
            size = self.scene.position()
            said = self.scene.import_file(path)
            self.assertEqual((said["uploads"], said["notifications"], said["refused"]), (0, 0, 0))
            self.assertEqual(said["known"], said["lines"])
            self.assertEqual(self.scene.position(), size)
        self.expect_nothing(self.searcher.in_directory(self.scene.ledger.directory))

    def test_no_command_shows_the_erased(self):
        scene = self.scene
        shown = [("replay", scene.run("replay").encode())]
        for report in REPORTS:
            name = report.split()[0]
            said = scene.run("export", name, "--environment", "all", "--format", "json")
            shown.append((name, said.encode()))
        shown.append(("redact list", scene.run("redact", "list", "--json").encode()))
        self.expect_nothing(self.searcher.in_blobs(shown))

    def test_every_proof_made_before_holds(self):
        scene = self.scene
        checkpoints = []
        for kind, path, _ in scene.proofs:
            if kind == "checkpoint":
                checkpoints += ["--checkpoint", str(path)]
            else:
                scene.run("audit", kind, str(path), "--key", scene.key, elsewhere=True)
        scene.run("audit", *checkpoints, "--key", scene.key, "--projections")

    def test_the_independent_verifier_finds_the_log_whole(self):
        scene = self.scene
        log = scene.run("replay")
        verifier = [sys.executable, str(ROOT / "Tests/Verifier/verify.py"), "log"]
        for kind, path, _ in scene.proofs:
            if kind == "checkpoint":
                done = subprocess.run(
                    [*verifier, "--checkpoint", str(path), "--key", scene.key],
                    input=log, capture_output=True, text=True, check=False,
                )  # fmt: skip
                self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-500:])

    def test_a_rebuild_changes_nothing(self):
        self.scene.run("rebuild", "--check")

    def test_every_figure_is_what_it_was(self):
        scene = self.scene
        for report in REPORTS:
            for options in ((), ("--as-of", str(scene.last))):
                with self.subTest(report=report, options=options):
                    found, before = scene.exported(report, *options), scene.reports[report]
                    differing = [list((one - other).items())[:5] for one, other in
                                 ((before, found), (found, before))]  # fmt: skip
                    self.assertEqual(differing, [[], []])

    def test_reports_of_before_are_the_same_but_for_redaction(self):
        for manifest, report in zip(self.scene.manifests, REPORTS):
            with self.subTest(report=report):
                said = self.scene.run("audit", "report", str(manifest))
                self.assertIn(" follows from the first ", said)
                # A report without names is what it was, byte for byte.
                if report.split()[0] not in ("revenue", "journal") and "--by" not in report:
                    self.assertIn(": the same but for redaction by the erasures at ", said)

    def test_certificates_say_what_was_erased_and_what_remains(self):
        for number, record in zip(ERASED, self.certificates):
            certificate = record["certificate"]
            self.assertGreater(certificate["erasure"], self.scene.last)
            if number not in NAMELESS:
                self.assertGreaterEqual(certificate["receipts"], 4)
            self.assertEqual(certificate["remaining"], 0, f"person {number}")


def numbered(name, contents):
    return [(f"{name} {number}", content) for number, content in enumerate(contents)]


def without_urls(said):
    """What the server said, but not what it was asked: that names whom it was about."""
    return numbered("answer", [content for _, content in said])


class UploadAfterErasureTests(unittest.TestCase):
    """A person who was erased comes again, under another name."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.scene = scene = Scene(pathlib.Path(directory.name))
        cls.addClassCleanup(scene.stand_in.stop)

    def claims(self):
        """How many purchases another user claimed, by the exceptions report."""
        rows = csv.DictReader(io.StringIO(self.scene.run(
            "export", "exceptions", "--environment", "all", "--format", "csv")))  # fmt: skip
        return sum(row["exception"] in ("claimed_by_other_user", "transaction_replayed") for row in rows)

    def test_an_upload_of_an_erased_receipt_is_no_claim_by_another(self):
        scene = self.scene
        kinds = [f"--product={product}={kind}" for product, kind in SOLD.items()]
        scene.run("app", "edit", scene.ledger.app_family, *kinds)
        scene.serve()
        self.addCleanup(scene.server.kill)
        answers = Answers()
        scene.upload(answers)
        erased, others = scene.named()[:2], scene.named()[2:4]
        for person in erased:
            scene.redact(person)
        self.assertEqual(self.claims(), 0)

        def statuses(people):
            found = Counter()
            for style in ("unified", "transaction"):
                lines = (scene.work / f"{style}.ndjson").read_text().splitlines()
                for person, line in zip(scene.named(), lines):
                    if person in people:
                        body = json.loads(line) | {"user_identifier": f"new {person.number}"}
                        url = scene.server.url + RECEIPTS_PATH
                        found[answers.ask(url, scene.tokens["upload"], body)[0]] += 1
            return found

        self.assertEqual(statuses(erased), {200: 4})
        self.assertEqual(self.claims(), 0)
        # The same of people who were not erased is one.
        self.assertGreater(statuses(others)[402], 0)
        self.assertGreater(self.claims(), 0)
        scene.end_server()
        scene.run("audit", "--projections")


if __name__ == "__main__":
    unittest.main()
