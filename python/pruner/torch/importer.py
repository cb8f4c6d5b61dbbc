"""Writes FX graphs of core ATen as ONNX files.

The shape of a node is the shape of its meta["val"]. An extent that is a torch.SymInt is computed in
the file, from the shapes of the inputs.
"""

import contextlib
import functools
import threading
from typing import Dict, Iterable, List, Optional, Sequence, Union

import sympy
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy import functions

from pruner.torch.extents import Extent, is_symbolic
from pruner.torch.onnx_file import ELEMENT_TYPES, OnnxFile
from pruner.torch.operators import row_of

Value = Union[str, List[str]]


def decompositions() -> dict:
    """Returns torch's core decompositions, except for operators that have an ONNX form of their
    own."""
    aten = torch.ops.aten
    table = dict(torch._decomp.core_aten_decompositions())
    # The core decompositions have no linalg_vector_norm since torch 2.11.
    table.update(torch._decomp.get_decompositions([aten.linalg_vector_norm]))
    kept = (
        aten.native_layer_norm, aten._fused_rms_norm, aten.native_group_norm, aten.gelu, aten.silu,
        aten.hardswish, aten.hardsigmoid, aten.mish, aten.softplus, aten.leaky_relu, aten.elu,
        aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d, aten.upsample_bilinear2d,
        aten.upsample_bicubic2d, aten.addmm,
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
    """Keeps torch from decomposing resizes while a graph is traced.

    torch's Python decompositions of a resize also scale an axis whose extent stays; eager does not.
    """
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    packets = [getattr(torch.ops.aten, f"upsample_{name}") for name in _RESIZES]
    replaced = [(each.default, {}) for each in packets]
    replaced += [(each.vec, dict.fromkeys(keys, functools.partial(_resized, each.default))) for each in packets]
    with _TRACING:
        kept = [{key: each.py_kernels[key] for key in keys if key in each.py_kernels} for each, _ in replaced]
        try:
            for (each, kernels), old in zip(replaced, kept):
                for key in old:
                    del each.py_kernels[key]
                each.py_kernels.update(kernels)
                each._dispatch_cache.clear()
            yield
        finally:
            for (each, kernels), old in zip(replaced, kept):
                for key in kernels:
                    del each.py_kernels[key]
                each.py_kernels.update(old)
                each._dispatch_cache.clear()


def _resized(resize, x: torch.Tensor, size, *args) -> torch.Tensor:
    """Calls the resize that eager calls, with extents and with factors, for a resize by either.

    torch's own kernel for this step takes no symbolic extents. `args` has the factors at its end.
    If the resize has the option, `args` begins with whether corners are aligned.
    """
    *corners, factors = args
    extents = x.shape[2:]
    if size is None:
        size = [each * int(f) if f == int(f) else torch.sym_int(each * f) for each, f in zip(extents, factors)]
    return resize(x, size, *corners, *(factors or [None] * len(extents)))


_RESIZES = ("nearest1d", "nearest2d", "nearest3d", "bilinear2d", "bicubic2d")
_TRACING = threading.RLock()


def is_made_of_nothing(node: torch.fx.Node) -> bool:
    """Returns whether a call reads no tensor, such as arange or full. The call is then a
    constant."""
    return node.op == "call_function" and not node.all_input_nodes


def held_tensor(node: torch.fx.Node) -> Optional[torch.Tensor]:
    """Returns the constant that a graph's module holds for a get_attr node, for example for a
    torch.tensor() in the model. None: there is no such constant, or ONNX cannot hold it."""
    held = getattr(node.graph.owning_module, node.target, None) if node.op == "get_attr" else None
    known = isinstance(held, torch.Tensor) and held.dtype in ELEMENT_TYPES and held.device.type in ("cpu", "cuda")
    return held if known else None


def _is_number(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))


def _is_drawn(node: torch.fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags


def _why_not(importer: "Importer", node: torch.fx.Node) -> str:
    """Returns why a node cannot be in an ONNX file. If the node can, adds the node to `importer`
    and returns ""."""
    if (held := held_tensor(node)) is not None:
        importer.set(node, importer.constant(held))
        return ""
    if node.op != "call_function":
        return f"{node.op} {node.target}"
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt) and not free_unbacked_symbols(value):
        return ""  # each reader computes the number from the inputs' shapes
    if isinstance(value, torch.Tensor):  # if there are several outputs, getitem nodes follow
        if value.dtype not in ELEMENT_TYPES:
            return f"{node.target} is of {value.dtype}"
        if free_unbacked_symbols(value):
            return f"{node.target} makes a tensor of an extent that the data decide"
        if 0 in value.shape:
            return f"{node.target} makes a tensor of no elements"
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
    """Returns the nodes of a graph that have no form in ONNX, with the reasons."""
    importer, reasons = Importer("trial"), {}
    with unset_fake_temporarily():  # constants are tensors that have elements
        for node in graph.nodes:
            if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
                importer.set(node, importer.input(node.name, node.meta["val"].dtype, node.meta["val"].shape))
            elif node.op in ("placeholder", "output"):
                importer.set(node, node.name)
            elif why := _why_not(importer, node):
                reasons[node] = why
                value = node.meta.get("val")
                several = isinstance(value, (list, tuple))
                importer.set(node, [node.name] * len(value) if several else node.name)
    return reasons


def _dimensions(shape: Sequence[Extent]) -> List[Union[int, str]]:
    """Returns each extent in the form that ONNX has: a number, the name of a symbol, or "" for an
    extent that is computed from symbols."""
    name_of = lambda extent: str(extent.node.expr) if extent.node.expr.is_Symbol else ""  # noqa: E731
    return [name_of(each) if is_symbolic(each) else int(each) for each in shape]


_FOLDED = {sympy.Add: "Add", sympy.Mul: "Mul", functions.Max: "Max", functions.Min: "Min"}


class Importer(OnnxFile):
    """The ONNX file that is being made, with the functions that the rows of operators.py call."""

    def __init__(self, name: str):
        super().__init__(name)
        self._values: Dict[torch.fx.Node, Value] = {}
        self._extents: Dict[sympy.Expr, str] = {}  # int64 tensors of one element

    def input(self, name: str, dtype: torch.dtype, shape: Sequence[Extent]) -> str:
        for axis, extent in enumerate(shape):
            if is_symbolic(extent) and extent.node.expr not in self._extents:
                self._extents[extent.node.expr] = self.op("Shape", name, start=axis, end=axis + 1)
        return super().input(name, dtype, _dimensions(shape))

    def output(self, value: str, name: str, dtype: torch.dtype, shape: Sequence[Extent]) -> None:
        super().output(value, name, dtype, _dimensions(shape))

    def integers(self, values: Sequence[Extent]) -> str:
        if not any(map(is_symbolic, values)):
            return super().integers(list(map(int, values)))
        parts = [
            self._extent(value.node.expr) if is_symbolic(value) else super(Importer, self).integers([int(value)])
            for value in values
        ]
        return self.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def _extent(self, expression: sympy.Expr) -> str:
        """Returns an int64 tensor of one element with the value of an expression of symbols. Raises
        NotImplementedError if the expression has a function without a form in ONNX."""
        if expression not in self._extents:
            if expression.is_Integer:
                return super().integers([int(expression)])
            self._extents[expression] = self._integer(expression)
        return self._extents[expression]

    def _integer(self, expression: sympy.Expr) -> str:
        if isinstance(expression, (functions.FloorDiv, functions.CleanDiv)):
            left, right = map(self._extent, expression.args)
            # ONNX divides integers toward zero. The remainder has the divisor's sign; the quotient
            # of the dividend less the remainder is the floor.
            return self.op("Div", self.op("Sub", left, self.op("Mod", left, right)), right)
        if isinstance(expression, (functions.PythonMod, functions.Mod)):
            return self.op("Mod", *map(self._extent, expression.args))
        if isinstance(expression, functions.ModularIndexing):
            base, divisor, modulus = expression.args
            return self._extent(functions.PythonMod(functions.FloorDiv(base, divisor), modulus))
        if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
            return self._folded("Mul", [self._extent(expression.base)] * int(expression.exp))
        if expression.func not in _FOLDED:
            raise NotImplementedError(f"an extent of {expression}")
        return self._folded(_FOLDED[expression.func], map(self._extent, expression.args))

    def _real(self, expression: sympy.Expr) -> str:
        """Returns a float64 tensor of one element with the value of an expression that may be real.
        Raises NotImplementedError like _extent()."""
        if expression.is_number:
            return self.constant(torch.tensor([float(expression)], dtype=torch.float64))
        if isinstance(expression, functions.ToFloat):
            return self.cast(self._extent(expression.args[0]), torch.int64, torch.float64)
        if isinstance(expression, (functions.FloatTrueDiv, functions.IntTrueDiv)):
            return self.op("Div", *map(self._real, expression.args))
        if isinstance(expression, functions.FloatPow) or expression.is_Pow:
            return self.op("Pow", *map(self._real, expression.args))
        if isinstance(expression, functions.OpaqueUnaryFn_sqrt):
            return self.op("Sqrt", self._real(expression.args[0]))
        if expression.func in _FOLDED:
            return self._folded(_FOLDED[expression.func], map(self._real, expression.args))
        if expression.is_integer:
            return self.cast(self._extent(expression), torch.int64, torch.float64)
        raise NotImplementedError(f"a number of {expression}")

    def _folded(self, op: str, values: Iterable[str]) -> str:
        return functools.reduce(lambda left, right: self.op(op, left, right), values)

    def scalar(self, value, dtype: torch.dtype) -> str:
        if is_symbolic(value):
            return self.cast(self.reshape(self._extent(value.node.expr), []), torch.int64, dtype)
        if isinstance(value, torch.SymFloat) and not value.node.expr.is_number:
            return self.cast(self.reshape(self._real(value.node.expr), []), torch.float64, dtype)
        if isinstance(value, torch.SymBool):
            raise NotImplementedError(f"a truth value of {value.node.expr}")
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            value = value.node.hint
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

    def shape(self, node: torch.fx.Node) -> List[Extent]:
        return list(node.meta["val"].shape)

    def dtype(self, node: torch.fx.Node) -> torch.dtype:
        return node.meta["val"].dtype

    def promoted(self, a, b) -> torch.dtype:
        """Returns the type in which two operands of a comparison are compared."""
        of = lambda x: x.meta["val"] if isinstance(x, torch.fx.Node) else x  # noqa: E731
        return torch.result_type(of(a), of(b))

    def operand(self, x, dtype: torch.dtype) -> str:
        """Returns a tensor of `dtype` for a tensor or a number."""
        if isinstance(x, torch.fx.Node):
            return self.cast(self.value(x), self.dtype(x), dtype)
        return self.scalar(x, dtype)

    def call(self, node: torch.fx.Node) -> None:
        """Adds the ONNX nodes of a call_function. Raises NotImplementedError if the call has no
        form in ONNX."""
        if isinstance(node.meta.get("val"), torch.SymInt):
            return  # each reader computes the number from the inputs' shapes
        if is_made_of_nothing(node) and not _is_drawn(node):
            # The constant is the same on each device, and the CPU is always there.
            on_cpu = {"device": torch.device("cpu")} if "device" in node.kwargs else {}
            self.set(node, self.constant(node.target(*node.args, **{**node.kwargs, **on_cpu})))
            return
        row = row_of(node.target)
        if row is None:
            raise NotImplementedError("no row in the table of operators")
        numbered = lambda each: each.meta["val"] if _is_number(each) else each  # noqa: E731
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), numbered)
        try:
            self.set(node, row(self, node, *args, **kwargs))
        except (TypeError, ValueError, IndexError, KeyError, RuntimeError) as error:
            if isinstance(error, NotImplementedError):
                raise
            raise NotImplementedError(f"arguments that its row does not know: {error}") from error


def write_onnx(
    graph: torch.fx.Graph, path: str, weights: Dict[str, torch.Tensor], name: str = "graph"
) -> None:
    """Writes a graph as the ONNX file `path`.

    A placeholder whose name is in `weights` becomes a constant. The other placeholders become
    inputs, and the graph's outputs become outputs, both in order. Symbolic numbers among inputs and
    outputs are left out.

    Raises NotImplementedError, which names the call, if a call has no form in ONNX.
    """
    importer = Importer(name)
    for node in graph.nodes:
        if node.op == "placeholder":
            if node.name in weights:
                importer.set(node, importer.constant(weights[node.name], node.name))
            elif not _is_number(node):
                value = node.meta["val"]
                importer.set(node, importer.input(node.name, value.dtype, list(value.shape)))
        elif node.op == "call_function":
            try:
                importer.call(node)
            except NotImplementedError as error:
                raise NotImplementedError(f"{node.target}: {error}") from None
        elif (held := held_tensor(node)) is not None:
            importer.set(node, importer.constant(held))
        elif node.op == "output":
            for i, result in enumerate(node.args[0]):
                if isinstance(result, torch.fx.Node) and not _is_number(result):
                    importer.output(
                        importer.value(result), f"output_{i}", importer.dtype(result), importer.shape(result)
                    )
        else:
            raise NotImplementedError(f"{node.op} {node.target}")
    importer.write(path)
