"""Tuning and compiling from Python: the commands `pruner tune`, `compile` and `compare`."""

import html
import json
import os
import pathlib
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from pruner import _program, training
from pruner.module import Module
from pruner.progress import Events, Progress, shown

Path = Union[str, os.PathLike]
_MODULE, _RECORDS = "module.so", "records.json"  # in a work dir
# Options of `tune` that say what is compiled.
_OF_A_NETWORK = (
    "batch_size", "image_size", "seq_len", "cache_len", "input_shapes", "states", "decode", "constant",
    "dim", "precision", "numerics", "threads", "denormals",
)  # fmt: skip


class Point(NamedTuple):
    """Of a tuning curve: the network's estimated latency (the sum over its tasks of a task's best
    time, in ms) after so many trials and seconds."""

    trials: int
    seconds: float
    latency_ms: float


class Task(NamedTuple):
    """A kernel that is tuned: how often the network calls it, its best time in ms, None before its
    first that works, and its rate."""

    name: str
    weight: int
    latency_ms: Optional[float]
    gflops: Optional[float]
    trials: int
    failed: int


class Record(NamedTuple):
    """A measured program: its task's name, its times in seconds (none: it failed), and its line in
    the file (docs/record.md)."""

    task: str
    seconds: List[float]
    line: str


@dataclass(frozen=True)
class Result:
    """What a tuning left in its work dir."""

    work_dir: str
    latency_ms: Optional[float]  # estimated, see Point; None: a task has no program that works
    trials: int
    seconds: float
    tasks: List[Task] = field(repr=False)
    interrupted: bool = False

    @property
    def curve(self) -> List[Point]:
        """A point a round, once every task has a program that works."""
        with open(os.path.join(self.work_dir, "total_latency.tsv"), encoding="utf-8") as file:
            rows = [line.split("\t")[1::2] for line in file]
        return [
            Point(int(trials), float(seconds), float(latency))
            for seconds, latency, trials in rows
            if latency != "N/A"
        ]

    @property
    def records_path(self) -> str:
        return os.path.join(self.work_dir, _RECORDS)

    def records(self) -> Iterator[Record]:
        return records(self.records_path)

    @property
    def module_path(self) -> str:
        return os.path.join(self.work_dir, _MODULE)

    @property
    def module(self) -> Module:
        """The module with the best of every task; a new instance each time."""
        return Module(self.module_path)

    def _repr_html_(self) -> str:
        """In a notebook: the curve and the tasks."""
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
            f"<p>{_number(self.latency_ms)} ms estimated after {self.trials} trials, "
            f"{self.seconds:.0f} s</p>{drawn}<table><tr><th>task</th><th>calls</th><th>ms</th>"
            f"<th>GFLOP/s</th><th>trials</th></tr>{rows}</table>"
        )


def _number(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.4g}"


def records(path: Path) -> Iterator[Record]:
    """The records of a file, one after the other."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            times, error = row["r"][0], row["r"][1]
            name = row.get("p", {}).get("task", row["i"][0][0])
            yield Record(name, list(times) if error == 0 else [], line.rstrip("\n"))


def _flags(options: Dict[str, object]) -> List[str]:
    """Keyword arguments as the command's flags: n_trials=100 is --n-trials 100, fresh=True is
    --fresh; a list is given as the flag with each of its elements."""
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
    """A network as the command line takes it: an ONNX file, a built-in name, an operator, or a torch
    model, written to a file for as long as the command runs."""

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
        elif hasattr(model, "state_dict"):  # of torch
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
    """Searches schedules for a network, measures them here, and makes a module of the best.

    model: an ONNX file, an onnx.ModelProto, the name of a built-in network, or a torch module with
    args=, example inputs that say its shapes. op: an operator instead, as "matmul 512 512 512 +relu".
    budget: the time to tune, "30s", "3m", "1h". n_trials: programs to measure. mode: "pruner" (the
    default), "ansor", "draft-only" and so on. target: as "llvm -mcpu=haswell"; default: this
    machine. work_dir: for records and module; the same again goes on. callback: gets a Progress a
    round. progress: shown in a terminal or a notebook.
    options: other flags of `pruner tune`, as precision="bf16", fresh=True, threads=4.

    Modes that learn need torch: what trains is compiled against it at the first use, which needs a C++
    compiler; without either, mode="draft-only" or allow_untrained=True. Ctrl-C ends the search and
    keeps the best: the Result then says that it was interrupted.
    PrunerError: what the command says.
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
        if interrupted:  # the program stops at once, without a module
            same = _flags({name: options.get(name) for name in _OF_A_NETWORK} | {"target": target})
            best = ["--records", os.path.join(folder, _RECORDS)]
            _program.run(["compile", *source.arguments, *same, *best, "-o", made])
    tasks = [
        Task(t["name"], t["weight"], t.get("latency_ms"), t.get("gflops"), t["trials"], t["failed"])
        for t in said["tasks"]
    ]
    latency = said.get("estimated_total_latency_ms")
    return Result(folder, latency, said["trials"], said["used_s"], tasks, interrupted)


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
    """A module of a network (see tune) with the best of `records`, without any with schedules that
    need no search. path: where it is kept; default: a temporary file that lives as long as the
    module. options: other flags of `pruner compile`, as precision="bf16", numerics="ort", threads=4,
    denormals="keep".
    PrunerError: what the command says."""
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
    """Tunes in several modes under equal conditions, in turns, and says what each needs to reach
    what the others end with: `pruner compare --json` (docs/report.md). PrunerError: what it says."""
    with _Source(model, args, op) as source:
        flags = _flags({"modes": ",".join(modes), **options})
        return json.loads(_program.run(["compare", *source.arguments, *flags, "--json"]))
