# Shared by these tests: a ledger with the shop's history, and ways to run commands on it.
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = os.environ.get("LEDGERCTL", str(ROOT / ".build/debug/ledgerctl"))
SHOP = ROOT / "Tests/ledgerctlTests/Transcripts/shop.sh"

# A user and a product whose characters are hard for every text format.
HOSTILE_USER = "=cmd|' /C calc'!A0"
HOSTILE_LINE = (
    """line 11 2019-06-01T12:00:00Z "$(row coins 7001 7001 2019-06-01T11:59:00Z)" """
    """',"country_code":"JP","user_identifier":"=cmd|\\u0027 /C calc\\u0027!A0","""
    """"metadata":{"price":"120","currency":"JPY"}'\n"""
    """line 12 2019-06-02T12:00:00Z "$(row 'a,b;c \\"d\\"' 7002 7002 2019-06-02T11:59:00Z)" """
    """',"country_code":"DE","user_identifier":"Zoë, „x“","""
    """"metadata":{"price":"2.5","currency":"EUR"}'\n"""
    # Everything in an upload that identifies a person.
    """line 13 2019-06-03T12:00:00Z "$(row coins SECRET7003 SECRET7003 2019-06-03T11:59:00Z)" """
    """',"country_code":"DE","user_identifier":"SECRET-user","ip_address":"203.0.113.77","""
    """"identifier_for_vendor":"5EC2E700-0000-4000-8000-000000000077","""
    """"metadata":{"price":"2.5","currency":"EUR","note":"SECRET-note"}'\n"""
)


class Shop:
    """A folder with the ledger `shop`."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.environment = dict(
            os.environ, SHOP=str(SHOP), LEDGER_DIR="shop",
            # The recipes' `python3` is the one that runs the tests, since it has their packages.
            PATH=os.pathsep.join(
                [str(pathlib.Path(LEDGERCTL).parent), str(pathlib.Path(sys.executable).parent),
                 os.environ["PATH"]]))
        self.sh(
            'unset LEDGER_DIR; . "$SHOP"; shop_history > shop.ndjson\n{\n' + HOSTILE_LINE
            + "} >> shop.ndjson\nledgerctl init shop --origin example.com/shop\n"
            + "ledgerctl import --ledger shop --register-apps shop.ndjson")

    def sh(self, line, check=True):
        """Runs a line of shell in the folder; returns what it printed."""
        done = subprocess.run(
            ["/bin/sh", "-ec", line], cwd=self.folder, env=self.environment, capture_output=True,
            text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{line}\n{done.stdout}{done.stderr}")
        return done.stdout if check else done

    def export(self, words, check=True):
        return self.sh(f"ledgerctl export {words}", check)

    def close(self):
        self.temporary.cleanup()


class ShopTests(unittest.TestCase):
    """Tests of one class share a shop."""

    @classmethod
    def setUpClass(cls):
        cls.shop = Shop()

    @classmethod
    def tearDownClass(cls):
        cls.shop.close()
