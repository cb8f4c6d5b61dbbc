"""FX graphs of core ATen to ONNX files. Shapes are static: those of each node's meta["val"]."""

import contextlib
import threading
from typing import Dict, List, Sequence, Union

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pruner.torch.onnx_file import ELEMENT_TYPES, OnnxFile
from pruner.torch.operators import row_of

Value = Union[str, List[str]]


def decompositions() -> dict:
    """torch's core decompositions without those of operators that are one kernel here."""
    table = dict(torch._decomp.core_aten_decompositions())
    aten = torch.ops.aten
    kept = (
        aten.native_layer_norm, aten._fused_rms_norm, aten.native_group_norm, aten.gelu, aten.silu,
        aten.hardswish, aten.hardsigmoid, aten.mish, aten.softplus, aten.leaky_relu, aten.elu,
        aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d, aten.upsample_bilinear2d, aten.upsample_bicubic2d, aten.addmm,
        aten.pixel_shuffle, aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d,
        aten._native_batch_norm_legit_no_training, aten.roll, aten.linear,
        aten._scaled_dot_product_flash_attention_for_cpu, aten.scaled_dot_product_attention,
    )  # fmt: skip
    for packet in kept:
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    return table


@contextlib.contextmanager
def resizes_of_eager():
    """Leaves resizes as they are while a graph is traced. torch's decompositions of them in Python take scale factors
    where an extent stays, which eager does not."""
    packets = [getattr(torch.ops.aten, f"upsample_{name}") for name in _RESIZES]
    overloads = [overload for packet in packets for overload in (packet.default, packet.vec)]
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    with _TRACING:
        kernels = [{key: each.py_kernels[key] for key in keys if key in each.py_kernels} for each in overloads]
        try:
            for each, taken in zip(overloads, kernels):
                for key in taken:
                    del each.py_kernels[key]
                each._dispatch_cache.clear()
            yield
        finally:
            for each, kept in zip(overloads, kernels):
                each.py_kernels.update(kept)
                each._dispatch_cache.clear()


_RESIZES = ("nearest1d", "nearest2d", "nearest3d", "bilinear2d", "bicubic2d")
_TRACING = threading.RLock()


def is_made_of_nothing(node: torch.fx.Node) -> bool:
    """Whether a call reads no tensor: arange, full and the like, which are constants then."""
    return node.op == "call_function" and not node.all_input_nodes


def _is_drawn(node: torch.fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags


def _why_not(importer: "Importer", node: torch.fx.Node) -> str:
    """Why a node cannot be in an ONNX file; "" where it can and is."""
    if node.op != "call_function":
        return f"{node.op} {node.target}"
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):  # of several, those that are read follow as getitem
        if value.dtype not in ELEMENT_TYPES:
            return f"{node.target} is of {value.dtype}"
        if any(not isinstance(extent, int) for extent in value.shape) or 0 in value.shape:
            what = "no elements" if 0 in value.shape else "an extent that is not known"
            return f"{node.target} makes a tensor of {what}"
    elif not isinstance(value, (list, tuple)):
        return f"{node.target} makes no tensor"
    for each in node.all_input_nodes:
        read = each.meta.get("val")
        if isinstance(read, torch.Tensor) and 0 in read.shape:
            return f"{node.target} reads a tensor of no elements"
    try:
        importer.call(node)
    except NotImplementedError as error:
        return f"{node.target}: {error}"
    return ""


def unsupported(graph: torch.fx.Graph) -> Dict[torch.fx.Node, str]:
    """The nodes of a graph that have no form in ONNX, and why."""
    importer, reasons = Importer("trial"), {}
    with unset_fake_temporarily():  # constants are tensors that have elements
        for node in graph.nodes:
            if node.op in ("placeholder", "output"):
                importer.set(node, node.name)
            elif why := _why_not(importer, node):
                reasons[node] = why
                value = node.meta.get("val")
                several = isinstance(value, (list, tuple))
                importer.set(node, [node.name] * len(value) if several else node.name)
    return reasons


class Importer(OnnxFile):
    """The file while it is made, with what a row of the operators' table works with."""

    def __init__(self, name: str):
        super().__init__(name)
        self._values: Dict[torch.fx.Node, Value] = {}

    def scalar(self, value, dtype: torch.dtype) -> str:
        return self.constant(torch.tensor(value, dtype=dtype))

    def full(self, shape: Sequence[int], value, dtype: torch.dtype) -> str:
        return self.constant(torch.full(list(shape), value, dtype=dtype))

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", value, self.integers(shape))

    def cast(self, value: str, found: torch.dtype, wanted: torch.dtype) -> str:
        return value if found == wanted else self.op("Cast", value, to=ELEMENT_TYPES[wanted])

    def set(self, node: torch.fx.Node, value: Value) -> None:
        self._values[node] = value

    def value(self, node: torch.fx.Node) -> Value:
        return self._values[node]

    def shape(self, node: torch.fx.Node) -> List[int]:
        return list(node.meta["val"].shape)

    def dtype(self, node: torch.fx.Node) -> torch.dtype:
        return node.meta["val"].dtype

    def promoted(self, a, b) -> torch.dtype:
        """The type that two operands of a comparison are compared in."""
        of = lambda x: x.meta["val"] if isinstance(x, torch.fx.Node) else x  # noqa: E731
        return torch.result_type(of(a), of(b))

    def operand(self, x, dtype: torch.dtype) -> str:
        """A tensor or a number as a tensor of `dtype`."""
        if isinstance(x, torch.fx.Node):
            return self.cast(self.value(x), self.dtype(x), dtype)
        return self.scalar(x, dtype)

    def call(self, node: torch.fx.Node) -> None:
        """Appends what a call_function is. NotImplementedError: it has no form in ONNX."""
        if is_made_of_nothing(node) and not _is_drawn(node):
            self.set(node, self.constant(node.target(*node.args, **node.kwargs)))
            return
        row = row_of(node.target)
        if row is None:
            raise NotImplementedError("no row in the table of operators")
        try:
            self.set(node, row(self, node, *node.args, **node.kwargs))
        except (TypeError, ValueError, IndexError, KeyError, RuntimeError) as error:
            if isinstance(error, NotImplementedError):
                raise
            raise NotImplementedError(f"arguments that its row does not know: {error}") from error


def write_onnx(
    graph: torch.fx.Graph, path: str, weights: Dict[str, torch.Tensor], name: str = "graph"
) -> None:
    """Writes a graph whose placeholders in `weights` (by name) are constants, the others inputs, in
    order; its outputs are outputs, in order. NotImplementedError names the call that has no form
    in ONNX."""
    importer = Importer(name)
    for node in graph.nodes:
        if node.op == "placeholder":
            if node.name in weights:
                importer.set(node, importer.constant(weights[node.name], node.name))
            else:
                value = node.meta["val"]
                importer.set(node, importer.input(node.name, value.dtype, list(value.shape)))
        elif node.op == "call_function":
            try:
                importer.call(node)
            except NotImplementedError as error:
                raise NotImplementedError(f"{node.target}: {error}") from None
        elif node.op == "output":
            for i, result in enumerate(node.args[0]):
                if isinstance(result, torch.fx.Node):
                    importer.output(
                        importer.value(result), f"output_{i}", importer.dtype(result), importer.shape(result)
                    )
        else:
            raise NotImplementedError(f"{node.op} {node.target}")
    importer.write(path)
