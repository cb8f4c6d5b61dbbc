#!/usr/bin/env python3
"""The measurements that need a GPU, one after the other, in the minutes that there is one.

    bench/gpu_lab.py list                       the ledger: what waits, what it takes, what came of it
    bench/gpu_lab.py pack [FOLDER] [ROW...]     here: all that the rows need, into a folder (build/gpu_lab)
    bench/gpu_lab.py run SECONDS OUT [ROW...]   there, in that folder: the next rows that fit; OUT has what came of them
    bench/gpu_lab.py merge OUT/gpu_ledger.tsv   here: the ledger as it is after that

The ledger, bench/gpu_ledger.tsv, has a row a measurement, in the order of their worth; one that was measured goes to
the end. A row's command runs in the packed folder with $OUT, $SECONDS, $PYTHON and $TARGET, and says what came of it in
its last line, `value: ...`. It is ended when its time is up. A row with 0 seconds runs in the background, beside the
others, and is awaited at the end (torch.compile). `pack` first runs each row's `prepare` command, here, with $LAB, the
folder, and $PRUNER, its program.

Parts of commands, which print such a line:

    check ROWS      gpu_check.py of operators and networks, each beside torch
    bundle NAME     `pruner measure` of a packed bundle; what is measured of it before goes on
"""
import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ["row", "what", "why", "seconds", "bar", "state", "value", "prepare", "command"]
NEVER = "never"
LAST_S = 5  # kept of the seconds given, to write and to end
LEAST_BACKGROUND_S = 60  # left, for a row in the background to begin


class Ledger:
    def __init__(self, path):
        self.path = path
        try:
            text = path.read_text(encoding="utf-8").splitlines(keepends=True)
        except OSError as problem:
            sys.exit(f"{path}: {problem.strerror}")
        self.comments = [line.rstrip("\n") for line in text if line.startswith("#")]
        lines = [line for line in text if not line.startswith("#")]
        self.rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        for row in self.rows:
            if list(row) != COLUMNS or None in row.values() or not re.fullmatch(r"\d+", row["seconds"]):
                sys.exit(f"{path}: row {row.get('row')} has not the columns {' '.join(COLUMNS)}")
        names = [row["row"] for row in self.rows]
        if len(set(names)) < len(names):
            sys.exit(f"{path}: two rows have one name")

    def chosen(self, names):
        known = {row["row"]: row for row in self.rows}
        for name in names:
            if name not in known:
                sys.exit(f"{self.path}: there is no row {name}")
        return [known[name] for name in names] if names else list(self.rows)

    def measured(self, row, state, value):
        """A row that ran goes behind the others."""
        row["state"], row["value"] = state, re.sub(r"\s+", " ", value)
        self.rows = [other for other in self.rows if other["row"] != row["row"]] + [row]

    def write(self, path):
        lines = [*self.comments, "\t".join(COLUMNS)] + ["\t".join(row[column] for column in COLUMNS) for row in self.rows]
        path.with_suffix(".new").write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.with_suffix(".new").replace(path)


def value_of(text):
    """What a command's output says of its result; its last line where it does not say."""
    found = re.findall(r"^value: (.*)$", text, re.M)
    lines = [line for line in text.splitlines() if line.strip()]
    return found[-1] if found else f"no value; {lines[-1] if lines else 'no output'}"


class Run:
    """The rows of one visit."""

    def __init__(self, ledger, seconds, out):
        self.out = out
        self.end = time.monotonic() + seconds - LAST_S
        out.mkdir(parents=True, exist_ok=True)
        card = self.ask("name,driver_version")
        if not card and "TARGET" not in os.environ:
            sys.exit("no NVIDIA GPU here: nothing is measured")
        version = HERE / "version"
        self.state = ", ".join([time.strftime("%Y-%m-%d"), card or "no NVIDIA GPU",
                                version.read_text().strip() if version.exists() else "?"])  # fmt: skip
        arch = "sm_" + self.ask("compute_cap").replace(".", "")
        self.target = os.environ.get("TARGET") or f"cuda --arch={arch}"
        # What ran in this visit, and in earlier ones with the same OUT.
        earlier = out / "gpu_ledger.tsv"
        self.ran = Ledger(earlier if earlier.exists() else ledger.path)
        if not earlier.exists():
            self.ran.rows = []
        self.running = []

    @staticmethod
    def ask(query):
        """What nvidia-smi says of the first GPU; empty where there is none."""
        command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError):
            return ""

    def left(self):
        return self.end - time.monotonic()

    def start(self, row, seconds):
        more = {"OUT": str(self.out.resolve()), "SECONDS": str(int(seconds)), "PYTHON": sys.executable,
                "TARGET": self.target}  # fmt: skip
        print(f"== {row['row']}: {row['what']} ({self.left():.0f} s left)", flush=True)
        with open(self.out / f"{row['row']}.log", "w", encoding="utf-8") as log:
            self.running.append(subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", row["command"]], cwd=HERE, env={**os.environ, **more}, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True))  # fmt: skip
        return self.running[-1]

    def finish(self, row, process, limit):
        began = time.monotonic()
        try:
            process.wait(timeout=max(limit, 0.1))
            late = ""
        except subprocess.TimeoutExpired:
            late = f"ended after {limit:.0f} s; "
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        text = (self.out / f"{row['row']}.log").read_text(encoding="utf-8", errors="replace")
        failed = f"exit {process.returncode}; " if process.returncode and not late else ""
        value = late + failed + value_of(text)
        if how := self.ask("clocks.sm,temperature.gpu"):
            value += f" (at its end {how} C)"
        print(f"   {value} ({time.monotonic() - began:.0f} s)", flush=True)
        self.ran.measured(dict(row), self.state, value)
        self.ran.write(self.out / "gpu_ledger.tsv")

    def rows(self, chosen):
        """Those that need a background begin first, and end last."""
        background = [row for row in chosen if row["seconds"] == "0"]
        waiting = [row for row in chosen if row["seconds"] != "0"]
        skipped = 0 if self.left() > LEAST_BACKGROUND_S else len(background)
        beside = [(row, self.start(row, self.left())) for row in background] if not skipped else []
        for row in waiting:
            seconds = float(row["seconds"])
            if seconds > self.left():
                skipped += 1
            else:
                self.finish(row, self.start(row, seconds), seconds)
        for row, process in beside:
            self.finish(row, process, self.left())
        print(f"{skipped} rows had no time", flush=True)

    def end_all(self):
        """What runs, when this program is ended from outside."""
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


# Parts of commands.

def check(rows):
    """gpu_check.py without what other rows do: tests, the plug-in, torch.compile."""
    out = pathlib.Path(os.environ["OUT"]) / ("check_" + re.sub(r"\W+", "_", rows))
    subprocess.run([sys.executable, HERE / "gpu_check.py", out, "--bundle", HERE, "--rows", rows, "--no-tests", "--no-plugin",
                    "--no-compile", "--seconds", os.environ["SECONDS"], "--target", os.environ["TARGET"]], check=False)
    with open(out / "gpu_check.tsv", encoding="utf-8") as file:
        found = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
        said = [f"{row['what']} {row['precision']} {row['ours_ms']} ms, torch {row['torch_ms']} ms, ratio {row['ratio']}"
                for row in found if row["ours_ms"] not in ("-", None)]
    print("value:", "; ".join(said) or "nothing was timed")


def bundle(name):
    """What is measured of a bundle is in OUT/NAME.json; `merge` lays it beside the packed bundle, for the next visit."""
    if "OUT" not in os.environ:
        sys.exit("bundle is a part of a row's command, which has $OUT")
    records = pathlib.Path(os.environ["OUT"]) / f"{name}.json"
    earlier = HERE / "bundles" / f"{name}.json"
    if earlier.exists() and not records.exists():
        shutil.copy(earlier, records)
    budget = max(int(os.environ["SECONDS"]) - 10, 1)
    done = subprocess.run([HERE / "pruner", "measure", HERE / "bundles" / f"{name}.bundle", "--records", records,
                           "--unsigned", "--budget", f"{budget}s", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        sys.exit(done.returncode or 1)
    said = json.loads(done.stdout)
    print(f"value: {said['ok']} programs measured, {said['failed']} failed, {said['per_second']:.1f} a second, "
          f"{'all' if said['whole'] else 'not all'} of the bundle; {said['earlier']} were there")


# Here.

def pack(ledger, folder, names):
    """The folder of gpu_bundle.sh, with the ledger, this file, and what the rows prepare."""
    records = {file.name: file.read_bytes() for file in (folder / "bundles").glob("*.json")}  # of earlier visits
    subprocess.run(["bash", HERE / "gpu_bundle.sh", folder], check=True)
    (folder / "bundles").mkdir(exist_ok=True)
    for name, content in records.items():
        (folder / "bundles" / name).write_bytes(content)
    for name in ("gpu_lab.py", "gpu_lab.sh", "gpu_ledger.tsv"):
        shutil.copy(HERE / name, folder)
    failed = []
    for row in ledger.chosen(names):
        if not row["prepare"]:
            continue
        print(f"== {row['row']}", flush=True)
        environment = {**os.environ, "LAB": str(folder.resolve()), "PRUNER": str((folder / "pruner").resolve())}
        if subprocess.run(["bash", "-c", row["prepare"]], cwd=HERE.parent, env=environment, check=False).returncode != 0:
            failed.append(row["row"])
    mib = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
    print(f"{folder}: {mib:.0f} MiB" + (f"; not prepared: {' '.join(failed)}" if failed else ""))
    return 1 if failed or mib >= 64 else 0


def show(ledger):
    for row in ledger.rows:
        print(f"{row['row']:20} {row['seconds']:>4} s  {row['what']}; bar: {row['bar'] or 'none'}\n"
              f"{'':28} {row['state']}{': ' + row['value'] if row['value'] else ''}")


def merge(ledger, visited, lab):
    """Takes states and values of the rows that visits measured, and their records of packed bundles."""
    known = {row["row"]: row for row in ledger.rows}
    for row in visited.rows:
        mine = known.get(row["row"])
        if mine and row["state"] != NEVER and (mine["state"], mine["value"]) != (row["state"], row["value"]):
            ledger.measured(mine, row["state"], row["value"])
    ledger.write(ledger.path)
    for bundle_file in (lab / "bundles").glob("*.bundle"):
        records = visited.path.parent / f"{bundle_file.stem}.json"
        if records.exists():
            shutil.copy(records, bundle_file.parent)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=pathlib.Path, default=HERE / "gpu_ledger.tsv")
    parts = parser.add_subparsers(dest="what", required=True)
    parts.add_parser("list")
    packing = parts.add_parser("pack")
    packing.add_argument("folder", nargs="?", type=pathlib.Path, default=HERE.parent / "build/gpu_lab")
    packing.add_argument("rows", nargs="*")
    running = parts.add_parser("run")
    running.add_argument("seconds", type=float)
    running.add_argument("out", type=pathlib.Path)
    running.add_argument("rows", nargs="*")
    merging = parts.add_parser("merge")
    merging.add_argument("file", type=pathlib.Path)
    merging.add_argument("folder", nargs="?", type=pathlib.Path, default=HERE.parent / "build/gpu_lab", help="that was packed")
    parts.add_parser("check").add_argument("rows")
    parts.add_parser("bundle").add_argument("name")
    options = parser.parse_args()
    if options.what == "check":
        return check(options.rows)
    if options.what == "bundle":
        return bundle(options.name)
    ledger = Ledger(options.ledger)
    if options.what == "list":
        return show(ledger)
    if options.what == "pack":
        return pack(ledger, options.folder, options.rows)
    if options.what == "run":
        if not LAST_S < options.seconds < float("inf"):
            sys.exit(f"{options.seconds:g} seconds: no row fits")
        visit = Run(ledger, options.seconds, options.out)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
        try:
            return visit.rows(ledger.chosen(options.rows))
        finally:
            visit.end_all()
    return merge(ledger, Ledger(options.file), options.folder)


if __name__ == "__main__":
    sys.exit(main())
