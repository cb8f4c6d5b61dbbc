"""Offers the comparisons this project's program, ONNX Runtime, and the tables of results."""
import importlib.metadata
import json
import pathlib
import platform
import re
import subprocess
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PROBE_S = 0.6  # seconds of a probe of the machine's peaks


def memory_mb(key):
    """Returns a number of this process's status in MiB: VmRSS, or VmHWM (the peak)."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


class Pruner:
    """The program `pruner`, with its commands as methods."""

    def __init__(self, program=None):
        self.program = str(program or ROOT / "build" / "release" / "pruner")
        if not pathlib.Path(self.program).is_file():
            raise SystemExit(f"{self.program}: no such program; build the preset release")

    def run(self, *arguments):
        """Runs a command and returns its standard output. Raises RuntimeError with the command line
        if the command fails."""
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {' '.join(words)}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def compile(self, source, module, records=None):
        """Compiles a module. `source` has the arguments that name a network or an operator, such as
        ["--network", "resnet_50"]."""
        self.run("compile", *source, *(["--records", records] if records else []), "-o", module)

    def compile_tuned(self, source, module, trials, work_dir):
        """Compiles a module with the records of `trials` trials; 0: without records."""
        records = None
        if trials:
            self.run("tune", *source, "--n-trials", trials, "--work-dir", work_dir)
            records = work_dir / "records.json"
        self.compile(source, module, records)

    def infer(self, module, feeds):
        """Runs a module on inputs by name and returns its outputs by name."""
        with tempfile.TemporaryDirectory() as folder:
            inputs, outputs = f"{folder}/inputs.npz", f"{folder}/outputs.npz"
            np.savez(inputs, **feeds)
            self.run("run", "--module", module, "--inputs", inputs, "--outputs", outputs)
            with np.load(outputs) as arrays:
                return {name: arrays[name] for name in arrays.files}

    def median_ms(self, module, threads, seconds=None, dims=()):
        """Returns the median time of a run in ms. `dims` has the extents for a module of many
        shapes, such as ["seq=77"]."""
        more = ["--min-time", seconds] if seconds else []
        more += [word for dim in dims for word in ("--dim", dim)]
        return self.json("bench", "--module", module, "--threads", threads, *more)["median_ms"]

    def probe(self, threads):
        return self.json("device", "probe", "--threads", threads, "--min-time", PROBE_S)

    def peak_gflops(self, threads):
        return self.probe(threads)["peak_flops"] * threads * 1e-9


class OnnxRuntime:
    """A session of ONNX Runtime on the CPU with all its graph optimizations."""

    def __init__(self, model, threads):
        import onnxruntime  # imported here: scripts that do not compare with it run without

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def infer(self, feeds):
        return dict(zip(self.names, self.session.run(self.names, feeds)))

    def seeded_feeds(self, seed=0):
        """Returns inputs by name. Floats come from a normal distribution; integers and booleans are
        0 or 1."""
        rng = np.random.default_rng(seed)
        feeds = {}
        for tensor in self.session.get_inputs():
            shape = [size if isinstance(size, int) else 1 for size in tensor.shape]
            if tensor.type == "tensor(float)":
                feeds[tensor.name] = rng.standard_normal(shape).astype(np.float32)
            else:
                kind = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
                feeds[tensor.name] = rng.integers(0, 2, shape).astype(kind[tensor.type])
        return feeds


def relative_difference(found, expected):
    """Returns the largest max |found - expected| / max |expected| over all outputs. A missing
    output, another shape, or a difference that is not finite gives infinity."""
    worst = 0.0
    for name, value in expected.items():
        if name not in found or found[name].shape != value.shape:
            return float("inf")
        difference = np.abs(found[name].astype(np.float64) - value.astype(np.float64))
        scale = max(float(np.abs(value).max(initial=0)), 1e-30)
        worst = max(worst, float(difference.max(initial=0)) / scale)
        if not np.isfinite(difference).all():
            return float("inf")
    return worst


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def git_version():
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                              capture_output=True, text=True)
    except OSError:  # there is no git
        return "unknown"
    return done.stdout.strip() or "unknown"


def versions(packages):
    for package in packages:
        try:
            yield f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            pass


def cell(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def report(name, command, rows, keep=True, notes=()):
    """Prints rows (dicts with the same keys) as a table, and notes.

    With `keep`, writes the table to bench/results/<name>.tsv, behind lines with the command, date,
    version, device and peers. In the command, the last name of an absolute path stands for the
    path, because paths belong to one machine.
    """
    keys = list(rows[0])
    cells = [[cell(value) for value in row.values()] for row in rows]
    widths = [max(len(c) for c in column) for column in zip(keys, *cells)]
    for line in [keys, *cells]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
    print("".join(f"{note}\n" for note in notes), end="", flush=True)
    if not keep:
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    head = [
        "# command: " + re.sub(r"(?<=[\s=])/\S*/(?=\S)", "", command),
        f"# date: {time.strftime('%Y-%m-%d')}",
        f"# version: {git_version()}",
        f"# device: {cpu_name()}",
        f"# peers: {', '.join(versions(['onnxruntime', 'openvino', 'torch', 'numpy']))}",
        *(f"# {note}" for note in notes),
    ]
    lines = head + ["\t".join(line) for line in [keys, *cells]]
    (RESULTS / f"{name}.tsv").write_text("\n".join(lines) + "\n")
