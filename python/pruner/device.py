"""Reads where the tensors of torch, CuPy and other libraries lie on a CUDA device.

A module works on such tensors in place. Nothing here imports torch or CuPy: a tensor of theirs
brings its library along.
"""

import contextlib
import ctypes
import sys
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

_CUDA, _CUDA_MANAGED = 2, 13  # numbers of DLPack's devices

# DLPack's codes of element types: the beginning of the type's name.
_DLPACK_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


class DeviceTensor(NamedTuple):
    """A tensor on a CUDA device.

    `address` is the place of its first element, `dtype` the name of the element type, and `value`
    the tensor, which keeps the memory. `strides` count elements; None stands for a dense tensor.
    `device` is the number of the device, or -1 if the tensor does not tell it.
    """

    name: str
    address: int
    shape: Tuple[int, ...]
    dtype: str
    strides: Optional[Tuple[int, ...]]
    device: int
    value: object

    def __str__(self):
        return f"{self.name} {self.dtype} {'x'.join(map(str, self.shape))}"

    @property
    def dense(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        if self.strides is None or 0 in self.shape:
            return True
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True


def _is_torch(value) -> bool:
    return hasattr(value, "is_cuda") and hasattr(value, "data_ptr")


def lies_on_device(value) -> bool:
    """Returns whether a value is a tensor in the memory of a CUDA device."""
    if _is_torch(value):
        return value.is_cuda
    if hasattr(value, "__cuda_array_interface__"):
        return True
    return hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)


def stream_of(value) -> Optional[int]:
    """Returns the handle of the stream in which a tensor is made: torch's or CuPy's current stream,
    or the stream that the tensor names. None: the tensor names none."""
    if _is_torch(value):
        return sys.modules["torch"].cuda.current_stream(value.device).cuda_stream
    facts = getattr(value, "__cuda_array_interface__", None)
    stream = facts.get("stream") if facts is not None else None
    if stream is None and _is_cupy(value):
        stream = sys.modules["cupy"].cuda.get_current_stream().ptr
    # 1 names the legacy default stream, whose handle is 0. 2 names the default stream of a thread.
    return 0 if stream == 1 else stream


def _is_cupy(value) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(value, cupy.ndarray)


@contextlib.contextmanager
def working_in(value, stream: Optional[int]):
    """Makes a stream the current one of the library of `value`, torch or CuPy, for the copies and
    the memory that the library is asked for."""
    if stream is None or stream == stream_of(value):
        yield
    elif _is_torch(value):
        cuda = sys.modules["torch"].cuda
        with cuda.stream(cuda.ExternalStream(stream, device=value.device)):
            yield
    elif _is_cupy(value):
        with sys.modules["cupy"].cuda.ExternalStream(stream):
            yield
    else:
        yield


def device_tensor(name: str, value, stream: Optional[int] = None) -> DeviceTensor:
    """Returns the facts of a value for which lies_on_device() is true. `name` is for messages.

    A torch tensor that is not dense is copied on its device, in `stream`. A producer of DLPack lets
    `stream` wait for its work. Raises ValueError if a tensor has another layout than strided.
    """
    if _is_torch(value):
        return _torch_tensor(name, value, stream)
    if hasattr(value, "__cuda_array_interface__"):
        return _interface_tensor(name, value)
    return _dlpack_tensor(name, value, stream)


def _torch_tensor(name: str, value, stream: Optional[int]) -> DeviceTensor:
    if str(value.layout) != "torch.strided":
        raise ValueError(f"{name} has the layout {value.layout}; a module takes dense tensors: x.to_dense()")
    with working_in(value, stream):
        dense = value.detach().contiguous().resolve_neg()
    kind = str(dense.dtype).split(".")[-1]
    return DeviceTensor(name, dense.data_ptr(), tuple(dense.shape), kind, None, dense.device.index or 0, dense)


def _interface_tensor(name: str, value) -> DeviceTensor:
    """Reads `__cuda_array_interface__` of version 2 or 3. Its strides count bytes."""
    facts = value.__cuda_array_interface__
    kind = np.dtype(facts["typestr"])
    if not kind.isnative:
        raise ValueError(f"{name} has elements in another byte order ({facts['typestr']})")
    if facts.get("mask") is not None:
        raise ValueError(f"{name} has masked elements; say what they are")
    strides = facts.get("strides")
    if strides is not None and any(stride % kind.itemsize for stride in strides):
        raise ValueError(f"{name} is not dense: its strides are {strides} bytes, its elements have {kind.itemsize}")
    if strides is not None:
        strides = tuple(stride // kind.itemsize for stride in strides)
    device = getattr(getattr(value, "device", None), "id", -1)
    return DeviceTensor(name, facts["data"][0] or 0, tuple(facts["shape"]), kind.name, strides, device, value)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _dlpack_tensor(name: str, value, stream: Optional[int]) -> DeviceTensor:
    """Reads a DLPack capsule. The capsule is not consumed: it frees what it holds when it goes."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # DLPack's 1 stands for the legacy default stream. The producer makes the stream wait for its work.
    capsule = value.__dlpack__(stream=stream or 1)
    facts = _DLTensor.from_address(get(capsule, b"dltensor"))
    if facts.lanes != 1 or facts.code not in _DLPACK_CODES:
        raise ValueError(f"{name} has elements of a type that no module takes (DLPack's code {facts.code})")
    dtype = _DLPACK_CODES[facts.code] + ("" if facts.code == 6 else str(facts.bits))
    shape = tuple(facts.shape[: facts.ndim])
    strides = tuple(facts.strides[: facts.ndim]) if facts.strides else None
    address = (facts.data or 0) + facts.byte_offset
    return DeviceTensor(name, address, shape, dtype, strides, facts.device_id, (value, capsule))


def is_read_only(value) -> bool:
    """Returns whether a tensor on a device says that it may not be written."""
    facts = getattr(value, "__cuda_array_interface__", None)
    return facts is not None and bool(facts["data"][1])


def empty_like(like: DeviceTensor, shapes: Sequence[Tuple[int, ...]], dtypes: Sequence[str]) -> Optional[List[object]]:
    """Returns new tensors of the library and on the device of `like`; None if the library is
    neither torch nor CuPy."""
    if _is_torch(like.value):
        torch = sys.modules["torch"]
        return [like.value.new_empty(shape, dtype=getattr(torch, dtype)) for shape, dtype in zip(shapes, dtypes)]
    if _is_cupy(like.value):
        with like.value.device:
            return [sys.modules["cupy"].empty(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
    return None


def stream_handle(stream) -> int:
    """Returns the handle of a stream: of torch's or CuPy's streams, of objects with
    `__cuda_stream__`, or of the handle itself. Raises TypeError for anything else."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        return (found() if callable(found) else found)[1]
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    raise TypeError(f"a stream is torch's, CuPy's or a handle, not a {type(stream).__name__}")


def keep_until_run(tensors: Sequence[DeviceTensor], stream: int) -> None:
    """Tells torch that a run in `stream` uses its tensors, if `stream` is not torch's current stream:
    their memory then stays taken until the run has ended."""
    for tensor in tensors:
        if _is_torch(tensor.value) and stream_of(tensor.value) != stream:
            cuda = sys.modules["torch"].cuda
            tensor.value.record_stream(cuda.ExternalStream(stream, device=tensor.value.device))

