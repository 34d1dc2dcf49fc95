# A program with all that it starts: processor time and memory by kind of process and by stretch of time.
import bisect
import os
import pathlib
import subprocess
import threading
import time
from collections import defaultdict

from .runs import MeasurementError

SAMPLE_SECONDS = 0.1
TICK = os.sysconf("SC_CLK_TCK")
# The fields of /proc/PID/stat behind the name in parentheses, counted from 0.
SESSION, USER_TIME, SYSTEM_TIME = 3, 11, 12


class Sampler:
    """Looks at every process of a session: when each kind took how much processor time, and its memory.

    What a process takes after it was last seen is lost: short ones have to be measured otherwise.
    """

    def __init__(self, session, kind_of):
        self.session = session
        self.kind_of = kind_of
        # By process: its kind, and its processor seconds when it was last seen.
        self.seen = {}
        # (moment, kind, processor seconds since the sample before)
        self.taken = []
        self.peak_mib = defaultdict(float)
        self.peak_together_mib = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(SAMPLE_SECONDS):
            self.sample()

    def stop(self):
        self.ended.set()
        self.thread.join()

    def sample(self):
        now, together = time.time(), 0.0
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                together += self.look_at(now, entry.name)
            except (OSError, IndexError, ValueError):
                # It has ended meanwhile.
                continue
        self.peak_together_mib = max(self.peak_together_mib, together)

    def look_at(self, now, process):
        """Notes what a process of the session took; its memory in MiB."""
        place = pathlib.Path("/proc", process)
        name, _, rest = (place / "stat").read_text(errors="replace").rpartition(")")
        fields = rest.split()
        if int(fields[SESSION]) != self.session:
            return 0
        kind = self.kind_of(name.partition("(")[2], int(process) == self.session)
        if kind is None:
            return 0
        seconds = (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / TICK
        # Between fork and exec a process bears its parent's name.
        before = self.seen.get(process, (kind, 0.0))[1]
        self.seen[process] = (kind, seconds)
        if seconds > before:
            self.taken.append((now, kind, seconds - before))
        own_mib = 0.0
        for line in (place / "status").read_text(errors="replace").splitlines():
            if line.startswith("RssAnon:"):
                own_mib = int(line.split()[1]) / 1024
        self.peak_mib[kind] = max(self.peak_mib[kind], own_mib)
        return own_mib

    def seconds_by_kind_and_stretch(self, stretches):
        """Processor seconds by (kind, name of the stretch). `stretches`: (first moment, name), ascending."""
        begins = [begin for begin, _ in stretches]
        found = defaultdict(float)
        for moment, kind, seconds in self.taken:
            # A sample's time was taken before it.
            place = bisect.bisect_right(begins, moment - SAMPLE_SECONDS / 2) - 1
            found[kind, stretches[max(place, 0)][1]] += seconds
        return found


def run_sampled(command, environment, kind_of, errors):
    """Runs a program in a session of its own; its sampler, and the seconds that it took."""
    began = time.monotonic()
    with open(errors, "wb") as said:
        process = subprocess.Popen(
            [str(part) for part in command], env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )
        sampler = Sampler(process.pid, kind_of)
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        finally:
            sampler.stop()
    if code != 0:
        lines = pathlib.Path(errors).read_text(errors="replace").strip().splitlines()
        raise MeasurementError(f"{command[-1]} exited with {code}: {' '.join(lines[-2:])}")
    return sampler, time.monotonic() - began
