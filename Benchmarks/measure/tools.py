# Programs that are compared with and need not be installed: they go into the temporary directory.
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DUCKDB = "duckdb>=1.3"


def needed_libraries(program):
    """The shared libraries that a program names; none where nothing can tell."""
    if not shutil.which("readelf"):
        return []
    text = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=False).stdout
    return sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def file_system(directory):
    """The kind of file system that a directory lies in."""
    found, kind = "", "unknown"
    for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        place = fields[1].replace("\\040", " ")
        if len(place) >= len(found) and pathlib.Path(directory).is_relative_to(place):
            found, kind = place, fields[2]
    return kind


class Tools:
    def __init__(self, directory):
        self.directory = directory

    def igzip(self):
        """The program and its environment; from Debian's packages where it is not installed."""
        if shutil.which("igzip"):
            return shutil.which("igzip"), dict(os.environ)
        place = self.directory / "igzip"
        if not place.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
            place.mkdir()
            subprocess.run(
                ["apt-get", "-qq", "download", "isal", "libisal2"],
                cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            )
            for package in place.glob("*.deb"):
                subprocess.run(["dpkg", "-x", package, place], capture_output=True, check=False)
        programs = list(place.glob("usr/bin/igzip"))
        libraries = list(place.glob("usr/lib/**/libisal.so.2"))
        if not programs or not libraries:
            return None, None
        return programs[0], os.environ | {"LD_LIBRARY_PATH": str(libraries[0].parent)}

    def duckdb(self):
        """A Python that can import DuckDB, or None and why not."""
        place = self.directory / "venv"
        python = place / "bin" / "python"
        if not (place / "complete").exists():
            made = subprocess.run(
                [sys.executable, "-m", "venv", place], capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                return None, "DuckDB could not be had: Python has no venv here"
            fetched = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", DUCKDB],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )
            if fetched.returncode != 0:
                return None, "DuckDB could not be had: pip could not install it"
            (place / "complete").touch()
        return python, None

    def spark(self):
        """A Python that can import what the package in spark/ needs, or None and why not."""
        if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
            return None, "there is no Java"
        place = self.directory / "spark-venv"
        python = place / "bin" / "python"
        if not (place / "complete").exists():
            # A build beside the source would leave its files there.
            source = self.directory / "spark-source"
            shutil.copytree(HERE.parents[1] / "spark", source, dirs_exist_ok=True)
            for command in [
                [sys.executable, "-m", "venv", place],
                [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source],
            ]:
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
                )
                if done.returncode != 0:
                    return None, "PySpark could not be had"
            (place / "complete").touch()
        return python, None

    def versions(self):
        """What is compared with, by name and version."""
        found = []
        commands = {"gzip": ["gzip", "--version"], "zstd": ["zstd", "--version"]}
        igzip, environment = self.igzip()
        if igzip:
            commands["igzip"] = [igzip, "--version"]
        duckdb, _ = self.duckdb()
        if duckdb:
            commands["DuckDB"] = [duckdb, "-c", "import duckdb; print(duckdb.__version__)"]
        for name, command in commands.items():
            if not shutil.which(command[0]):
                continue
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            number = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
            found.append(f"{name} {number[0]}" if number else name)
        return found
