"""Reads where the tensors of torch, CuPy and other libraries lie on a CUDA device.

A module works on such tensors in place. Nothing here imports torch or CuPy: a tensor of theirs
brings its library along.
"""

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
    the tensor as the caller gave it. `strides` count elements; None stands for a dense tensor.
    `device` is the number of the device, or -1 if the tensor does not tell it. `stream` is the
    handle of the stream in which the tensor is made, or None if it is known to be complete.
    """

    name: str
    address: int
    shape: Tuple[int, ...]
    dtype: str
    strides: Optional[Tuple[int, ...]]
    device: int
    stream: Optional[int]
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


def device_tensor(name: str, value) -> DeviceTensor:
    """Returns the facts of a value for which lies_on_device() is true. `name` is for messages.

    A torch tensor that is not dense is copied on its device. Raises ValueError if a tensor has
    another layout than strided.
    """
    if _is_torch(value):
        return _torch_tensor(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        return _interface_tensor(name, value)
    return _dlpack_tensor(name, value)


def _torch_tensor(name: str, value) -> DeviceTensor:
    if str(value.layout) != "torch.strided":
        raise ValueError(f"{name} has the layout {value.layout}; a module takes dense tensors: x.to_dense()")
    dense = value.detach().contiguous().resolve_neg()
    return DeviceTensor(
        name,
        dense.data_ptr(),
        tuple(dense.shape),
        str(dense.dtype).split(".")[-1],
        None,
        dense.device.index or 0,
        sys.modules["torch"].cuda.current_stream(dense.device).cuda_stream,
        dense,
    )


def _interface_tensor(name: str, value) -> DeviceTensor:
    """Reads `__cuda_array_interface__` of version 2 or 3. Its strides count bytes."""
    facts = value.__cuda_array_interface__
    kind = np.dtype(facts["typestr"])
    strides = facts.get("strides")
    if strides is not None:
        strides = tuple(stride // kind.itemsize for stride in strides)
    stream = facts.get("stream")
    if stream is None and hasattr(value, "device") and "cupy" in sys.modules:
        stream = sys.modules["cupy"].cuda.get_current_stream().ptr
    device = getattr(getattr(value, "device", None), "id", -1)
    shape = tuple(facts["shape"])
    address = facts["data"][0] or 0
    # 1 names the legacy default stream, whose handle is 0. 2 names the default stream of a thread.
    stream = 0 if stream == 1 else stream
    return DeviceTensor(name, address, shape, kind.name, strides, device, stream, value)


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


def _dlpack_tensor(name: str, value) -> DeviceTensor:
    """Reads a DLPack capsule. The capsule is not consumed: it frees what it holds when it goes."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # 1 stands for the legacy default stream: the producer makes it wait for its work.
    capsule = value.__dlpack__(stream=1)
    facts = _DLTensor.from_address(get(capsule, b"dltensor"))
    if facts.lanes != 1 or facts.code not in _DLPACK_CODES:
        raise ValueError(f"{name} has elements of a type that no module takes (DLPack's code {facts.code})")
    dtype = _DLPACK_CODES[facts.code] + ("" if facts.code == 6 else str(facts.bits))
    shape = tuple(facts.shape[: facts.ndim])
    strides = tuple(facts.strides[: facts.ndim]) if facts.strides else None
    address = (facts.data or 0) + facts.byte_offset
    return DeviceTensor(name, address, shape, dtype, strides, facts.device_id, 0, (value, capsule))


def empty_like(like: DeviceTensor, shapes: Sequence[Tuple[int, ...]], dtypes: Sequence[str]) -> Optional[List[object]]:
    """Returns new tensors of the library and on the device of `like`; None if the library is
    neither torch nor CuPy."""
    if _is_torch(like.value):
        torch = sys.modules["torch"]
        return [like.value.new_empty(shape, dtype=getattr(torch, dtype)) for shape, dtype in zip(shapes, dtypes)]
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(like.value, cupy.ndarray):
        with like.value.device:
            return [cupy.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
    return None


def stream_handle(stream) -> int:
    """Returns the handle of a stream: of torch's or CuPy's streams, of objects with
    `__cuda_stream__`, or of the handle itself. Raises TypeError for anything else."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        return (found() if callable(found) else found)[1]
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    raise TypeError(f"a stream is torch's, CuPy's or a handle, not a {type(stream).__name__}")


def keep_until_run(tensors: Sequence[DeviceTensor], stream: int) -> None:
    """Tells torch that a run in `stream` uses its tensors, if that is not the stream in which the
    tensors were made: their memory then stays taken until the run has ended."""
    for tensor in tensors:
        if _is_torch(tensor.value) and tensor.stream != stream:
            cuda = sys.modules["torch"].cuda
            tensor.value.record_stream(cuda.ExternalStream(stream, device=tensor.value.device))

