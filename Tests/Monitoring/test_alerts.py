# The alert rules: each fires when it must and is silent otherwise, and names metrics that the server has.
#
# LEDGERCTL names the program. What needs promtool is skipped where it is not installed.
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from exposed import ROOT, exposed, known_metrics

RULES = ROOT / "examples/alerts.yaml"
# Days are told in half hours, all else in minutes.
DAY = 48


def job(name, labels=""):
    return f'{name}{{job="receipt-ledger"{labels}}}'


def requests(status):
    return f'receipt_ledger_http_requests_total{{status="{status}"}}'


def notifications(result):
    return f'receipt_ledger_notifications_total{{result="{result}"}}'


def sync_calls(result):
    return f'receipt_ledger_app_store_sync_calls_total{{result="{result}"}}'


def commits(fast, slow):
    """A minute's commits of up to 0.25 s, and those of up to 2.5 s."""
    name = "receipt_ledger_commit_seconds_bucket"
    counts = {"0.25": fast, "0.5": fast, "1": fast + slow, "2.5": fast + slow, "+Inf": fast + slow}
    return {f'{name}{{le="{bound}"}}': f"0+{count}x60" for bound, count in counts.items()}


def gauge(name, fires, silent, minutes):
    return ({name: f"{fires}x{minutes}"}, {name: f"{silent}x{minutes}"}, minutes)


def counter(name, minutes=10):
    """One that grows once, and one that stands."""
    return ({name: f"7x{minutes - 5} 8x5"}, {name: f"7x{minutes}"}, minutes)


SYNC_END = "receipt_ledger_app_store_sync_end_timestamp_seconds"
WHOLE = "receipt_ledger_replication_whole_timestamp_seconds"
CONFIRMED = "receipt_ledger_replication_confirmed_events"

# Per rule: series that let it fire, series that leave it silent, and the step at which it is asked.
CASES = {
    "ReceiptLedgerDown": [gauge(job("up"), 0, 1, 5)],
    "ReceiptLedgerNotReady": [
        gauge("receipt_ledger_ready", 0, 1, 5),
        # One failed minute of a restart.
        ({"receipt_ledger_ready": "1 0x9"}, {"receipt_ledger_ready": "1 1 1 1 0 1"}, 5),
    ],
    "ReceiptLedgerRefusesUploads": [
        ({requests(503): "0+60x20"}, {requests(503): "0x20", requests(200): "0+60x20"}, 15)
    ],
    "ReceiptLedgerRestarts": [
        (
            {job("process_start_time_seconds"): "100x5 500x5 900x5 1300x15"},
            {job("process_start_time_seconds"): "100x10 900x20"},
            25,
        )
    ],
    "ReceiptLedgerRefusesTokens": [
        (
            {requests(200): "0+80x40", requests(401): "0+20x40"},
            {requests(200): "0+95x40", requests(401): "0+5x40"},
            30,
        )
    ],
    "ReceiptLedgerManyForgeries": [
        (
            {requests(200): "0+80x40", requests(402): "0+20x40"},
            {requests(200): "0+95x40", requests(402): "0+5x40", requests(401): "0+50x40"},
            30,
        )
    ],
    "ReceiptLedgerFewFilesLeft": [
        (
            {job("process_open_fds"): "900x20", job("process_max_fds"): "1024x20"},
            {job("process_open_fds"): "900x20", job("process_max_fds"): "65536x20"},
            15,
        )
    ],
    "ReceiptLedgerDiskSlow": [(commits(90, 10), commits(1000, 1), 40)],
    "ReceiptLedgerSealingBehind": [gauge("receipt_ledger_unsealed_tails_bytes", 3 << 30, 1 << 30, 10)],
    "ReceiptLedgerClockSetBack": [
        (
            {"receipt_ledger_clock_set_back_seconds": "0x30 60x30"},
            # It happened hours ago.
            {"receipt_ledger_clock_set_back_seconds": "60x60"},
            60,
        )
    ],
    "ReceiptLedgerProjectionsBehind": [gauge("receipt_ledger_projection_lag_events", 20_000, 9_000, 10)],
    "ReceiptLedgerNeedsOperator": [
        counter(f'receipt_ledger_operator_alarms_total{{alarm="{alarm}"}}')
        for alarm in ("status_21004", "reply_mismatch", "webhook_disabled", "forgeries_bounded")
    ],
    "ReceiptLedgerProductNotDeclared": [gauge("receipt_ledger_undeclared_products", 1, 0, 5)],
    "ReceiptLedgerWebhookDisabled": [gauge("receipt_ledger_webhooks_disabled", 1, 0, 5)],
    "ReceiptLedgerWebhooksBehind": [gauge("receipt_ledger_webhook_lag_events", 5_000, 10, 30)],
    "ReceiptLedgerErasuresWait": [
        (
            {"receipt_ledger_erasures_waiting": f"2x{3 * DAY}"},
            {"receipt_ledger_erasures_waiting": f"2x{DAY} 0 2x{2 * DAY}"},
            2 * DAY + 2,
        )
    ],
    "ReceiptLedgerVerificationLate": [
        gauge("receipt_ledger_verification_queue_oldest_seconds", 8000, 600, 30)
    ],
    "ReceiptLedgerAppStoreDown": [gauge("receipt_ledger_app_store_circuit_open", 1, 0, 30)],
    "ReceiptLedgerNotificationsRefused": [
        counter(notifications("unknown_bundle")),
        counter(notifications("out_of_time")),
        (
            {notifications("wrong_app"): "0+1x10"},
            {notifications("recorded"): "0+1x10", notifications("known"): "0+1x10"},
            8,
        ),
    ],
    "ReceiptLedgerSyncFails": [
        (
            {sync_calls("unauthorized"): "0 0 1 2 3x20"},
            {sync_calls("page"): "0+9x20", sync_calls("unauthorized"): "0x20"},
            10,
        )
    ],
    "ReceiptLedgerSyncLate": [
        # A clock that begins at 0, and a synchronization in its first hour, or a day later.
        ({SYNC_END: f"3600x{4 * DAY}"}, {SYNC_END: f"90000x{4 * DAY}"}, 2 * DAY + 6),
        # None was ever made.
        ({SYNC_END: f"1x{4 * DAY}"}, {SYNC_END: f"0x{4 * DAY}"}, 3 * DAY),
    ],
    "ReceiptLedgerCopyBehind": [gauge("receipt_ledger_replication_lag_seconds", 90, 5, 10)],
    "ReceiptLedgerCopyLosesObjects": [counter("receipt_ledger_replication_lost_objects_total")],
    "ReceiptLedgerCopyNotFoundWhole": [
        (
            {WHOLE: f"600x{4 * DAY}", CONFIRMED: f"9x{4 * DAY}"},
            # There is no copy.
            {WHOLE: f"0x{4 * DAY}", CONFIRMED: f"0x{4 * DAY}"},
            3 * DAY,
        )
    ],
}


LONG = ("ReceiptLedgerErasuresWait", "ReceiptLedgerSyncLate", "ReceiptLedgerCopyNotFoundWhole")


def rule_test(alert, series, step, step_minutes, fires):
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return {
        "interval": f"{step_minutes}m",
        "input_series": [{"series": name, "values": str(values)} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": firing,
                "eval_time": f"{step * step_minutes}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


@unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed")
class AlertTests(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_rules_are_well_formed(self):
        self.promtool("check", "rules", str(RULES))

    def test_each_rule_fires_when_it_must_and_is_silent_otherwise(self):
        with tempfile.TemporaryDirectory() as folder:
            # One file for all would name no rule in a failure.
            for alert, cases in CASES.items():
                minutes = 30 if alert in LONG else 1
                tests = []
                for firing, silent, step in cases:
                    tests.append(rule_test(alert, firing, step, minutes, fires=True))
                    tests.append(rule_test(alert, silent, step, minutes, fires=False))
                path = pathlib.Path(folder) / f"{alert}.yaml"
                content = {"rule_files": [str(RULES)], "evaluation_interval": f"{minutes}m", "tests": tests}
                path.write_text(json.dumps(content))
                with self.subTest(alert):
                    self.promtool("test", "rules", str(path))


class RuleTests(unittest.TestCase):
    def test_each_rule_has_its_cases_and_names_metrics_of_the_server(self):
        names, _ = exposed()
        text = RULES.read_text()
        rules = re.findall(r"(?s)- alert: (\w+)\n(.*?)(?=\n\n|\n      - alert|\Z)", text)
        self.assertEqual([name for name, _ in rules], list(CASES))
        for name, rule in rules:
            expression = rule.split("expr:", 1)[1].split("for:")[0].split("labels:")[0]
            if not expression.strip().startswith("up{"):
                known_metrics(self, name, expression, names)
            self.assertRegex(rule, r"severity: (critical|warning)")


if __name__ == "__main__":
    unittest.main()
