"""What each operator of core ATen is in ONNX: one function a row, named by the operators it takes.

A function gets the Importer, the node and the node's arguments, tensors among them as torch.fx.Node;
it returns the name of an ONNX value, or a list of them. NotImplementedError: this call stays in eager.
"""

import math
import operator
from typing import Callable, Dict, List, Optional, Sequence

import torch

_ROWS: Dict[str, Callable] = {}


def row_of(target) -> Optional[Callable]:
    """The function of an operator (torch._ops.OpOverload, or operator.getitem)."""
    if target is operator.getitem:
        return _getitem
    return _ROWS.get(str(target)) if isinstance(target, torch._ops.OpOverload) else None


def operators() -> List[str]:
    """The operators that are imported, as "aten.add.Tensor"."""
    return sorted(_ROWS)


def _row(*names: str):
    def add(function):
        for name in names:
            _ROWS["aten." + (name if "." in name else name + ".default")] = function
        return function

    return add


def _same(name: str, op: str, **attributes):
    _row(name)(lambda g, node, x, *_, **__: g.op(op, g.value(x), **attributes))


def _chain(name: str, *ops: str):
    def chain(g, node, x, *_, **__):
        value = g.value(x)
        for op in ops:
            value = g.op(op, value)
        return value

    _row(name)(chain)


def _refuse(condition, why: str) -> None:
    if condition:
        raise NotImplementedError(why)


def _axis(dim: int, rank: int) -> int:
    return dim + rank if dim < 0 else dim


def _getitem(g, node, x, index):
    value = g.value(x)
    _refuse(not isinstance(value, list) or value[index] is None, "that output is not computed")
    return value[index]


# Element by element.

for _name, _op in {
    "relu": "Relu", "abs": "Abs", "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt",
    "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin",
    "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf",
    "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign", "isnan": "IsNaN",
    "isinf": "IsInf", "logical_not": "Not", "hardswish": "HardSwish", "mish": "Mish",
    "bitwise_not": "Not",
}.items():  # fmt: skip
    _same(_name, _op)
_same("hardsigmoid", "HardSigmoid", alpha=1 / 6, beta=0.5)
_chain("rsqrt", "Sqrt", "Reciprocal")


@_row("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "_to_copy",
      "prims.convert_element_type")  # fmt: skip
def _copied(g, node, x, *_, **__):
    return g.cast(g.value(x), g.dtype(x), g.dtype(node))


@_row("dropout")
def _dropout(g, node, x, share, training):
    _refuse(training and share > 0, "dropout while training")
    return g.value(x)


@_row("copy")
def _copy(g, node, into, source, *_):
    value = g.cast(g.value(source), g.dtype(source), g.dtype(node))
    return g.op("Expand", value, g.integers(g.shape(node)))


def _binary(op: str, scaled: bool = False):
    def binary(g, node, a, b, *, alpha=1):
        left, right = g.operand(a, g.dtype(node)), g.operand(b, g.dtype(node))
        if alpha != 1:
            right = g.op("Mul", right, g.scalar(alpha, g.dtype(node)))
        return g.op(op, left, right)

    return binary


for _name, _op in {"add": "Add", "sub": "Sub", "mul": "Mul"}.items():
    _row(_name + ".Tensor", _name + ".Scalar")(_binary(_op))
_row("div.Tensor", "div.Scalar")(_binary("Div"))
_row("maximum")(_binary("Max"))
_row("minimum")(_binary("Min"))
_row("atan2")(_binary("Atan2"))


@_row("rsub.Scalar", "rsub.Tensor")
def _rsub(g, node, a, b, alpha=1):
    _refuse(alpha != 1, "alpha is not 1")
    return _binary("Sub")(g, node, b, a)


@_row("div.Tensor_mode", "div.Scalar_mode", "floor_divide")
def _div_mode(g, node, a, b, rounding_mode="floor"):
    dtype = g.dtype(node)
    if rounding_mode is None:
        return _binary("Div")(g, node, a, b)
    if dtype.is_floating_point:
        quotient = g.op("Div", g.operand(a, dtype), g.operand(b, dtype))
        if rounding_mode == "floor":
            return g.op("Floor", quotient)
        return g.op("Mul", g.op("Sign", quotient), g.op("Floor", g.op("Abs", quotient)))
    x, y = g.operand(a, dtype), g.operand(b, dtype)
    if rounding_mode == "floor":  # exact: what is left over is taken off first
        return g.op("Div", g.op("Sub", x, g.op("Mod", x, y)), y)
    return g.op("Div", x, y)


@_row("remainder.Scalar", "remainder.Tensor")
def _remainder(g, node, a, b):
    dtype = g.dtype(node)
    x, y = g.operand(a, dtype), g.operand(b, dtype)
    if not dtype.is_floating_point:
        return g.op("Mod", x, y)
    return g.op("Sub", x, g.op("Mul", g.op("Floor", g.op("Div", x, y)), y))


@_row("fmod.Scalar", "fmod.Tensor")
def _fmod(g, node, a, b):
    return g.op("Mod", g.operand(a, g.dtype(node)), g.operand(b, g.dtype(node)), fmod=1)


def _compare(op: str, negated: bool = False):
    def compare(g, node, a, b):
        dtype = g.promoted(a, b)
        if dtype == torch.bool and op != "Equal":
            dtype = torch.int32
        value = g.op(op, g.operand(a, dtype), g.operand(b, dtype))
        return g.op("Not", value) if negated else value

    return compare


for _name, _op in {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}.items():  # fmt: skip
    _row(_name + ".Tensor", _name + ".Scalar")(_compare(_op))
_row("ne.Tensor", "ne.Scalar")(_compare("Equal", True))


def _logical(op: str):
    def logical(g, node, a, b):
        return g.op(op, g.operand(a, torch.bool), g.operand(b, torch.bool))

    return logical


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _row("logical_" + _name)(_logical(_op))

    def _bitwise(g, node, a, b, op=_op):
        if g.dtype(node) == torch.bool:
            return g.op(op, g.operand(a, torch.bool), g.operand(b, torch.bool))
        return g.op("Bitwise" + op, g.operand(a, g.dtype(node)), g.operand(b, g.dtype(node)))

    _row(f"bitwise_{_name}.Tensor", f"bitwise_{_name}.Scalar", f"__{_name}__.Tensor")(_bitwise)


@_row("pow.Tensor_Scalar", "pow.Tensor_Tensor")
def _pow(g, node, x, exponent):
    dtype = g.dtype(node)
    value = g.operand(x, dtype)
    if exponent == 2:
        return g.op("Mul", value, value)
    if exponent == 0.5:
        return g.op("Sqrt", value)
    return g.op("Pow", value, g.operand(exponent, dtype))


@_row("pow.Scalar")
def _pow_scalar(g, node, base, x):
    return g.op("Pow", g.scalar(base, g.dtype(node)), g.operand(x, g.dtype(node)))


@_row("log1p")
def _log1p(g, node, x):
    return g.op("Log", g.op("Add", g.value(x), g.scalar(1, g.dtype(node))))


@_row("expm1")
def _expm1(g, node, x):
    return g.op("Sub", g.op("Exp", g.value(x)), g.scalar(1, g.dtype(node)))


@_row("log2", "log10")
def _log_base(g, node, x):
    base = 2 if "log2" in str(node.target) else 10
    return g.op("Mul", g.op("Log", g.value(x)), g.scalar(1 / math.log(base), g.dtype(node)))


@_row("trunc")
def _trunc(g, node, x):
    value = g.value(x)
    return g.op("Mul", g.op("Sign", value), g.op("Floor", g.op("Abs", value)))


@_row("clamp", "clamp.Tensor", "hardtanh", "relu6", "clamp_min", "clamp_max")
def _clamp(g, node, x, low=None, high=None, *, min=None, max=None):
    name, dtype = str(node.target), g.dtype(node)
    if "hardtanh" in name:
        low, high = -1 if low is None else low, 1 if high is None else high
    elif "relu6" in name:
        low, high = 0, 6
    elif "clamp_max" in name:
        low, high = None, low
    low, high = low if min is None else min, high if max is None else max
    value = g.operand(x, dtype)
    if low is not None:
        value = g.op("Max", value, g.operand(low, dtype))
    return value if high is None else g.op("Min", value, g.operand(high, dtype))


@_row("silu")
def _silu(g, node, x):
    return g.op("Mul", g.value(x), g.op("Sigmoid", g.value(x)))


@_row("gelu")
def _gelu(g, node, x, approximate="none"):
    return g.op("Gelu", g.value(x), approximate=approximate)


@_row("leaky_relu")
def _leaky_relu(g, node, x, slope=0.01):
    return g.op("LeakyRelu", g.value(x), alpha=float(slope))


@_row("elu")
def _elu(g, node, x, alpha=1, scale=1, input_scale=1):
    _refuse(scale != 1 or input_scale != 1, "a scaled elu")
    return g.op("Elu", g.value(x), alpha=float(alpha))


@_row("softplus")
def _softplus(g, node, x, beta=1, threshold=20):
    _refuse(beta != 1, "beta is not 1")
    return g.op("Softplus", g.value(x))


@_row("prelu", "_prelu_kernel")
def _prelu(g, node, x, slope):
    value = g.value(slope)
    if len(g.shape(slope)) == 1 and len(g.shape(x)) > 1:
        value = g.reshape(value, [-1] + [1] * (len(g.shape(x)) - 2))
    return g.op("PRelu", g.value(x), value)


@_row("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(g, node, condition, a, b):
    dtype = g.dtype(node)
    return g.op("Where", g.operand(condition, torch.bool), g.operand(a, dtype), g.operand(b, dtype))


@_row("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(g, node, x, mask, value):
    return g.op("Where", g.operand(mask, torch.bool), g.operand(value, g.dtype(node)), g.value(x))


@_row("full_like", "zeros_like", "ones_like")
def _full_like(g, node, x, value=None, **_):
    value = int("ones" in str(node.target)) if value is None else value
    return g.op("Expand", g.scalar(value, g.dtype(node)), g.integers(g.shape(node)))


# Shapes and places.


@_row("view", "_unsafe_view", "reshape", "view_copy", "flatten.using_ints", "squeeze", "squeeze.dim",
      "squeeze.dims", "unsqueeze", "unflatten.int")  # fmt: skip
def _view(g, node, x, *_, **__):
    return g.reshape(g.value(x), g.shape(node))


@_row("as_strided")
def _as_strided(g, node, x, size, stride, offset=None):
    found = x.meta["val"]
    moved = [d for d, extent in enumerate(size) if extent > 1 and stride[d] != found.stride(d)]
    _refuse(offset or list(size) != list(found.shape) or moved, "it moves elements")
    return g.value(x)


@_row("expand", "expand_copy")
def _expand(g, node, x, *_, **__):
    return g.op("Expand", g.value(x), g.integers(g.shape(node)))


@_row("permute")
def _permute(g, node, x, dims):
    return g.op("Transpose", g.value(x), perm=[_axis(d, len(dims)) for d in dims])


@_row("transpose.int", "t")
def _transpose(g, node, x, a=0, b=1):
    order = list(range(len(g.shape(x))))
    if len(order) < 2:
        return g.value(x)
    order[a], order[b] = order[b], order[a]
    return g.op("Transpose", g.value(x), perm=order)


def _part(g, value: str, axis: int, start: int, end: int, step: int = 1) -> str:
    return g.op("Slice", value, *(g.integers([each]) for each in (start, end, axis, step)))


@_row("slice.Tensor", "narrow")
def _slice(g, node, x, dim=0, start=None, end=None, step=1):
    extent = g.shape(x)[dim]
    if "narrow" in str(node.target):
        end = start + end
    start, end, _ = slice(start, end).indices(extent)
    return _part(g, g.value(x), _axis(dim, len(g.shape(x))), start, max(start, end), step)


@_row("select.int")
def _select(g, node, x, dim, index):
    shape = g.shape(x)
    start = index + shape[dim] if index < 0 else index
    part = _part(g, g.value(x), _axis(dim, len(shape)), start, start + 1)
    return g.reshape(part, g.shape(node))


@_row("slice_scatter", "select_scatter")
def _scatter_part(g, node, x, source, dim=0, start=None, end=None, step=1):
    shape = g.shape(x)
    axis = _axis(dim, len(shape))
    _refuse(step != 1, "a stepped slice_scatter")
    if "select" in str(node.target):
        start = start + shape[axis] if start < 0 else start
        end = start + 1
    start, end, _ = slice(start, end).indices(shape[axis])
    middle = list(shape)
    middle[axis] = max(end - start, 0)
    parts = []
    if start > 0:
        parts.append(_part(g, g.value(x), axis, 0, start))
    if end > start:
        value = g.cast(g.value(source), g.dtype(source), g.dtype(node))
        parts.append(g.reshape(value, middle))
    if max(end, start) < shape[axis]:
        parts.append(_part(g, g.value(x), axis, max(end, start), shape[axis]))
    return g.op("Concat", *parts, axis=axis)


@_row("split_with_sizes", "split.Tensor", "split_with_sizes_copy", "chunk", "unbind.int")
def _split(g, node, x, sizes=0, dim=0):
    if "unbind" in str(node.target):
        dim = sizes
    shapes = [list(value.shape) for value in node.meta["val"]]
    axis = _axis(dim, len(g.shape(x)))
    if "unbind" in str(node.target):
        parts = [_part(g, g.value(x), axis, i, i + 1) for i in range(len(shapes))]
        return [g.reshape(*each) for each in zip(parts, shapes)]
    if len(shapes) == 1:
        return [g.value(x)]
    ends = g.integers([shape[axis] for shape in shapes])
    return g.op("Split", g.value(x), ends, outputs=len(shapes), axis=axis)


@_row("cat")
def _cat(g, node, tensors, dim=0):
    full = [each for each in tensors if math.prod(g.shape(each)) > 0]
    values = [g.operand(each, g.dtype(node)) for each in full]
    return g.op("Concat", *values, axis=_axis(dim, len(g.shape(node))))


@_row("stack")
def _stack(g, node, tensors, dim=0):
    shape = list(g.shape(node))
    axis = _axis(dim, len(shape))
    shape[axis] = 1
    values = [g.reshape(g.operand(each, g.dtype(node)), shape) for each in tensors]
    return g.op("Concat", *values, axis=axis)


@_row("repeat")
def _repeat(g, node, x, times):
    shape = g.shape(x)
    whole = [1] * (len(times) - len(shape)) + list(shape)
    return g.op("Tile", g.reshape(g.value(x), whole), g.integers(times))


@_row("flip")
def _flip(g, node, x, dims):
    rank, value = len(g.shape(x)), g.value(x)
    axes = [_axis(dim, rank) for dim in dims]
    ends = [torch.iinfo(torch.int64).min] * len(axes)
    starts, steps = [-1] * len(axes), [-1] * len(axes)
    return g.op("Slice", value, *(g.integers(each) for each in (starts, ends, axes, steps)))


@_row("roll")
def _roll(g, node, x, shifts, dims=()):
    shape, value = g.shape(x), g.value(x)
    if not dims:
        value, dims, shape = g.reshape(value, [-1]), [0], [math.prod(shape)]
    for shift, dim in zip(shifts, dims):
        axis = _axis(dim, len(shape))
        first = -shift % shape[axis]
        if first:
            parts = [_part(g, value, axis, first, shape[axis]), _part(g, value, axis, 0, first)]
            value = g.op("Concat", *parts, axis=axis)
    return g.reshape(value, g.shape(node))


@_row("constant_pad_nd")
def _pad(g, node, x, pad, value=0):
    return _padded(g, x, pad, "constant", g.scalar(value, g.dtype(node)))


@_row("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d")
def _pad_by_itself(g, node, x, pad):
    return _padded(g, x, pad, "reflect" if "reflection" in str(node.target) else "edge")


def _padded(g, x, pad: Sequence[int], mode: str, *value: str) -> str:
    rank = len(g.shape(x))
    starts, ends = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        starts[rank - 1 - i], ends[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return g.op("Pad", g.value(x), g.integers(starts + ends), *value, mode=mode)


@_row("tril", "triu")
def _triangle(g, node, x, diagonal=0):
    upper = int("triu" in str(node.target))
    return g.op("Trilu", g.value(x), g.scalar(diagonal, torch.int64), upper=upper)


@_row("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(g, node, x, factor):
    if "unshuffle" in str(node.target):
        _refuse(len(g.shape(x)) != 4, "not of images")
        batch, channels, height, width = g.shape(x)
        parts = [batch, channels, height // factor, factor, width // factor, factor]
        turned = g.op("Transpose", g.reshape(g.value(x), parts), perm=[0, 1, 3, 5, 2, 4])
        return g.reshape(turned, g.shape(node))
    return g.op("DepthToSpace", g.value(x), blocksize=factor, mode="CRD")


# Rows at indices.


@_row("embedding")
def _embedding(g, node, weight, indices, *_, **__):
    return g.op("Gather", g.value(weight), g.value(indices), axis=0)


@_row("index_select")
def _index_select(g, node, x, dim, index):
    return g.op("Gather", g.value(x), g.value(index), axis=_axis(dim, len(g.shape(x))))


@_row("gather")
def _gather(g, node, x, dim, index, **_):
    return g.op("GatherElements", g.value(x), g.value(index), axis=_axis(dim, len(g.shape(x))))


@_row("index.Tensor", "_unsafe_index.Tensor")
def _index(g, node, x, indices):
    places = [i for i, each in enumerate(indices) if each is not None]
    tensors = [indices[i] for i in places]
    _refuse(any(g.dtype(each) in (torch.bool, torch.uint8) for each in tensors), "a mask as index")
    if len(tensors) == 1:
        return g.op("Gather", g.value(x), g.value(tensors[0]), axis=places[0])
    _refuse(places != list(range(places[0], places[0] + len(places))), "indices apart")
    # The indexed dimensions first, then one tuple of indices for each element.
    rank, first = len(g.shape(x)), places[0]
    order = places + [d for d in range(rank) if d not in places]
    value = g.value(x) if first == 0 else g.op("Transpose", g.value(x), perm=order)
    shape = torch.broadcast_shapes(*(tuple(g.shape(each)) for each in tensors))
    columns = []
    for each in tensors:
        index = g.cast(g.value(each), g.dtype(each), torch.int64)
        wide = g.op("Expand", index, g.integers(shape)) if shape else index
        columns.append(g.reshape(wide, list(shape) + [1]))
    value = g.op("GatherND", value, g.op("Concat", *columns, axis=len(shape)))
    if first == 0:
        return value
    count = len(shape)
    moved = list(range(count, count + first)) + list(range(count))
    rest = list(range(count + first, count + rank - len(places)))
    return g.op("Transpose", value, perm=moved + rest)


# Reductions.


def _reduced(g, value: str, op: str, dims, keep: bool, rank: int) -> str:
    axes = [_axis(d, rank) for d in ([dims] if isinstance(dims, int) else dims or range(rank))]
    return g.op(op, value, g.integers(axes), keepdims=int(keep)) if rank else value


def _reduction(op: str):
    def reduction(g, node, x, dims=None, keep=False, *, dtype=None):
        value = g.operand(x, g.dtype(node))
        return _reduced(g, value, op, dims, keep, len(g.shape(x)))

    return reduction


_row("mean", "mean.dim")(_reduction("ReduceMean"))
_row("sum", "sum.dim_IntList")(_reduction("ReduceSum"))
_row("amax", "max")(_reduction("ReduceMax"))
_row("amin", "min")(_reduction("ReduceMin"))
_row("prod.dim_int", "prod")(_reduction("ReduceProd"))


@_row("any", "any.dim", "any.dims", "all", "all.dim", "all.dims")
def _any(g, node, x, dims=None, keep=False):
    op = "ReduceMax" if ".any" in str(node.target) else "ReduceMin"
    truth = g.cast(g.operand(x, torch.bool), torch.bool, torch.int32)
    return g.cast(_reduced(g, truth, op, dims, keep, len(g.shape(x))), torch.int32, torch.bool)


def _moments(g, node, x, dims, correction, keep):
    rank = len(g.shape(x))
    axes = [_axis(d, rank) for d in (dims or range(rank))]
    count = math.prod(g.shape(x)[d] for d in axes) - (1 if correction is None else correction)
    _refuse(count <= 0, "a variance of too few elements")
    value, dtype = g.value(x), g.dtype(x)
    mean = _reduced(g, value, "ReduceMean", axes, True, rank)
    off = g.op("Sub", value, mean)
    squares = _reduced(g, g.op("Mul", off, off), "ReduceSum", axes, keep, rank)
    return g.op("Div", squares, g.scalar(count, dtype)), mean


@_row("var.correction", "std.correction")
def _var(g, node, x, dims=None, *, correction=None, keepdim=False):
    variance, _ = _moments(g, node, x, dims, correction, keepdim)
    return g.op("Sqrt", variance) if "std" in str(node.target) else variance


@_row("var_mean.correction")
def _var_mean(g, node, x, dims=None, *, correction=None, keepdim=False):
    variance, mean = _moments(g, node, x, dims, correction, keepdim)
    return [variance, g.reshape(mean, list(node.meta["val"][1].shape))]


@_row("argmax", "argmin")
def _arg(g, node, x, dim=None, keep=False):
    op = "ArgMax" if "argmax" in str(node.target) else "ArgMin"
    if dim is None:
        return g.reshape(g.op(op, g.reshape(g.value(x), [-1]), axis=0, keepdims=0), g.shape(node))
    return g.op(op, g.value(x), axis=_axis(dim, len(g.shape(x))), keepdims=int(keep))


@_row("max.dim", "min.dim")
def _max_dim(g, node, x, dim, keep=False):
    name = "Max" if ".max" in str(node.target) else "Min"
    rank = len(g.shape(x))
    values = _reduced(g, g.value(x), "Reduce" + name, dim, keep, rank)
    return [values, g.op("Arg" + name, g.value(x), axis=_axis(dim, rank), keepdims=int(keep))]


@_row("topk")
def _topk(g, node, x, k, dim=-1, largest=True, ordered=True):
    axis = _axis(dim, len(g.shape(x)))
    count = g.integers([k])
    return g.op("TopK", g.value(x), count, outputs=2, axis=axis, largest=int(largest), sorted=1)


@_row("cumsum")
def _cumsum(g, node, x, dim, *, dtype=None):
    value = g.operand(x, g.dtype(node))
    return g.op("CumSum", value, g.scalar(_axis(dim, max(len(g.shape(x)), 1)), torch.int64))


@_row("_softmax", "softmax.int", "_log_softmax", "log_softmax.int")
def _softmax(g, node, x, dim, *_, **__):
    op = "LogSoftmax" if "log_softmax" in str(node.target) else "Softmax"
    return g.op(op, g.operand(x, g.dtype(node)), axis=_axis(dim, len(g.shape(x))))


# Products.


@_row("mm", "bmm", "matmul")
def _matmul(g, node, a, b, *_, **__):
    return g.op("MatMul", g.value(a), g.value(b))


@_row("addmm", "baddbmm")
def _addmm(g, node, c, a, b, *, beta=1, alpha=1):
    product, dtype = g.op("MatMul", g.value(a), g.value(b)), g.dtype(node)
    if alpha != 1:
        product = g.op("Mul", product, g.scalar(alpha, dtype))
    if beta == 0:
        return product
    bias = g.value(c) if beta == 1 else g.op("Mul", g.value(c), g.scalar(beta, dtype))
    return g.op("Add", product, bias)


@_row("linear")
def _linear(g, node, x, weight, bias=None):
    turned = g.op("Transpose", g.value(weight), perm=[1, 0])
    product = g.op("MatMul", g.value(x), turned)
    return product if bias is None else g.op("Add", product, g.value(bias))


@_row("convolution")
def _convolution(g, node, x, weight, bias, stride, padding, dilation, transposed, output_padding,
                 groups):  # fmt: skip
    rank = len(g.shape(x)) - 2
    each = lambda values: list(values) * (rank if len(values) == 1 else 1)  # noqa: E731
    attributes = {"strides": each(stride), "dilations": each(dilation), "pads": each(padding) * 2}
    inputs = [g.value(x), g.value(weight)] + ([] if bias is None else [g.value(bias)])
    if transposed:
        attributes["output_padding"] = each(output_padding)
    op = "ConvTranspose" if transposed else "Conv"
    return g.op(op, *inputs, group=groups, **attributes)


@_row("_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention",
      "_scaled_dot_product_fused_attention_overrideable")  # fmt: skip
def _attention(g, node, query, key, value, *args, **named):
    whole = str(node.target).startswith("aten.scaled_dot_product_attention")
    names = ["attn_mask", "dropout_p", "is_causal"] if whole else ["dropout_p", "is_causal"]
    named = {**dict(zip(names, args)), **named}
    mask, causal = named.get("attn_mask"), bool(named.get("is_causal"))
    _refuse(named.get("dropout_p"), "dropout while training")
    _refuse(any(len(g.shape(each)) != 4 for each in (query, key, value)), "not of four dimensions")
    # torch counts the triangle from the first query, ONNX from the last.
    _refuse(causal and g.shape(query)[2] != g.shape(key)[2], "causal, with other keys than queries")
    attributes = {"is_causal": int(causal)}
    if named.get("scale") is not None:
        attributes["scale"] = float(named["scale"])
    inputs = [g.value(each) for each in (query, key, value)]
    if mask is not None:
        inputs.append(g.value(mask))
    result = g.op("Attention", *inputs, **attributes)
    return result if whole else [result] + [None] * (len(node.meta["val"]) - 1)


# Normalization.


@_row("_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def _batch_norm(g, node, x, weight, bias, mean, variance, momentum, epsilon):
    channels, dtype = g.shape(x)[1], g.dtype(x)
    scale = g.full([channels], 1, dtype) if weight is None else g.value(weight)
    shift = g.full([channels], 0, dtype) if bias is None else g.value(bias)
    inputs = [g.value(x), scale, shift, g.value(mean), g.value(variance)]
    return [g.op("BatchNormalization", *inputs, epsilon=float(epsilon)), None, None]


@_row("_native_batch_norm_legit.no_stats")
def _norm_of_batch(g, node, x, weight, bias, training, momentum, epsilon):
    rank, dtype = len(g.shape(x)), g.dtype(x)
    axes = [d for d in range(rank) if d != 1]
    mean = _reduced(g, g.value(x), "ReduceMean", axes, True, rank)
    off = g.op("Sub", g.value(x), mean)
    variance = _reduced(g, g.op("Mul", off, off), "ReduceMean", axes, True, rank)
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(epsilon, dtype)))
    value = g.op("Div", off, deviation)
    for op, factor in (("Mul", weight), ("Add", bias)):
        if factor is not None:
            value = g.op(op, value, g.reshape(g.value(factor), [-1] + [1] * (rank - 2)))
    return [value, None, None]


@_row("native_layer_norm", "layer_norm")
def _layer_norm(g, node, x, shape, weight=None, bias=None, epsilon=1e-5, *_):
    scale = g.full(shape, 1, g.dtype(x)) if weight is None else g.value(weight)
    inputs = [g.value(x), scale] + ([] if bias is None else [g.value(bias)])
    result = g.op("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(epsilon))
    return result if isinstance(node.meta["val"], torch.Tensor) else [result, None, None]


@_row("rms_norm", "_fused_rms_norm")
def _rms_norm(g, node, x, shape, weight=None, epsilon=None):
    scale = g.full(shape, 1, g.dtype(x)) if weight is None else g.value(weight)
    least = torch.finfo(g.dtype(x)).eps if epsilon is None else float(epsilon)
    result = g.op("RMSNormalization", g.value(x), scale, axis=-len(shape), epsilon=least)
    return result if isinstance(node.meta["val"], torch.Tensor) else [result, None]


@_row("native_group_norm", "group_norm")
def _group_norm(g, node, x, *args):
    whole = "native" not in str(node.target)
    groups, weight, bias, epsilon = (
        (args[0], *(list(args[1:4]) + [None, None, 1e-5][len(args) - 1:])) if whole
        else (args[5], args[0], args[1], args[6])
    )  # fmt: skip
    channels, dtype = g.shape(x)[1], g.dtype(x)
    scale = g.full([channels], 1, dtype) if weight is None else g.value(weight)
    shift = g.full([channels], 0, dtype) if bias is None else g.value(bias)
    inputs = [g.value(x), scale, shift]
    result = g.op("GroupNormalization", *inputs, num_groups=groups, epsilon=float(epsilon))
    return result if whole else [result, None, None]


# Windows.


def _windows(x_rank: int, kernel, stride, padding, dilation=(1,)) -> dict:
    rank = x_rank - 2
    each = lambda values: list(values) * (rank if len(values) == 1 else 1)  # noqa: E731
    return {
        "kernel_shape": each(kernel),
        "strides": each(stride or kernel),
        "pads": each(padding) * 2,
        "dilations": each(dilation),
    }


@_row("max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "max_pool3d")
def _max_pool(g, node, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil=False):
    spatial = 3 if "pool3d" in str(node.target) else 2
    _refuse(len(g.shape(x)) != spatial + 2, "a pooling without a batch")
    windows = _windows(spatial + 2, kernel, stride, padding, dilation)
    result = g.op("MaxPool", g.value(x), ceil_mode=int(ceil), **windows)
    return [result, None] if "indices" in str(node.target) else result


@_row("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(g, node, x, kernel, stride=(), padding=(0,), ceil=False, include_pad=True,
              divisor=None):  # fmt: skip
    spatial = int(str(node.target).split("avg_pool")[1][0])
    _refuse(len(g.shape(x)) != spatial + 2, "a pooling without a batch")
    _refuse(divisor is not None, "a divisor of its own")
    windows = _windows(spatial + 2, kernel, stride, padding)
    del windows["dilations"]
    attributes = {"ceil_mode": int(ceil), "count_include_pad": int(include_pad)}
    return g.op("AveragePool", g.value(x), **attributes, **windows)


@_row("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive_avg_pool(g, node, x, size):
    into = list(g.shape(node))[-len(size):]
    extents = list(g.shape(x))[-len(size):]
    if into == extents:
        return g.value(x)
    if all(extent == 1 for extent in into):
        axes = list(range(len(g.shape(x)) - len(size), len(g.shape(x))))
        return g.op("ReduceMean", g.value(x), g.integers(axes), keepdims=1)
    _refuse(any(e % i for e, i in zip(extents, into)), "windows of unequal sizes")
    kernel = [e // i for e, i in zip(extents, into)]
    return g.op("AveragePool", g.value(x), kernel_shape=kernel, strides=kernel)


@_row("upsample_nearest2d.vec", "upsample_bilinear2d.vec", "upsample_nearest2d",
      "upsample_bilinear2d", "upsample_bicubic2d.vec", "upsample_bicubic2d")  # fmt: skip
def _upsample(g, node, x, size, *args):
    name = str(node.target)
    nearest = "nearest" in name
    corners = False if nearest else bool(args[0])
    rest = args if nearest else args[1:]
    factors = rest[0] if name.endswith(".vec") and rest and rest[0] else None
    if not name.endswith(".vec") and any(each is not None for each in rest):
        factors = list(rest)
    shape = g.shape(node)
    if factors is not None:
        scales = [1.0, 1.0] + [float(each) for each in factors]
        place = ["", g.constant(torch.tensor(scales, dtype=torch.float32))]
    else:
        place = ["", "", g.integers(shape)]
    mode = "nearest" if nearest else "cubic" if "bicubic" in name else "linear"
    places = "asymmetric" if nearest else "align_corners" if corners else "half_pixel"
    attributes = {"mode": mode, "coordinate_transformation_mode": places}
    if nearest:
        attributes["nearest_mode"] = "floor"
    if mode == "cubic":
        attributes["cubic_coeff_a"] = -0.75
    return g.op("Resize", g.value(x), *place, **attributes)
