# The executors of Spark's local cluster: their memory, and their kills.

from __future__ import annotations

import os
import pathlib
import random
import signal
import threading

BACKEND = b"CoarseGrainedExecutorBackend"
RULES_NAME = "ledger-rules"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Processes:
    """The processes of the machine at one moment."""

    def __init__(self) -> None:
        self.parents: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.bytes: dict[int, int] = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                text = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue
            name, fields = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")"):]
            pid = int(entry.name)
            self.names[pid] = name
            self.parents[pid] = int(fields.split()[2])
            self.bytes[pid] = int(fields.split()[22]) * PAGE_BYTES

    def is_below(self, pid: int, ancestor: int) -> bool:
        while pid in self.parents and pid != ancestor:
            pid = self.parents[pid]
        return pid == ancestor

    def executors(self) -> list[int]:
        """The executors below this process, however they were started."""
        return [
            pid for pid in self.parents
            if self.names[pid] == "java" and self.is_below(pid, os.getpid())
            and BACKEND in _command_line(pid)]

    def rules(self) -> list[int]:
        """Runs of the program, whichever process started them."""
        return [pid for pid, name in self.names.items() if name.startswith(RULES_NAME)]

    def tree_bytes(self, root: int) -> int:
        """The memory of a process and everything that it started."""
        return sum(size for pid, size in self.bytes.items() if self.is_below(pid, root))


def _command_line(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Watch:
    """Watches executors during a run; kills some if allowed."""

    def __init__(
        self, seed: int = 0, kills_max: int = 0, pause_seconds: tuple[float, float] = (2, 6)
    ) -> None:
        self.killed: list[str] = []
        self.peak_bytes = 0
        self.peak_rules_bytes = 0
        self._random = random.Random(seed)
        self._kills_max = kills_max
        self._pause_seconds = pause_seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        step_seconds = 0.2
        left_seconds = self._random.uniform(*self._pause_seconds)
        while not self._end.wait(step_seconds):
            processes = Processes()
            executors = processes.executors()
            for pid in executors:
                self.peak_bytes = max(self.peak_bytes, processes.tree_bytes(pid))
            for pid in processes.rules():
                self.peak_rules_bytes = max(self.peak_rules_bytes, processes.bytes[pid])
            left_seconds -= step_seconds
            # Only a working executor is worth killing.
            busy = [
                (pid, words[1].decode()) for pid in executors for rules in processes.rules()
                if processes.is_below(rules, pid)
                and len(words := _command_line(rules).split(b"\0")) > 1]
            if left_seconds > 0 or not busy or len(self.killed) >= self._kills_max:
                continue
            pid, work = self._random.choice(busy)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed.append(work)
            left_seconds = self._random.uniform(*self._pause_seconds)
