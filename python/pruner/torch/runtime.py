"""Makes the callable that torch.compile gets for a graph.

The callable compiles the graph at its first call, compiles again if a weight has changed, and runs
the module.
"""

import functools
import hashlib
import itertools
import json
import logging
import operator
import os
import platform
import re
import tempfile
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple, Union

import torch

from pruner import _program, training
from pruner.module import Module
from pruner.torch import devices
from pruner.torch.extents import value_at
from pruner.torch.importer import held_tensor, write_onnx
from pruner.torch.onnx_file import bytes_of
from pruner.torch.verify import Precision, Watch, difference

log = logging.getLogger("pruner.torch")

Ranges = Dict[str, Tuple[int, int]]  # least and greatest value of each symbol, by its name


def dims_of(ranges: Optional[Ranges]) -> List[str]:
    """Returns the ranges as arguments of the program's --dim, such as "s27=2..8"."""
    return [f"{name}={low}..{high}" for name, (low, high) in (ranges or {}).items()]


_MOST_RESULTS = 1024  # input shapes for which a graph remembers the shapes of its outputs
_MOST_BINDINGS = 4  # bindings of a graph to weights; at the next change the weights become inputs
# The number of loaded instances of all graphs. The least recently used instance is unloaded, and
# loaded again at its next call.
_MOST_LOADED = 256


@functools.lru_cache(maxsize=4096)
def warn_once(message: str) -> None:
    """Logs a warning, but each message only once: the same graph comes again for each shape."""
    log.warning("%s", message)


@dataclass(frozen=True)
class Options:
    """The options of torch.compile(model, backend="pruner", options={...}).

    budget: the time to tune a graph in the background after the graph is compiled, with its unit:
        "30s", "3m", "1h". None: graphs are not tuned.
    threads: the number of threads of a module. 0: torch.get_num_threads() when the module is made.
    wait: whether the first call returns only after the tuning.
    cache_dir: the folder of the records and modules of graphs that were seen before. The default is
        $PRUNER_TORCH_CACHE, or ~/.cache/pruner/torch.
    verify: the outputs that are compared with the outputs of the model in eager torch. Integers
        have to be equal; floats may differ by an error relative to each element. A model that
        differs stays in eager.
        True: the first outputs of each module.
        "repeatedly": also the outputs of calls 2, 4, 8 and so on to 1,024. The comparisons take at
        most about 1 % of the time.
        False: no outputs.
    fallback: whether a graph that cannot be compiled, or whose outputs differ, stays in eager, with
        a warning. False: the call raises PrunerError.
    min_nodes: the least number of calls of a compiled part of a graph. Smaller parts stay in eager.
    weights: how a module gets the weights.
        "constants": the weights are compiled into the module. If a weight is replaced or changes,
        the graph is compiled again. A change in place through .data is not noticed. Weights that
        were made in inference_mode are inputs, because torch does not count their changes.
        "inputs": the module reads all weights at each call, which is slower.
    denormals: how modules treat subnormal numbers.
        "flush": subnormal numbers are zeros.
        "keep": modules compute in the calling thread's mode, which torch.set_flush_denormal() sets.

    Raises ValueError if a value is not one of these.
    """

    budget: Optional[str] = None
    threads: int = 0
    wait: bool = False
    cache_dir: str = field(
        default_factory=lambda: os.environ.get("PRUNER_TORCH_CACHE")
        or os.path.expanduser("~/.cache/pruner/torch")
    )
    verify: Union[bool, str] = True
    fallback: bool = True
    min_nodes: int = 8
    weights: str = "constants"
    denormals: str = "flush"

    def __post_init__(self):
        if self.denormals not in ("flush", "keep"):
            raise ValueError(f'denormals is "{self.denormals}", expected "flush" or "keep"')
        if self.verify not in (True, False, "repeatedly"):
            raise ValueError(f'verify is "{self.verify}", expected True, False or "repeatedly"')
        if self.weights not in ("constants", "inputs"):
            raise ValueError(f'weights is "{self.weights}", expected "constants" or "inputs"')
        if self.budget is not None and not re.fullmatch(r"([0-9.]+[smh])+", str(self.budget)):
            raise ValueError(f'budget is "{self.budget}", expected a time with its unit: "30s", "3m" or "1h"')


def _text_of(graph: torch.fx.Graph) -> str:
    """Returns the text of a graph with its values numbered: equal graphs have equal texts."""
    numbers: Dict[torch.fx.Node, str] = {}

    def named(x):
        return torch.fx.node.map_arg(x, lambda node: _Name(numbers[node]))

    lines = []
    for i, node in enumerate(graph.nodes):
        numbers[node] = f"v{i}"
        value = node.meta.get("val")
        kind = (value.dtype, tuple(value.shape)) if isinstance(value, torch.Tensor) else ""
        target = "" if node.op in ("placeholder", "output") else node.target
        if (held := held_tensor(node)) is not None:
            kind, target = (held.dtype, tuple(held.shape)), _digest(bytes_of(held))
        lines.append(f"{node.op} {target} {kind} {named(node.args)} {named(node.kwargs)}")
    return "\n".join(lines)


class _Name(str):
    __repr__ = str.__str__


def _digest(*parts) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part if isinstance(part, (bytes, memoryview)) else str(part).encode())
    return sha.hexdigest()[:32]


def _cpu() -> str:
    """Returns a text of all that decides which code this machine runs: the architecture, the CPU's
    features, and the number of CPUs."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_features()} {count}"


@functools.lru_cache(maxsize=None)
def _features() -> str:
    named = ("flags", "Features", "model name", "CPU part")
    try:
        with open("/proc/cpuinfo") as file:
            lines = {line.split(":")[0].strip(): line.strip() for line in file if line.split(":")[0].strip() in named}
    except OSError:
        lines = {"processor": platform.processor()}
    return " ".join([platform.machine(), *(lines[name] for name in sorted(lines))])


class _Weights:
    """The state of the weights when they were compiled in: tensors, versions and addresses.

    Weights that were made in inference_mode are left out, because torch does not count their
    changes.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]):
        self.places = [i for i, each in enumerate(tensors) if not each.is_inference()]
        self._is_all = len(self.places) == len(tensors)
        self._tensors = [tensors[i] for i in self.places]
        self._versions = list(map(_version, self._tensors))
        self._addresses = list(map(torch.Tensor.data_ptr, self._tensors))

    def are_still(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Returns whether `tensors` are the same tensors with unchanged elements. A change through
        .data cannot be seen."""
        if not self._is_all:
            tensors = [tensors[i] for i in self.places]
        return (
            all(map(operator.is_, self._tensors, tensors))
            and list(map(_version, self._tensors)) == self._versions
            and list(map(torch.Tensor.data_ptr, tensors)) == self._addresses
        )


_version = operator.attrgetter("_version")


class _Binding:
    """A module, the weights that are its constants, and the places of its inputs among the inputs
    of the graph."""

    def __init__(
        self,
        path: str,
        weights: Optional[_Weights],
        inputs: Sequence[int],
        threads: int,
        device: torch.device = devices.CPU,
    ):
        self.path, self.threads, self.device = path, threads, device
        self.weights, self.inputs = weights, list(inputs)
        self.idle: List[Module] = []
        self.last_use = 0

    def is_of(self, weights: Sequence[torch.Tensor]) -> bool:
        return self.weights is None or self.weights.are_still(weights)

    def take(self) -> Module:
        """Returns an instance that no other call runs. Raises OSError if the module cannot be
        loaded."""
        try:
            return self.idle.pop()
        except IndexError:
            return _LOADED.load(self)

    def give_back(self, module: Module) -> None:
        self.last_use = next(_USES)
        self.idle.append(module)


_USES = itertools.count(1)


class _Loaded:
    """The loaded instances of all bindings. Above `most` instances, idle ones are unloaded, those
    of the least recently used binding first."""

    def __init__(self, most: int):
        self.most = most
        self._lock = threading.Lock()
        self._modules: "weakref.WeakSet[Module]" = weakref.WeakSet()
        self._bindings: "weakref.WeakSet[_Binding]" = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._modules)

    def load(self, binding: _Binding) -> Module:
        with self._lock:
            self._bindings.add(binding)
            excess = len(self._modules) + 1 - self.most
            for each in sorted(self._bindings, key=operator.attrgetter("last_use")) if excess > 0 else []:
                while excess > 0 and each.idle:
                    each.idle.pop()
                    excess -= 1
            device = binding.device
            threads = binding.threads or torch.get_num_threads()
            module = Module(binding.path, threads, device.index or 0, devices.memory_pool(device))
            self._modules.add(module)
            return module


_LOADED = _Loaded(_MOST_LOADED)
# Instances whose runs are nodes of CUDA graphs of torch, which may be replayed until the process
# ends.
_CAPTURED: List[Module] = []


class CompiledGraph:
    """A graph whose calls all have a form in ONNX.

    A call takes the inputs of the graph, with the weights at the places `static`. The call returns
    a list of the outputs, which have eager's strides.
    """

    def __init__(
        self,
        gm: torch.fx.GraphModule,
        static: Sequence[int],
        options: Options,
        watch: Optional[Watch] = None,
        ranges: Optional[Ranges] = None,
    ):
        """Prepares the graph; nothing is compiled before the first call.

        watch: compares the whole model that this graph is a part of. None: the graph is compared by
            itself.
        ranges: the range of each symbol of the graph's shapes. None: the shapes are static.

        A call of a graph with ranges raises the error if the graph cannot be compiled. A graph of
        static shapes then stays in eager.
        """
        self._gm, self._options, self._watch, self._ranges = gm, options, watch, ranges
        self._device = devices.graph_device(gm.graph)
        self._on_cpu = self._device == devices.CPU
        self._dims = [text for each in dims_of(ranges) for text in ("--dim", each)]
        placeholders = list(gm.graph.find_nodes(op="placeholder"))
        self._static = list(static)
        self._names = [placeholders[i].name for i in static]
        # An itemgetter of one place returns the tensor itself and no tuple.
        self._weights_of = (
            operator.itemgetter(*static) if len(static) > 1 else lambda args: [args[i] for i in static]
        )
        self._input_names = [each.name for each in placeholders]
        self._inputs = [i for i, each in enumerate(placeholders) if isinstance(each.meta.get("val"), torch.Tensor)]
        (results,) = next(iter(gm.graph.find_nodes(op="output"))).args
        # Each output is a tensor, a number that the shapes decide, or None.
        self._results = [r.meta["val"] if isinstance(r, torch.fx.Node) else r for r in results]
        self._results_at: Dict[Tuple[int, ...], list] = {}
        self._graph_key = _digest(_text_of(gm.graph), _program.version(), torch.__version__)
        self._bindings: List[_Binding] = []
        self._rebound = 0
        self._lock = threading.Lock()
        self._eager = False
        self._tuning: Optional[Future] = None
        self._pause = devices.Pause()

    def __call__(self, *args):
        if self._eager:
            return self._gm(*args)
        weights = self._weights_of(args)
        binding = self._binding_of(weights)
        if binding is None:
            with self._lock:  # another thread may have made the binding meanwhile
                binding = self._binding_of(weights)
                if binding is None:
                    return self._gm(*args) if self._eager else self._first_call(weights, args)
        try:
            return self._run(binding, args)
        except OSError as error:  # the module was unloaded, and its file has changed since
            warn_once(f"a module is compiled again: {error}")
        with self._lock:
            self._bindings = [each for each in self._bindings if each is not binding]
            return self._first_call(weights, args)

    def _binding_of(self, weights: Sequence[torch.Tensor]) -> Optional[_Binding]:
        return next((each for each in self._bindings if each.is_of(weights)), None)

    def _first_call(self, weights: List[torch.Tensor], args):
        """Binds the graph to weights of its first call with these weights, and runs the module."""
        first = not self._bindings
        try:
            binding = self._bind(weights)
        except (NotImplementedError, _program.PrunerError, OSError) as error:
            if self._ranges:
                raise
            return self._give_up(str(error), args)
        outputs = self._run(binding, args)
        if self._watch is not None:
            self._watch.is_due = True
        elif self._options.verify and (wrong := self._difference(outputs, args)):
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
        # The folder of the temporary file differs each time and would make a new warning each time.
        why = re.sub(r"\S*/(graph\.onnx)", r"\1", why)
        warn_once(f"a graph of {len(self._gm.graph.nodes)} calls stays in eager: {why}")
        self._eager = True
        return self._gm(*args)

    def _difference(self, outputs, args) -> str:
        with torch.no_grad():
            expected = self._gm(*args)
        return difference(outputs, expected, Precision(self._gm.graph))

    # Compiling.

    def _folder(self) -> str:
        folder = os.path.join(self._options.cache_dir, self._graph_key)
        os.makedirs(folder, exist_ok=True)
        return folder

    def _records(self) -> str:
        target = devices.target_arguments(self._gm.graph)
        # A record is of one device: CUDA devices have folders of their own.
        return os.path.join(self._folder(), f"tuned-{_digest(target)}" if target else "tuned", "records.json")

    def _bind(self, weights: List[torch.Tensor]) -> _Binding:
        self._rebound += 1
        as_inputs = self._options.weights == "inputs" or self._rebound > _MOST_BINDINGS
        if as_inputs and self._options.weights != "inputs":
            warn_once(
                f"the weights of a graph of {len(self._gm.graph.nodes)} calls have changed {_MOST_BINDINGS} times:"
                " from now on they are inputs of its module, which is slower"
            )
        if as_inputs:
            self._bindings.clear()
            return self._loaded({}, None)
        bound = _Weights(weights)
        if len(bound.places) < len(weights):
            warn_once(
                "weights that were made in inference_mode are inputs of the module, which is slower: torch does not"
                " count their changes; make the model outside of it"
            )
        return self._loaded({self._names[i]: weights[i] for i in bound.places}, bound)

    def _loaded(self, constants: Dict[str, torch.Tensor], bound: Optional[_Weights]) -> _Binding:
        """Returns a binding with a loaded instance. If the module in the cache cannot be loaded,
        the module is compiled again."""
        path = self._module(constants)
        constant = {self._static[i] for i in bound.places} if bound is not None else set()
        inputs = [i for i in self._inputs if i not in constant]
        binding = _Binding(path, bound, inputs, self._options.threads, self._device)
        if constants and not self._on_cpu:
            megabytes = sum(each.nbytes for each in constants.values()) / 1e6
            log.info("the weights of a graph are a second time on %s: %.1f MB", self._device, megabytes)
        try:
            binding.give_back(binding.take())
            return binding
        except OSError as error:
            warn_once(f"a module of the cache cannot be used and is compiled again: {error}")
        # The error, which is gone here, kept the old file's library alive. The loader would have
        # returned that library for the new file, which has the same name.
        self._module(constants, anew=True)
        binding.give_back(binding.take())
        return binding

    def _module(self, constants: Dict[str, torch.Tensor], anew: bool = False) -> str:
        """Returns the path of a module with these constants for this CPU. If the cache has no such
        module, or if `anew`, compiles the module with the records of an earlier tuning."""
        records = self._records()
        more, made_with = [], ""
        if os.path.exists(records):
            more, made_with = ["--records", records], os.stat(records).st_mtime_ns
        denormals = self._options.denormals
        threads = self._options.threads or torch.get_num_threads()
        target = devices.target_arguments(self._gm.graph)
        made_for = (list(constants), made_with, denormals, target or (_cpu(), threads), self._ranges)
        key = _digest(*map(bytes_of, constants.values()), made_for)
        path = os.path.join(self._folder(), key + ".so")
        if os.path.exists(path) and not anew:
            return path
        with tempfile.TemporaryDirectory(dir=self._folder()) as scratch:
            model, made = os.path.join(scratch, "graph.onnx"), os.path.join(scratch, "made.so")
            write_onnx(self._gm.graph, model, constants)
            arguments = ["compile", model, *self._dims, *more, *target, "--denormals", denormals, "-o", made]
            _program.run(arguments, environment=devices.compiler_environment(self._device))
            os.replace(made, path)
        return path

    # Tuning.

    def _start_tuning(self, weights: List[torch.Tensor], untuned: _Binding) -> None:
        places = [] if untuned.weights is None else untuned.weights.places
        constants = {self._names[i]: weights[i] for i in places}

        def tune() -> None:
            work_dir = os.path.dirname(self._records())
            with tempfile.TemporaryDirectory(dir=self._folder()) as scratch:
                model = os.path.join(scratch, "graph.onnx")
                write_onnx(self._gm.graph, model, constants)
                arguments = ["tune", model, *self._dims, "--budget", self._options.budget]
                arguments += devices.target_arguments(self._gm.graph)
                arguments += ["--work-dir", work_dir, "--allow-untrained", "--json"]
                environment = {**training.environment(), **devices.compiler_environment(self._device)}
                try:
                    said = _program.run(arguments, environment=environment, on_start=self._pause.tuner_began)
                finally:
                    self._pause.tuner_ended()
                result = json.loads(said)
            # If the weights have changed meanwhile, they no longer match `untuned.weights`. The
            # tuned binding then does not match the weights either.
            tuned = self._loaded(constants, untuned.weights)
            self._bindings = [tuned if each is untuned else each for each in self._bindings]
            if self._watch is not None:
                self._watch.is_due = True
            log.info("tuned a graph: %.3f ms by its kernels", result["estimated_total_latency_ms"])

        pool = ThreadPoolExecutor(1, thread_name_prefix="pruner-tune")
        self._tuning = pool.submit(tune)
        self._tuning.add_done_callback(_report)
        pool.shutdown(wait=False)

    # Running.

    def _run(self, binding: _Binding, args) -> List[Optional[torch.Tensor]]:
        inputs = [args[i] for i in binding.inputs]
        on_cpu, device = self._on_cpu, self._device  # is_cpu is faster than a comparison
        if not all(x.layout is torch.strided and (x.is_cpu if on_cpu else x.device == device) for x in inputs):
            raise ValueError(self._elsewhere(inputs, binding.inputs))
        # A view may be negated lazily: the memory then holds the elements before the negation.
        dense = [(x if x.is_contiguous() else x.contiguous()).resolve_neg() for x in inputs]
        module = binding.take()
        extents = module.extents([x.shape for x in dense]) if self._ranges else []
        results = self._results if not self._ranges else self._results_with(module, extents)
        tensors = [r for r in results if isinstance(r, torch.Tensor)]
        made = [torch.empty(r.shape, dtype=r.dtype, device=self._device) for r in tensors]
        addresses = [x.data_ptr() for x in dense], [y.data_ptr() for y in made]
        if self._on_cpu:
            module.run_pointers(*addresses, extents)
            binding.give_back(module)
        else:
            self._run_on_cuda(binding, module, addresses, extents)
        placed = map(_as_strided, made, tensors)
        return [next(placed) if isinstance(r, torch.Tensor) else r for r in results]

    def _run_on_cuda(self, binding: _Binding, module: Module, addresses, extents: Sequence[int]) -> None:
        stream = torch.cuda.current_stream(self._device).cuda_stream
        if torch.cuda.is_current_stream_capturing():
            # torch's graph holds the addresses of this instance, which no other call may use then.
            _CAPTURED.append(module)
            module.run_pointers(*addresses, extents, stream)
            return
        with self._pause.during_call(self._device):
            module.run_pointers(*addresses, extents, stream)
        binding.give_back(module)

    def _results_with(self, module: Module, extents: Sequence[int]) -> list:
        """Returns the graph's outputs when the module's symbols have these values: tensors without
        memory, which have shape, strides and type, and numbers."""
        key = tuple(extents)
        if key not in self._results_at:
            if len(self._results_at) >= _MOST_RESULTS:
                self._results_at.clear()
            values = {symbol.name: extent for symbol, extent in zip(module.symbols, extents)}
            self._results_at[key] = [_result_at(each, values) for each in self._results]
        return self._results_at[key]

    def _lies_there(self, x: torch.Tensor) -> bool:
        return x.layout is torch.strided and x.device == self._device

    def _elsewhere(self, inputs: Sequence[torch.Tensor], places: Sequence[int]) -> str:
        """Returns the message that names the input that the module cannot take. A module runs on
        dense tensors on the graph's device."""
        names = [self._input_names[i] for i in places]
        name, x = next((name, x) for name, x in zip(names, inputs) if not self._lies_there(x))
        where = f"has the layout {x.layout}" if x.layout is not torch.strided else f"is on the device {x.device}"
        memory = "in the CPU's memory" if self._on_cpu else f"on {self._device}"
        return f"the input {name} {where}; this graph is compiled for dense tensors {memory}"


def _result_at(result, values: Dict[str, int]):
    if isinstance(result, torch.SymInt):
        return value_at(result, values)
    if not isinstance(result, torch.Tensor):
        return result
    shape, strides = ([value_at(each, values) for each in of] for of in (result.shape, result.stride()))
    return torch.empty_strided(shape, strides, dtype=result.dtype, device="meta")


def _as_strided(dense: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Returns the elements of a dense tensor with the strides of `like`, which has the same shape.
    Strides may be 0."""
    if like.is_contiguous():
        return dense
    repeated = [stride == 0 for stride in like.stride()]
    once = dense[tuple(slice(0, 1) if each else slice(None) for each in repeated)]
    placed = torch.empty_strided(once.shape, like.stride(), dtype=dense.dtype, device=dense.device)
    return placed.copy_(once).expand(dense.shape)


def _report(tuning: Future) -> None:
    if tuning.exception() is not None:
        log.warning("a graph is not tuned: %s", tuning.exception())
