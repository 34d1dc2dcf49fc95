# Apple's own library for servers against the stand-in: it must accept what the stand-in signs, and get valid
# responses.
#
# PROGRAMS names the folder of the built programs. OCSP is left out: the authority has no responder.
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from appstoreserverlibrary.api_client import (
    APIException, AppStoreServerAPIClient, GetTransactionHistoryVersion,
)
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.models.NotificationHistoryRequest import NotificationHistoryRequest
from appstoreserverlibrary.models.SendAttemptResult import SendAttemptResult
from appstoreserverlibrary.models.Status import Status
from appstoreserverlibrary.models.TransactionHistoryRequest import TransactionHistoryRequest
from appstoreserverlibrary.signed_data_verifier import (
    SignedDataVerifier, VerificationException, VerificationStatus,
)
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / ".build/debug"))
BUNDLE_ID = "com.example.game"
CUSTOMERS = 24
LIMIT_SECONDS = 20


class Store:
    """A stand-in with customers, without a listener: its notifications go to a port that refuses."""

    def __init__(self, directory, environment):
        self.plan = [
            "--authority", str(directory / "authority"), "--customers", str(CUSTOMERS), "--seed", "5",
            "--at", str(int(time.time() * 1000) - 3_600_000), "--environment", environment,
            "--transactions", "3",
        ]
        self.process = subprocess.Popen(
            [
                PROGRAMS / "app-store-stand-in", *self.plan, "--server-api-key", directory / "key.p8",
                "--notifications-url", "http://127.0.0.1:9/", "--until-stdin-ends", "--no-renewals",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.facts = json.loads(self.process.stdout.readline())
        root = x509.load_pem_x509_certificate((directory / "authority/signed-root.pem").read_bytes())
        self.root = root.public_bytes(Encoding.DER)
        self.environment = Environment.SANDBOX if environment == "sandbox" else Environment.PRODUCTION
        self.client = AppStoreServerAPIClient(
            (directory / "key.p8").read_bytes(), "2X9R4HXF34", "57246542-96fe-1a63-e053-0824d011072a",
            BUNDLE_ID, self.environment)
        # The library knows Apple's addresses alone.
        self.client._base_url = self.facts[f"server_api_{environment}_url"].rstrip("/")
        self.transactions = self.sign("sign-transactions", *self.plan)

    def sign(self, command, *options):
        """JWS texts of the same customers."""
        return subprocess.run(
            [PROGRAMS / "app-store-stand-in", command, *options, "--format", "jws"],
            capture_output=True, check=True, text=True, timeout=LIMIT_SECONDS,
        ).stdout.split()

    def control(self, *requests):
        subprocess.run(
            ["curl", "-sSf", "-o", "/dev/null", "-d", json.dumps(list(requests)), self.facts["control_url"]],
            check=True, timeout=LIMIT_SECONDS)

    def history(self, transaction_id, revision=None):
        return self.client.get_transaction_history(
            transaction_id, revision, TransactionHistoryRequest(), GetTransactionHistoryVersion.V2)

    def verifier(self, app_apple_id=None, root=None):
        return SignedDataVerifier(
            [root or self.root], False, self.environment, BUNDLE_ID, app_apple_id)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(LIMIT_SECONDS)


class AppleLibraryTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stores = []
        for environment in ("production", "sandbox"):
            directory = tempfile.TemporaryDirectory()
            cls.addClassCleanup(directory.cleanup)
            store = Store(pathlib.Path(directory.name), environment)
            cls.addClassCleanup(store.stop)
            cls.stores.append(store)

    def each(self, check):
        for store in self.stores:
            with self.subTest(store.environment.value):
                # In Production a history names its app; in the Sandbox there is no such id.
                check(store, self.app_apple_id(store))

    def app_apple_id(self, store):
        transaction = store.verifier(1).verify_and_decode_signed_transaction(store.transactions[0])
        answer = store.history(transaction.transactionId)
        self.assertEqual(answer.bundleId, BUNDLE_ID)
        self.assertEqual(answer.environment, store.environment)
        self.assertEqual(answer.appAppleId is None, store.environment == Environment.SANDBOX)
        return answer.appAppleId

    def test_what_the_stand_in_signs_is_verified_strictly(self):
        def check(store, app_apple_id):
            verifier = store.verifier(app_apple_id)
            self.assertGreaterEqual(len(store.transactions), CUSTOMERS)
            for text in store.transactions:
                verifier.verify_and_decode_signed_transaction(text)
            notifications = store.sign("sign-notifications", *store.plan[:-2])
            self.assertGreater(len(notifications), CUSTOMERS)
            renewals = 0
            for text in notifications:
                data = verifier.verify_and_decode_notification(text).data
                if data.signedTransactionInfo:
                    verifier.verify_and_decode_signed_transaction(data.signedTransactionInfo)
                if data.signedRenewalInfo:
                    verifier.verify_and_decode_renewal_info(data.signedRenewalInfo)
                    renewals += 1
            self.assertGreater(renewals, 0)

        self.each(check)

    def test_the_root_of_a_stranger_is_refused(self):
        one, other = self.stores
        with self.assertRaises(VerificationException) as refused:
            one.verifier(1, root=other.root).verify_and_decode_signed_transaction(one.transactions[0])
        self.assertEqual(refused.exception.status, VerificationStatus.VERIFICATION_FAILURE)

    def test_a_history_is_read_page_by_page(self):
        def check(store, app_apple_id):
            verifier = store.verifier(app_apple_id)
            for text in store.transactions[:6]:
                transaction = verifier.verify_and_decode_signed_transaction(text)
                revision, found = None, []
                while True:
                    page = store.history(transaction.transactionId, revision)
                    found += [
                        verifier.verify_and_decode_signed_transaction(text).transactionId
                        for text in page.signedTransactions
                    ]
                    revision = page.revision
                    if not page.hasMore:
                        break
                self.assertIn(transaction.transactionId, found)
                self.assertEqual(len(found), len(set(found)))
                answer = store.client.get_transaction_info(transaction.transactionId)
                one = verifier.verify_and_decode_signed_transaction(answer.signedTransactionInfo)
                self.assertEqual(one.transactionId, transaction.transactionId)

        self.each(check)

    @staticmethod
    def items(answer):
        return [item for group in answer.data for item in group.lastTransactions]

    def test_statuses_are_filtered_and_name_the_app(self):
        def check(store, app_apple_id):
            verifier = store.verifier(app_apple_id)
            known = [verifier.verify_and_decode_signed_transaction(text) for text in store.transactions]
            # One transaction of each subscription.
            subscribed = {one.originalTransactionId: one.transactionId for one in known if one.expiresDate}
            self.assertTrue(subscribed)
            seen = set()
            for transaction_id in subscribed.values():
                whole = store.client.get_all_subscription_statuses(transaction_id)
                self.assertEqual((whole.bundleId, whole.appAppleId), (BUNDLE_ID, app_apple_id))
                items = self.items(whole)
                for item in items:
                    verifier.verify_and_decode_signed_transaction(item.signedTransactionInfo)
                    verifier.verify_and_decode_renewal_info(item.signedRenewalInfo)
                seen.update(item.status for item in items)
                for statuses in [[Status.ACTIVE, Status.EXPIRED], *([status] for status in Status)]:
                    some = self.items(store.client.get_all_subscription_statuses(transaction_id, statuses))
                    self.assertEqual(
                        [one.originalTransactionId for one in some],
                        [one.originalTransactionId for one in items if one.status in statuses])
            self.assertGreater(len(seen), 1, "all subscriptions have one status: the filter shows nothing")

        self.each(check)

    def test_only_failures_are_those_that_did_not_arrive(self):
        def check(store, app_apple_id):
            verifier = store.verifier(app_apple_id)
            known = [verifier.verify_and_decode_signed_transaction(text) for text in store.transactions]
            transaction = next(one for one in known if not one.revocationDate and not one.expiresDate)
            store.control({"refund": transaction.transactionId})

            def history(only_failures):
                request = NotificationHistoryRequest(
                    startDate=int(time.time() * 1000) - 86_400_000, endDate=int(time.time() * 1000) + 60_000,
                    onlyFailures=only_failures)
                found, token = [], None
                while True:
                    page = store.client.get_notification_history(token, request)
                    found += page.notificationHistory
                    token = page.paginationToken
                    if not page.hasMore:
                        return found

            end = time.monotonic() + LIMIT_SECONDS
            while not (failed := history(True)) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual(len(failed), 1)
            self.assertEqual(failed[0].sendAttempts[0].sendAttemptResult, SendAttemptResult.SOCKET_ISSUE)
            told = verifier.verify_and_decode_notification(failed[0].signedPayload)
            refunded = verifier.verify_and_decode_signed_transaction(told.data.signedTransactionInfo)
            self.assertEqual(refunded.transactionId, transaction.transactionId)
            everything = history(False)
            self.assertGreater(len(everything), 1)
            results = [item.sendAttempts[-1].sendAttemptResult for item in everything]
            self.assertEqual(results.count(SendAttemptResult.SUCCESS), len(everything) - 1)

        self.each(check)

    def test_an_error_is_the_one_that_apple_names(self):
        for store in self.stores:
            with self.assertRaises(APIException) as refused:
                store.client.get_transaction_info("7")
            self.assertEqual(refused.exception.raw_api_error, 4_040_010)


if __name__ == "__main__":
    unittest.main()
