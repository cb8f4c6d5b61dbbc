"""Tunes, compiles and compares from Python: the commands `pruner tune`, `compile` and `compare`."""

import html
import json
import os
import pathlib
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from pruner import _program, training
from pruner.module import Module
from pruner.progress import Events, Progress, shown

Path = Union[str, os.PathLike]
_MODULE, _RECORDS = "module.so", "records.json"  # names of files in a work dir
# The options of `tune` that decide what is compiled, and that `compile` also takes.
_OF_A_NETWORK = (
    "batch_size", "image_size", "seq_len", "cache_len", "input_shapes", "states", "decode", "constant",
    "dim", "precision", "numerics", "threads", "denormals",
)  # fmt: skip


class Point(NamedTuple):
    """A point of a tuning curve: the estimated latency of the network, in ms, after a number of
    trials and of seconds.

    The estimated latency is the sum of the tasks' best times, each times the task's weight.
    """

    trials: int
    seconds: float
    latency_ms: float


class Task(NamedTuple):
    """A kernel that is tuned.

    weight: the number of times that the network calls the kernel.
    latency_ms, gflops: the kernel's best time in ms, and the rate at that time in GFLOP/s. None: no
        program of the kernel has worked yet.
    trials, failed: the number of programs that were measured, and of those that failed.
    """

    name: str
    weight: int
    latency_ms: Optional[float]
    gflops: Optional[float]
    trials: int
    failed: int


class Record(NamedTuple):
    """A measured program: the name of its task, its measured times in seconds, and its line in the
    record file (docs/inside/record.md). A program that failed has no times."""

    task: str
    seconds: List[float]
    line: str


@dataclass(frozen=True)
class Result:
    """The result of a tuning: the numbers of the run, and the files in its work dir.

    work_dir: the folder of the records and the module.
    latency_ms: the median time of the module in ms, from the race with the untuned module that ends
        the tuning. An estimate (see Point) if there was no race: for a range of shapes, or after
        Ctrl-C. None: a task has no program that works.
    trials, seconds: the number of trials, and the time that the tuning took.
    tasks: the tasks of the network.
    interrupted: whether Ctrl-C ended the search.
    speedup, speedup_interval: how many times as fast as the untuned module of the same version the
        module is, by the race, and the bounds of the 95 % confidence interval. None: no race.
    """

    work_dir: str
    latency_ms: Optional[float]
    trials: int
    seconds: float
    tasks: List[Task] = field(repr=False)
    interrupted: bool = False
    speedup: Optional[float] = None
    speedup_interval: Optional[Tuple[float, float]] = None

    @property
    def curve(self) -> List[Point]:
        """The tuning curve: a Point for each round after which every task has a program that
        works."""
        with open(os.path.join(self.work_dir, "total_latency.tsv"), encoding="utf-8") as file:
            rows = [line.split("\t")[1::2] for line in file]
        return [
            Point(int(trials), float(seconds), float(latency))
            for seconds, latency, trials in rows
            if latency != "N/A"
        ]

    @property
    def records_path(self) -> str:
        """The path of the record file, which compile() takes as `records`."""
        return os.path.join(self.work_dir, _RECORDS)

    def records(self) -> Iterator[Record]:
        """Reads the records of the tuning, one after the other."""
        return records(self.records_path)

    @property
    def module_path(self) -> str:
        """The path of the module."""
        return os.path.join(self.work_dir, _MODULE)

    @property
    def module(self) -> Module:
        """A new instance of the module, which has the best program of each task."""
        return Module(self.module_path)

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the tuning curve and a table of the tasks."""
        svg = os.path.join(self.work_dir, "tuning_curve.svg")
        drawn = ""
        if os.path.exists(svg):
            with open(svg, encoding="utf-8") as file:
                drawn = file.read().split("?>", 1)[-1]
        rows = "".join(
            f"<tr><td>{html.escape(t.name)}</td><td>{t.weight}</td><td>{_number(t.latency_ms)}</td>"
            f"<td>{_number(t.gflops)}</td><td>{t.trials}</td></tr>"
            for t in self.tasks
        )
        return (
            f"<p>{self._headline()} after {self.trials} trials, "
            f"{self.seconds:.0f} s</p>{drawn}<table><tr><th>task</th><th>calls</th><th>ms</th>"
            f"<th>GFLOP/s</th><th>trials</th></tr>{rows}</table>"
        )

    def _headline(self) -> str:
        if self.speedup is None:
            return f"{_number(self.latency_ms)} ms estimated"
        low, high = self.speedup_interval
        return (
            f"{_number(self.latency_ms)} ms, {self.speedup:.2f} x as fast as untuned ({low:.2f} to {high:.2f} x),"
        )


def _number(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.4g}"


def records(path: Path) -> Iterator[Record]:
    """Reads the records of a file, one after the other.

    path: the record file of a tuning, in the format of docs/inside/record.md.
    """
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            times, error = row["r"][0], row["r"][1]
            name = row.get("p", {}).get("task", row["i"][0][0])
            yield Record(name, list(times) if error == 0 else [], line.rstrip("\n"))


def _flags(options: Dict[str, object]) -> List[str]:
    """Returns keyword arguments as flags of the command: n_trials=100 becomes --n-trials 100, and
    fresh=True becomes --fresh. A list repeats its flag for each element; None and False give no
    flag."""
    flags: List[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            flags += [flag, str(each)]
    return flags


class _Source:
    """A network or an operator as arguments of the command line.

    An onnx.ModelProto or a torch module is written to a temporary ONNX file, which is removed after
    the command. Raises TypeError if neither or both of `model` and `op` are given.
    """

    def __init__(self, model, args: Sequence, op: Optional[str]):
        if (model is None) == (op is None):
            raise TypeError("give a model or op=, one of them")
        self._scratch: Optional[tempfile.TemporaryDirectory] = None
        if op is not None:
            self.arguments = ["--op", op]
        elif isinstance(model, (str, os.PathLike)):
            text = os.fspath(model)
            is_file = os.path.sep in text or text.endswith(".onnx") or os.path.exists(text)
            self.arguments = [text] if is_file else ["--network", text]
        elif hasattr(model, "SerializeToString"):  # onnx.ModelProto
            self.arguments = [self._file(lambda path: path.write_bytes(model.SerializeToString()))]
        elif hasattr(model, "state_dict"):  # a torch module
            from pruner.torch import export_onnx

            self.arguments = [self._file(lambda path: export_onnx(model, path, args))]
        else:
            raise TypeError(
                f"{type(model).__name__}: expected an ONNX file or model, the name of a built-in"
                " network, or a torch module with args="
            )

    def _file(self, write: Callable[[pathlib.Path], object]) -> str:
        self._scratch = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._scratch.name, "model.onnx")
        write(path)
        return str(path)

    def __enter__(self) -> "_Source":
        return self

    def __exit__(self, *_) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()


def tune(
    model=None,
    *,
    op: Optional[str] = None,
    args: Sequence = (),
    budget: Optional[str] = None,
    n_trials: Optional[int] = None,
    mode: Optional[str] = None,
    target: Optional[str] = None,
    work_dir: Optional[Path] = None,
    callback: Optional[Callable[[Progress], None]] = None,
    progress: bool = True,
    **options,
) -> Result:
    """Tunes a network: searches schedules, measures them on this machine, and compiles a module
    with the best schedules.

    model: an ONNX file, an onnx.ModelProto, the name of a built-in network, or a torch module.
    op: an operator instead of a model, such as "matmul 512 512 512 +relu".
    args: example inputs of a torch module; the network is tuned for their shapes.
    budget: the time to tune, with its unit: "30s", "3m", "1h".
    n_trials: the number of programs to measure; the default is the command's.
    mode: the cost model and its search: "pruner" (the default), "ansor", "draft-only" and others,
        see --model of `pruner tune`.
    target: the target, such as "llvm -mcpu=haswell"; the default is this machine.
    work_dir: the folder for the records and the module; the default is a new temporary folder. A
        second tuning with the same folder continues the first.
    callback: a function that gets a Progress after each round.
    progress: whether a terminal or a notebook shows the progress.
    options: other flags of `pruner tune`, such as precision="bf16", fresh=True, threads=4.

    Modes that learn need torch and a C++ compiler: the plug-in that trains is compiled against
    torch at its first use. If one of the two is missing, use mode="draft-only" or
    allow_untrained=True.

    Ctrl-C ends the search, and the module has the best schedules so far. `interrupted` of the
    Result is then true.

    Raises PrunerError if the command fails, with the command's line. Raises TypeError if neither or
    both of `model` and `op` are given, or if `model` is of another type.
    """
    folder = os.fspath(work_dir) if work_dir is not None else tempfile.mkdtemp(prefix="pruner-")
    flags = _flags(
        {"budget": budget, "n_trials": n_trials, "model": mode, "target": target, "work_dir": folder, **options}
    )
    with _Source(model, args, op) as source, shown(progress) as show:

        events = Events()

        def on_line(line: str) -> None:
            now = events.read(line)
            if now is not None:
                show(now)
                if callback is not None:
                    callback(now)

        made = os.path.join(folder, _MODULE)
        try:
            text = _program.run(
                ["tune", *source.arguments, *flags, "-o", made, "--json", "--quiet", "--events", "/dev/stderr"],
                on_line,
                keeps_on_interrupt=True,
                environment=training.environment(),
            )
        except _program.PrunerError as error:
            if "libpruner_torch.so" not in str(error) or not training.comes_with_package():
                raise
            raise _program.PrunerError(
                "this mode trains its model, which needs torch and a C++ compiler here;"
                ' mode="draft-only" or allow_untrained=True goes on without'
            ) from None
        said = json.loads(text)
        interrupted = said["end"] == "interrupted"
        if interrupted:  # the program has stopped at once and written no module
            same = _flags({name: options.get(name) for name in _OF_A_NETWORK} | {"target": target})
            best = ["--records", os.path.join(folder, _RECORDS)]
            _program.run(["compile", *source.arguments, *same, *best, "-o", made])
    tasks = [
        Task(t["name"], t["weight"], t.get("latency_ms"), t.get("gflops"), t["trials"], t["failed"])
        for t in said["tasks"]
    ]
    race = said.get("race")
    return Result(
        folder,
        race["ms"] if race else said.get("estimated_total_latency_ms"),
        said["trials"],
        said["used_s"],
        tasks,
        interrupted,
        race["speedup"] if race else None,
        (race["speedup_low"], race["speedup_high"]) if race else None,
    )


def compile(
    model=None,
    path: Optional[Path] = None,
    *,
    op: Optional[str] = None,
    args: Sequence = (),
    records: Union[None, Path, Sequence[Path]] = None,
    target: Optional[str] = None,
    **options,
) -> Module:
    """Compiles a network to a module, in seconds and without a search, and loads the module.

    model, op, args, target: see tune().
    path: the file of the module. The default is a temporary file, which is removed when the
        returned Module is dropped.
    records: a record file of a tuning, or several files. Each task takes its best schedule there.
        Tasks without a record take a schedule that comes with the program or needs no search.
    options: other flags of `pruner compile`, such as precision="bf16", numerics="ort", threads=4,
        denormals="keep".

    Raises PrunerError if the command fails, with the command's line. Raises TypeError if neither or
    both of `model` and `op` are given, or if `model` is of another type.
    """
    files = [records] if isinstance(records, (str, os.PathLike)) else records
    scratch = None
    if path is None:
        scratch = tempfile.mkdtemp(prefix="pruner-")
        path = os.path.join(scratch, _MODULE)
    try:
        with _Source(model, args, op) as source:
            flags = _flags({"records": files, "target": target, **options})
            _program.run(["compile", *source.arguments, *flags, "-o", os.fspath(path)])
        module = Module(path)
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise
    if scratch is not None:
        weakref.finalize(module, shutil.rmtree, scratch, ignore_errors=True)
    return module


def compare(
    model=None,
    modes: Sequence[str] = ("ansor", "pruner"),
    *,
    op: Optional[str] = None,
    args: Sequence = (),
    **options,
) -> dict:
    """Tunes in several modes under equal conditions, in turns.

    model, op, args: see tune().
    modes: at least two modes, see tune(). All modes are compared with the first.
    options: other flags of `pruner compare`, such as n_trials=200, seeds=3.

    Returns the result of `pruner compare --json` as a dict (docs/inside/report.md). The dict has the
    trials and the seconds that each mode needs to reach the first mode's final latency.

    Raises PrunerError if the command fails, with the command's line. Raises TypeError if neither or
    both of `model` and `op` are given, or if `model` is of another type.
    """
    with _Source(model, args, op) as source:
        flags = _flags({"modes": ",".join(modes), **options})
        return json.loads(_program.run(["compare", *source.arguments, *flags, "--json"]))
