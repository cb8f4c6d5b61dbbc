"""include/pruner/module.h through ctypes."""

import _ctypes
import ctypes
import math
import os
import struct
import threading
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

_ABI = 4
_WITHOUT_SYMBOLS = 3  # an older one that is still read
# Each with the type of an element where numpy has none of that name.
_DTYPES = (
    ("float32", None),
    ("float16", None),
    ("int64", None),
    ("int32", None),
    ("int8", None),
    ("bool", None),
    ("uint8", None),
    ("bfloat16", "V2"),
    ("float64", None),
    ("uint16", None),
    ("int16", None),
    ("uint32", None),
    ("uint64", None),
    ("float8_e4m3fn", "uint8"),
    ("float8_e4m3fnuz", "uint8"),
    ("float8_e5m2", "uint8"),
    ("float8_e5m2fnuz", "uint8"),
    ("uint4", "uint8"),
    ("int4", "int8"),
    ("float4_e2m1fn", "uint8"),
    ("float8_e8m0fnu", "uint8"),
    ("uint2", "uint8"),
    ("int2", "int8"),
)


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Kernel(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("sketch", ctypes.c_char_p),
        ("flops", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
    ]


class _Phase(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("num_inputs", ctypes.c_int64),
        ("inputs", ctypes.POINTER(_Spec)),
        ("num_outputs", ctypes.c_int64),
        ("outputs", ctypes.POINTER(_Spec)),
        ("first_kernel", ctypes.c_int64),
        ("num_kernels", ctypes.c_int64),
    ]


class _Symbol(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("min", ctypes.c_int64),
        ("max", ctypes.c_int64),
    ]


_NUMBERS = ctypes.POINTER(ctypes.c_int64)
_POINTERS = ctypes.POINTER(ctypes.c_void_p)
# name: (result, arguments); abi comes first, so that another version is noticed before the rest.
_FUNCTIONS = {
    "abi": (ctypes.c_int32, []),
    "create": (ctypes.c_void_p, [ctypes.c_int32]),
    "destroy": (None, [ctypes.c_void_p]),
    "error": (ctypes.c_char_p, []),
    "threads": (ctypes.c_int32, [ctypes.c_void_p]),
    "num_phases": (ctypes.c_int32, []),
    "phase": (ctypes.POINTER(_Phase), [ctypes.c_int32]),
    "kernel": (ctypes.POINTER(_Kernel), [ctypes.c_int32]),
    "run_phase": (
        ctypes.c_int32,
        [ctypes.c_void_p, ctypes.c_int32, _POINTERS, _POINTERS, ctypes.POINTER(ctypes.c_double)],
    ),
    "num_states": (ctypes.c_int32, []),
    "state": (ctypes.POINTER(_Spec), [ctypes.c_int32]),
    "read_state": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]),
    "write_state": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]),
    "reset": (ctypes.c_int32, [ctypes.c_void_p]),
}
# Modules of one version may lack these.
_NUMERICS = {"numerics": (ctypes.c_char_p, [])}
_OUTPUT_DIMS = {"output_dims": (ctypes.c_int32, [ctypes.c_void_p, _NUMBERS])}
_OF_SYMBOLS = {
    "num_symbols": (ctypes.c_int32, []),
    "symbol": (ctypes.POINTER(_Symbol), [ctypes.c_int32]),
    "shapes": (ctypes.c_int32, [ctypes.c_int32, _NUMBERS, _NUMBERS, _NUMBERS]),
    "extents": (ctypes.c_int32, [ctypes.c_int32, _NUMBERS, _NUMBERS]),
    "run_shaped": (
        ctypes.c_int32,
        [ctypes.c_void_p, ctypes.c_int32, _NUMBERS, _POINTERS, _POINTERS, ctypes.POINTER(ctypes.c_double)],
    ),
    "kernels_at": (ctypes.c_int32, [ctypes.c_int32, _NUMBERS, _NUMBERS, _NUMBERS]),
}


class TensorSpec(NamedTuple):
    name: str
    dtype: np.dtype
    shape: Tuple[int, ...]

    def __str__(self):
        return f"{self.name} {self.dtype} {'x'.join(map(str, self.shape))}"


class Symbol(NamedTuple):
    """A dimension that may differ from run to run; both ends included."""

    name: str
    min: int
    max: int


class KernelTime(NamedTuple):
    name: str
    ms: float


def _damaged(path: str) -> bool:
    """Whether the file has a checksum (include/pruner/module_file.h) that is not that of its bytes, or none and
    ends too early."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        if end < 32:
            return False
        file.seek(end - 32)
        magic, *written = struct.unpack("<8s3Q", file.read(32))
        if magic != b"PrunSum1":
            file.seek(0)
            head = file.read(64).ljust(64, b"\0")
            sections, (bytes_each, count) = *struct.unpack_from("<Q", head, 40), struct.unpack_from("<2H", head, 58)
            return head[:5] == b"\x7fELF\x02" and sections + bytes_each * count > end
        file.seek(0)
        sums, place_sums = np.zeros(8, np.uint64), np.zeros(8, np.uint64)
        left = end - 32
        while left > 0:
            piece = file.read(min(left, 1 << 20))
            left -= len(piece)
            blocks = np.frombuffer(piece + bytes(-len(piece) % 64), "<u8").reshape(-1, 8)
            later = np.arange(len(blocks), 0, -1, dtype=np.uint64)  # sums that a block is in
            place_sums += np.uint64(len(blocks)) * sums + later @ blocks
            sums += blocks.sum(axis=0, dtype=np.uint64)
        odd = np.arange(1, 16, 2, dtype=np.uint64)
        return written != [end - 32, int((odd * sums).sum()), int((odd * place_sums).sum())]


class Phase:
    """What a module can run: the network, or e.g. the prefill or the decoding of a language model."""

    def __init__(self, module: "_Opened", number: int):
        self._module, self._number = module, number
        phase = module._phase(number).contents
        self.name = phase.name.decode()
        self.inputs = [_spec(phase.inputs[i]) for i in range(phase.num_inputs)]
        self.outputs = [_spec(phase.outputs[i]) for i in range(phase.num_outputs)]
        self._kernels = range(phase.first_kernel, phase.first_kernel + phase.num_kernels)
        self._staged = self._found_dims() is not None

    def __repr__(self):
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<{self.name}: {inputs} -> {outputs}>"

    def __call__(self, *inputs, out: Optional[Sequence] = None, **named) -> List[np.ndarray]:
        """The outputs, in order, for inputs given by position or by name: numpy arrays, torch tensors
        or anything with DLPack, of the inputs' shapes, or what numpy makes one of. Where the data decide
        extents, as the number of boxes that a detector finds, outputs have those that were found.

        out: dense arrays or tensors to write them to, one an output, of its type and shape; none of
        them may overlap an input. ValueError, TypeError: what does not fit."""
        return self._execute(self._arrays(inputs, named), None, out)

    def run(self, inputs: Dict[str, object]) -> Dict[str, np.ndarray]:
        """The same by name, both ways. An output that has the name of an earlier one gets a number: y_2."""
        names = _names_once([spec.name for spec in self.outputs])
        return dict(zip(names, self._execute(self._arrays((), inputs), None)))

    def profile(self, *inputs, **named) -> List[KernelTime]:
        """What each kernel took in one run."""
        arrays = self._arrays(inputs, named)
        kernels = self._kernels_at(self._extents(arrays))
        seconds = (ctypes.c_double * max(len(kernels), 1))()
        self._execute(arrays, seconds)
        names = [self._module._kernel(i).contents.name.decode() for i in kernels]
        # A network in stages has kernels for extents that were not found.
        return [KernelTime(name, s * 1e3) for name, s in zip(names, seconds) if s > 0 or not self._staged]

    def bench(self, *inputs, runs: int = 20, warm_up: int = 3, **named) -> float:
        """The median time of a run, in milliseconds."""
        arrays = self._arrays(inputs, named)
        times = []
        for _ in range(warm_up + runs):
            start = time.perf_counter()
            self._execute(arrays, None)
            times.append(time.perf_counter() - start)
        return float(np.median(times[warm_up:])) * 1e3

    def _arrays(self, inputs: Sequence, named: Dict[str, object]) -> List[np.ndarray]:
        names = [spec.name for spec in self.inputs]
        unknown = [name for name in named if name not in names[len(inputs):]]
        if unknown or len(inputs) + len(named) != len(names):
            expected = ", ".join(map(str, self.inputs))
            given = ", ".join([f"{len(inputs)} by position"] + list(named))
            raise TypeError(f"expected inputs {expected}; found {given}")
        values = list(inputs) + [named[name] for name in names[len(inputs):]]
        any_shape = bool(self._module.symbols)
        return [_array(spec, value, any_shape) for spec, value in zip(self.inputs, values)]

    def _extents(self, arrays: List[np.ndarray]):
        """Of the module's symbols, for inputs of these shapes; None: it has one shape."""
        module = self._module
        if not module.symbols:
            return None
        dims = [extent for array in arrays for extent in array.shape]
        extents = (ctypes.c_int64 * len(module.symbols))()
        if module._extents(self._number, _numbers(dims), extents):
            raise ValueError(module._error().decode())
        return extents

    def _outputs_at(self, extents) -> List[TensorSpec]:
        if extents is None:
            return self.outputs
        dims = [_numbers([0] * sum(len(spec.shape) for spec in specs)) for specs in (self.inputs, self.outputs)]
        self._module._check(self._module._shapes(self._number, extents, *dims))
        left = iter(dims[1])
        return [spec._replace(shape=tuple(next(left) for _ in spec.shape)) for spec in self.outputs]

    def _kernels_at(self, extents) -> range:
        if extents is None:
            return self._kernels
        first, count = ctypes.c_int64(), ctypes.c_int64()
        module = self._module
        module._check(module._kernels_at(self._number, extents, ctypes.byref(first), ctypes.byref(count)))
        return range(first.value, first.value + count.value)

    def _results(self, out: Sequence, specs: List[TensorSpec]) -> List[np.ndarray]:
        if len(out) != len(specs):
            raise TypeError(f"out has {len(out)} arrays for {len(specs)} outputs")
        for spec, each in zip(specs, out):
            if not isinstance(each, np.ndarray) and not hasattr(each, "__dlpack__"):
                found = type(each).__name__
                raise TypeError(f"out: {spec.name} is a {found}, which cannot be written to; give an array or a tensor")
        results = [_from_dlpack(f"out: {spec.name}", each) for spec, each in zip(specs, out)]
        for spec, array in zip(specs, results):
            found = TensorSpec(spec.name, array.dtype, array.shape)
            if found != spec or not array.flags.c_contiguous or not array.flags.writeable:
                raise ValueError(f"out: expected {spec}, dense and writable; found {found}")
        return results

    def _execute(
        self, arrays: List[np.ndarray], seconds, out: Optional[Sequence] = None
    ) -> List[np.ndarray]:
        extents = self._extents(arrays)
        specs = self._outputs_at(extents)
        if out is None:
            results = [np.empty(spec.shape, spec.dtype) for spec in specs]
        else:
            results = self._results(out, specs)
            if any(np.may_share_memory(x, y) for x in arrays for y in results):
                raise ValueError("out overlaps an input")
            if any(np.may_share_memory(x, y) for i, x in enumerate(results) for y in results[:i]):
                raise ValueError("out: two of its arrays overlap")
        module = self._module
        tensors = (_pointers(arrays), _pointers(results), seconds)
        if extents is None:
            module._check(module._run_phase(module._instance, self._number, *tensors))
        else:
            module._check(module._run_shaped(module._instance, self._number, extents, *tensors))
        return self._used(results) if self._staged else results

    def _found_dims(self):
        """The dims of all outputs of the last run, where the data decide some; None: they decide none."""
        module = self._module
        dims = _numbers([0] * sum(len(spec.shape) for spec in self.outputs))
        if module._output_dims is None or module._output_dims(module._instance, dims):
            return None
        return dims

    def _used(self, results: List[np.ndarray]) -> List[np.ndarray]:
        """What is used of the results, where the data decide how much that is: views of them."""
        left = iter(self._found_dims())
        shapes = [tuple(next(left) for _ in array.shape) for array in results]
        return [x.reshape(-1)[: math.prod(shape)].reshape(shape) for x, shape in zip(results, shapes)]


class _Library:
    """A loaded file, and the name that it is loaded by. `users` counts the instances: the last one unloads it."""

    def __init__(self, path: str, name: str):
        if os.path.isfile(path) and _damaged(path):
            raise OSError(f"{path}: damaged: its bytes are not those that were written; compile it again")
        self.name = name
        self.functions = ctypes.CDLL(name)
        self.users = 0


class _Libraries:
    """The libraries of all instances: each file is checked and loaded once, and unloaded with its last instance. A file
    that is written anew meanwhile is another one."""

    def __init__(self):
        self._loaded: Dict[tuple, _Library] = {}
        # Garbage collection may end an instance while its thread holds the lock.
        self._lock = threading.RLock()

    def take(self, path: str) -> Tuple[tuple, _Library]:
        found = os.stat(path) if os.path.exists(path) else None
        key = (os.path.realpath(path), found and (found.st_ino, found.st_size, found.st_mtime_ns))
        with self._lock:
            library = self._loaded.get(key)
            if library is None:
                library = self._loaded[key] = _Library(path, self._name_for(path))
            library.users += 1
            return key, library

    def _name_for(self, path: str) -> str:
        """The path, written in a way that is in no use: the loader takes a name that it knows for the file that it has
        loaded by it, whatever the file is now."""
        folder, file = os.path.split(os.path.abspath(path))
        taken = {library.name for library in self._loaded.values()}
        name = os.path.join(folder, file)
        while name in taken:
            folder += "/."
            name = os.path.join(folder, file)
        return name

    def give_back(self, key: tuple) -> None:
        with self._lock:
            library = self._loaded[key]
            library.users -= 1
            if library.users == 0:
                del self._loaded[key]
                if hasattr(_ctypes, "dlclose"):
                    _ctypes.dlclose(library.functions._handle)


_LIBRARIES = _Libraries()


class _Opened:
    """One instance of a module with its library's functions. Phases refer to this and not to the Module, so that
    a Module that is dropped is destroyed at once, and its library unloaded."""

    def __init__(self, path: str, threads: int):
        self._instance = self._key = None
        self._path = path
        self._key, self._library = _LIBRARIES.take(path)
        self._take(_FUNCTIONS)
        if self._abi() >= _ABI:
            self._take(_OF_SYMBOLS)
        self._output_dims = None
        if hasattr(self._library.functions, "pruner_module_output_dims"):
            self._take(_OUTPUT_DIMS)
        count = self._num_symbols() if self._abi() >= _ABI else 0
        symbols = [self._symbol(i).contents for i in range(count)]
        self.symbols = [Symbol(s.name.decode(), s.min, s.max) for s in symbols]
        self._instance = self._create(threads)
        if not self._instance:
            raise OSError(f"{path}: {self._error().decode()}")

    def _take(self, functions) -> None:
        for name, (result, arguments) in functions.items():
            try:
                function = getattr(self._library.functions, "pruner_module_" + name)
            except AttributeError:
                raise OSError(
                    f"{self._path}: not a pruner module: it has no pruner_module_{name}"
                ) from None
            function.restype, function.argtypes = result, arguments
            setattr(self, "_" + name, function)
            if name == "abi" and not _WITHOUT_SYMBOLS <= function() <= _ABI:
                raise OSError(
                    f"{self._path}: made for version {function()} of the module interface, this"
                    f" package has {_ABI}; compile it again"
                )

    def _check(self, failed: int) -> None:
        if failed:
            raise RuntimeError(f"{self._path}: {self._error().decode()}")

    def __del__(self, libraries=_LIBRARIES):
        if self._instance:
            self._destroy(self._instance)
            self._instance = None
        if self._key is not None:
            libraries.give_back(self._key)
            self._key = None


class Module:
    """One instance of a module: its weights, activations, states and threads.

    threads: 0 for the number that it was tuned for, or fewer where the process may use fewer cores.
    One call at a time; for more, make more instances (they share the weights). Its calls run the first phase; `phases` has all by name.
    """

    def __init__(self, path: Union[str, os.PathLike], threads: int = 0):
        self._path = os.fspath(path)
        self._opened = opened = _Opened(self._path, threads)
        # The dimensions of a module that was compiled with --dim; its specs are of their greatest.
        self.symbols = opened.symbols
        phases = [Phase(opened, i) for i in range(opened._num_phases())]
        self.phases = {phase.name: phase for phase in phases}
        self._first = phases[0]
        self.inputs, self.outputs = self._first.inputs, self._first.outputs
        # What it keeps from run to run.
        self.states = [_spec(opened._state(i).contents) for i in range(opened._num_states())]

    def __repr__(self):
        return f"<pruner module {self._path}: {', '.join(map(repr, self.phases.values()))}>"

    @property
    def threads(self) -> int:
        return self._opened._threads(self._opened._instance)

    @property
    def numerics(self) -> str:
        """Whose results quantized operators have where two differ: "onnx", "ort", or "" of a module that was made
        before there was the choice."""
        if not hasattr(self._opened._library.functions, "pruner_module_numerics"):
            return ""
        self._opened._take(_NUMERICS)
        return self._opened._numerics().decode()

    def __call__(self, *inputs, out: Optional[Sequence] = None, **named) -> List[np.ndarray]:
        """The first phase's outputs: see Phase.__call__."""
        return self._first(*inputs, out=out, **named)

    def run(self, inputs: Dict[str, object]) -> Dict[str, np.ndarray]:
        """The same by name, both ways."""
        return self._first.run(inputs)

    def profile(self, *inputs, **named) -> List[KernelTime]:
        """What each kernel took in one run."""
        return self._first.profile(*inputs, **named)

    def bench(self, *inputs, **named) -> float:
        """The median time of a run, in milliseconds; see Phase.bench()."""
        return self._first.bench(*inputs, **named)

    def reset(self) -> None:
        """Makes the states zeros, as they were at first."""
        self._opened._check(self._opened._reset(self._opened._instance))

    def read_states(self) -> Dict[str, np.ndarray]:
        """Copies of the states."""
        copies = {spec.name: np.empty(spec.shape, spec.dtype) for spec in self.states}
        opened = self._opened
        for i, copy in enumerate(copies.values()):
            opened._check(opened._read_state(opened._instance, i, copy.ctypes.data))
        return copies

    def write_states(self, states: Dict[str, object]) -> None:
        """Goes on from what read_states() gave, or a part of it."""
        numbers = {spec.name: i for i, spec in enumerate(self.states)}
        for name, value in states.items():
            if name not in numbers:
                raise KeyError(f"there is no state {name}; there are {', '.join(numbers)}")
            array = _array(self.states[numbers[name]], value)
            opened = self._opened
            opened._check(opened._write_state(opened._instance, numbers[name], array.ctypes.data))

    def extents(self, shapes: Sequence[Sequence[int]]) -> List[int]:
        """The value of each symbol for inputs of the first phase of these shapes. ValueError: one is out of range, or
        they do not fit each other."""
        opened = self._opened
        found = _numbers([0] * len(self.symbols))
        if opened._extents(0, _numbers([extent for shape in shapes for extent in shape]), found):
            raise ValueError(opened._error().decode())
        return found[: len(self.symbols)]

    def run_pointers(self, inputs: Sequence[int], outputs: Sequence[int], extents: Sequence[int] = ()) -> None:
        """Runs the first phase on dense row-major tensors at these addresses, which the caller keeps
        alive; an output overlaps no other tensor. extents: the value of each symbol, where the module has some."""
        opened = self._opened
        tensors = (_addresses(inputs), _addresses(outputs), None)
        if self.symbols:
            opened._check(opened._run_shaped(opened._instance, 0, _numbers(extents), *tensors))
        else:
            opened._check(opened._run_phase(opened._instance, 0, *tensors))


def _spec(spec: _Spec) -> TensorSpec:
    return TensorSpec(spec.name.decode(), _dtype(*_DTYPES[spec.dtype]), tuple(spec.shape[: spec.rank]))


def _dtype(name: str, otherwise: Optional[str]) -> np.dtype:
    """numpy's type of that name. It knows bfloat16 and the types of a byte or less once ml_dtypes is
    imported; else their elements are their bits."""
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(otherwise)


def _names_once(names: Sequence[str]) -> List[str]:
    """The names, each once: a name that was there gets a number, one that makes no other name."""
    once: List[str] = []
    for name in names:
        free, number = name, 2
        while free in once or (free != name and free in names):
            free, number = f"{name}_{number}", number + 1
        once.append(free)
    return once


# Of DLPack's devices those whose memory a program on the CPU reads: its own, and what CUDA and ROCm pin of it.
_IN_MEMORY = (1, 3, 11)


def _check_memory(name: str, value) -> None:
    """ValueError where a tensor lies on another device, or has no dense elements."""
    device, layout = getattr(value, "device", None), getattr(value, "layout", None)
    if getattr(device, "type", "cpu") != "cpu":  # of torch
        raise ValueError(f"{name} is on the device {device}; a module takes tensors in the CPU's memory: x.cpu()")
    if str(layout).startswith("torch.") and str(layout) != "torch.strided":
        raise ValueError(f"{name} has the layout {layout}; a module takes dense tensors: x.to_dense()")
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] not in _IN_MEMORY:
        kind, number = value.__dlpack_device__()
        raise ValueError(f"{name} is on DLPack's device {int(kind)}, number {number}; a module takes tensors in"
                         " the CPU's memory")  # fmt: skip
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked elements; say what they are: x.filled(0)")


def _from_dlpack(name: str, value) -> np.ndarray:
    """The same memory where the value has DLPack, as torch's tensors do. `name`: for errors."""
    _check_memory(name, value)
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if hasattr(value, "detach"):
        value = value.detach()
    try:
        try:
            return np.from_dlpack(value, copy=False)  # may be written to
        except TypeError:  # numpy before 2.1
            return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: numpy cannot take it: {error}") from error


def _array(spec: TensorSpec, value, any_shape: bool = False) -> np.ndarray:
    """`value` as the dense array that `spec` asks for: of its shape, or any of its rank, and of its
    dtype or one that numpy casts to it without changing the kind of number."""
    array = _from_dlpack(spec.name, value)
    found = TensorSpec(spec.name, array.dtype, array.shape)
    fits = array.ndim == len(spec.shape) if any_shape else array.shape == spec.shape
    if not fits or not np.can_cast(array.dtype, spec.dtype, "same_kind"):
        raise ValueError(f"expected {spec}, found {found}")
    made = np.ascontiguousarray(array, spec.dtype).reshape(array.shape)
    # A narrower type may not hold a whole number, which would become another one.
    if made.dtype.kind in "iu" and not np.can_cast(array.dtype, made.dtype) and (made != array).any():
        raise ValueError(f"{spec.name} has values that {spec.dtype} does not hold; found {found}")
    return made


def _numbers(of: Sequence[int]):
    return (ctypes.c_int64 * max(len(of), 1))(*of)


def _pointers(arrays: List[np.ndarray]):
    return _addresses([array.ctypes.data for array in arrays])


def _addresses(of: Sequence[int]):
    return (ctypes.c_void_p * max(len(of), 1))(*of)
