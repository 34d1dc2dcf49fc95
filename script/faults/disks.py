# Fills the disk under imports, rebuilds, exports and backups, makes it read-only, and looks at what is left.
import os
import pathlib
import resource
import signal
import subprocess

import serving
from harness import DONE, DONE_WITH_WARNINGS, FAILED, generate_history

OPTIONS = {}
# Above what empty projections take, a page for each table and index, and far below the log's tail.
FILE_SIZE_LIMIT = 1_000_000


def limit_files():
    """In a child: no file may grow beyond the limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE_LIMIT, FILE_SIZE_LIMIT))


class Disk:
    """A file system of its own in memory, where this process may mount one."""

    def __init__(self, place, size_bytes):
        self.place = place
        place.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(place)],
            check=True, capture_output=True,
        )  # fmt: skip

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.place)], check=True)

    def fill(self):
        """Takes all that is free."""
        with open(self.place / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                return

    def free(self):
        (self.place / "filler").unlink()

    def unmount(self):
        subprocess.run(["umount", str(self.place)], check=True)


class Runner:
    """Runs commands on a ledger, and checks how they end."""

    def __init__(self, programs, directory, checks):
        self.ledger = serving.PlainLedger(programs, directory, "example.com/full")
        self.checks = checks

    def __call__(self, *arguments, code, says="", prepare=None):
        done = self.ledger.done(*arguments, preexec_fn=prepare)
        error = done.stderr.strip()
        codes = code if isinstance(code, tuple) else (code,)
        words = " ".join(map(str, arguments[:2]))
        self.checks.expect(
            done.returncode in codes, f"{words}: exit code {done.returncode}: {error[-300:]}"
        )
        self.checks.expect(says.lower() in error.lower(), f"{words}: {says!r} is not said: {error[-300:]}")
        return done.stdout


def counted_as_kept(run, said, checks, first=0):
    """The import's own count against the log's, which begins with the import's events at position `first`."""
    held = run("replay", "--type", "receipt.uploaded", code=DONE).count("\n")
    last = run("replay", code=DONE).count("\n") - 1
    checks.expect(
        said.startswith(f"Imported {held} upload") and said.endswith(f"positions {first} to {last}\n"),
        f"the log holds {held} uploads up to position {last}, and the import said: {said.strip()}",
    )


def full_disk(run, disk, history, checks):
    """An import that meets a full disk, and everything else that writes."""
    no_space = "No space left on device"
    import_command = ("import", history, "--register-apps")
    counted_as_kept(run, run(*import_command, code=FAILED, says=no_space), checks)
    run("audit", code=(DONE, DONE_WITH_WARNINGS))
    before = run("replay", code=DONE)
    checks.expect(before.count("\n") > 100, "the import met the full disk too early")
    disk.remount("size=64m")
    run(*import_command, code=(DONE, DONE_WITH_WARNINGS))
    whole = run("replay", code=DONE)
    checks.expect(whole.startswith(before), "what was kept on a full disk has changed")
    run("rebuild", code=DONE)
    revenue = run("export", "revenue", "--format", "csv", "--environment", "all", code=DONE)

    report = disk.place / "revenue.csv"
    report.write_bytes(b"yesterday's\n")
    used = disk.place.stat().st_dev
    checks.expect(used != pathlib.Path("/").stat().st_dev, "the disk is not one of its own")
    disk.fill()
    export = ("export", "journal", "--environment", "all", "-o", report)
    run(*export, code=FAILED, says=no_space)
    checks.expect(report.read_bytes() == b"yesterday's\n", "a failed export has touched its file")
    names = {path.name for path in disk.place.iterdir()}
    checks.expect(names == {"ledger", "filler", report.name}, f"an export has left {names}")
    run("rebuild", code=FAILED, says="full")
    run("checkpoint", code=FAILED)
    run("audit", code=(DONE, DONE_WITH_WARNINGS))
    checks.expect(run("replay", code=DONE) == whole, "a full disk has changed the log")
    disk.free()
    again = run("export", "revenue", "--format", "csv", "--environment", "all", code=DONE)
    checks.expect(again == revenue, "after a rebuild on a full disk the report is another")
    run("rebuild", code=DONE)
    run(*export, code=DONE)
    return whole


def full_disk_of_backups(run, disk, checks):
    """A backup that meets a full disk leaves nothing behind, and earlier ones as they were."""
    backups = disk.place / "backups"
    backups.mkdir(mode=0o700)
    run("backup", backups, code=DONE)
    names = {path.name for path in backups.iterdir()}
    disk.fill()
    run("backup", backups, code=FAILED, says="No space left on device")
    left = {path.name for path in backups.iterdir()}
    checks.expect(left == names, f"a backup on a full disk has left {left - names}")
    disk.free()
    run("backup", backups, code=DONE)
    run("backup", backups, "--verify", code=DONE)


def read_only(run, disk, history, whole, checks):
    """What can be read is read; what must write says why it can't."""
    elsewhere = disk.place.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    says = "Read-only file system"
    disk.remount("ro")
    checks.expect(run("replay", code=DONE) == whole, "a read-only log is read differently")
    run("audit", code=(DONE, DONE_WITH_WARNINGS))
    run("import", history, "--register-apps", code=FAILED, says=says)
    run("backup", elsewhere, code=DONE)
    run("backup", elsewhere, "--verify", code=DONE)
    run("backup", disk.place / "backups", "--verify", code=DONE)
    run("backup", disk.place / "backups", code=FAILED, says=says)
    run("key", "create", code=FAILED, says=says)
    run("rebuild", code=FAILED)
    disk.remount("rw")
    checks.expect(run("replay", code=DONE) == whole, "a refused command has changed the log")


def small_files(run, history, checks):
    """Without a disk of its own: no file may grow beyond a limit."""
    import_command = ("import", history, "--register-apps")
    said = run(*import_command, code=FAILED, says="File too large", prepare=limit_files)
    counted_as_kept(run, said, checks)
    run("audit", code=(DONE, DONE_WITH_WARNINGS))
    before = run("replay", code=DONE)
    run(*import_command, code=(DONE, DONE_WITH_WARNINGS))
    checks.expect(run("replay", code=DONE).startswith(before), "what was kept has changed")


def small_files_of_a_server(run, history, checks):
    """The same, where a server holds the ledger and its files may not grow."""
    server = run.ledger.start("serve", "--listen", "127.0.0.1:0", preexec_fn=limit_files)
    socket = run.ledger.directory / "ledger.sock"
    serving.wait_until(lambda: server.poll() is not None or socket.exists(), 60)
    said = run("import", history, "--register-apps", code=FAILED, says="File too large")
    server.send_signal(signal.SIGINT)
    server.wait()
    # The server's own event, of whom it trusts, is the first.
    counted_as_kept(run, said, checks, first=1)


def run(arguments, place, _, checks):
    history, _ = generate_history(arguments.programs, place, 3000, 5)

    def runner(path):
        return Runner(arguments.programs, path, checks)

    small_files(runner(place / "ledger"), history, checks)
    small_files_of_a_server(runner(place / "served"), history, checks)
    try:
        disk = Disk(place / "disk", 3 << 20)
    except (OSError, subprocess.CalledProcessError):
        print("no file system can be mounted here: only the limit on files' sizes was tried")
        return
    try:
        on_disk = runner(disk.place / "ledger")
        on_disk("key", "create", code=DONE)
        whole = full_disk(on_disk, disk, history, checks)
        full_disk_of_backups(on_disk, disk, checks)
        if os.geteuid() == 0:
            read_only(on_disk, disk, history, whole, checks)
    finally:
        disk.unmount()
