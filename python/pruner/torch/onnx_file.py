"""Writes ONNX files: the few messages of onnx.proto that a graph needs, in protobuf's wire format
(https://protobuf.dev/programming-guides/encoding). The weights lie in a second file beside."""

import os
import struct
from typing import BinaryIO, Dict, List, Optional, Sequence, Tuple, Union

import torch

IR_VERSION, OPSET = 11, 23
ELEMENT_TYPES = {
    torch.float32: 1,
    torch.uint8: 2,
    torch.int8: 3,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.bool: 9,
    torch.float16: 10,
    torch.float64: 11,
    torch.bfloat16: 16,
}
_EXTERNAL = 1  # TensorProto.EXTERNAL
_FLOAT, _INT, _STRING, _FLOATS, _INTS = 1, 2, 3, 6, 7  # AttributeProto.AttributeType
_INLINE_BYTES = 1024  # larger tensors lie in the weights file
_ALIGNMENT = 64

Dimension = Union[int, str]  # an extent, or the name of a symbol; "": an extent without a name
Attribute = Union[int, float, str, Sequence[int], Sequence[float]]


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, content: Union[bytes, str]) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, value: Attribute) -> bytes:
    head = _block(1, name)
    if isinstance(value, str):
        return head + _block(4, value) + _number(20, _STRING)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _FLOAT)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _INT)
    if any(isinstance(each, float) for each in value):
        floats = b"".join(_varint(7 << 3 | 5) + struct.pack("<f", each) for each in value)
        return head + floats + _number(20, _FLOATS)
    return head + b"".join(_number(8, each) for each in value) + _number(20, _INTS)


def _dimension(extent: Dimension) -> bytes:
    if isinstance(extent, int):
        return _number(1, extent)
    return _block(2, extent) if extent else b""


def _value(name: str, dtype: torch.dtype, shape: Sequence[Dimension]) -> bytes:
    dims = b"".join(_block(1, _dimension(extent)) for extent in shape)
    tensor = _number(1, ELEMENT_TYPES[dtype]) + _block(2, dims)
    return _block(1, name) + _block(2, _block(1, tensor))


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """Returns the bytes of a tensor's elements, dense and row-major."""
    dense = tensor.detach().cpu().contiguous()
    return memoryview(dense.view(-1).view(torch.uint8).numpy()) if dense.numel() else memoryview(b"")


class OnnxFile:
    """An ONNX graph that is being built. Each value is the name of a tensor; new names are v1, v2
    and so on."""

    def __init__(self, name: str):
        self._name = name
        self._nodes: List[bytes] = []
        self._inputs: List[bytes] = []
        self._outputs: List[bytes] = []
        self._constants: List[Tuple[str, torch.Tensor]] = []
        self._known: Dict[Tuple, str] = {}  # names of small constants by type, shape, bytes
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def input(self, name: str, dtype: torch.dtype, shape: Sequence[Dimension]) -> str:
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: torch.dtype, shape: Sequence[Dimension]) -> None:
        self._nodes.append(_block(1, value) + _block(2, name) + _block(4, "Identity"))
        self._outputs.append(_value(name, dtype, shape))

    def constant(self, tensor: torch.Tensor, name: Optional[str] = None) -> str:
        """Adds a constant and returns its name. Equal constants of at most 16 elements that come
        without a name share one tensor of the file."""
        key = None
        if name is None and tensor.numel() <= 16:
            key = (tensor.dtype, tuple(tensor.shape), bytes(bytes_of(tensor)))
            if key in self._known:
                return self._known[key]
        name = name or self.name()
        self._constants.append((name, tensor))
        if key is not None:
            self._known[key] = name
        return name

    def integers(self, values: Sequence[int]) -> str:
        return self.constant(torch.tensor(list(values), dtype=torch.int64))

    def op(self, op: str, *inputs: str, outputs: int = 1, **attributes: Attribute):
        """Adds a node and returns the name of its output, or a list of the names of its outputs. An
        input "" is absent."""
        names = [self.name() for _ in range(outputs)]
        message = b"".join(_block(1, each) for each in inputs)
        message += b"".join(_block(2, each) for each in names) + _block(4, op)
        message += b"".join(_block(5, _attribute(*each)) for each in attributes.items())
        self._nodes.append(message)
        return names[0] if outputs == 1 else names

    def write(self, path: str) -> None:
        """Writes the model to `path`, and the weights to `path`.weights."""
        weights_name = os.path.basename(path) + ".weights"
        with open(path + ".weights", "wb") as weights:
            tensors = [self._tensor(*each, weights, weights_name) for each in self._constants]
        graph = b"".join(_block(1, node) for node in self._nodes) + _block(2, self._name)
        graph += b"".join(_block(5, tensor) for tensor in tensors)
        graph += b"".join(_block(11, value) for value in self._inputs)
        graph += b"".join(_block(12, value) for value in self._outputs)
        model = _number(1, IR_VERSION) + _block(2, "pruner") + _block(7, graph)
        with open(path, "wb") as file:
            file.write(model + _block(8, _block(1, "") + _number(2, OPSET)))

    @staticmethod
    def _tensor(name: str, tensor: torch.Tensor, weights: BinaryIO, weights_name: str) -> bytes:
        message = b"".join(_number(1, extent) for extent in tensor.shape)
        message += _number(2, ELEMENT_TYPES[tensor.dtype]) + _block(8, name)
        data = bytes_of(tensor)
        if len(data) <= _INLINE_BYTES:
            return message + _block(9, bytes(data))
        weights.write(bytes(-weights.tell() % _ALIGNMENT))
        place = {"location": weights_name, "offset": str(weights.tell()), "length": str(len(data))}
        weights.write(data)
        entries = (_block(13, _block(1, key) + _block(2, text)) for key, text in place.items())
        return message + b"".join(entries) + _number(14, _EXTERNAL)
