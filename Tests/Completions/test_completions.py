# Completions, in the shells themselves: what each offers for a partly typed command line.
#
# LEDGERCTL names the program. A shell that is not installed is skipped; bash is everywhere.
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = os.environ.get("LEDGERCTL", str(ROOT / ".build/debug/ledgerctl"))
LIMIT_SECONDS = 60
SHOP = ROOT / "Tests/ledgerctlTests/Transcripts/shop.sh"
# The scripts call the program that the line names.
PATH = f"{pathlib.Path(LEDGERCTL).parent}{os.pathsep}{os.environ['PATH']}"


def printed(*arguments):
    return subprocess.run(
        [LEDGERCTL, *arguments], capture_output=True, text=True, check=True
    ).stdout


class Terminal:
    """A shell at a pseudo-terminal, with a key that inserts all completions and one that shows the line."""

    def __init__(self, command, folder, settings):
        self.received = b""
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            environment = {"PATH": PATH, "TERM": "dumb", "HOME": str(folder)}
            os.execvpe(command[0], command, environment)
        self.send("stty cols 4000 -echo\n")
        for line in settings:
            self.send(line + "\n")
        self.send("printf '<<%s>>' ready\n")
        self.until(rb"<<ready>>")

    def send(self, text):
        os.write(self.descriptor, text.encode())

    def until(self, pattern):
        end = time.monotonic() + LIMIT_SECONDS
        while (found := re.search(pattern, self.received, re.DOTALL)) is None:
            left = end - time.monotonic()
            if left < 0 or not select.select([self.descriptor], [], [], left)[0]:
                raise AssertionError(f"the shell printed {self.received!r}")
            self.received += os.read(self.descriptor, 65_536)
        self.received = self.received[found.end():]
        return found

    def completed(self, line):
        """The line once all completions of its last word were inserted."""
        self.send(line + "\x18a\x18p")
        found = self.until(rb"<<(.*?)>>")
        self.send("\x15")
        return found.group(1).decode()

    def close(self):
        os.close(self.descriptor)
        os.waitpid(self.process, 0)


class Bash:
    def __init__(self, folder):
        (folder / "ledgerctl.bash").write_text(printed("completions", "bash"))
        settings = [
            "bind '\"\\C-xa\": insert-completions'",
            "bind -x '\"\\C-xp\": printf \"<<%s>>\" \"$READLINE_LINE\"'",
            "bind 'set enable-bracketed-paste off'",
            "source ledgerctl.bash",
        ]
        self.terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], folder, settings)
        self.close = self.terminal.close

    def offered(self, line):
        return offers(line, self.terminal.completed(line))


class Zsh:
    def __init__(self, folder):
        (folder / "functions").mkdir()
        (folder / "functions/_ledgerctl").write_text(printed("completions", "zsh"))
        settings = [
            "fpath=($PWD/functions $fpath)",
            "autoload -U compinit && compinit -u -D",
            "every() { compstate[insert]=all }",
            "insert-every() { comppostfuncs=(every); _main_complete }",
            "zle -C insert-every complete-word insert-every",
            "show() { printf '<<%s>>' \"$BUFFER\" }",
            "zle -N show",
            "bindkey '^Xa' insert-every",
            "bindkey '^Xp' show",
            "bindkey '^U' kill-whole-line",
        ]
        self.terminal = Terminal(["zsh", "-f", "-i"], folder, settings)
        self.close = self.terminal.close

    def offered(self, line):
        return offers(line, self.terminal.completed(line))


class Fish:
    def __init__(self, folder):
        self.folder = folder
        (folder / "ledgerctl.fish").write_text(printed("completions", "fish"))

    def offered(self, line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", "source ledgerctl.fish; complete -C $argv[1]", line],
            cwd=self.folder, env={"PATH": PATH, "HOME": str(self.folder)},
            capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS,
        )  # fmt: skip
        if done.stderr:
            raise AssertionError(done.stderr)
        return {value(row.split("\t")[0]) for row in done.stdout.splitlines()}

    def close(self):
        pass


def value(word):
    """An offered word, without the option's name before it and what a shell adds after it."""
    return re.sub(r"^--[a-z-]+=(?=.)", "", word).rstrip("/=,")


def offers(line, completed):
    """The words that were inserted in place of the line's last word."""
    before, _, last = line.rpartition(" ")
    if not completed.startswith(before):
        raise AssertionError(f"{line!r} became {completed!r}")
    words = completed[len(before):].split()
    return {value(word) for word in words if word != last or word.endswith(("/", "-"))} - {""}


REPORTS = {"revenue", "journal", "sales", "exceptions", "receipts", "users", "subscriptions"}
DIMENSIONS = {"period", "app", "product", "country", "environment", "basis", "trust", "month"}
FORMATS = {"csv", "json", "ndjson", "table"}
FILES = {"history.ndjson", "ledger"}

# A line, what must be offered, and what must not be.
LINES = [
    ("ledgerctl ", {"init", "app", "export", "audit", "help"}, {"add", "history.ndjson"}),
    ("ledgerctl exp", {"export"}, {"init"}),
    ("ledgerctl app ", {"add", "list", "show", "edit"}, {"export"}),
    ("ledgerctl --ledger ledger app a", {"add"}, {"list"}),
    ("ledgerctl app --ledger=ledger a", {"add"}, {"list"}),
    ("ledgerctl export ", REPORTS, {"app", "history.ndjson"}),
    ("ledgerctl export --by country re", {"revenue", "receipts"}, {"journal"}),
    ("ledgerctl export revenue --by country,p", {"country,period", "country,product"}, set()),
    ("ledgerctl export revenue --by country,", {"country,app"}, {"country,country"}),
    ("ledgerctl export --format ", FORMATS, REPORTS),
    ("ledgerctl export --format=", FORMATS, REPORTS),
    ("ledgerctl export --format=n", {"ndjson"}, {"csv"}),
    ("ledgerctl export revenue --t", {"--timezone"}, {"--json"}),
    ("ledgerctl export revenue --timezone Europe/Ber", {"Europe/Berlin"}, {"UTC"}),
    ("ledgerctl export revenue -o ", FILES, REPORTS),
    ("ledgerctl export revenue --columns period,n", {"period,net"}, {"period,gross"}),
    ("ledgerctl export revenue --sort ", {"net", "gross"}, FILES),
    ("ledgerctl export revenue --as-of ", FILES, {"net"}),
    ("ledgerctl export revenue --at 2026-03-01T00:00:00Z --refunds ", {"sale-date"}, REPORTS),
    ("ledgerctl export revenue --from ", set(), FILES | REPORTS),
    ("ledgerctl import ", FILES, {"app"}),
    ("ledgerctl import history.ndjson ", {"ledger"}, {"app"}),
    ("ledgerctl import --errors ", {"history.ndjson"}, {"app"}),
    ("ledgerctl status --ledger ", {"ledger"}, {"history.ndjson"}),
    ("ledgerctl init ", {"ledger"}, {"history.ndjson"}),
    ("ledgerctl audit ", {"proof", "consistency", "report"}, {"history.ndjson"}),
    ("ledgerctl audit proof --j", {"--json"}, {"--signatures"}),
    ("ledgerctl help ", {"init", "app"}, {"history.ndjson"}),
    ("ledgerctl help app ", {"add", "list"}, {"init"}),
    ("ledgerctl completions ", {"bash", "zsh", "fish"}, {"app"}),
    ("ledgerctl app-store sync --app ", set(), {"history.ndjson", "sync"}),
    # Names from the ledger in the line.
    ("ledgerctl export revenue --ledger shop --app ", {"com.example.shop"}, FILES),
    ("ledgerctl export revenue --ledger=shop --product ", {"coins", "pro.month"}, FILES),
    ("ledgerctl export revenue --ledger shop --product coins,pro", {"coins,pro.month"}, {"coins,coins"}),
    ("ledgerctl export revenue --ledger shop --product=p", {"pro.month"}, {"coins"}),
    ("ledgerctl export revenue --ledger shop --country ", {"DE", "US"}, FILES),
    ("ledgerctl export revenue --ledger shop --in ", {"EUR", "USD"}, FILES),
    ("ledgerctl app show --ledger shop com", {"com.example.shop"}, FILES),
    ("ledgerctl export revenue --ledger ledger --product ", set(), {"coins"} | FILES),
    ("ledgerctl export revenue --product ", set(), {"coins"} | FILES),
]


class CompletionTests(unittest.TestCase):
    def check(self, name, make):
        if shutil.which(name) is None:
            self.skipTest(f"{name} is not installed")
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            shell = make(folder)
            self.addCleanup(shell.close)
            self.check_lines(shell, folder)

    def check_lines(self, shell, folder):
        (folder / "history.ndjson").touch()
        (folder / "ledger").mkdir()
        subprocess.run(
            ["sh", "-ec", '. "$0"; shop_ledger; printf "date,base,quote,rate\\n2019-01-02,EUR,USD,1.1\\n"'
             " > rates.csv; ledgerctl rates import rates.csv; ledgerctl rebuild", SHOP],
            cwd=folder, env={"PATH": PATH}, check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        for line, present, absent in LINES:
            with self.subTest(line=line):
                offered = shell.offered(line)
                self.assertLessEqual(present, offered)
                self.assertFalse(absent & offered, offered)
        for command in commands():
            with self.subTest(command=command):
                self.assertLessEqual(options(command), shell.offered(f"ledgerctl {command} --"))

    def test_bash_offers_what_the_command_table_says(self):
        self.check("bash", Bash)

    def test_zsh_offers_what_the_command_table_says(self):
        self.check("zsh", Zsh)

    def test_nothing_is_said_where_nothing_can_be_offered(self):
        for line in ([], ["csh", "export"], ["bash"], ["bash", "nonsense", ""],
                     ["fish", "export", "--in", ""],
                     ["zsh", "export", "--ledger", "/dev/null", "--product", ""]):
            done = subprocess.run([LEDGERCTL, "__complete", *line], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)

    def test_fish_offers_what_the_command_table_says(self):
        self.check("fish", Fish)


def reference():
    """The reference of each command, by its words."""
    parts = printed("help", "--markdown").split("\n## ")[1:]
    named = {part.split("\n")[0]: part for part in parts}
    others = ("Conventions", "Exit codes", "Shared options")
    return {name: part for name, part in named.items() if name not in others}


def commands():
    return list(reference())


def options(command):
    """The long options of a command: those of its list, and shared ones, which its usage shows."""
    part = reference()[command]
    listed = re.findall(r"^- `(?:-[a-z], )?(--[a-z-]+)", part, re.MULTILINE)
    return set(listed) | set(re.findall(r"--[a-z][a-z-]*", part.split("\n```\n")[1]))


if __name__ == "__main__":
    unittest.main()
