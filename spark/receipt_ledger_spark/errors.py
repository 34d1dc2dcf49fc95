# One shape of failures: operation, object, cause and exit code; on tasks of Spark, too.

from __future__ import annotations

import json
import re

DONE = 0
FAILED = 1
USAGE = 2
NO_LEDGER = 10
NEWER_FORMAT = 12
DAMAGE = 20
MISMATCH = 21
INTERRUPTED = 130

# What repeating can mend: a full disk, a program that the system ended, a lost connection.
_TRANSIENT = frozenset({FAILED})
_MARK = "receipt-ledger-spark-failure:"
_MARKED = re.compile(re.escape(_MARK) + r"(\{.*?\}):end")


class Failure(Exception):
    """What went wrong, as one line, and the exit code that says so."""

    def __init__(self, operation: str, subject: str, cause: str, code: int = FAILED) -> None:
        self.operation = operation
        self.subject = subject
        self.cause = cause
        self.code = code
        super().__init__(operation, subject, cause, code)

    def __str__(self) -> str:
        parts = (self.operation, self.subject, self.cause)
        return ": ".join(one_line(part) for part in parts if part)

    @property
    def is_transient(self) -> bool:
        """Whether the same task may succeed when it runs again."""
        return self.code in _TRANSIENT

    def text(self) -> str:
        """JSON that `parse` reads."""
        return json.dumps([self.operation, self.subject, self.cause, self.code])

    @staticmethod
    def parse(text: str) -> "Failure":
        operation, subject, cause, code = json.loads(text)
        return Failure(operation, subject, cause, code)

    def marked(self) -> "TaskFailure":
        """An exception whose text survives the way through Java."""
        body = json.dumps({"failure": self.text().encode().hex()})
        return TaskFailure(f"{_MARK}{body}:end")


class TaskFailure(Exception):
    """A failure on an executor that Spark should answer by running the task again."""


def usage(operation: str, subject: str, cause: str) -> Failure:
    return Failure(operation, subject, cause, USAGE)


def from_spark(error: BaseException, operation: str) -> Failure:
    """The failure behind an exception of Spark: our task's, or the innermost cause of Java."""
    text = str(error)
    java = getattr(error, "java_exception", None)
    if java is not None:
        text += "\n" + str(java.toString())
    found = _MARKED.search(text)
    if found:
        return Failure.parse(bytes.fromhex(json.loads(found.group(1))["failure"]).decode())
    causes = re.findall(r"Caused by: ([^\n]+)", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Of a Python worker's traceback the last line says what happened.
    raised = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Failure)\b", line)]
    cause = (causes or raised or lines or [type(error).__name__])[-1]
    return Failure(operation, "Spark", cause[:500])


def one_line(text: str) -> str:
    """Text without line ends or other control characters."""
    return "".join(c if c.isprintable() else " " for c in str(text)).strip()
