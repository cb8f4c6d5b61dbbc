#!/usr/bin/env python3
"""Runs the steps of gpu_check.sh.

The steps look at the GPU, run the device tests and probe the device. Further steps tune operators
and networks, time them in turns with torch, and compare the search with MetaSchedule's.

  gpu_check.py OUT [--target 'cuda --arch=sm_90'] [--rows 'matmul 64 64 64 f16; resnet_18 image_size=64 f32; search ...']

A row is an operator as `pruner --op` takes it, or a network with its sizes. The last word is the
type of the products: f32, f16, bf16, tf32 or int8. The word `search` before an operator compares
the modes metaschedule and pruner with `pruner compare`. Rows run in order of worth.

Steps have limits. A step for which no time is left is skipped, and the table says so.
OUT/gpu_check.tsv is written anew after each result.

A time is the median over rounds, in which our program and torch take turns. The columns mean:

  ours_ms   our time: of an operator, its kernels; of a network, a whole call, including copies of
            the input and the output, which torch's time does not include
  ratio     our time over the faster of torch and torch.compile (max-autotune); of a search, our
            time to MetaSchedule's final latency over MetaSchedule's time to it

The note of a network has the time of its kernels in a row, without the copies. Results have the
type of the operands; the results of int8 are float32. Without torch the table has only our times.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CONVOLUTIONS = [
    "conv2d 1 64 112 112 3 7 7 stride=2 padding=3",
    "conv2d 1 64 56 56 64 3 3 padding=1",
    "conv2d 1 64 56 56 256 1 1",
    "conv2d 1 512 7 7 512 3 3 padding=1",
]
PRODUCTS = ["matmul 1024 1024 1024", *CONVOLUTIONS, "batch_matmul 32 512 512 64"]
# The products with 128 rows are the products of BERT-base with one sequence.
ROWS = [
    "matmul 4096 4096 4096 f16",
    "matmul 128 768 768 f16",
    "matmul 128 3072 768 f16",
    "matmul 128 768 3072 f16",
    "resnet_50 f16",
    "resnet_50 f32",
    "search matmul 1024 1024 1024 f16",
    "search conv2d 1 64 56 56 64 3 3 padding=1 f16",
    "bert_base f16",
    *(f"{product} f16" for product in PRODUCTS),
    *(f"{product} f32" for product in PRODUCTS),
    "softmax 4096 1024 f32",
    "dense 1024 1024 1024 int8",
    "bert_base bf16",
    "resnet_50 bf16",
    *(f"{product} bf16" for product in PRODUCTS),
    *(f"{convolution} int8" for convolution in CONVOLUTIONS),
]
# The bar of a row: a peer, and the greatest allowed ratio of our time to the peer's time.
BARS = {
    "matmul 4096 4096 4096 f16": ("torch", 2),
    "matmul 128 768 768 f16": ("torch", 1 / 0.95),
    "matmul 128 3072 768 f16": ("torch", 1 / 0.95),
    "matmul 128 768 3072 f16": ("torch", 1 / 0.95),
    "resnet_50 f16": ("compile", 0.9),
    "resnet_50 f32": ("compile", 0.8),
}
SEARCH_BAR = 0.25  # greatest allowed ratio of our search's time to MetaSchedule's
OPERATOR_OPTIONS = {"f32": "", "tf32": " bits=19", "f16": " bits=16", "bf16": " bits=16 exponent=8", "int8": " bits=8"}
RESULTS = {"f16": " +f16", "bf16": " +bf16"}  # types of results, like torch's
COLUMNS = ["what", "precision", "ours_ms", "torch_ms", "compile_ms", "ratio", "trials", "trials_per_s", "seconds", "note"]
OPENCL_TESTS = "OpenCl*:Oclgrind*:*/OpenCl*"
COMPILER_TESTS = "CubinTest.*:ReadCubin.*:CudaWarpCode.*"  # tests that need a minute, but no GPU
PLUGIN_LIMIT_S, TESTS_LIMIT_S, PROBE_LIMIT_S = 120, 75, 30
TUNE_LIMIT_S = {"operator": 16, "network": 60, "search": 35}  # limit of one row, by its kind
LOOK_LIMIT_S, EAGER_LIMIT_S, COMPILE_LIMIT_S, NETWORK_COMPILE_LIMIT_S = 60, 45, 45, 110
NO_DEVICE = 77  # exit code if the device of --target is missing; ctest then skips the test
INTERRUPTED, ENDING_S = 130, 10  # exit code of a program that Ctrl-C ends, and time for its end
LAST_S = 15  # seconds that are kept for stopping what still runs


class Skipped(Exception):
    """The reason why a step or a cell has no result. `output` is what its program printed."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def limit(self, wanted, least=1):
        """Returns the seconds that a step may take. Raises Skipped if less than `least` seconds are
        left for the step."""
        limit = min(wanted, self.left() - LAST_S)
        if limit < least:
            raise Skipped("no time left")
        return limit


class Work:
    """The parts of a row's text: kind, subject and precision."""

    def __init__(self, text):
        self.text = " ".join(text.split())
        *words, self.precision = self.text.split()
        if not words or self.precision not in OPERATOR_OPTIONS:
            sys.exit(f"--rows: \"{self.text}\" does not end with one of {', '.join(OPERATOR_OPTIONS)}")
        is_network = not any(re.match(r"\d", word) for word in words)
        self.kind = "search" if words[0] == "search" else "network" if is_network else "operator"
        self.what = " ".join(words)
        self.subject = self.what.removeprefix("search ")
        self.file = re.sub(r"\W+", "_", self.text)

    def source(self):
        """Returns the arguments with which `pruner` takes the row's operator or network."""
        if self.kind != "network":
            result = RESULTS.get(self.precision, "") if self.kind == "operator" else ""
            return ["--op", self.subject + OPERATOR_OPTIONS[self.precision] + result]
        name, *sizes = self.what.split()
        options = [word for size in sizes for word in ("--" + size.replace("_", "-")).split("=")]
        return ["--network", name, *options, "--precision", self.precision]


class Row:
    def __init__(self, what, precision=None):
        self.what, self.precision, self.looks, self.cells, self.notes = what, precision, collections.defaultdict(list), {}, []

    def bar(self, medians):
        """Returns a note with the row's bar, and whether our time meets the bar."""
        peer, most = BARS.get(f"{self.what} {self.precision}", (None, None))
        if peer is None or "ours_ms" not in medians:
            return []
        words = f"bar: at most {most:.3g} of {peer}'s time"
        if f"{peer}_ms" not in medians:
            return [f"{words}, which is not known"]
        share = medians["ours_ms"] / medians[f"{peer}_ms"]
        return [f"{words}: {share:.3g}, {'met' if share <= most else 'missed'}"]

    def values(self):
        medians = {name: statistics.median(values) for name, values in self.looks.items()}
        peers = [medians[name] for name in ("torch_ms", "compile_ms") if name in medians]
        cells = {**self.cells, **medians}
        if peers and "ours_ms" in medians:
            cells["ratio"] = medians["ours_ms"] / min(peers)
        spread = [f"{name[:-3]} {min(values):.4g} to {max(values):.4g} ms in {len(values)} rounds"
                  for name, values in self.looks.items()]
        cells["note"] = "; ".join(self.bar(medians) + self.notes + spread)
        return cells


class Table:
    def __init__(self, path):
        self.path, self.head, self.rows = path, [], []

    def row(self, what, precision=None):
        self.rows.append(Row(what, precision))
        return self.rows[-1]

    def write(self):
        def cell(value):
            return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else re.sub(r"\s+", " ", str(value))
        lines = [f"# {line}" for line in self.head] + ["\t".join(COLUMNS)]
        for row in self.rows:
            values = {"what": row.what, "precision": row.precision, **row.values()}
            lines.append("\t".join(cell(values.get(column)) for column in COLUMNS))
        text = "\n".join(lines) + "\n"
        self.path.with_suffix(".new").write_text(text)
        self.path.with_suffix(".new").replace(self.path)
        return text


running = []  # running processes; each leads a group of its own


def end(process):
    """Ends a process and all processes that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()
    running.remove(process)


def start(command, **more):
    print("$", shlex.join(map(str, command)), flush=True)
    try:
        running.append(subprocess.Popen(list(map(str, command)), start_new_session=True, **more))
    except OSError as problem:
        raise Skipped(f"{command[0]}: {problem.strerror}") from None
    return running[-1]


def output_of(command, limit, env=None, cwd=None, shown=True, errors=subprocess.STDOUT, ends_when_asked=False):
    """Runs a command and returns its output. With `shown` the output also goes to the log.

    A command that does not succeed within `limit` seconds raises Skipped. With `ends_when_asked`, a
    late command gets Ctrl-C, and has succeeded if it then prints its output and ends in time.
    """
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=cwd)
    text, problem = b"", None
    try:
        try:
            text, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            if not ends_when_asked:
                raise
            process.send_signal(signal.SIGINT)
            text, _ = process.communicate(timeout=ENDING_S)
    except subprocess.TimeoutExpired as late:
        text, problem = late.stdout or b"", f"not done after {limit:.0f} s"
    finally:
        end(process)
    text = text.decode(errors="replace")
    if problem is None and process.returncode not in (0, INTERRUPTED if ends_when_asked else 0):
        problem = f"exit {process.returncode}: {(text.strip().splitlines() or [''])[-1]}"[:300]
    if shown or problem:
        print(text, flush=True)
    if problem:
        raise Skipped(problem, text)
    return text


class Peer:
    """gpu_peers.py in a process of its own. The process is ended if it does not answer in time."""

    def __init__(self, device, env):
        self.device, self.env, self.process = device, env, None

    def ask(self, question, limit):
        self.begin(question)
        return self.answer(limit)

    def begin(self, question):
        if self.process is None:
            self.process = start([sys.executable, HERE / "gpu_peers.py", self.device], env=self.env,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended; answer() says so

    def answer(self, limit):
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.close()
            raise Skipped("torch ended" if ready else f"torch: no answer in {limit:.0f} s")
        answer = json.loads(line)
        if "error" in answer:
            raise Skipped(f"torch: {answer['error']}")
        return answer

    def close(self):
        if self.process is not None:
            end(self.process)
        self.process = None


def gpu_name():
    """Returns (name, driver, MiB of memory, compute capability) of the first GPU."""
    query = "name,driver_version,memory.total,compute_cap"
    text = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20)
    name, driver, mib, capability = [word.strip() for word in text.splitlines()[0].split(",")]
    return name, driver, float(mib), capability


def cuda_target(name, mib, capability, known):
    """Returns the --target of a GPU. `known` is the output of `pruner devices`. If `known` has the
    GPU's model, the target names the model; otherwise the target names the architecture."""
    words = re.split(r"[\s-]+", name.lower())
    spelled = words + [a + b for a, b in zip(words, words[1:])]
    variant = {"ti", "super", "laptop", "max"} & set(words)
    models = re.findall(r"cuda --model=(\w+)", known)
    for model in sorted(models, key=len, reverse=True):
        base, _, gib = model.partition("_")
        if base in spelled and not variant and (not gib or mib < 1.25 * 1024 * float(gib)):
            return f"cuda --model={model}"
    return f"cuda --arch=sm_{capability.replace('.', '')}"


def torch_of_this_python(limit):
    """Returns torch's version, its version of CUDA, its folder, whether its C++ has the new
    strings, and whether torch sees a GPU."""
    script = ("import json, torch; print('torch:' + json.dumps([torch.__version__, torch.version.cuda, torch.__path__[0], "
              "bool(torch._C._GLIBCXX_USE_CXX11_ABI), torch.cuda.is_available()]))")
    text = output_of([sys.executable, "-c", script], limit)
    return json.loads(text[text.rindex("torch:") + len("torch:"):].splitlines()[0])


def nvrtc_folders(cuda):
    """Returns the folders of NVRTC in NVIDIA's packages of this Python; the folder of torch's CUDA
    version comes first."""
    paths = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *filter(None, sys.path)}
    found = {library for path in paths for library in pathlib.Path(path).glob("nvidia/*/lib/libnvrtc.so.*")}
    version = (cuda or "").split(".")[0]
    return [str(folder) for folder in dict.fromkeys(
        library.parent for library in sorted(found, key=lambda f: (not f.name.endswith(f".so.{version}"), str(f))))]


class Plugin:
    """libpruner_torch.so, which is compiled against the installed torch while other steps run."""

    def __init__(self, bundle, folder, torch, wanted):
        self.process, self.path = None, folder / "libpruner_torch.so"
        compiler = next(filter(None, map(shutil.which, ["c++", "g++", "clang++"])), None)
        self.why_not = ("not asked for" if not wanted else "no torch" if torch is None
                        else "no C++ compiler" if compiler is None else "")
        if self.why_not:
            return
        root = pathlib.Path(torch[2])
        command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-w",
                   f"-D_GLIBCXX_USE_CXX11_ABI={int(torch[3])}", "-I", bundle / "plugin", "-isystem", root / "include",
                   "-isystem", root / "include/torch/csrc/api/include", bundle / "plugin/model/nn/torch/plugin.cpp",
                   "-o", self.path, "-L", root / "lib", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{root / 'lib'}"]
        self.process = start(command, stdin=subprocess.DEVNULL)
        self.end = time.monotonic() + PLUGIN_LIMIT_S

    def wait(self, clock):
        """Waits until the plug-in is compiled, and returns whether it exists."""
        if self.process is not None:
            try:
                if self.process.wait(timeout=clock.limit(max(self.end - time.monotonic(), 1))) != 0:
                    self.why_not = "it does not compile (see the log)"
            except subprocess.TimeoutExpired:
                self.why_not = f"not compiled after {PLUGIN_LIMIT_S} s"
            end(self.process)
            self.process = None
        return not self.why_not


class Check:
    def __init__(self, options):
        self.options, self.out = options, pathlib.Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.clock = Clock(options.seconds)
        self.bundle = pathlib.Path(options.bundle).resolve()
        self.program = self.bundle / "pruner"
        self.table = Table(self.out / "gpu_check.tsv")
        self.records = self.out / "records.json"
        self.records.write_text("")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu_check_"))
        caches = {name: str(self.folder / name.lower()) for name in
                  ["XDG_CACHE_HOME", "POCL_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"]}
        for folder in caches.values():
            os.makedirs(folder)
        self.env = {**os.environ, **caches}
        self.profiles = {}  # the profile of the last look at our module, by a row's text
        # Peers by (way, text of a network that torch.compile compiles, or None), and the reasons
        # why torch.compile has failed, by a network's text.
        self.peers, self.not_compiled = {}, {}

    def pruner(self, *words, limit):
        return output_of([self.program, *words], limit, env=self.env, cwd=self.folder)

    def step(self, name, action, *arguments):
        """Runs a step without a peer as a row of the table. The row's note is the action's
        result."""
        row, start = self.table.row(name), time.monotonic()
        print(f"\n== {name} ({self.clock.left():.0f} s left)", flush=True)
        try:
            note = action(*arguments)
        except Skipped as reason:
            note = f"skipped: {reason}"
        row.notes.append(note)
        row.cells["seconds"] = round(time.monotonic() - start, 1)
        self.table.write()

    # Steps that look at the machine.

    def look(self):
        options = self.options
        self.torch = self.gpu = None
        notes = []
        try:
            self.gpu = gpu_name()
            notes.append(f"{self.gpu[0]}, driver {self.gpu[1]}")
        except Skipped as reason:
            notes.append(str(reason))
        try:
            self.torch = torch_of_this_python(self.clock.limit(60))
            notes.append(f"torch {self.torch[0]}, CUDA {self.torch[1]}")
        except Skipped:
            notes.append("no torch")
        folders = nvrtc_folders(self.torch[1] if self.torch else "")
        self.env["LD_LIBRARY_PATH"] = ":".join(folders + list(filter(None, [os.environ.get("LD_LIBRARY_PATH")])))
        notes.append(f"NVRTC in {', '.join(folders)}" if folders else "NVRTC: of a toolkit, if there is one")
        self.torch_device = options.torch_device
        if not self.torch_device and self.torch:
            self.torch_device = "cuda" if self.torch[4] else ""
        if self.torch and not self.torch_device:
            notes.append("torch sees no GPU: nothing is compared with it")
        known = self.pruner("devices", limit=30)
        backend = (options.target or "").split(" ")[0]
        if backend and not re.search(rf"^ *{backend} +\S", known.partition("\nknown")[0], re.M):
            print(f"no device of {backend} here")
            sys.exit(NO_DEVICE)
        if options.target:
            self.target = options.target
        elif self.gpu:
            self.target = cuda_target(self.gpu[0], self.gpu[2], self.gpu[3], known)
        else:
            self.target = "cuda"
        self.table.head = [f"{self.gpu[0] if self.gpu else 'no NVIDIA GPU'}; --target '{self.target}'; "
                           f"{time.strftime('%Y-%m-%d')}; " + self.version()]
        return "; ".join([f"--target '{self.target}'", *notes])

    def version(self):
        try:
            return (self.bundle / "version").read_text().strip()
        except OSError:
            return "version unknown"

    def device_tests(self):
        """Runs the device tests, those of OpenCL last, because OpenCL's compilers are slow."""
        text, end, limit = "", "", Clock(TESTS_LIMIT_S + LAST_S)
        for tests in (f"-{OPENCL_TESTS}:{COMPILER_TESTS}", OPENCL_TESTS):
            command = [self.bundle / "device_test", "--gtest_brief=0", "--gtest_filter=" + tests]
            try:
                text += output_of(command, self.clock.limit(limit.limit(TESTS_LIMIT_S)), env=self.env, cwd=self.bundle)
            except Skipped as problem:
                text, end = text + problem.output, end + f"FAILED: {problem}; "
        counts = {word: len(re.findall(rf"^\[ +{word} +\] [\w/.]+.* \(\d+ ms\)$", text, re.M))
                  for word in ("OK", "SKIPPED", "FAILED")}
        failed = sorted(set(re.findall(r"^\[ +FAILED +\] ([\w/.]+)", text, re.M)))
        return (end + f"{counts['OK']} passed, {counts['SKIPPED']} skipped, {counts['FAILED']} failed"
                + (": " + " ".join(failed[:8]) if failed else ""))

    def probe(self):
        backend = self.target.split()[0]
        self.pruner("device", "probe", "--target", backend, "-o", self.out / "device.json",
                    limit=self.clock.limit(PROBE_LIMIT_S, 5))
        return "device.json"

    def compile_networks(self, works):
        """Starts torch.compile of all networks at once, beside steps that are not timed.
        torch.compile needs minutes for a network."""
        self.compiling = Clock(NETWORK_COMPILE_LIMIT_S)
        if self.torch_device and self.options.compile:
            for work in works:
                if work.kind == "network":
                    self.peers["compile", work.text] = Peer(self.torch_device, self.env)
                    self.peers["compile", work.text].begin([work.subject, work.precision, "compile"])

    def compiled_networks(self):
        """Waits for the networks of compile_networks(). A network that is late has no time in this
        run."""
        late = []
        for (_, text), peer in self.peers.items():
            try:
                peer.answer(self.clock.limit(max(self.compiling.left(), 1)))
            except Skipped as reason:
                self.not_compiled[text] = str(reason)
                late.append(f"{text}: {reason}")
        return f"{len(self.peers) - len(late)} are ready" + "".join("; " + each for each in late)

    def training(self):
        if self.plugin.wait(self.clock):
            self.env["PRUNER_TORCH_PLUGIN"] = str(self.plugin.path)
            return "the plug-in is built: the mode pam trains while it tunes"
        return f"no plug-in ({self.plugin.why_not}): no learned model, the draft alone chooses"

    # Measurements of our programs.

    def mode(self):
        """Returns the mode "pruner" if its model can train here, and otherwise "draft-only"."""
        return "pruner" if "PRUNER_TORCH_PLUGIN" in self.env else "draft-only"

    def source(self, work):
        return [*work.source(), "--target", self.target]

    def from_records(self, row, work):
        """Returns the module with the schedules of --records, or None if there are no such
        records."""
        if not self.options.records:
            return None
        module = self.folder / f"{work.file}.so"
        try:
            self.pruner("compile", *self.source(work), "--records", self.options.records.resolve(), "-o", module,
                        limit=self.clock.limit(90))
        except Skipped:
            return None
        row.notes.append("of given records")
        return module

    def tune(self, row, work, trials, limit):
        """Tunes, keeps the records, and returns the path of the module."""
        folder = self.folder / work.file
        budget = self.clock.limit(limit, 5)
        start, text = time.monotonic(), ""
        records = folder / "records.json"
        try:
            text = self.pruner("tune", *self.source(work), "--cost-model", self.mode(), "--n-trials", trials, "--budget",
                               f"{max(budget - 5, 1):.0f}s", "--work-dir", folder, "--out-file", folder / "module.so",
                               limit=self.clock.limit(budget + 20))
        except Skipped as reason:
            row.notes.append(f"tune: {reason}")
            text = reason.output
        seconds = time.monotonic() - start
        self.keep(records)
        done = max([int(trials) for trials in re.findall(r"\[ *(\d+)/", text)], default=0)
        row.cells.update({"trials": done, "trials_per_s": done / seconds, "seconds": seconds})
        if done < trials:
            row.notes.append(f"{done} of {trials} trials")
        module = folder / "module.so"
        if not module.exists():
            known = ["--records", records] if done else []
            self.pruner("compile", *self.source(work), *known, "-o", module, limit=self.clock.limit(90))
        return module

    def keep(self, *files):
        with open(self.records, "a", encoding="utf-8") as log:
            for file in files:
                log.write(file.read_text() if file.exists() else "")

    def ours_ms(self, row, work, module):
        text = output_of([self.program, "bench", "--module", module, "--profile", "--json", "--min-time",
                          self.options.look_s], self.clock.limit(LOOK_LIMIT_S), env=self.env, cwd=self.folder, shown=False)
        found = json.loads(text[text.index("{"):])
        kernels_ms = sum(kernel["median_ms"] for kernel in found["kernels"])
        self.profiles[work.text] = {name: found[name] for name in ("median_ms", "kernels")}
        (self.out / "profiles.json").write_text(json.dumps(self.profiles, indent=1))
        row.looks["ours_ms"].append(found["median_ms"] if work.kind == "network" else kernels_ms)
        if work.kind == "network":
            row.looks["kernels_ms"].append(found.get("kernels_in_a_row_ms", kernels_ms))
        multiplied = sorted({kernel["precision"] for kernel in found["kernels"] if kernel.get("precision")})
        units = f"multiplies {', '.join(multiplied)}"
        if multiplied and units not in row.notes:
            row.notes.append(units)

    def search(self, row, work, trials, limit):
        """Fills a row with the time and the trials that our search needs to reach MetaSchedule's
        final latency."""
        folder = self.folder / work.file
        start = time.monotonic()
        text = output_of([self.program, "compare", *self.source(work), "--modes", f"metaschedule,{self.mode()}", "--n-trials",
                          trials, "--seeds", 1, "--work-dir", folder, "--json"], self.clock.limit(limit, 10), env=self.env,
                         cwd=self.folder, shown=False, errors=None, ends_when_asked=True)
        seconds = time.monotonic() - start
        self.keep(*sorted(folder.rglob("records*.json")))
        found = json.loads(text)
        measure, ours = found["modes"]
        done = sum(curve["trials"] for curve in found["curves"])
        row.cells.update({"trials": done, "trials_per_s": done / seconds, "seconds": seconds})
        if not all(curve["complete"] for curve in found["curves"]):
            row.notes.append(f"cut short, {' and '.join(str(curve['trials']) for curve in found['curves'])} of {trials} trials")

        def median(mode, key):
            return mode[key]["median"] if mode[key] else None
        if median(ours, "latency_s"):
            row.looks["ours_ms"].append(1e3 * median(ours, "latency_s"))
        share, share_of_trials = median(ours, "time_of_reach"), median(ours, "trials_of_reach")
        final = f"MetaSchedule's final {1e3 * median(measure, 'latency_s'):.4g} ms" if median(measure, "latency_s") else "nothing"
        if not ours["reached"]:
            row.notes.append(f"{ours['mode']} does not reach {final}")
            return
        row.cells["ratio"] = share
        row.notes.append(f"bar: at most {SEARCH_BAR} of MetaSchedule's time: {share:.3g}, "
                         f"{'met' if share <= SEARCH_BAR else 'missed'}; {ours['mode']} reaches {final} in "
                         f"{median(ours, 'seconds'):.3g} s, in {share_of_trials:.3g} of its trials")

    # Measurements of torch.

    def peer_ms(self, row, work, way, limit):
        if not self.torch_device:
            return
        if way == "compile" and work.text in self.not_compiled:
            raise Skipped(self.not_compiled[work.text])
        key = (way, work.text) if (way, work.text) in self.peers else (way, None)
        if key not in self.peers:
            self.peers[key] = Peer(self.torch_device, self.env)
        answer = self.peers[key].ask([work.subject, work.precision, way], self.clock.limit(limit, 2))
        row.looks["torch_ms" if way == "eager" else "compile_ms"].append(answer["ms"])

    def rounds(self, row, work, module, ways):
        """Measures our module and torch in turns. A program that fails once has no further turn."""
        turns = {"ours": lambda: self.ours_ms(row, work, module)}
        for way in ways:
            turns[way] = lambda way=way: self.peer_ms(
                row, work, way, EAGER_LIMIT_S if way == "eager" else COMPILE_LIMIT_S)
        for i in range(self.options.rounds):
            for name in list(turns) if i % 2 == 0 else list(turns)[::-1]:
                try:
                    turns[name]()
                except Skipped as reason:
                    row.notes.append(f"{name}: {reason}")
                    del turns[name]
        self.table.write()
        print(f"{work.text}: {row.values()}", flush=True)

    def compiled(self, row, work, module, limit):
        """Measures torch.compile, and measures the others again in the same rounds."""
        if not (self.torch_device and self.options.compile):
            return
        print(f"\n== torch.compile {work.text} ({self.clock.left():.0f} s left)", flush=True)
        try:
            self.peer_ms(row, work, "compile", limit)
        except Skipped as reason:
            row.notes.append(f"compile: {reason}")
            self.table.write()
            return
        self.rounds(row, work, module, ["eager", "compile"])

    def measure(self, work):
        """Measures a row of the table. Returns (row, work, module) of an operator, which has yet to
        be compared with torch.compile, and None for others."""
        row = self.table.row(work.what, work.precision)
        print(f"\n== {work.text} ({self.clock.left():.0f} s left)", flush=True)
        trials, limit = getattr(self.options, f"{work.kind}_trials"), TUNE_LIMIT_S[work.kind]
        module = None
        try:
            if work.kind == "search":
                self.search(row, work, trials, limit)
            else:
                module = self.from_records(row, work) or self.tune(row, work, trials, limit)
                self.rounds(row, work, module, ["eager"])
        except Skipped as reason:
            row.notes.append(f"skipped: {reason}")
        # Bars of networks name torch.compile, so that networks do not wait for the rows behind
        # them.
        if module and work.kind == "network":
            self.compiled(row, work, module, NETWORK_COMPILE_LIMIT_S)
        self.table.write()
        return (row, work, module) if module and work.kind == "operator" else None

    def run(self):
        options = self.options
        works = [Work(text) for text in options.rows.split(";") if text.strip() and re.search(options.only, text)]
        self.step("look", self.look)
        self.compile_networks(works)
        self.plugin = Plugin(self.bundle, self.folder, self.torch, options.plugin)
        if options.tests:
            self.step("device tests", self.device_tests)
        self.step("training", self.training)
        if self.peers:
            self.step("torch.compile of networks", self.compiled_networks)
        self.step("device probe", self.probe)
        made = [made for work in works if (made := self.measure(work))]
        for row, work, module in made:
            self.compiled(row, work, module, COMPILE_LIMIT_S)

    def close(self):
        for process in list(running):
            end(process)
        shutil.rmtree(self.folder, ignore_errors=True)
        print("\n" + self.table.write(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="folder of the results")
    parser.add_argument("--bundle", default=HERE, help="folder of gpu_bundle.sh")
    parser.add_argument("--target", default=os.environ.get("PRUNER_GPU_CHECK_TARGET"), help="default: the GPU that is here")
    parser.add_argument("--rows", default=";".join(ROWS), help="what is tuned, between ';', each with its precision")
    parser.add_argument("--only", default="", help="of these those that a regular expression is found in, e.g. 'int8$'")
    for kind, trials in {"operator": 64, "network": 300, "search": 128}.items():
        parser.add_argument(f"--{kind}-trials", type=int, default=trials, help=f"of each {kind}, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--look-s", type=float, default=0.3, help="seconds of a look at a module of ours")
    parser.add_argument("--seconds", type=float, default=520, help="for everything")
    parser.add_argument("--records", type=pathlib.Path, help="of an earlier run here: what they hold is not tuned again")
    parser.add_argument("--torch-device", help="cuda or cpu; default: cuda where torch sees a GPU")
    parser.add_argument("--strict", action="store_true", help="fails where a row has no time of ours")
    for part, what in {"tests": "the device tests", "plugin": "the plug-in for training",
                       "compile": "torch.compile"}.items():
        parser.add_argument(f"--no-{part}", dest=part, action="store_false", help=f"without {what}")
    check = Check(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    try:
        check.run()
    finally:
        check.close()
    timed = ["ours_ms" in row.looks for row in check.table.rows if row.precision]
    if not any(timed) or (check.options.strict and not all(timed)):
        sys.exit("not everything was tuned and timed; see the notes" if any(timed) else "nothing was tuned and timed; see the notes")


if __name__ == "__main__":
    main()
