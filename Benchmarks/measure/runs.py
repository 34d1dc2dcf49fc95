# Runs programs in turn, times them, and says what the figures come to.
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time


class MeasurementError(Exception):
    """Why a part has no figures."""


def output(command, allowed=(0,), **options):
    """What a program prints."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, **options
    )
    if done.returncode not in allowed:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        name = pathlib.Path(str(command[0])).name
        raise MeasurementError(f"{name} {command[1]} exited with {done.returncode}: {' '.join(lines[-2:])}")
    return done.stdout.decode(errors="replace")


def figures(command, **options):
    """The JSON object that a program prints last."""
    return json.loads(output(command, **options).splitlines()[-1])


def start(command, environment=None):
    """Starts a program without a shell; what it prints goes nowhere."""
    command = [str(part) for part in command]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    return os.posix_spawnp(command[0], command, environment or os.environ, file_actions=actions)


def finish(process, command, allowed=(0,)):
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    except BaseException:
        # Whoever interrupts a run wants its programs to end too.
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    if status not in allowed:
        name = pathlib.Path(str(command[0])).name
        raise MeasurementError(f"{name} {command[1] if len(command) > 1 else ''} exited with {status}")


def seconds(command, environment=None, allowed=(0,)):
    """How long a whole process takes."""
    began = time.perf_counter()
    finish(start(command, environment), command, allowed)
    return time.perf_counter() - began


def peak_anonymous_mib(command):
    """The most memory of its own that a process holds, looked at every 2 ms."""
    process = start(command)
    peak = 0
    status = pathlib.Path(f"/proc/{process}/status")
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("RssAnon:"):
                peak = max(peak, int(line.split()[1]))
        time.sleep(0.002)
    finish(process, command)
    return peak / 1024


def in_turn(count, ways, warm_up=True):
    """Calls each way `count` times in turn, every round beginning with another.

    `ways` maps names to functions that return seconds. The lists that come back have one figure a round.
    """
    names = list(ways)
    if warm_up:
        for name in names:
            ways[name]()
    taken = {name: [] for name in names}
    for number in range(count):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            taken[name].append(ways[name]())
    return taken


def ratios(figures_of_one, figures_of_other):
    """The ratio in each round: what disturbs a round disturbs both sides of it."""
    return [one / other for one, other in zip(figures_of_one, figures_of_other)]


def spread(values, digits=2, unit=""):
    """The median and the range."""
    median = statistics.median(values)
    return f"{median:,.{digits}f}{unit} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


class Table:
    """Rows of what was measured; people see each as it comes."""

    def __init__(self, say, is_judged):
        self.rows = []
        self.say = say
        # A small run says whether all can be measured, not whether the goals are met.
        self.is_judged = is_judged

    def row(self, what, measured, goal="", met=None):
        judged = {None: "", True: "yes", False: "no"}[met if self.is_judged else None]
        self.rows.append((what, goal, measured, judged))
        self.say(f"  {what}: {measured}" + (f" [goal {goal}: {judged}]" if judged else ""))

    def markdown(self):
        heads = ["what", "goal", "measured"] + (["met"] if self.is_judged else [])
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for row in self.rows:
            cells = [cell.replace("|", "\\|") for cell in row[: len(heads)]]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def text(self):
        rows = [("what", "goal", "measured", "met"), *self.rows]
        columns = 4 if self.is_judged else 3
        widths = [max(len(row[column]) for row in rows) for column in range(columns)]
        lines = []
        for row in rows:
            cells = [row[column].ljust(widths[column]) for column in range(columns)]
            lines.append("  ".join(cells).rstrip())
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines) + "\n"
