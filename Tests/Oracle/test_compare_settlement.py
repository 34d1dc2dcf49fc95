# Checks that a comparison of settlement passes for a faithful program, and fails for each difference.
import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

import compare
import compare_settlement
import generate_settlement_sellers
from compare_settlement import SettlementComparison
from generate_settlement_plants import PLANTS
from settlement_matching import CLASSES
from settlement_stand_in import Signer, StandInLedger


# A few long rows and countries are enough where no program is held to them.
@mock.patch.object(compare_settlement, "LONG_ROWS", 3)
@mock.patch.object(generate_settlement_sellers, "COUNTRIES", generate_settlement_sellers.COUNTRIES[::20])
class FaithfulAndFaulty(unittest.TestCase):
    def verdict(self, mode=None, report=lambda name, text: text, events=lambda data: None, accepts=None,
                **program):
        """(comparisons that passed, the names of those that failed), of one form, or of files alone."""
        passed, failed = [], []

        def note(name, found):
            (failed if found else passed).append(name)

        with tempfile.TemporaryDirectory() as temporary:
            comparison = SettlementComparison(
                note, compare.differences,
                lambda path: StandInLedger(path, report, events, accepts, **program), pathlib.Path(temporary))
            if mode is None:
                comparison.odd_files(3)
            elif mode in ("damaged", "sellers"):
                {"damaged": lambda: comparison.damaged_files(3), "sellers": comparison.sellers}[mode]()
            else:
                comparison.one_form(3, mode, *comparison.sales(3, 60, Signer()))
        return passed, failed

    def test_a_faithful_program_passes(self):
        for mode in ("detailed", "single", "regional", "mixed"):
            passed, failed = self.verdict(mode)
            self.assertEqual(failed, [])
            self.assertGreater(len(passed), 13 if mode == "mixed" else 13 + len(PLANTS))
        for mode, least in ((None, 300), ("damaged", 60), ("sellers", 30)):
            passed, failed = self.verdict(mode)
            self.assertEqual(failed, [])
            self.assertGreater(len(passed), least)

    def test_a_wrong_unit_and_another_order_are_differences(self):
        for change in (lambda text: text.replace(",8.99,", ",8.98,", 1),
                       lambda text: text.replace("\n", "\r\n"),
                       lambda text: "".join([*text.splitlines(True)[:1], *text.splitlines(True)[:0:-1]])):
            def changed(name, text, change=change):
                return change(text) if name == "reconcile" else text

            _, failed = self.verdict("single", report=changed)
            self.assertIn("single, export reconcile", failed)

    def test_a_lost_exception_is_a_difference(self):
        _, failed = self.verdict("single", report=lambda name, text: "".join(
            line for line in text.splitlines(True) if not line.startswith("sign_disagrees")))
        self.assertIn("single, export exceptions", failed)

    def test_a_fault_that_lands_in_another_class_is_a_difference(self):
        for name, plant in PLANTS.items():
            for _, expected, _ in plant.lands:
                self.assertIn(expected, CLASSES)
        _, failed = self.verdict("single", report=lambda name, text: text.replace(
            "price_differs", "matched"))
        self.assertIn("single, another_price", failed)

    def test_a_wrong_cent_in_a_report_on_money_is_a_difference(self):
        for name in ("proceeds", "payout", "entries", "journal", "sales"):
            def changed(report, text, name=name):
                return text.replace("9", "8", 1) if report == name else text

            _, failed = self.verdict("single", report=changed)
            self.assertTrue(any(f"export {name}" in one for one in failed), failed)

    def test_reports_that_the_help_does_not_list_are_not_compared(self):
        def broken(report, text):
            return text if report in ("reconcile", "exceptions") else ""

        with contextlib.redirect_stdout(io.StringIO()) as printed:
            help_text = "the report; journal or sales --environment"
            _, failed = self.verdict("mixed", report=broken, help_text=help_text)
        self.assertEqual(failed, [])
        self.assertIn("entries --basis apple", printed.getvalue())

    def test_a_refused_file_that_is_taken_is_a_difference(self):
        _, failed = self.verdict(accepts="cut: no totals")
        self.assertIn("refused: no totals", failed)

    def test_a_line_that_events_lose_is_a_difference(self):
        def loses(data):
            del data["totals"][-1:]

        _, failed = self.verdict(events=loses)
        self.assertIn("events: as Apple writes it (FY2014-P01)", failed)


if __name__ == "__main__":
    unittest.main()
