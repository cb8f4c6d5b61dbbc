#!/usr/bin/env python3
"""The steps of gpu_check.sh: looks at the GPU, runs the device tests, probes the device, tunes operators and a
network, and times them in turns with torch.

  gpu_check.py OUT [--target 'cuda --arch=sm_90'] [--operators 'matmul 64 64 64; softmax 8 64'] ...

Steps have limits; what no time is left for is skipped, and the table says so. OUT/gpu_check.tsv is written anew after each result.
A time is the median over rounds, in which everybody has a turn. Of an operator `ours_ms` is the time of its kernels;
of a network that of a whole call, its input and output copied, which torch's is not. `ratio` is ours over the faster
of torch and torch.compile (max-autotune). Without torch there are our times alone.
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
OPERATORS = [
    "matmul 1024 1024 1024",
    "conv2d 1 64 112 112 3 7 7 stride=2 padding=3",
    "conv2d 1 64 56 56 64 3 3 padding=1",
    "conv2d 1 64 56 56 256 1 1",
    "conv2d 1 512 7 7 512 3 3 padding=1",
    "batch_matmul 32 512 512 64",
    "softmax 4096 1024",
]
COLUMNS = ["what", "ours_ms", "torch_ms", "compile_ms", "ratio", "trials", "trials_per_s", "seconds", "note"]
PLUGIN_LIMIT_S, TESTS_LIMIT_S, PROBE_LIMIT_S = 150, 90, 30
TUNE_LIMIT_S, NETWORK_LIMIT_S = 30, 150  # of one operator; of the network
EAGER_LIMIT_S, COMPILE_LIMIT_S = 60, 60
NO_DEVICE = 77  # the exit code, where --target opencl finds none: ctest skips
LAST_S = 15  # kept for what is being stopped


class Skipped(Exception):
    """Why a step or a cell has no result, and what its program printed."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def limit(self, wanted, least=1):
        """Seconds that a step may take; none when less than `least` would be left for it."""
        limit = min(wanted, self.left() - LAST_S)
        if limit < least:
            raise Skipped("no time left")
        return limit


class Row:
    def __init__(self, what):
        self.what, self.looks, self.cells, self.notes = what, collections.defaultdict(list), {}, []

    def values(self):
        medians = {name: statistics.median(values) for name, values in self.looks.items()}
        peers = [medians[name] for name in ("torch_ms", "compile_ms") if name in medians]
        cells = {**self.cells, **medians}
        if peers and "ours_ms" in medians:
            cells["ratio"] = medians["ours_ms"] / min(peers)
        spread = [f"{name[:-3]} {min(values):.4g} to {max(values):.4g} ms in {len(values)} rounds"
                  for name, values in self.looks.items()]
        cells["note"] = "; ".join(self.notes + spread)
        return cells


class Table:
    def __init__(self, path):
        self.path, self.head, self.rows = path, [], []

    def row(self, what):
        self.rows.append(Row(what))
        return self.rows[-1]

    def write(self):
        def cell(value):
            return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else re.sub(r"\s+", " ", str(value))
        lines = [f"# {line}" for line in self.head] + ["\t".join(COLUMNS)]
        for row in self.rows:
            values = {"what": row.what, **row.values()}
            lines.append("\t".join(cell(values.get(column)) for column in COLUMNS))
        text = "\n".join(lines) + "\n"
        self.path.with_suffix(".new").write_text(text)
        self.path.with_suffix(".new").replace(self.path)
        return text


running = []  # processes, each with those that it starts a group of its own


def end(process):
    """It and what it started."""
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


def output_of(command, limit, env=None, cwd=None, shown=True):
    """What a command prints that succeeds within `limit` seconds; it is seen in the log, too."""
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=cwd)
    text, problem = b"", None
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired as late:
        text, problem = late.stdout or b"", f"not done after {limit:.0f} s"
    finally:
        end(process)
    text = text.decode(errors="replace")
    if problem is None and process.returncode != 0:
        problem = f"exit {process.returncode}: {(text.strip().splitlines() or [''])[-1]}"[:300]
    if shown or problem:
        print(text, flush=True)
    if problem:
        raise Skipped(problem, text)
    return text


class Peer:
    """gpu_peers.py in a process of its own; one that does not answer in time is ended."""

    def __init__(self, device, env):
        self.device, self.env, self.process = device, env, None

    def ask(self, question, limit):
        if self.process is None:
            self.process = start([sys.executable, HERE / "gpu_peers.py", self.device], env=self.env,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: there is no answer
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
    """Name, driver, MiB and compute capability of the first GPU."""
    query = "name,driver_version,memory.total,compute_cap"
    text = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20)
    name, driver, mib, capability = [word.strip() for word in text.splitlines()[0].split(",")]
    return name, driver, float(mib), capability


def cuda_target(name, mib, capability, known):
    """By the device's name where `known` (what `pruner devices` prints) has it, else by its architecture."""
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
    """Version, CUDA's, folder, and whether its C++ has the new strings."""
    script = ("import json, torch; print('torch:' + json.dumps([torch.__version__, torch.version.cuda, torch.__path__[0], "
              "bool(torch._C._GLIBCXX_USE_CXX11_ABI), torch.cuda.is_available()]))")
    text = output_of([sys.executable, "-c", script], limit)
    return json.loads(text[text.rindex("torch:") + len("torch:"):].splitlines()[0])


def nvrtc_folders(cuda):
    """Where NVIDIA's packages of this Python have NVRTC; that of torch's CUDA first."""
    paths = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *filter(None, sys.path)}
    found = {library for path in paths for library in pathlib.Path(path).glob("nvidia/*/lib/libnvrtc.so.*")}
    version = (cuda or "").split(".")[0]
    return [str(folder) for folder in dict.fromkeys(
        library.parent for library in sorted(found, key=lambda f: (not f.name.endswith(f".so.{version}"), str(f))))]


class Plugin:
    """libpruner_torch.so, compiled against the torch that is here while other steps run."""

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
        """Whether it is there."""
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
        self.peers, self.peer_folder = {}, None

    def pruner(self, *words, limit):
        return output_of([self.program, *words], limit, env=self.env, cwd=self.folder)

    def step(self, name, action, *arguments):
        """A row for a step that is not timed against anybody; its note is what the action says."""
        row, start = self.table.row(name), time.monotonic()
        print(f"\n== {name} ({self.clock.left():.0f} s left)", flush=True)
        try:
            note = action(*arguments)
        except Skipped as reason:
            note = f"skipped: {reason}"
        row.notes.append(note)
        row.cells["seconds"] = round(time.monotonic() - start, 1)
        self.table.write()

    # What is here.

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
        if options.target == "opencl" and not re.search(r"^ *opencl +\S", known, re.M):
            print("no OpenCL device here")
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
        command = [self.bundle / "device_test", "--gtest_brief=0"]
        try:
            text, end = output_of(command, self.clock.limit(TESTS_LIMIT_S), env=self.env, cwd=self.bundle), ""
        except Skipped as problem:
            text, end = problem.output, f"FAILED: {problem}; "
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

    def training(self):
        if self.plugin.wait(self.clock):
            self.env["PRUNER_TORCH_PLUGIN"] = str(self.plugin.path)
            return "the plug-in is built: the mode pam trains while it tunes"
        return f"no plug-in ({self.plugin.why_not}): no learned model, the draft alone chooses"

    # Ours.

    def source(self, what):
        options = self.options
        if what != options.network:
            return ["--op", what, "--target", self.target]
        size = ["--image-size", options.image_size] if options.image_size else []
        return ["--network", what, *size, "--target", self.target]

    def tune(self, row, what, trials, limit):
        """Tunes, keeps the records, and makes the module."""
        print(f"\n== tune {what} ({self.clock.left():.0f} s left)", flush=True)
        folder = self.folder / re.sub(r"\W+", "_", what)
        budget = self.clock.limit(limit, 5)
        start, text = time.monotonic(), ""
        records = folder / "records.json"
        mode = [] if "PRUNER_TORCH_PLUGIN" in self.env else ["--cost-model", "draft-only"]
        try:
            text = self.pruner("tune", *self.source(what), *mode, "--n-trials", trials, "--budget", f"{max(budget - 5, 1):.0f}s",
                        "--work-dir", folder, "--out-file", folder / "module.so",
                        limit=self.clock.limit(budget + 20))
        except Skipped as reason:
            row.notes.append(f"tune: {reason}")
            text = reason.output
        seconds = time.monotonic() - start
        with open(self.records, "a", encoding="utf-8") as log:
            log.write(records.read_text() if records.exists() else "")
        done = max([int(trials) for trials in re.findall(r"\[ *(\d+)/", text)], default=0)
        row.cells.update({"trials": done, "trials_per_s": done / seconds, "seconds": seconds})
        if done < trials:
            row.notes.append(f"{done} of {trials} trials")
        module = folder / "module.so"
        if not module.exists():
            known = ["--records", records] if done else []
            self.pruner("compile", *self.source(what), *known, "-o", module, limit=self.clock.limit(90))
        return module

    def ours_ms(self, row, what, module):
        text = output_of([self.program, "bench", "--module", module, "--profile", "--json", "--min-time",
                          self.options.look_s], self.clock.limit(30), env=self.env, cwd=self.folder, shown=False)
        found = json.loads(text[text.index("{"):])
        kernels_ms = sum(kernel["median_ms"] for kernel in found["kernels"])
        row.looks["ours_ms"].append(found["median_ms"] if what == self.options.network else kernels_ms)
        if what == self.options.network:
            row.looks["kernels_ms"].append(kernels_ms)

    # Theirs.

    def peer_ms(self, row, what, way, limit):
        if not self.torch_device:
            return
        if way not in self.peers:
            self.peers[way] = Peer(self.torch_device, self.env)
        more = [self.options.image_size or 224] if what == self.options.network else []
        answer = self.peers[way].ask([what, way, *more], self.clock.limit(limit, 2))
        row.looks["torch_ms" if way == "eager" else "compile_ms"].append(answer["ms"])

    def rounds(self, row, what, module, ways):
        """Everybody in turns; who fails once has no further turn."""
        turns = {"ours": lambda: self.ours_ms(row, what, module)}
        for way in ways:
            turns[way] = lambda way=way: self.peer_ms(
                row, what, way, EAGER_LIMIT_S if way == "eager" else COMPILE_LIMIT_S)
        for i in range(self.options.rounds):
            for name in list(turns) if i % 2 == 0 else list(turns)[::-1]:
                try:
                    turns[name]()
                except Skipped as reason:
                    row.notes.append(f"{name}: {reason}")
                    del turns[name]
        self.table.write()
        print(f"{what}: {row.values()}", flush=True)

    def compiled(self, row, what, module, limit):
        """torch.compile's time, beside another look at the others."""
        print(f"\n== torch.compile {what} ({self.clock.left():.0f} s left)", flush=True)
        try:
            self.peer_ms(row, what, "compile", limit)
        except Skipped as reason:
            row.notes.append(f"compile: {reason}")
            self.table.write()
            return
        self.rounds(row, what, module, ["eager", "compile"])

    def run(self):
        options, made = self.options, []
        self.step("look", self.look)
        self.plugin = Plugin(self.bundle, self.folder, self.torch, options.plugin)
        if options.tests:
            self.step("device tests", self.device_tests)
        self.step("device probe", self.probe)
        self.step("training", self.training)

        def measure(what, trials, limit):
            row = self.table.row(what)
            try:
                module = self.tune(row, what, trials, limit)
                self.rounds(row, what, module, ["eager"])
                made.append((row, what, module))
            except Skipped as reason:
                row.notes.append(f"skipped: {reason}")
            self.table.write()

        for operator in filter(None, map(str.strip, options.operators.split(";"))):
            # The network and the peers that compile have their part of the time.
            share = max(self.clock.left() - NETWORK_LIMIT_S - 100, 15)
            measure(operator, options.trials, min(TUNE_LIMIT_S, share))
        if options.network:
            measure(options.network, options.network_trials, min(NETWORK_LIMIT_S, self.clock.left() - 60))
        if self.torch_device and options.compile:
            # The network first: it is what matters most, and takes the longest.
            for row, what, module in reversed(made):
                self.compiled(row, what, module, self.clock.left() / 2 if what == options.network else COMPILE_LIMIT_S)

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
    parser.add_argument("--operators", default=";".join(OPERATORS), help="as `pruner --op` takes them, between ';'")
    parser.add_argument("--trials", type=int, default=64, help="of each operator")
    parser.add_argument("--network", default="resnet_50", help="resnet_18, resnet_50 or '' for none")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--network-trials", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--look-s", type=float, default=0.3, help="seconds of a look at a module of ours")
    parser.add_argument("--seconds", type=float, default=520, help="for everything")
    parser.add_argument("--torch-device", help="cuda or cpu; default: cuda where torch sees a GPU")
    for part, what in {"tests": "the device tests", "plugin": "the plug-in for training",
                       "compile": "torch.compile"}.items():
        parser.add_argument(f"--no-{part}", dest=part, action="store_false", help=f"without {what}")
    check = Check(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    try:
        check.run()
    finally:
        check.close()
    if not any("ours_ms" in row.looks for row in check.table.rows):
        sys.exit("nothing was tuned and timed; see the notes")


if __name__ == "__main__":
    main()
