# The reports on Spark beside a rebuild: processor seconds a million events, by stage and by kind of process.
import json
import os
import pathlib
import resource
import shutil
import statistics
from collections import defaultdict

from .processes import run_sampled
from .runs import MeasurementError, finish, start, spread

GOAL = 8
# Takes the place of ledger-rules, runs it and writes down what it took: its processes are too short to
# watch.
METER = """#!/bin/bash
TIMEFORMAT="$1 %U %S"
{{ time "{program}" "$@" 2>&3; }} 3>&2 2>>"{log}"
"""


def kind_of(name, is_driver):
    """What a process counts as; the meter's shells count as nothing, and ledger-rules by the meter."""
    if name == "java":
        return "JVM"
    if name.startswith(("python", "receipt-ledger")):
        return "Python, driver" if is_driver else "Python"
    if name == "ledger-rules":
        return "ledger-rules"
    return None


def processor_seconds(command):
    """User and system time of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finish(start(command), command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Run:
    """One run on Spark, and what it took."""

    def __init__(self, bench, python, ledger):
        self.work = bench.data.scratch("spark-run")
        program = (bench.data.ledgerctl.parent / "ledger-rules").resolve()
        meter, self.log = self.work / "ledger-rules", self.work / "rules.txt"
        meter.write_text(METER.format(program=program, log=self.log), encoding="utf-8")
        meter.chmod(0o700)
        settings, self.events = self.work / "conf", self.work / "events"
        settings.mkdir()
        self.events.mkdir()
        (settings / "spark-defaults.conf").write_text(
            f"spark.eventLog.enabled true\nspark.eventLog.dir file:{self.events}\n"
            "spark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n", encoding="utf-8"
        )
        root = pathlib.Path(__file__).resolve().parents[2]
        environment = os.environ | {
            "SPARK_CONF_DIR": str(settings), "PYTHONPATH": str(root / "spark"),
            "PYTHONDONTWRITEBYTECODE": "1", "LEDGER_RULES": str(meter),
        }
        command = [python, "-m", "receipt_ledger_spark", "run", "--ledger", ledger]
        command += ["-o", self.work / "out"]
        self.sampler, self.seconds = run_sampled(
            command, environment, kind_of, self.work / "said.txt"
        )
        self.stretches, self.shuffle_bytes, self.executor_mib = self.read_events()

    def read_events(self):
        """From Spark's log of events: when which stage began, what was shuffled."""
        files = [path for path in self.events.rglob("*")
                 if path.is_file() and not path.name.endswith(".crc")]
        if not files:
            raise MeasurementError("Spark wrote no log of events")
        stretches, written, described = [(0.0, "driver: plan, start of Spark")], 0, {}
        peak = 0
        for path in files:
            for line in path.read_text(encoding="utf-8").splitlines():
                event = json.loads(line)
                kind = event["Event"]
                if kind == "SparkListenerJobStart":
                    text = (event.get("Properties") or {}).get("spark.job.description")
                    described |= {stage: text for stage in event["Stage IDs"]}
                elif kind == "SparkListenerStageCompleted":
                    information = event["Stage Info"]
                    number = information["Stage ID"]
                    name = described.get(number) or information["Stage Name"].split(" at ")[0]
                    begin = information["Submission Time"] / 1000
                    end = information["Completion Time"] / 1000
                    stretches += [(begin, f"{name}, stage {number}"), (end, "driver, after stages")]
                    for entry in information["Accumulables"]:
                        if entry.get("Name") == "internal.metrics.shuffle.write.bytesWritten":
                            written += int(entry["Value"])
                        elif entry.get("Name") == "internal.metrics.peakExecutionMemory":
                            peak = max(peak, int(entry["Value"]))
        return sorted(stretches), written, peak / (1 << 20)

    def rules_seconds(self):
        """Processor seconds of ledger-rules by its command."""
        found = defaultdict(float)
        for line in self.log.read_text(encoding="utf-8").splitlines():
            command, user, system = line.split()
            found[command] += float(user) + float(system)
        return found

    def total(self):
        """Processor seconds by kind."""
        found = defaultdict(float)
        for (kind, _), seconds in self.sampler.seconds_by_kind_and_stretch(self.stretches).items():
            found[kind.split(",")[0]] += seconds
        found["ledger-rules"] = sum(self.rules_seconds().values())
        return found


def on_spark(bench):
    """Whole runs on Spark in turn with rebuilds of the same ledger."""
    python, problem = bench.tools.spark()
    if not (bench.data.ledgerctl.parent / "ledger-rules").is_file():
        problem = "ledger-rules is not among the programs"
    if problem:
        bench.table.row("reports on Spark", f"not measured: {problem}")
        return
    uploads = bench.size.scaling_uploads[-1]
    ledger = bench.data.ledger(uploads)
    millions = bench.data.status(ledger)["events"] / 1e6
    rebuild = bench.data.command(ledger, "rebuild")
    runs, rebuilds = [], []
    for _ in range(min(bench.rounds, 3)):
        rebuilds.append(processor_seconds(rebuild) / millions)
        runs.append(Run(bench, python, ledger))
    totals = [sum(run.total().values()) / millions for run in runs]
    ratios = [total / rebuilt for total, rebuilt in zip(totals, rebuilds)]
    what = f"{millions * 1e6:,.0f} events on Spark"
    bench.table.row(
        f"{what}, processor time against ledgerctl rebuild",
        f"{spread(ratios, 1)} × ({statistics.median(totals):.1f} : {statistics.median(rebuilds):.1f} s "
        f"a million events); {statistics.median(run.seconds for run in runs):.0f} s on this machine",
        f"≤ {GOAL} ×", statistics.median(ratios) <= GOAL,
    )
    by_stage(bench, runs[-1], millions)
    peaks = runs[-1].sampler
    each = ", ".join(f"{kind} {mib:.0f}" for kind, mib in sorted(peaks.peak_mib.items()))
    bench.table.row(
        f"{what}, most anonymous memory of one process, MiB",
        f"{each}; of all at once {peaks.peak_together_mib:.0f}",
    )
    bench.table.row(
        f"{what}, shuffled", f"{runs[-1].shuffle_bytes / millions / 1e9:.2f} GB a million events"
    )
    shutil.rmtree(bench.data.directory / "spark-run")


def by_stage(bench, run, millions):
    """Of one run: each stage of Spark, and each command of ledger-rules."""
    seconds = run.sampler.seconds_by_kind_and_stretch(run.stretches)
    names = list(dict.fromkeys(name for _, name in run.stretches))
    for name in names:
        found = {
            kind: sum(taken for (each, place), taken in seconds.items()
                      if place == name and each.split(",")[0] == kind) / millions
            for kind in ["JVM", "Python"]
        }
        if sum(found.values()) >= 0.05:
            shown = ", ".join(f"{kind} {taken:.1f} s" for kind, taken in found.items())
            bench.table.row(f"  {name}", shown)
    for command, taken in sorted(run.rules_seconds().items()):
        bench.table.row(f"  ledger-rules {command}", f"{taken / millions:.1f} s")
