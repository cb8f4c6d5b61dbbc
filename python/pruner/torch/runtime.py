"""What torch.compile gets for a graph: a callable that compiles the graph at its first call, sees to
it that weights are never stale, and runs the module."""

import hashlib
import json
import logging
import operator
import os
import re
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence

import torch

from pruner import _program, training
from pruner.module import Module
from pruner.torch.importer import write_onnx
from pruner.torch.onnx_file import bytes_of

log = logging.getLogger("pruner.torch")

_MOST_BINDINGS = 4  # of a graph to weights; then they are inputs


@dataclass(frozen=True)
class Options:
    """options= of torch.compile.

    budget: time to tune in the background once a graph is compiled, as "3m"; none: not at all.
    threads: of a module; 0: torch.get_num_threads() when it is made.
    wait: tune before the first call returns.
    cache_dir: records and modules of graphs seen before; default: ~/.cache/pruner/torch.
    verify: the first outputs are compared with eager's; those that differ stay in eager.
    fallback: what cannot be compiled stays in eager, which is logged; else it is an error.
    min_nodes: parts of a graph with fewer calls stay in eager.
    denormals: "flush": modules take subnormal numbers for zeros; "keep": they compute in the calling
        thread's mode, which torch.set_flush_denormal() sets.
    weights: "constants": compiled in, and again when one is another or has changed; a change through
        .data in place cannot be seen. "inputs": read at each call, which is slower.
    """

    budget: Optional[str] = None
    threads: int = 0
    wait: bool = False
    cache_dir: str = field(
        default_factory=lambda: os.environ.get("PRUNER_TORCH_CACHE")
        or os.path.expanduser("~/.cache/pruner/torch")
    )
    verify: bool = True
    fallback: bool = True
    min_nodes: int = 8
    weights: str = "constants"
    denormals: str = "flush"

    def __post_init__(self):
        if self.denormals not in ("flush", "keep"):
            raise ValueError(f'denormals is "{self.denormals}", expected "flush" or "keep"')
        if self.weights not in ("constants", "inputs"):
            raise ValueError(f'weights is "{self.weights}", expected "constants" or "inputs"')
        if self.budget is not None and not re.fullmatch(r"([0-9.]+[smh])+", str(self.budget)):
            raise ValueError(f'budget is "{self.budget}", expected a time with its unit: "30s", "3m" or "1h"')


def _text_of(graph: torch.fx.Graph) -> str:
    """The graph with its values numbered, so that equal ones have equal texts."""
    numbers: Dict[torch.fx.Node, str] = {}

    def named(x):
        return torch.fx.node.map_arg(x, lambda node: _Name(numbers[node]))

    lines = []
    for i, node in enumerate(graph.nodes):
        numbers[node] = f"v{i}"
        value = node.meta.get("val")
        kind = (value.dtype, tuple(value.shape)) if isinstance(value, torch.Tensor) else ""
        target = "" if node.op in ("placeholder", "output") else node.target
        lines.append(f"{node.op} {target} {kind} {named(node.args)} {named(node.kwargs)}")
    return "\n".join(lines)


class _Name(str):
    __repr__ = str.__str__


def _digest(*parts) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part if isinstance(part, (bytes, memoryview)) else str(part).encode())
    return sha.hexdigest()[:32]


class _Weights:
    """Tensors as they were compiled in."""

    def __init__(self, tensors: Sequence[torch.Tensor]):
        self._tensors = list(tensors)
        self._versioned = [x for x in tensors if not x.is_inference()]
        self._versions = list(map(_version, self._versioned))
        self._addresses = list(map(torch.Tensor.data_ptr, tensors))

    def are_still(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these are the same tensors with the same elements; what is written to them through
        .data cannot be seen."""
        return (
            all(map(operator.is_, self._tensors, tensors))
            and list(map(_version, self._versioned)) == self._versions
            and list(map(torch.Tensor.data_ptr, tensors)) == self._addresses
        )


_version = operator.attrgetter("_version")


class _Binding:
    """A module, and the weights that are its constants; none: they are its inputs."""

    def __init__(self, module_path: str, weights: Optional[_Weights], threads: int):
        self.path, self.threads = module_path, threads
        self.weights = weights
        self._local = threading.local()

    def is_of(self, weights: Sequence[torch.Tensor]) -> bool:
        return self.weights is None or self.weights.are_still(weights)

    def instance(self) -> Module:
        """This thread's, since an instance runs once at a time."""
        found = getattr(self._local, "module", None)
        if found is None:
            found = self._local.module = Module(self.path, self.threads or torch.get_num_threads())
        return found


class CompiledGraph:
    """A graph of static shapes whose calls are all in ONNX. Called with its inputs, weights among
    them at the places `static`; returns a list of its outputs, whose strides are eager's."""

    def __init__(self, gm: torch.fx.GraphModule, static: Sequence[int], options: Options):
        self._gm, self._options = gm, options
        placeholders = list(gm.graph.find_nodes(op="placeholder"))
        self._names = [placeholders[i].name for i in static]
        # itemgetter of one place gives no tuple.
        self._weights_of = (
            operator.itemgetter(*static) if len(static) > 1 else lambda args: [args[i] for i in static]
        )
        self._dynamic = [i for i in range(len(placeholders)) if i not in set(static)]
        (results,) = next(iter(gm.graph.find_nodes(op="output"))).args
        # An output may be None.
        self._is_tensor = [isinstance(r, torch.fx.Node) for r in results]
        self._results = [r.meta["val"] for r in results if isinstance(r, torch.fx.Node)]
        self._graph_key = _digest(_text_of(gm.graph), _program.version(), torch.__version__)
        self._bindings: List[_Binding] = []
        self._rebound = 0
        self._lock = threading.Lock()
        self._eager = False
        self._tuning: Optional[Future] = None

    def __call__(self, *args):
        if self._eager:
            return self._gm(*args)
        weights = self._weights_of(args)
        binding = self._binding_of(weights)
        if binding is None:
            with self._lock:  # another thread may have made it meanwhile
                binding = self._binding_of(weights)
                if binding is None:
                    return self._gm(*args) if self._eager else self._first_call(weights, args)
        return self._run(binding, args)

    def _binding_of(self, weights: Sequence[torch.Tensor]) -> Optional[_Binding]:
        return next((each for each in self._bindings if each.is_of(weights)), None)

    def _first_call(self, weights: List[torch.Tensor], args):
        """Binds the graph to weights that it has not been called with."""
        first = not self._bindings
        try:
            binding = self._bind(weights)
        except (NotImplementedError, _program.PrunerError, OSError) as error:
            return self._give_up(str(error), args)
        outputs = self._run(binding, args)
        if self._options.verify and (wrong := self._difference(outputs, args)):
            return self._give_up(f"outputs differ from eager's: {wrong}", args)
        self._bindings.insert(0, binding)
        if first and self._options.budget:
            self._start_tuning(weights, binding)
            if self._options.wait:
                self._tuning.result()
        return outputs

    def _give_up(self, why: str, args):
        if not self._options.fallback:
            raise _program.PrunerError(why)
        log.warning("a graph of %d calls stays in eager: %s", len(self._gm.graph.nodes), why)
        self._eager = True
        return self._gm(*args)

    def _difference(self, outputs, args) -> str:
        with torch.no_grad():
            expected = self._gm(*args)
        for i, (found, wanted) in enumerate(zip(outputs, expected)):
            if not isinstance(wanted, torch.Tensor) or not wanted.is_floating_point():
                continue
            largest = wanted.abs().nan_to_num(0, 0, 0).max().item() if wanted.numel() else 0
            share = 2e-2 if wanted.dtype in (torch.float16, torch.bfloat16) else 1e-3
            if not torch.allclose(found, wanted, rtol=share, atol=share * max(largest, 1e-6), equal_nan=True):
                return f"output {i} by {(found - wanted).abs().max().item()} of {largest}"
        return ""

    # Compiling.

    def _folder(self) -> str:
        folder = os.path.join(self._options.cache_dir, self._graph_key)
        os.makedirs(folder, exist_ok=True)
        return folder

    def _records(self) -> str:
        return os.path.join(self._folder(), "tuned", "records.json")

    def _bind(self, weights: List[torch.Tensor]) -> _Binding:
        self._rebound += 1
        as_inputs = self._options.weights == "inputs" or self._rebound > _MOST_BINDINGS
        if as_inputs and self._options.weights != "inputs":
            log.warning(
                "the weights of a graph of %d calls have changed %d times: from now on they are"
                " inputs of its module, which is slower",
                len(self._gm.graph.nodes),
                _MOST_BINDINGS,
            )
        if as_inputs:
            self._bindings.clear()
        constants = {} if as_inputs else dict(zip(self._names, weights))
        path = self._module(constants)
        bound = None if as_inputs else _Weights(weights)
        return _Binding(path, bound, self._options.threads)

    def _module(self, constants: Dict[str, torch.Tensor]) -> str:
        """A module with these constants: of the cache, or compiled with the records that there are."""
        records = self._records()
        more, made_with = [], ""
        if os.path.exists(records):
            more, made_with = ["--records", records], os.stat(records).st_mtime_ns
        denormals = self._options.denormals
        key = _digest(*map(bytes_of, constants.values()), bool(constants), made_with, denormals)
        path = os.path.join(self._folder(), key + ".so")
        if os.path.exists(path):
            return path
        with tempfile.TemporaryDirectory(dir=self._folder()) as scratch:
            model, made = os.path.join(scratch, "graph.onnx"), os.path.join(scratch, "made.so")
            write_onnx(self._gm.graph, model, constants)
            _program.run(["compile", model, *more, "--denormals", denormals, "-o", made])
            os.replace(made, path)
        return path

    # Tuning.

    def _start_tuning(self, weights: List[torch.Tensor], untuned: _Binding) -> None:
        constants = {} if untuned.weights is None else dict(zip(self._names, weights))

        def tune() -> None:
            work_dir = os.path.dirname(self._records())
            with tempfile.TemporaryDirectory(dir=self._folder()) as scratch:
                model = os.path.join(scratch, "graph.onnx")
                write_onnx(self._gm.graph, model, constants)
                arguments = ["tune", model, "--budget", self._options.budget, "--work-dir", work_dir]
                arguments += ["--allow-untrained", "--json"]
                result = json.loads(_program.run(arguments, environment=training.environment()))
            # Weights that have changed meanwhile are not those of `untuned` either.
            tuned = _Binding(self._module(constants), untuned.weights, self._options.threads)
            self._bindings = [tuned if each is untuned else each for each in self._bindings]
            log.info("tuned a graph: %.3f ms by its kernels", result["estimated_total_latency_ms"])

        pool = ThreadPoolExecutor(1, thread_name_prefix="pruner-tune")
        self._tuning = pool.submit(tune)
        self._tuning.add_done_callback(_report)
        pool.shutdown(wait=False)

    # Running.

    def _run(self, binding: _Binding, args) -> List[Optional[torch.Tensor]]:
        inputs = [args[i] for i in (self._dynamic if binding.weights is not None else range(len(args)))]
        if not all(x.is_cpu and x.layout is torch.strided for x in inputs):
            raise ValueError(self._elsewhere(inputs))
        # A view may say that its elements are to be negated, which their memory does not.
        dense = [(x if x.is_contiguous() else x.contiguous()).resolve_neg() for x in inputs]
        made = [torch.empty(r.shape, dtype=r.dtype) for r in self._results]
        binding.instance().run_pointers([x.data_ptr() for x in dense], [y.data_ptr() for y in made])
        placed = map(_as_strided, made, self._results)
        return [next(placed) if each else None for each in self._is_tensor]

    def _elsewhere(self, inputs: Sequence[torch.Tensor]) -> str:
        """Which input a module cannot take, as it runs on dense tensors in the CPU's memory."""
        names = [node.name for node in self._gm.graph.find_nodes(op="placeholder")]
        if len(inputs) < len(names):
            names = [names[i] for i in self._dynamic]
        name, x = next(
            (name, x) for name, x in zip(names, inputs) if not x.is_cpu or x.layout is not torch.strided
        )
        where = f"is on the device {x.device}" if not x.is_cpu else f"has the layout {x.layout}"
        return f"the input {name} {where}; this graph is compiled for dense tensors in the CPU's memory"


def _as_strided(dense: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A dense tensor with the strides of another of its shape, which may be 0."""
    if like.is_contiguous():
        return dense
    repeated = [stride == 0 for stride in like.stride()]
    once = dense[tuple(slice(0, 1) if each else slice(None) for each in repeated)]
    placed = torch.empty_strided(once.shape, like.stride(), dtype=dense.dtype)
    return placed.copy_(once).expand(dense.shape)


def _report(tuning: Future) -> None:
    if tuning.exception() is not None:
        log.warning("a graph is not tuned: %s", tuning.exception())
