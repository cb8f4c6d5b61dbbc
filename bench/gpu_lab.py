#!/usr/bin/env python3
"""Makes the measurements that need a GPU, one after the other, in the minutes with a GPU.

    bench/gpu_lab.py list                       the ledger: what waits, what it takes, what came of it
    bench/gpu_lab.py pack [FOLDER] [ROW...]     here: all that the rows need, as FOLDER/part1, part2, ... (build/gpu_lab)
    bench/gpu_lab.py run SECONDS OUT [ROW...]   there: the next rows that fit; OUT has what came of them (gpu_lab.sh)
    bench/gpu_lab.py merge OUT                  here: the ledger as it is after that

The ledger, bench/gpu_ledger.tsv, has a row for each measurement, in order of worth. A row that was
measured goes to the end.

The command `pack` first runs each row's `prepare` command on this machine, with $PRUNER and
$PREPARED. $PRUNER is a program for any machine; $PREPARED is a folder of the row's own. Then `pack`
packs the tools and each such folder, and lays the archives into as many parts as the limit of one
transfer (--part-mib) requires. The first part has the tools and gpu_lab.sh. Each further part can
be carried after the part before it was measured, because arrived parts stay on the machine while
the machine is held.

A row's command runs in the folder of the tools with $OUT, $SECONDS, $PYTHON, $TARGET and $PREPARED.
The last line of its output, `value: ...`, is the result. The command is ended when its time is up.
A row with 0 seconds runs in the background beside the others, and is awaited at the end
(torch.compile). A row whose folder has not arrived waits for another part.

After each row, OUT has the ledger of the rows that ran, and visit.tar.xz with all that the rows
wrote.

The following parts of commands print a line `value: ...`:

    check ROWS      gpu_check.py of operators and networks, each beside torch
    bundle          `pruner measure` of $PREPARED/pool.bundle; what earlier visits measured of it is not measured again
    compare ARGS    `pruner compare` with a plug-in for training that is built there, from $PREPARED's cubins
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
import tarfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
LAB = HERE.parent / "build/gpu_lab"
# On the machine with the GPU, the folder of the tools has three more entries. PREPARED has a
# prepared folder for each row. TRAINING has the paths of the plug-in (or null) and of NVRTC.
# RECORDS has the records of earlier visits.
PREPARED = "prepared"
TRAINING = "training.json"
RECORDS = "records"
TOOLS = "tools"
COLUMNS = ["row", "what", "why", "seconds", "bar", "state", "value", "prepare", "command"]
NEVER = "never"
LAST_S = 5  # seconds that are kept for writing and ending
LEAST_BACKGROUND_S = 60  # least seconds left with which rows in the background begin


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
        """Sets the state and the value of a row that ran, and moves the row to the end."""
        row["state"], row["value"] = state, re.sub(r"\s+", " ", value)
        self.rows = [other for other in self.rows if other["row"] != row["row"]] + [row]

    def write(self, path):
        lines = [*self.comments, "\t".join(COLUMNS)] + ["\t".join(row[column] for column in COLUMNS) for row in self.rows]
        path.with_suffix(".new").write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.with_suffix(".new").replace(path)


def value_of(text):
    """Returns the text behind the last "value: " in a command's output. Without such a line, the
    result has the last line of the output."""
    found = re.findall(r"^value: (.*)$", text, re.M)
    lines = [line for line in text.splitlines() if line.strip()]
    return found[-1] if found else f"no value; {lines[-1] if lines else 'no output'}"


def library_path(folders):
    """Returns LD_LIBRARY_PATH with these folders first."""
    return ":".join([*dict.fromkeys(folders), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


def archive(folder, file):
    """Packs a whole folder as a .tar.xz. The tools are packed slowly; bundles are compressed
    already."""
    with tarfile.open(file.with_suffix(".new"), "w:xz", preset=6 if file.name.startswith(TOOLS) else 1) as packed:
        packed.add(folder, arcname=".")
    file.with_suffix(".new").replace(file)


def archive_what_changes(folder, file):
    """Packs a folder like archive(). If another process replaces or removes files meanwhile, the
    old archive stays."""
    try:
        archive(folder, file)
    except OSError as problem:
        print(f"   the results are not packed yet: {problem}", flush=True)


class Run:
    """Runs the rows of one visit. The commands write to `results`; `out` gets only a few files,
    which a transfer can take."""

    def __init__(self, ledger, seconds, out):
        self.out, self.results = out, out.parent / f"{out.name}_results"
        self.end = time.monotonic() + seconds - LAST_S
        self.archiving = None
        out.mkdir(parents=True, exist_ok=True)
        self.results.mkdir(exist_ok=True)
        card = self.ask("name,driver_version")
        if not card and "TARGET" not in os.environ:
            sys.exit("no NVIDIA GPU here: nothing is measured")
        version = HERE / "version"
        self.state = ", ".join([time.strftime("%Y-%m-%d"), card or "no NVIDIA GPU",
                                version.read_text().strip() if version.exists() else "?"])  # fmt: skip
        arch = "sm_" + self.ask("compute_cap").replace(".", "")
        self.target = os.environ.get("TARGET") or f"cuda --arch={arch}"
        # The rows that ran in this visit, and in earlier visits with the same OUT.
        earlier = out / "gpu_ledger.tsv"
        self.ran = Ledger(earlier if earlier.exists() else ledger.path)
        if not earlier.exists():
            self.ran.rows = []
        self.running = []

    @staticmethod
    def ask(query):
        """Returns nvidia-smi's answer about the first GPU, or "" without a GPU."""
        command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError):
            return ""

    def left(self):
        return self.end - time.monotonic()

    def start(self, row, seconds):
        more = {"OUT": str(self.results.resolve()), "SECONDS": str(int(seconds)), "PYTHON": sys.executable,
                "TARGET": self.target, "PREPARED": str(HERE / PREPARED / row["row"])}  # fmt: skip
        print(f"== {row['row']}: {row['what']} ({self.left():.0f} s left)", flush=True)
        with open(self.results / f"{row['row']}.log", "w", encoding="utf-8") as log:
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
        text = (self.results / f"{row['row']}.log").read_text(encoding="utf-8", errors="replace")
        failed = f"exit {process.returncode}; " if process.returncode and not late else ""
        value = late + failed + value_of(text)
        if how := self.ask("clocks.sm,temperature.gpu"):
            value += f" (at its end {how} C)"
        print(f"   {value} ({time.monotonic() - began:.0f} s)", flush=True)
        self.ran.measured(dict(row), self.state, value)
        self.ran.write(self.out / "gpu_ledger.tsv")
        self.keep()

    def keep(self):
        """Packs the results in a thread while the next row runs."""
        if self.archiving:
            self.archiving.join()
        self.archiving = threading.Thread(target=archive_what_changes, args=(self.results, self.out / "visit.tar.xz"))
        self.archiving.start()

    def rows(self, chosen):
        """Runs the chosen rows. Rows in the background begin first, and end last."""
        elsewhere = [row for row in chosen if row["prepare"] and not (HERE / PREPARED / row["row"]).exists()]
        chosen = [row for row in chosen if row not in elsewhere]
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
        print(f"{skipped} rows had no time, {len(elsewhere)} wait for another part", flush=True)

    def end_all(self):
        """Ends all commands that still run, if this program is ended from outside."""
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


# Parts of commands.

def check(rows):
    """Runs gpu_check.py without the steps of other rows: tests, the plug-in, torch.compile."""
    out = pathlib.Path(os.environ["OUT"]) / ("check_" + re.sub(r"\W+", "_", rows))
    subprocess.run([sys.executable, HERE / "gpu_check.py", out, "--bundle", HERE, "--rows", rows, "--no-tests", "--no-plugin",
                    "--no-compile", "--seconds", os.environ["SECONDS"], "--target", os.environ["TARGET"]], check=False)
    with open(out / "gpu_check.tsv", encoding="utf-8") as file:
        found = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
        said = [f"{row['what']} {row['precision']} {row['ours_ms']} ms, torch {row['torch_ms']} ms, ratio {row['ratio']}"
                for row in found if row["ours_ms"] not in ("-", None)]
    print("value:", "; ".join(said) or "nothing was timed")


def prepared():
    """Returns the name and the prepared folder of the row whose command calls this program."""
    if "PREPARED" not in os.environ:
        sys.exit("this is a part of a row's command, which has $PREPARED")
    folder = pathlib.Path(os.environ["PREPARED"])
    return folder.name, folder


def bundle():
    """Runs `pruner measure` on the row's bundle, with the records in OUT/ROW.json. `merge` keeps
    the records, and the next visit goes on with them."""
    name, folder = prepared()
    records = pathlib.Path(os.environ["OUT"]) / f"{name}.json"
    earlier = HERE / RECORDS / f"{name}.json"
    if earlier.exists() and not records.exists():
        shutil.copy(earlier, records)
    budget = max(int(os.environ["SECONDS"]) - 10, 1)
    done = subprocess.run([HERE / "pruner", "measure", folder / "pool.bundle", "--records", records,
                           "--unsigned", "--budget", f"{budget}s", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        sys.exit(done.returncode or 1)
    said = json.loads(done.stdout)
    print(f"value: {said['ok']} programs measured, {said['failed']} failed, {said['per_second']:.1f} a second, "
          f"{'all' if said['whole'] else 'not all'} of the bundle; {said['earlier']} were there")


def plugin():
    """Compiles the plug-in for training against the installed torch. The compilation takes a minute
    of a core, and therefore runs in the background."""
    sys.path.insert(0, str(HERE))
    import gpu_check  # noqa: PLC0415, gpu_check.py lies in the packed folder

    torch = gpu_check.torch_of_this_python(60)
    built = gpu_check.Plugin(HERE, HERE, torch, True)
    there = built.wait(gpu_check.Clock(float(os.environ["SECONDS"])))
    found = {"plugin": str(built.path) if there else None, "nvrtc": gpu_check.nvrtc_folders(torch[1])}
    (HERE / f"{TRAINING}.new").write_text(json.dumps(found))
    (HERE / f"{TRAINING}.new").replace(HERE / TRAINING)
    print("value:", f"built, torch {torch[0]}" if there else built.why_not)


def compare(words):
    """Runs `pruner compare` with the cubins that the row's prepare command has compiled."""
    name, folder = prepared()
    end = time.monotonic() + float(os.environ["SECONDS"])
    while not (HERE / TRAINING).exists() and end - time.monotonic() > 60:
        time.sleep(0.5)
    found = json.loads((HERE / TRAINING).read_text()) if (HERE / TRAINING).exists() else {"plugin": None}
    if not found["plugin"]:
        sys.exit("no plug-in: nothing trains")
    environment = {**os.environ, "PRUNER_TORCH_PLUGIN": found["plugin"], "XDG_CACHE_HOME": str(folder),
                   "LD_LIBRARY_PATH": library_path(found["nvrtc"])}  # fmt: skip
    out = pathlib.Path(os.environ["OUT"]) / name
    done = subprocess.run([HERE / "pruner", "compare", *words, "--target", os.environ["TARGET"], "--work-dir", out],
                          cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True, check=False)  # fmt: skip
    print(done.stdout)
    table = [" ".join(line.split()) for line in done.stdout.splitlines() if line.startswith("| ")]
    print("value:", " / ".join(table) or "no table")
    return done.returncode


# Commands that run without the GPU.

def prepare(row, folder, environment):
    """Runs the prepare command of a row. Returns whether the command has succeeded."""
    print(f"== {row['row']}", flush=True)
    folder.mkdir(parents=True)
    told = {**os.environ, **environment, "PREPARED": str(folder.resolve())}
    return subprocess.run(["bash", "-c", row["prepare"]], cwd=HERE.parent, env=told, check=False).returncode == 0


def pack(ledger, lab, names, part_mib):
    """Makes the parts of a visit: archives of the tools and of the rows' prepared folders. Each
    archive goes into the first part that has room."""
    nvrtc = HERE.parent / "build/nvrtc"
    subprocess.run(["bash", HERE.parent / "tools/venv.sh", nvrtc, HERE / "requirements_nvrtc.txt"], check=True)
    libraries = [str(file.parent) for file in nvrtc.glob("lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*")]
    tools, made = lab / TOOLS, lab / PREPARED
    subprocess.run(["bash", HERE / "gpu_bundle.sh", tools], check=True)
    for name in ("gpu_lab.py", "gpu_ledger.tsv"):
        shutil.copy(HERE / name, tools)
    if (lab / RECORDS).exists():
        shutil.copytree(lab / RECORDS, tools / RECORDS)
    environment = {"PRUNER": str((tools / "pruner").resolve()), "LD_LIBRARY_PATH": library_path(libraries)}
    shutil.rmtree(made, ignore_errors=True)
    failed, archives = [], [lab / f"{TOOLS}.tar.xz"]
    archive(tools, archives[0])
    for row in ledger.chosen(names):
        if not row["prepare"]:
            continue
        if not prepare(row, made / row["row"], environment):
            failed.append(row["row"])
            continue
        archives.append(lab / f"{row['row']}.tar.xz")
        archive(made / row["row"], archives[-1])
    return lay_out(lab, archives, failed, part_mib * 2**20)


def lay_out(lab, archives, failed, limit):
    """Moves the archives into part1, part2, ... of at most `limit` bytes each."""
    for old in lab.glob("part[0-9]*"):
        shutil.rmtree(old)
    parts = []
    for file in archives:
        size = file.stat().st_size
        if size > limit:
            failed.append(f"{file.name} ({size / 2**20:.0f} MiB)")
            continue
        fits = next((number for number, used in enumerate(parts) if used + size <= limit), len(parts))
        if fits == len(parts):
            parts.append(0)
            (lab / f"part{fits + 1}").mkdir()
        parts[fits] += size
        file.replace(lab / f"part{fits + 1}" / file.name)
    for number, used in enumerate(parts, 1):
        files = " ".join(sorted(file.name for file in (lab / f"part{number}").iterdir()))
        print(f"{lab / f'part{number}'}: {used / 2**20:.0f} MiB, {files}")
    if parts:
        shutil.copy(HERE / "gpu_lab.sh", lab / "part1")
    if failed:
        print("not packed:", " ".join(failed))
    return 1 if failed else 0


def show(ledger):
    for row in ledger.rows:
        print(f"{row['row']:20} {row['seconds']:>4} s  {row['what']}; bar: {row['bar'] or 'none'}\n"
              f"{'':28} {row['state']}{': ' + row['value'] if row['value'] else ''}")


def merge(ledger, out, lab):
    """Takes over the states and values of the rows that a visit measured. Keeps the records of
    prepared bundles for the next visit."""
    visited = Ledger(out / "gpu_ledger.tsv")
    known = {row["row"]: row for row in ledger.rows}
    for row in visited.rows:
        mine = known.get(row["row"])
        if mine and row["state"] != NEVER and (mine["state"], mine["value"]) != (row["state"], row["value"]):
            ledger.measured(mine, row["state"], row["value"])
    ledger.write(ledger.path)
    if (out / "visit.tar.xz").exists():
        with tarfile.open(out / "visit.tar.xz") as packed:
            packed.extractall(lab / "visit", filter="data")
        (lab / RECORDS).mkdir(exist_ok=True)
        for row in visited.rows:
            if (records := lab / "visit" / f"{row['row']}.json").exists():
                shutil.copy(records, lab / RECORDS)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=pathlib.Path, default=HERE / "gpu_ledger.tsv")
    parts = parser.add_subparsers(dest="what", required=True)
    parts.add_parser("list")
    packing = parts.add_parser("pack")
    packing.add_argument("folder", nargs="?", type=pathlib.Path, default=LAB)
    packing.add_argument("rows", nargs="*")
    packing.add_argument("--part-mib", type=float, default=46, help="the most that a part has")
    running = parts.add_parser("run")
    running.add_argument("seconds", type=float)
    running.add_argument("out", type=pathlib.Path)
    running.add_argument("rows", nargs="*")
    merging = parts.add_parser("merge")
    merging.add_argument("out", type=pathlib.Path, help="of run")
    merging.add_argument("folder", nargs="?", type=pathlib.Path, default=LAB, help="that was packed")
    parts.add_parser("check").add_argument("rows")
    parts.add_parser("bundle")
    parts.add_parser("plugin")
    parts.add_parser("compare")
    options, words = parser.parse_known_args()
    if words and options.what != "compare":
        parser.error(f"unknown: {' '.join(words)}")
    part = {"check": lambda: check(options.rows), "bundle": bundle, "plugin": plugin,
            "compare": lambda: compare(words)}.get(options.what)  # fmt: skip
    if part:
        return part()
    ledger = Ledger(options.ledger)
    if options.what == "list":
        return show(ledger)
    if options.what == "pack":
        return pack(ledger, options.folder, options.rows, options.part_mib)
    if options.what == "run":
        if not LAST_S < options.seconds < float("inf"):
            sys.exit(f"{options.seconds:g} seconds: no row fits")
        visit = Run(ledger, options.seconds, options.out)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
        try:
            return visit.rows(ledger.chosen(options.rows))
        finally:
            visit.end_all()
    return merge(ledger, options.out, options.folder)


if __name__ == "__main__":
    sys.exit(main())
