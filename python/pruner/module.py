"""Loads and runs modules: calls the C interface of include/pruner/module.h through ctypes."""

import _ctypes
import ctypes
import math
import os
import struct
import threading
import time
import warnings
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from pruner.device import (
    DeviceTensor,
    device_tensor,
    empty_like,
    is_read_only,
    keep_until_run,
    lies_on_device,
    stream_handle,
    stream_of,
    working_in,
)

_ABI = 5
_WITH_SYMBOLS = 4  # the first version with dynamic dimensions
_WITHOUT_SYMBOLS = 3  # the oldest version that can still be loaded
# The names of the values of PrunerDType, in order. The second entry is numpy's type for an element
# if numpy has no type of the first name.
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


_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("threads", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("allocate", _ALLOCATE),
        ("release", _RELEASE),
        ("pool", ctypes.c_void_p),
    ]


class _Run(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("phase", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("inputs", ctypes.POINTER(ctypes.c_void_p)),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("inputs_on_device", ctypes.c_char_p),
        ("outputs_on_device", ctypes.c_char_p),
        ("stream", ctypes.c_void_p),
        ("seconds", ctypes.POINTER(ctypes.c_double)),
    ]


_RUN_STREAM, _RUN_WAIT = 1, 2  # flags of a run
_CPU, _CUDA, _OPENCL = 1, 2, 4  # kinds of devices
_KINDS = {0: "gpu", _CUDA: "cuda", _OPENCL: "opencl"}

_NUMBERS = ctypes.POINTER(ctypes.c_int64)
_POINTERS = ctypes.POINTER(ctypes.c_void_p)
# Each row is name: (result, arguments). The row `abi` comes first: a module of another version is
# noticed before the other functions are looked up.
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
# Modules of version 3, and older modules of version 4, lack some of the functions below.
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
# Modules before version 5 lack the functions below.
_OF_DEVICES = {
    "create_with": (ctypes.c_void_p, [ctypes.POINTER(_Options)]),
    "device_kind": (ctypes.c_int32, []),
    "device": (ctypes.c_int32, [ctypes.c_void_p]),
    "execute": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(_Run)]),
    "wait": (ctypes.c_int32, [ctypes.c_void_p]),
}


class _DeviceInputs(NamedTuple):
    """The inputs of a run, in order, if all of them lie on the module's CUDA device.

    `stream` is the handle of the stream for the run, None for the instance's own stream. `is_given`
    says whether the caller has named the stream.
    """

    tensors: List[DeviceTensor]
    stream: Optional[int]
    is_given: bool


class TensorSpec(NamedTuple):
    """The name, element type and shape of an input, an output or a state of a module. If a
    dimension is a symbol, or if the data decide an extent, the shape has the greatest extent."""

    name: str
    dtype: np.dtype
    shape: Tuple[int, ...]

    def __str__(self):
        return f"{self.name} {self.dtype} {'x'.join(map(str, self.shape))}"


class Symbol(NamedTuple):
    """A dimension whose extent may differ from run to run, from `min` to `max`, both included."""

    name: str
    min: int
    max: int


class KernelTime(NamedTuple):
    """The name of a kernel, and the milliseconds that the kernel took in one run."""

    name: str
    ms: float


def _damaged(path: str) -> bool:
    """Returns whether a module's file is damaged.

    A file with a checksum (include/pruner/module_file.h) is damaged if the checksum differs from
    the checksum of the bytes before it. A file without a checksum is damaged if it ends before its
    ELF section table.
    """
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
            later = np.arange(len(blocks), 0, -1, dtype=np.uint64)  # number of sums a block is in
            place_sums += np.uint64(len(blocks)) * sums + later @ blocks
            sums += blocks.sum(axis=0, dtype=np.uint64)
        odd = np.arange(1, 16, 2, dtype=np.uint64)
        return written != [end - 32, int((odd * sums).sum()), int((odd * place_sums).sum())]


class Phase:
    """A network, or a part of a network, that a module can run, such as the prefill or the decoding
    of a language model.

    `name` is the name of the phase, "main" if the module has only one. `inputs` and `outputs` are
    lists of TensorSpec, in the order in which a call takes and returns the tensors.
    """

    def __init__(self, module: "_Opened", number: int):
        self._module, self._number = module, number
        phase = module._phase(number).contents
        self.name = phase.name.decode()
        self.inputs = [_spec(phase.inputs[i]) for i in range(phase.num_inputs)]
        self.outputs = [_spec(phase.outputs[i]) for i in range(phase.num_outputs)]
        self._kernels = range(phase.first_kernel, phase.first_kernel + phase.num_kernels)
        self._staged = self._found_dims() is not None
        # The names of the element types, also of those that numpy does not know.
        self._input_types = [_DTYPES[phase.inputs[i].dtype][0] for i in range(phase.num_inputs)]
        self._output_types = [_DTYPES[phase.outputs[i].dtype][0] for i in range(phase.num_outputs)]

    def __repr__(self):
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<{self.name}: {inputs} -> {outputs}>"

    def __call__(self, *inputs, out: Optional[Sequence] = None, stream=None, **named) -> list:
        """Runs the phase and returns its outputs, in order, as numpy arrays or device tensors.

        inputs, named: the input tensors, by position or by the names of `inputs`. A tensor is a
            numpy array, a torch tensor, anything with DLPack, or a value that numpy.asarray()
            takes. The shape is the spec's shape. The dtype is the spec's dtype, or a dtype that
            numpy's rule "same_kind" casts to it; integers have to fit. If the module has symbols,
            only the rank is the spec's, and the extents lie in the symbols' ranges.
            A module for CUDA also takes tensors on its device, in place: torch's, CuPy's, and
            others with `__cuda_array_interface__` or DLPack. Then all inputs lie there, with the
            spec's dtype. The outputs are tensors of torch or CuPy on the device, as the first
            input; without either library they are numpy arrays.
        out: a dense, writable array or tensor for each output, with the output's dtype and shape.
            The results are written there. No array of `out` may overlap an input or another array
            of `out`. An input named "out" or "stream" is given by position, or with run().
        stream: the CUDA stream for a run on tensors of the device: torch's, CuPy's, an object with
            `__cuda_stream__`, or a handle. None: torch's or CuPy's current stream. The call returns
            before the run has ended, as calls of torch do; work in the same stream comes after it.
            If neither library made the inputs and no stream is given, the call waits.

        If the data decide an extent, such as the number of boxes that a detector finds, the
        returned array has the found extent. With `out`, the returned array is a view of the first
        elements of the given array.

        Raises TypeError if an input is missing or unknown, or if `out` has another number of
        arrays. Raises ValueError if a tensor has another shape or dtype, is not dense, or lies
        where the module cannot read it. Raises RuntimeError if the run fails.
        """
        values = self._arrays(inputs, named, stream)
        if stream is not None and not isinstance(values, _DeviceInputs):
            raise ValueError("a stream is for a run on tensors of a CUDA device; the inputs lie in the CPU's memory")
        return self._run(values, None, out)

    def run(self, inputs: Dict[str, object]) -> Dict[str, np.ndarray]:
        """Runs the phase on inputs by name and returns the outputs by name.

        An output with the name of an earlier output gets a number behind its name, such as "y_2".
        Raises the same errors as a call.
        """
        names = _names_once([spec.name for spec in self.outputs])
        return dict(zip(names, self._run(self._arrays((), inputs), None)))

    def profile(self, *inputs, **named) -> List[KernelTime]:
        """Runs the phase once and returns the time of each kernel, in ms, in execution order."""
        arrays = self._arrays(inputs, named)
        kernels = self._kernels_at(self._extents(arrays))
        seconds = (ctypes.c_double * max(len(kernels), 1))()
        self._run(arrays, seconds)
        names = [self._module._kernel(i).contents.name.decode() for i in kernels]
        # If the data decide extents, the kernels for extents that this run did not find have not
        # run, and have a time of 0.
        return [KernelTime(name, s * 1e3) for name, s in zip(names, seconds) if s > 0 or not self._staged]

    def bench(self, *inputs, runs: int = 20, warm_up: int = 3, **named) -> float:
        """Runs the phase and returns the median time of a run, in ms.

        runs: the number of timed runs. warm_up: the number of runs before them, which do not count.
        """
        arrays = self._arrays(inputs, named)
        times = []
        for _ in range(warm_up + runs):
            start = time.perf_counter()
            self._run(arrays, None)
            self._module.wait()
            times.append(time.perf_counter() - start)
        return float(np.median(times[warm_up:])) * 1e3

    def _arrays(
        self, inputs: Sequence, named: Dict[str, object], stream=None
    ) -> Union[List[np.ndarray], "_DeviceInputs"]:
        names = [spec.name for spec in self.inputs]
        unknown = [name for name in named if name not in names[len(inputs):]]
        if unknown or len(inputs) + len(named) != len(names):
            expected = ", ".join(map(str, self.inputs))
            given = ", ".join([f"{len(inputs)} by position"] + list(named))
            raise TypeError(f"expected inputs {expected}; found {given}")
        values = list(inputs) + [named[name] for name in names[len(inputs):]]
        any_shape = bool(self._module.symbols)
        if self._module.kind == _CUDA and any(map(lies_on_device, values)):
            handle = _stream_for(values, stream)
            tensors = [
                self._device_tensor(spec, dtype, value, handle, any_shape)
                for spec, dtype, value in zip(self.inputs, self._input_types, values)
            ]
            return _DeviceInputs(tensors, handle, stream is not None)
        return [_array(spec, value, any_shape) for spec, value in zip(self.inputs, values)]

    def _device_tensor(
        self, spec: TensorSpec, dtype: str, value, stream: Optional[int], any_shape: bool = False
    ) -> DeviceTensor:
        """Returns a tensor on the module's device that fits a spec; else raises ValueError."""
        if not lies_on_device(value):
            raise ValueError(
                f"{spec.name} lies in the CPU's memory and other tensors on {self._module.device}: move all of them to"
                " one place"
            )
        tensor = device_tensor(spec.name, value, stream)
        fits = len(tensor.shape) == len(spec.shape) if any_shape else tensor.shape == spec.shape
        # Types that numpy does not know come as so many bytes.
        names = (dtype, spec.dtype.name, "" if dtype in np.sctypeDict else f"void{8 * spec.dtype.itemsize}")
        if not fits or tensor.dtype not in names:
            raise ValueError(f"expected {spec}, found {tensor}")
        if not tensor.dense:
            raise ValueError(f"{spec.name} is not dense: its strides are {tensor.strides}")
        if tensor.device not in (-1, self._module.number):
            raise ValueError(f"{spec.name} is on cuda:{tensor.device}; the module runs on {self._module.device}")
        return tensor

    def _extents(self, inputs: Union[List[np.ndarray], "_DeviceInputs"]):
        """Returns the extent of each symbol for inputs of these shapes, or None if the module has
        no symbols. Raises ValueError if the shapes do not fit."""
        module = self._module
        if not module.symbols:
            return None
        tensors = inputs.tensors if isinstance(inputs, _DeviceInputs) else inputs
        dims = [extent for tensor in tensors for extent in tensor.shape]
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
            if lies_on_device(each) and self._module.kind == _CUDA:
                raise ValueError(f"out: {spec.name} lies on a CUDA device and the inputs in the CPU's memory")
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

    def _run(
        self, inputs: Union[List[np.ndarray], "_DeviceInputs"], seconds, out: Optional[Sequence] = None
    ) -> list:
        execute = self._execute_on_device if isinstance(inputs, _DeviceInputs) else self._execute
        return execute(inputs, seconds, out)

    def _execute_on_device(self, inputs: "_DeviceInputs", seconds, out: Optional[Sequence]) -> list:
        tensors, handle, is_given = inputs
        extents = self._extents(inputs)
        specs = self._outputs_at(extents)
        if out is not None and len(out) != len(specs):
            raise TypeError(f"out has {len(out)} arrays for {len(specs)} outputs")
        flags = 0 if handle is None else _RUN_STREAM
        # Only torch and CuPy order a caller's later work behind the run.
        known = empty_like(tensors[0], [], []) is not None
        if flags and not is_given and not known:
            flags |= _RUN_WAIT
        made = out
        if out is None:
            with working_in(tensors[0].value, handle):
                made = empty_like(tensors[0], [spec.shape for spec in specs], self._output_types)
        if made is None:
            results = [np.empty(spec.shape, spec.dtype) for spec in specs]
            places, there = [array.ctypes.data for array in results], bytes(len(specs))
        else:
            outputs = [
                self._device_tensor(spec, dtype, value, handle)
                for spec, dtype, value in zip(specs, self._output_types, made)
            ]
            for spec, value, tensor in zip(specs, made, outputs):
                if is_read_only(value):
                    raise ValueError(f"out: {spec.name} cannot be written to")
                if hasattr(value, "data_ptr") and tensor.address != value.data_ptr():
                    raise ValueError(f"out: expected {spec}, dense and writable; found another layout")
            results, places, there = list(made), [tensor.address for tensor in outputs], b"\1" * len(specs)
            if flags:
                keep_until_run([*tensors, *outputs], handle)
        addresses = [tensor.address for tensor in tensors]
        self._module.run_on_device(
            addresses, places, there, phase=self._number, flags=flags, extents=extents, stream=handle, seconds=seconds
        )
        return results

    def _found_dims(self):
        """Returns the dims of all outputs of the last run, one output after the other, or None if
        the data decide no extent."""
        module = self._module
        dims = _numbers([0] * sum(len(spec.shape) for spec in self.outputs))
        if module._output_dims is None or module._output_dims(module._instance, dims):
            return None
        return dims

    def _used(self, results: List[np.ndarray]) -> List[np.ndarray]:
        """Returns views of the results that have the extents which the data decided in this run."""
        left = iter(self._found_dims())
        shapes = [tuple(next(left) for _ in array.shape) for array in results]
        return [x.reshape(-1)[: math.prod(shape)].reshape(shape) for x, shape in zip(results, shapes)]


class _Library:
    """A loaded module file, and the name by which the file was loaded. `users` counts the
    instances; the last instance unloads the file."""

    def __init__(self, path: str, name: str):
        if os.path.isfile(path) and _damaged(path):
            raise OSError(f"{path}: damaged: its bytes are not those that were written; compile it again")
        self.name = name
        self.functions = ctypes.CDLL(name)
        self.users = 0


class _Libraries:
    """The libraries of all instances. Each file is checked and loaded once, and unloaded with its
    last instance. A file that is written anew meanwhile counts as another file."""

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
        """Returns the path in a spelling that no loaded library uses.

        The dynamic loader compares names. If the loader knows a name, the loader returns the
        library that is already loaded, also if the file has changed since.
        """
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


# A pool of GPU memory is two functions: allocate(bytes) returns an address, and release(address)
# takes the address back.
Pool = Tuple[Callable[[int], int], Callable[[int], None]]


def _options(threads: int, device: int, pool: Optional[Pool]) -> _Options:
    options = _Options(size=ctypes.sizeof(_Options), threads=threads, device=device)
    if pool is None:
        return options

    def allocate(_, size: int) -> int:
        try:
            return pool[0](size) or 0
        except Exception as error:  # C knows no exceptions: the module says that there is no memory
            warnings.warn(f"the pool of a module has failed: {error}", RuntimeWarning, stacklevel=2)
            return 0

    options.allocate = _ALLOCATE(allocate)
    options.release = _RELEASE(lambda _, address: pool[1](address))
    return options


class _Opened:
    """An instance of a module, with the functions of its library.

    Phases refer to this object and not to the Module. A Module that is dropped is therefore
    destroyed at once, and its library is unloaded.
    """

    def __init__(self, path: str, threads: int, device: int = 0, pool: Optional[Pool] = None):
        self._instance = self._key = None
        self._path = path
        self._key, self._library = _LIBRARIES.take(path)
        self._take(_FUNCTIONS)
        if self._abi() >= _WITH_SYMBOLS:
            self._take(_OF_SYMBOLS)
        if self._abi() >= _ABI:
            self._take(_OF_DEVICES)
        self._output_dims = None
        if hasattr(self._library.functions, "pruner_module_output_dims"):
            self._take(_OUTPUT_DIMS)
        count = self._num_symbols() if self._abi() >= _WITH_SYMBOLS else 0
        symbols = [self._symbol(i).contents for i in range(count)]
        self.symbols = [Symbol(s.name.decode(), s.min, s.max) for s in symbols]
        if self._abi() >= _ABI:
            self._options = _options(threads, device, pool)
            self._instance = self._create_with(ctypes.byref(self._options))
        elif device or pool:
            raise OSError(f"{path}: made for an older version, which knows no numbers of devices; compile it again")
        else:
            self._instance = self._create(threads)
        if not self._instance:
            raise OSError(f"{path}: {self._error().decode()}")
        # An older module does not tell the kinds of GPUs apart.
        older = _CPU if self._threads(self._instance) else 0
        self.kind = self._device_kind() if self._abi() >= _ABI else older
        self.number = self._device(self._instance) if self._abi() >= _ABI else 0
        self.device = "cpu" if self.kind == _CPU else f"{_KINDS[self.kind]}:{self.number}"

    def wait(self) -> None:
        if self._abi() >= _ABI:
            self._check(self._wait(self._instance))

    def run_on_device(
        self, inputs: Sequence[int], outputs: Sequence[int], outputs_on_device: bytes, **more
    ) -> None:
        """Runs the module on inputs at these addresses of its device. `more` has further members of
        _Run. Raises RuntimeError if the run fails."""
        run = _Run(
            size=ctypes.sizeof(_Run),
            inputs=_addresses(inputs),
            outputs=_addresses(outputs),
            inputs_on_device=b"\1" * len(inputs),
            outputs_on_device=outputs_on_device,
            **more,
        )
        self._check(self._execute(self._instance, ctypes.byref(run)))

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
    """An instance of a module: a compiled network with its own activations, states and threads.

    path: the file of the module, as `pruner compile` and `pruner tune` write it.
    threads: the number of threads of the instance. 0: the number that the module was tuned for, or
        fewer if the process may use fewer cores.
    device: the number of the GPU for a module that was compiled for one.
    pool: memory of the GPU for the activations of a module for CUDA: a function that returns the
        address of so many bytes (a multiple of 16), and a function that takes the address back.
        None: the driver's own memory. Weights are never in the pool.

    An instance runs one call at a time. Calls at the same time need an instance each; instances of
    one module share the weights.

    A call of the instance runs the first phase; `inputs` and `outputs` are the specs of that phase.
    `phases` maps the name of each phase to its Phase. `states` has the specs of the tensors that
    the instance keeps from run to run. `symbols` has the dynamic dimensions of a module that was
    compiled with --dim.

    Raises OSError if the file is missing or damaged, or is no module. Raises OSError also if the
    module is of another version of the interface, or cannot run on this machine.
    """

    def __init__(
        self, path: Union[str, os.PathLike], threads: int = 0, device: int = 0, pool: Optional[Pool] = None
    ):
        self._path = os.fspath(path)
        self._opened = opened = _Opened(self._path, threads, device, pool)
        # The dynamic dimensions of a module that was compiled with --dim. The specs of such a
        # module have the greatest extent of each dimension.
        self.symbols = opened.symbols
        phases = [Phase(opened, i) for i in range(opened._num_phases())]
        self.phases = {phase.name: phase for phase in phases}
        self._first = phases[0]
        self.inputs, self.outputs = self._first.inputs, self._first.outputs
        # The specs of the tensors that the instance keeps from run to run.
        self.states = [_spec(opened._state(i).contents) for i in range(opened._num_states())]

    def __repr__(self):
        return f"<pruner module {self._path}: {', '.join(map(repr, self.phases.values()))}>"

    @property
    def threads(self) -> int:
        """The number of threads of the instance, the caller's thread included; 0 if the module runs
        on a GPU or another OpenCL device."""
        return self._opened._threads(self._opened._instance)

    @property
    def device(self) -> str:
        """The device of the instance, such as "cpu", "cuda:0" or "opencl:0"."""
        return self._opened.device

    def wait(self) -> None:
        """Waits for the runs of the instance that CUDA streams still hold.

        Raises RuntimeError if one of them was wrong, for example because of an index out of range.
        """
        self._opened.wait()

    @property
    def numerics(self) -> str:
        """The rounding of quantized operators: "onnx" (as ONNX defines each operator), or "ort" (as
        ONNX Runtime computes them). "" stands for a module that does not say its rounding."""
        if not hasattr(self._opened._library.functions, "pruner_module_numerics"):
            return ""
        self._opened._take(_NUMERICS)
        return self._opened._numerics().decode()

    def __call__(self, *inputs, out: Optional[Sequence] = None, stream=None, **named) -> list:
        """Runs the first phase and returns its outputs, in order; see Phase.__call__()."""
        return self._first(*inputs, out=out, stream=stream, **named)

    def run(self, inputs: Dict[str, object]) -> Dict[str, np.ndarray]:
        """Runs the first phase on inputs by name and returns the outputs by name; see
        Phase.run()."""
        return self._first.run(inputs)

    def profile(self, *inputs, **named) -> List[KernelTime]:
        """Runs the first phase once and returns the time of each kernel, in ms; see
        Phase.profile()."""
        return self._first.profile(*inputs, **named)

    def bench(self, *inputs, **named) -> float:
        """Runs the first phase and returns the median time of a run, in ms; see Phase.bench()."""
        return self._first.bench(*inputs, **named)

    def reset(self) -> None:
        """Fills the states with zeros, as in a new instance."""
        self._opened._check(self._opened._reset(self._opened._instance))

    def read_states(self) -> Dict[str, np.ndarray]:
        """Returns copies of the states, by name."""
        copies = {spec.name: np.empty(spec.shape, spec.dtype) for spec in self.states}
        opened = self._opened
        for i, copy in enumerate(copies.values()):
            opened._check(opened._read_state(opened._instance, i, copy.ctypes.data))
        return copies

    def write_states(self, states: Dict[str, object]) -> None:
        """Sets the given states, by name, for example from the copies of read_states().

        States without an entry keep their elements. Raises KeyError if the module has no state of a
        given name, and ValueError if a tensor has another shape or dtype than its state.
        """
        numbers = {spec.name: i for i, spec in enumerate(self.states)}
        for name, value in states.items():
            if name not in numbers:
                raise KeyError(f"there is no state {name}; there are {', '.join(numbers)}")
            array = _array(self.states[numbers[name]], value)
            opened = self._opened
            opened._check(opened._write_state(opened._instance, numbers[name], array.ctypes.data))

    def extents(self, shapes: Sequence[Sequence[int]]) -> List[int]:
        """Returns the extent of each symbol, in the order of `symbols`, for inputs of these shapes.

        shapes: the shape of each input of the first phase, in order.
        Raises ValueError if an extent is out of its range, or if the shapes do not fit each other.
        """
        opened = self._opened
        found = _numbers([0] * len(self.symbols))
        if opened._extents(0, _numbers([extent for shape in shapes for extent in shape]), found):
            raise ValueError(opened._error().decode())
        return found[: len(self.symbols)]

    def run_pointers(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        extents: Sequence[int] = (),
        stream: Optional[int] = None,
    ) -> None:
        """Runs the first phase on dense row-major tensors at these addresses.

        inputs, outputs: the address of each tensor, in the order of the specs. The caller keeps the
            memory alive. No output may overlap another tensor. The dtypes and the sizes of the memory
            are not checked.
        extents: the extent of each symbol, in the order of `symbols`.
        stream: None if the tensors lie in the CPU's memory. The handle of a CUDA stream if all of
            them lie on the module's device; the call then returns before the run has ended.
        Raises RuntimeError if the run fails.
        """
        opened = self._opened
        if stream is not None:
            at = _numbers(extents) if self.symbols else None
            opened.run_on_device(inputs, outputs, b"\1" * len(outputs), flags=_RUN_STREAM, extents=at, stream=stream)
            return
        tensors = (_addresses(inputs), _addresses(outputs), None)
        if self.symbols:
            opened._check(opened._run_shaped(opened._instance, 0, _numbers(extents), *tensors))
        else:
            opened._check(opened._run_phase(opened._instance, 0, *tensors))


def _spec(spec: _Spec) -> TensorSpec:
    return TensorSpec(spec.name.decode(), _dtype(*_DTYPES[spec.dtype]), tuple(spec.shape[: spec.rank]))


def _dtype(name: str, otherwise: Optional[str]) -> np.dtype:
    """Returns numpy's type of that name, or the type `otherwise` if numpy knows no such name.

    numpy knows bfloat16 and the floats of a byte or less after ml_dtypes is imported. Without
    ml_dtypes the elements of these types are returned as their bits.
    """
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(otherwise)


def _names_once(names: Sequence[str]) -> List[str]:
    """Returns the names without repetition: a repeated name gets a number behind it, such as "y_2",
    that makes the name differ from all others."""
    once: List[str] = []
    for name in names:
        free, number = name, 2
        while free in once or (free != name and free in names):
            free, number = f"{name}_{number}", number + 1
        once.append(free)
    return once


def _stream_for(values: list, stream) -> Optional[int]:
    """Returns the handle of the stream for a run on these tensors: the given one, else the stream in
    which the tensors are made. Raises ValueError if the tensors are made in several streams."""
    if stream is not None:
        return stream_handle(stream)
    handles = {handle for handle in map(stream_of, values) if handle is not None}
    if len(handles) > 1:
        raise ValueError("the inputs are made in several streams: give stream=, and let it wait for the others")
    if handles:
        return handles.pop()
    # A producer of DLPack lets the stream that it is told of wait: CUDA's default stream.
    return None if all(hasattr(value, "__cuda_array_interface__") for value in values) else 0


# The numbers of DLPack's devices whose memory a program on the CPU reads: the CPU, and host memory
# that CUDA or ROCm has pinned.
_IN_MEMORY = (1, 3, 11)


def _check_memory(name: str, value) -> None:
    """Raises ValueError if a tensor lies on another device than the CPU, has another layout than
    dense, or has masked elements."""
    if not hasattr(value, "is_cuda") and hasattr(value, "__cuda_array_interface__"):
        raise ValueError(f"{name} lies on a CUDA device; the module takes tensors in the CPU's memory")
    device, layout = getattr(value, "device", None), getattr(value, "layout", None)
    if getattr(device, "type", "cpu") != "cpu":  # a torch tensor on another device
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
    """Returns a numpy array of the value, over the value's own memory if the value has DLPack, like
    torch's tensors. Errors name the value `name`."""
    _check_memory(name, value)
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if hasattr(value, "detach"):
        value = value.detach()
    try:
        try:
            return np.from_dlpack(value, copy=False)  # the array can be written to
        except TypeError:  # numpy before 2.1
            return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: numpy cannot take it: {error}") from error


def _array(spec: TensorSpec, value, any_shape: bool = False) -> np.ndarray:
    """Returns `value` as a dense array with the shape and dtype of `spec`.

    With `any_shape`, only the rank has to be that of `spec`. The value may have another dtype if
    numpy casts that dtype without changing the kind of number. Raises ValueError otherwise.
    """
    array = _from_dlpack(spec.name, value)
    found = TensorSpec(spec.name, array.dtype, array.shape)
    fits = array.ndim == len(spec.shape) if any_shape else array.shape == spec.shape
    if not fits or not np.can_cast(array.dtype, spec.dtype, "same_kind"):
        raise ValueError(f"expected {spec}, found {found}")
    made = np.ascontiguousarray(array, spec.dtype).reshape(array.shape)
    # A narrower integer type may be unable to hold a value. The cast would change that value.
    if made.dtype.kind in "iu" and not np.can_cast(array.dtype, made.dtype) and (made != array).any():
        raise ValueError(f"{spec.name} has values that {spec.dtype} does not hold; found {found}")
    return made


def _numbers(of: Sequence[int]):
    return (ctypes.c_int64 * max(len(of), 1))(*of)


def _pointers(arrays: List[np.ndarray]):
    return _addresses([array.ctypes.data for array in arrays])


def _addresses(of: Sequence[int]):
    return (ctypes.c_void_p * max(len(of), 1))(*of)
