# The pages of the manual, as mandoc and man read them.
#
# LEDGERCTL names the program. Tests of a reader that is not installed are skipped.
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = os.environ.get("LEDGERCTL", str(ROOT / ".build/debug/ledgerctl"))


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def reference():
    """The reference of each command, by its words."""
    parts = run(LEDGERCTL, "help", "--markdown").stdout.split("\n## ")[1:]
    named = {part.split("\n")[0]: part for part in parts}
    shared = named.pop("Shared options")
    for name in ("Conventions", "Exit codes"):
        del named[name]
    return {name: part + shared_rows(part, shared) for name, part in named.items()}


def shared_rows(part, shared):
    """The rows of shared options that a command's usage shows."""
    usage = part.split("\n```\n")[1]
    rows = re.findall(r"^(- `(?:-[a-z], )?(--[^`]+)`.*)$", shared, re.MULTILINE)
    assert len(rows) > 10
    # A command may have an option of its own by the name of a shared one.
    return "".join(
        f"\n{row}"
        for row, signature in rows
        if re.search(rf"{re.escape(signature)}(?![A-Za-z-])", usage)
    )


class ManualTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.folder = pathlib.Path(cls.directory.name)
        run(LEDGERCTL, "help", "--man-pages", str(cls.folder))
        cls.pages = sorted(cls.folder.iterdir())
        cls.reference = reference()

    def need(self, program):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed")

    def page(self, command):
        return self.folder / f"ledgerctl-{command.replace(' ', '-')}.1"

    def test_each_command_has_a_page_and_there_is_one_of_the_program(self):
        expected = {self.page(command).name for command in self.reference} | {"ledgerctl.1"}
        self.assertEqual({page.name for page in self.pages}, expected)

    def test_pages_are_the_same_each_time(self):
        for page in self.pages[:3]:
            words = page.stem.split("-", 1)[1].replace("-", " ").split() if "-" in page.stem else []
            if " ".join(words) not in ["", *self.reference]:
                continue
            again = run(LEDGERCTL, "help", "--man", *words).stdout
            self.assertEqual(page.read_text(), again)

    def test_mandoc_finds_no_fault(self):
        self.need("mandoc")
        done = run("mandoc", "-T", "lint", "-W", "warning", *map(str, self.pages))
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_groff_warns_of_nothing(self):
        self.need("man")
        for page in self.pages:
            done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page))
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_other_pages_that_a_page_names_exist(self):
        names = {page.stem for page in self.pages}
        for page in self.pages:
            text = page.read_text().replace("\\-", "-")
            named = re.findall(r"^\.BR (\S+) \(1\)", text, re.MULTILINE)
            named += re.findall(r"^\\fB(ledgerctl\S*)\\fP\(1\)$", text, re.MULTILINE)
            self.assertLessEqual(set(named), names, page.name)

    def shown(self, page):
        """A page as plain text on a wide terminal."""
        done = run("mandoc", "-T", "utf8", "-O", "width=1000", str(page))
        return re.sub(".\b", "", done.stdout)

    def test_a_reader_sees_each_option_and_types_each_example_as_it_stands(self):
        self.need("mandoc")
        for command, text in self.reference.items():
            shown = self.shown(self.page(command))
            lines = [line.strip() for line in shown.splitlines()]
            with self.subTest(command=command):
                for signature in re.findall(r"^- `((?:-[a-z], )?--[^`]+)`", text, re.MULTILINE):
                    self.assertTrue(
                        any(line == signature or line.startswith(signature + " ") for line in lines),
                        signature,
                    )
                examples = text.partition("```sh\n")[2].split("```")[0].splitlines()
                for example in examples:
                    if not example.startswith("#"):
                        self.assertIn(example, lines)

    def test_paragraphs_are_those_of_the_reference(self):
        self.need("mandoc")
        for command, text in self.reference.items():
            shown = " ".join(self.shown(self.page(command)).split())
            prose = re.split(r"\n+- |\n\n```sh", text.split("\n```\n", 2)[2])[0].strip()
            for paragraph in prose.split("\n\n"):
                plain = " ".join(paragraph.replace("`", "").split())
                with self.subTest(command=command, paragraph=plain[:60]):
                    self.assertIn(plain, shown)


if __name__ == "__main__":
    unittest.main()
