"""Translates each operator of core ATen to ONNX. The table has a function for each operator.

A function gets the Importer, the node and the node's arguments; tensors among the arguments are
torch.fx.Node. The function returns the name of an ONNX value, or a list of names. If the function
raises NotImplementedError, the call stays in eager.
"""

import math
import operator
from typing import Callable, Dict, List, Optional, Sequence

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pruner.torch.extents import is_symbolic

_ROWS: Dict[str, Callable] = {}


def row_of(target) -> Optional[Callable]:
    """Returns the function of an operator (torch._ops.OpOverload, or operator.getitem), or None."""
    if target is operator.getitem:
        return _getitem
    return _ROWS.get(str(target)) if isinstance(target, torch._ops.OpOverload) else None


def operators() -> List[str]:
    """Returns the names of the operators that can be imported, such as "aten.add.Tensor"."""
    return sorted(_ROWS)


def _row(*names: str):
    def add(function):
        for name in names:
            if name.count(".") < 2:
                name = "aten." + (name if "." in name else name + ".default")
            _ROWS[name] = function
        return function

    return add


def _same(name: str, op: str, **attributes):
    """Adds the row of a function of one tensor. The function is computed in the type of its result:
    torch.exp of integers is a float."""

    def same(g, node, x, *_, **__):
        _refuse(op in _NOT_OF_FLOAT64 and g.dtype(node) == torch.float64, f"{op} of float64")
        return g.op(op, g.operand(x, g.dtype(node)), **attributes)

    _row(name)(same)


# No kernel computes these ONNX functions in float64.
_NOT_OF_FLOAT64 = ("Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh")


def _rounding(name: str, op: str):
    """Adds the row of a function that rounds floats and returns integers unchanged."""
    _row(name)(lambda g, node, x: g.op(op, g.value(x)) if g.dtype(node).is_floating_point else g.value(x))


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
    "hardswish": "HardSwish", "mish": "Mish", "expm1": "Expm1", "log1p": "Log1p",
}.items():  # fmt: skip
    _same(_name, _op)


@_row("hardsigmoid")
def _hardsigmoid(g, node, x):
    dtype = g.dtype(node)
    if dtype != torch.float64:
        return g.op("HardSigmoid", g.value(x), alpha=1 / 6, beta=0.5)
    # The constants are float64 tensors, because attributes of ONNX are float32.
    number = lambda value: g.scalar(value, dtype)  # noqa: E731
    above = g.op("Max", g.op("Add", g.value(x), number(3)), number(0))
    return g.op("Div", g.op("Min", above, number(6)), number(6))

for _name, _op in {"floor": "Floor", "ceil": "Ceil", "round": "Round"}.items():
    _rounding(_name, _op)


@_row("rsqrt")
def _rsqrt(g, node, x):
    return g.op("Reciprocal", g.op("Sqrt", g.operand(x, g.dtype(node))))


@_row("sign")
def _sign(g, node, x):
    """Computes torch's sign: 0 for NaN and for both zeros. ONNX's Sign returns these unchanged."""
    value, dtype = g.value(x), g.dtype(x)
    if not dtype.is_floating_point:
        return value if dtype == torch.bool else g.op("Sign", value)
    zero = g.scalar(0, dtype)
    below = g.op("Where", g.op("Less", value, zero), g.scalar(-1, dtype), zero)
    return g.op("Where", g.op("Greater", value, zero), g.scalar(1, dtype), below)


@_row("isnan", "isinf")
def _is_what(g, node, x):
    if not g.dtype(x).is_floating_point:
        return g.full(g.shape(node), False, torch.bool)
    return g.op("IsNaN" if "isnan" in str(node.target) else "IsInf", g.value(x))


@_row("logical_not")
def _logical_not(g, node, x):
    return g.op("Not", g.operand(x, torch.bool))


@_row("bitwise_not")
def _bitwise_not(g, node, x):
    return g.op("Not" if g.dtype(x) == torch.bool else "BitwiseNot", g.value(x))


@_row("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "_to_copy",
      "prims.convert_element_type.default")  # fmt: skip
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


_OF_BOOLEANS = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}


def _binary(op: str):
    def binary(g, node, a, b, alpha=1):
        left, right = g.operand(a, g.dtype(node)), g.operand(b, g.dtype(node))
        if g.dtype(node) == torch.bool:
            _refuse(op not in _OF_BOOLEANS, f"{op} of booleans")
            return g.op(_OF_BOOLEANS[op], left, g.op("And", right, g.scalar(bool(alpha), torch.bool)))
        if alpha != 1:
            right = g.op("Mul", right, g.scalar(alpha, g.dtype(node)))
        return g.op(op, left, right)

    return binary


for _name, _op in {"add": "Add", "sub": "Sub", "mul": "Mul"}.items():
    _row(_name + ".Tensor", _name + ".Scalar")(_binary(_op))
_row("div.Tensor", "div.Scalar")(_binary("Div"))
_row("maximum")(_binary("Max"))
_row("minimum")(_binary("Min"))


def _is_negative(g, value: str, zero: str) -> str:
    """Returns a truth value: whether the sign of `value` is set, also if `value` is a zero."""
    is_negative_zero = g.op("And", g.op("Equal", value, zero), g.op("Less", g.op("Reciprocal", value), zero))
    return g.op("Or", g.op("Less", value, zero), is_negative_zero)


@_row("atan2")
def _atan2(g, node, a, b):
    dtype = g.dtype(node)
    _refuse(dtype == torch.float64, "Atan of float64")
    y, x, zero = g.operand(a, dtype), g.operand(b, dtype), g.scalar(0, dtype)
    is_below, is_left = _is_negative(g, y, zero), _is_negative(g, x, zero)
    # The ratio of two infinities is 1 or -1. If y is 0, the ratio is a zero that keeps its sign.
    diagonal = g.op("Where", g.op("Xor", is_below, is_left), g.scalar(-1, dtype), g.scalar(1, dtype))
    ratio = g.op("Where", g.op("And", g.op("IsInf", y), g.op("IsInf", x)), diagonal, g.op("Div", y, x))
    on_axis = g.op("And", g.op("Equal", y, zero), g.op("Equal", x, x))
    ratio = g.op("Where", on_axis, g.op("Where", is_left, g.op("Neg", y), y), ratio)
    half_turn = g.op("Where", is_below, g.scalar(-math.pi, dtype), g.scalar(math.pi, dtype))
    angle = g.op("Atan", ratio)
    return g.op("Where", is_left, g.op("Add", angle, half_turn), angle)


@_row("rsub.Scalar", "rsub.Tensor")
def _rsub(g, node, a, b, alpha=1):
    _refuse(alpha != 1, "alpha is not 1")
    return _binary("Sub")(g, node, b, a)


def _toward_zero(g, value: str) -> str:
    """Returns the whole number next to `value` in the direction of 0, with the sign of `value`."""
    is_negative = g.op("Less", value, g.op("Sub", value, value))
    return g.op("Where", is_negative, g.op("Ceil", value), g.op("Floor", value))


def _left_over(g, x: str, y: str, dtype: torch.dtype) -> str:
    """Computes C's fmod. A remainder of 0 also has the dividend's sign."""
    left_over = g.op("Mod", x, y, fmod=1)
    if not dtype.is_floating_point:
        return left_over
    zero = g.scalar(0, dtype)
    return g.op("Where", g.op("Equal", left_over, zero), g.op("Mul", x, zero), left_over)


def _is_of_other_sign(g, left_over: str, y: str, zero: str) -> str:
    """Returns a truth value: whether a remainder is not 0 and has another sign than the divisor.
    The remainder comes with the dividend's sign."""
    signs = g.op("Xor", g.op("Less", left_over, zero), g.op("Less", y, zero))
    return g.op("And", g.op("Not", g.op("Equal", left_over, zero)), signs)


@_row("div.Tensor_mode", "div.Scalar_mode", "floor_divide")
def _div_mode(g, node, a, b, rounding_mode="floor"):
    """Computes torch's quotient from the remainder, like div_floor_floating() of
    aten/src/ATen/native/cpu/BinaryOpsKernel.cpp. The floor of the rounded quotient may be another
    number: 1.0 // 0.1 is 9."""
    dtype = g.dtype(node)
    if rounding_mode is None:
        return _binary("Div")(g, node, a, b)
    _refuse(dtype == torch.bool, "a rounded quotient of booleans")
    made = dtype
    if dtype in (torch.float16, torch.bfloat16) and (rounding_mode == "trunc" or not isinstance(b, torch.fx.Node)):
        dtype = torch.float32  # eager does not round a Python number to 16 bits
    x, y = g.operand(a, dtype), g.operand(b, dtype)
    quotient = g.op("Div", x, y)
    if rounding_mode == "trunc":
        if made != dtype and isinstance(b, torch.fx.Node):  # eager rounds a quotient of tensors
            quotient = g.cast(g.cast(quotient, dtype, made), made, dtype)
        return g.cast(_toward_zero(g, quotient), dtype, made) if dtype.is_floating_point else quotient
    if dtype == torch.uint8:
        return quotient
    zero, one = g.scalar(0, dtype), g.scalar(1, dtype)
    if not dtype.is_floating_point:
        left_over = g.op("Sub", x, g.op("Mul", quotient, y))
        lower = g.op("Sub", quotient, one)
        return g.op("Where", _is_of_other_sign(g, left_over, y, zero), lower, quotient)
    left_over = _left_over(g, x, y, dtype)
    whole = g.op("Div", g.op("Sub", x, left_over), y)
    whole = g.op("Where", _is_of_other_sign(g, left_over, y, zero), g.op("Sub", whole, one), whole)
    floor = g.op("Floor", whole)
    is_above = g.op("Greater", g.op("Sub", whole, floor), g.scalar(0.5, dtype))
    floor = g.op("Where", is_above, g.op("Add", floor, one), floor)
    floor = g.op("Where", g.op("Equal", whole, zero), g.op("Mul", quotient, zero), floor)
    return g.cast(g.op("Where", g.op("Equal", y, zero), quotient, floor), dtype, made)


@_row("remainder.Scalar", "remainder.Tensor")
def _remainder(g, node, a, b):
    dtype = g.dtype(node)
    x, y = g.operand(a, dtype), g.operand(b, dtype)
    if not dtype.is_floating_point:
        return g.op("Mod", x, y)
    left_over = _left_over(g, x, y, dtype)
    is_other = _is_of_other_sign(g, left_over, y, g.scalar(0, dtype))
    return g.op("Where", is_other, g.op("Add", left_over, y), left_over)


@_row("fmod.Scalar", "fmod.Tensor")
def _fmod(g, node, a, b):
    return _left_over(g, g.operand(a, g.dtype(node)), g.operand(b, g.dtype(node)), g.dtype(node))


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
    # In float16 eager computes roots with pow(), and pow(-inf, 0.5) is inf.
    if dtype in (torch.float32, torch.float64, torch.bfloat16) and exponent in (0.5, -0.5, -1):
        root = value if exponent == -1 else g.op("Sqrt", value)
        return root if exponent == 0.5 else g.op("Reciprocal", root)
    return g.op("Pow", value, g.operand(exponent, dtype))


@_row("pow.Scalar")
def _pow_scalar(g, node, base, x):
    return g.op("Pow", g.scalar(base, g.dtype(node)), g.operand(x, g.dtype(node)))


@_row("log2", "log10")
def _log_base(g, node, x):
    base, dtype = 2 if "log2" in str(node.target) else 10, g.dtype(node)
    return g.op("Mul", g.op("Log", g.operand(x, dtype)), g.scalar(1 / math.log(base), dtype))


@_row("trunc")
def _trunc(g, node, x):
    return _toward_zero(g, g.value(x)) if g.dtype(node).is_floating_point else g.value(x)


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
    if not dtype.is_floating_point and dtype != torch.bool:
        limits = torch.iinfo(dtype)
        if isinstance(low, (int, float)):  # a bound outside of the type's range has no effect
            _refuse(low > limits.max, f"the lower bound {low} of {dtype}")
            low = None if low < limits.min else low
        if isinstance(high, (int, float)):
            _refuse(high < limits.min, f"the upper bound {high} of {dtype}")
            high = None if high > limits.max else high
    value = g.operand(x, dtype)
    for op, bound in (("Max", low), ("Min", high)):
        if bound is not None:
            op = _OF_BOOLEANS[op] if dtype == torch.bool else op
            value = g.op(op, value, g.operand(bound, dtype))
    return value


@_row("silu")
def _silu(g, node, x):
    return g.op("Mul", g.value(x), g.op("Sigmoid", g.value(x)))


@_row("gelu")
def _gelu(g, node, x, approximate="none"):
    return g.op("Gelu", g.value(x), approximate=approximate)


@_row("leaky_relu")
def _leaky_relu(g, node, x, slope=0.01):
    value, dtype = g.value(x), g.dtype(node)
    if dtype != torch.float64:
        return g.op("LeakyRelu", value, alpha=float(slope))
    below = g.op("Mul", value, g.scalar(slope, dtype))
    return g.op("Where", g.op("Greater", value, g.scalar(0, dtype)), value, below)


@_row("elu")
def _elu(g, node, x, alpha=1, scale=1, input_scale=1):
    value, dtype = g.value(x), g.dtype(node)
    if scale == 1 and input_scale == 1 and (dtype != torch.float64 or alpha == 1):
        return g.op("Elu", value, alpha=float(alpha))
    below = g.op("Elu", g.op("Mul", value, g.scalar(input_scale, dtype)))
    below = g.op("Mul", below, g.scalar(float(alpha) * float(scale), dtype))
    above = g.op("Mul", value, g.scalar(scale, dtype))
    return g.op("Where", g.op("Greater", value, g.scalar(0, dtype)), above, below)


@_row("softplus")
def _softplus(g, node, x, beta=1, threshold=20):
    """Computes torch's softplus, which is x above the threshold. With beta 1 and the usual
    threshold of 20, the logarithm rounds to x there; no comparison with the threshold is needed."""
    value, dtype = g.value(x), g.dtype(node)
    times = value if beta == 1 else g.op("Mul", value, g.scalar(beta, dtype))
    result = g.op("Softplus", times)
    if beta != 1:
        result = g.op("Div", result, g.scalar(beta, dtype))
    if threshold == 20 and beta == 1 and dtype != torch.float64:
        return result
    return g.op("Where", g.op("Greater", times, g.scalar(threshold, dtype)), value, result)


@_row("prelu", "_prelu_kernel")
def _prelu(g, node, x, slope):
    value, factor, dtype = g.value(x), g.value(slope), g.dtype(node)
    if len(g.shape(slope)) == 1 and len(g.shape(x)) > 1:
        factor = g.reshape(factor, [-1] + [1] * (len(g.shape(x)) - 2))
    # ONNX's PRelu keeps a zero as it is; torch multiplies the zero by the slope.
    return g.op("Where", g.op("Greater", value, g.scalar(0, dtype)), value, g.op("Mul", value, factor))


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


# Tensors that are made of numbers which the shapes decide. Tensors of other numbers are constants.


@_row("arange.start_step")
def _arange(g, node, start, end, step=1, **_):
    whole = not any(isinstance(each, (float, torch.SymFloat)) for each in (start, end, step))
    _refuse(not whole, "places that are no integers")
    places = g.op("Range", *(g.scalar(each, torch.int64) for each in (start, end, step)))
    return g.cast(places, torch.int64, g.dtype(node))


@_row("full")
def _full(g, node, size, value, **_):
    return g.op("Expand", g.scalar(value, g.dtype(node)), g.integers(size))


@_row("scalar_tensor")
def _scalar_tensor(g, node, value, **_):
    return g.scalar(value, g.dtype(node))


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


def _bounds(start, end, extent) -> tuple:
    """Returns the first element and one past the last element that Python's slice takes of
    `extent`; both may be symbolic. Each comparison of a symbolic number becomes a torch guard."""

    def within(place, absent):
        place = absent if place is None else place + extent if place < 0 else place
        return 0 if place < 0 else extent if place > extent else place

    start, end = within(start, 0), within(end, extent)
    return start, start if end < start else end


def _part(g, value: str, axis: int, start: int, end: int, step: int = 1) -> str:
    return g.op("Slice", value, *(g.integers([each]) for each in (start, end, axis, step)))


@_row("slice.Tensor", "narrow")
def _slice(g, node, x, dim=0, start=None, end=None, step=1):
    extent = g.shape(x)[dim]
    if "narrow" in str(node.target):
        end = start + end
    start, end = _bounds(start, end, extent)
    return _part(g, g.value(x), _axis(dim, len(g.shape(x))), start, end, step)


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
    start, end = _bounds(start, end, shape[axis])
    middle = list(shape)
    middle[axis] = end - start
    parts = []
    if start > 0:
        parts.append(_part(g, g.value(x), axis, 0, start))
    if end > start:
        value = g.cast(g.value(source), g.dtype(source), g.dtype(node))
        parts.append(g.reshape(value, middle))
    if end < shape[axis]:
        parts.append(_part(g, g.value(x), axis, end, shape[axis]))
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
    channels, height, width = g.shape(x)[-3:]
    if "unshuffle" in str(node.target):
        parts = [-1, channels, height // factor, factor, width // factor, factor]
        turned = g.op("Transpose", g.reshape(g.value(x), parts), perm=[0, 1, 3, 5, 2, 4])
        return g.reshape(turned, g.shape(node))
    images = g.reshape(g.value(x), [-1, channels, height, width])
    return g.reshape(g.op("DepthToSpace", images, blocksize=factor, mode="CRD"), g.shape(node))


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
    # The indexed dimensions are moved to the front. GatherND then takes a tuple of indices for each
    # element of the result.
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
    # In any.dims and all.dims [] means no dimension; in other overloads it means all dimensions.
    if dims == [] and ".dims" in str(node.target):
        return g.operand(x, torch.bool)
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


def _of_one(row):
    """Extends a row to tensors without a dimension. A tensor without a dimension is computed as a
    tensor of shape [1], along its only dimension."""

    def of_one(g, node, x, *args, **named):
        if g.shape(x):
            return row(g, node, g.value(x), g.dtype(x), g.shape(x), *args, **named)
        result = row(g, node, g.reshape(g.value(x), [1]), g.dtype(x), [1], *args, **named)
        return [g.reshape(each, []) for each in result] if isinstance(result, list) else g.reshape(result, [])

    return of_one


@_row("max.dim", "min.dim")
@_of_one
def _max_dim(g, node, value, dtype, shape, dim, keep=False):
    name = "Max" if ".max" in str(node.target) else "Min"
    rank = len(shape)
    values = _reduced(g, value, "Reduce" + name, dim, keep, rank)
    return [values, g.op("Arg" + name, value, axis=_axis(dim, rank), keepdims=int(keep))]


@_row("topk")
@_of_one
def _topk(g, node, value, dtype, shape, k, dim=-1, largest=True, ordered=True):
    axis = _axis(dim, len(shape))
    count = g.integers([k])
    return g.op("TopK", value, count, outputs=2, axis=axis, largest=int(largest), sorted=1)


@_row("cumsum")
@_of_one
def _cumsum(g, node, value, found, shape, dim, **_):
    value = g.cast(value, found, g.dtype(node))
    return g.op("CumSum", value, g.scalar(_axis(dim, len(shape)), torch.int64))


@_row("_softmax", "softmax.int", "_log_softmax", "log_softmax.int")
@_of_one
def _softmax(g, node, value, dtype, shape, dim, *_, **__):
    op = "LogSoftmax" if "log_softmax" in str(node.target) else "Softmax"
    return g.op(op, g.cast(value, dtype, g.dtype(node)), axis=_axis(dim, len(shape)))


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
    _refuse(g.dtype(x) in (torch.int16, torch.int8, torch.uint8), f"a convolution of {g.dtype(x)}")
    each = lambda values: list(values) * (rank if len(values) == 1 else 1)  # noqa: E731
    attributes = {"strides": each(stride), "dilations": each(dilation), "pads": each(padding) * 2}
    inputs = [g.value(x), g.value(weight)] + ([] if bias is None else [g.value(bias)])
    if transposed:
        attributes["output_padding"] = each(output_padding)
    op = "ConvTranspose" if transposed else "Conv"
    return g.op(op, *inputs, group=groups, **attributes)


@_row("_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention",
      "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention")  # fmt: skip
def _attention(g, node, query, key, value, *args, **named):
    whole = str(node.target).startswith("aten.scaled_dot_product_attention")
    named = {**dict(zip([each.name for each in node.target._schema.arguments[3:]], args)), **named}
    mask, causal = named.get("attn_mask", named.get("attn_bias")), bool(named.get("is_causal"))
    _refuse(named.get("dropout_p"), "dropout while training")
    _refuse(any(len(g.shape(each)) != 4 for each in (query, key, value)), "not of four dimensions")
    # torch aligns the causal triangle with the first query, ONNX with the last query.
    _refuse(causal and g.shape(query)[2] != g.shape(key)[2], "causal, with other keys than queries")
    attributes = {"is_causal": int(causal)}
    inputs = [g.value(each) for each in (query, key, value)]
    if named.get("scale") is not None:
        attributes["scale"] = float(named["scale"])
        if g.dtype(node if whole else query) == torch.float64:  # an attribute is a float32
            attributes["scale"] = 1.0
            inputs[0] = g.op("Mul", inputs[0], g.scalar(named["scale"], torch.float64))
    if mask is not None:
        inputs.append(g.value(mask))
    result = g.op("Attention", *inputs, **attributes)
    return result if whole else [result] + [None] * (len(node.meta["val"]) - 1)


# Normalization. Autocast gives tensors of 16 bits and parameters of float32; a normalization is
# then computed in float32.


def _widest(g, x, *parameters) -> torch.dtype:
    dtype = g.dtype(x)
    for each in parameters:
        if each is not None:
            dtype = torch.promote_types(dtype, g.dtype(each))
    return dtype


def _over_deviation(g, off: str, variance: str, epsilon: float, scale: Optional[str], shift: Optional[str]) -> str:
    """Returns a normalization of float64. No attribute of ONNX can hold its epsilon, because
    attributes are float32."""
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(epsilon, torch.float64)))
    value = g.op("Div", off, deviation)
    value = value if scale is None else g.op("Mul", value, scale)
    return value if shift is None else g.op("Add", value, shift)


def _variance(g, off: str, axes: Sequence[int], rank: int) -> str:
    return _reduced(g, g.op("Mul", off, off), "ReduceMean", axes, True, rank)


@_row("_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def _batch_norm(g, node, x, weight, bias, mean, variance, momentum, epsilon):
    channels, dtype = g.shape(x)[1], _widest(g, x, weight, bias, mean, variance)
    if dtype == torch.float64:
        by_channel = lambda each: g.reshape(g.operand(each, dtype), [channels] + [1] * (len(g.shape(x)) - 2))  # noqa: E731
        off = g.op("Sub", g.value(x), by_channel(mean))
        scale, shift = (None if each is None else by_channel(each) for each in (weight, bias))
        return [_over_deviation(g, off, by_channel(variance), epsilon, scale, shift), None, None]
    scale = g.full([channels], 1, dtype) if weight is None else g.operand(weight, dtype)
    shift = g.full([channels], 0, dtype) if bias is None else g.operand(bias, dtype)
    inputs = [g.operand(x, dtype), scale, shift, g.operand(mean, dtype), g.operand(variance, dtype)]
    result = g.op("BatchNormalization", *inputs, epsilon=float(epsilon))
    return [g.cast(result, dtype, g.dtype(x)), None, None]


@_row("_native_batch_norm_legit.no_stats")
def _norm_of_batch(g, node, x, weight, bias, training, momentum, epsilon):
    rank, dtype = len(g.shape(x)), _widest(g, x, weight, bias)
    axes = [d for d in range(rank) if d != 1]
    given = g.operand(x, dtype)
    mean = _reduced(g, given, "ReduceMean", axes, True, rank)
    off = g.op("Sub", given, mean)
    variance = _variance(g, off, axes, rank)
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(epsilon, dtype)))
    value = g.op("Div", off, deviation)
    for op, factor in (("Mul", weight), ("Add", bias)):
        if factor is not None:
            value = g.op(op, value, g.reshape(g.operand(factor, dtype), [-1] + [1] * (rank - 2)))
    return [g.cast(value, dtype, g.dtype(x)), None, None]


@_row("native_layer_norm", "layer_norm")
def _layer_norm(g, node, x, shape, weight=None, bias=None, epsilon=1e-5, *_):
    dtype, rank = _widest(g, x, weight, bias), len(g.shape(x))
    if dtype == torch.float64:
        axes = list(range(rank - len(shape), rank))
        off = g.op("Sub", g.value(x), _reduced(g, g.value(x), "ReduceMean", axes, True, rank))
        scale, shift = (None if each is None else g.value(each) for each in (weight, bias))
        result = _over_deviation(g, off, _variance(g, off, axes, rank), epsilon, scale, shift)
        return result if isinstance(node.meta["val"], torch.Tensor) else [result, None, None]
    scale = g.full(shape, 1, dtype) if weight is None else g.operand(weight, dtype)
    inputs = [g.operand(x, dtype), scale] + ([] if bias is None else [g.operand(bias, dtype)])
    result = g.op("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(epsilon))
    result = g.cast(result, dtype, g.dtype(x))
    return result if isinstance(node.meta["val"], torch.Tensor) else [result, None, None]


@_row("rms_norm", "_fused_rms_norm")
def _rms_norm(g, node, x, shape, weight=None, epsilon=None):
    value = node.meta["val"]
    made = (value if isinstance(value, torch.Tensor) else value[0]).dtype
    dtype = torch.promote_types(_widest(g, x, weight), made)
    scale = g.full(shape, 1, dtype) if weight is None else g.operand(weight, dtype)
    least = torch.finfo(g.dtype(x)).eps if epsilon is None else float(epsilon)
    if dtype == torch.float64:
        rank = len(g.shape(x))
        squares = _variance(g, g.value(x), list(range(rank - len(shape), rank)), rank)
        result = _over_deviation(g, g.value(x), squares, least, scale, None)
        return result if isinstance(value, torch.Tensor) else [result, None]
    result = g.op("RMSNormalization", g.operand(x, dtype), scale, axis=-len(shape), epsilon=least)
    result = g.cast(result, dtype, made)
    return result if isinstance(node.meta["val"], torch.Tensor) else [result, None]


@_row("native_group_norm", "group_norm")
def _group_norm(g, node, x, *args):
    whole = "native" not in str(node.target)
    groups, weight, bias, epsilon = (
        (args[0], *(list(args[1:4]) + [None, None, 1e-5][len(args) - 1:])) if whole
        else (args[5], args[0], args[1], args[6])
    )  # fmt: skip
    channels, dtype = g.shape(x)[1], _widest(g, x, weight, bias)
    if dtype == torch.float64:
        shape = g.shape(x)
        parts = g.reshape(g.value(x), [shape[0], groups, -1])
        off = g.op("Sub", parts, _reduced(g, parts, "ReduceMean", [2], True, 3))
        deviation = g.op("Sqrt", g.op("Add", _variance(g, off, [2], 3), g.scalar(epsilon, dtype)))
        result = g.reshape(g.op("Div", off, deviation), shape)
        for op, factor in (("Mul", weight), ("Add", bias)):
            if factor is not None:
                result = g.op(op, result, g.reshape(g.value(factor), [-1] + [1] * (len(shape) - 2)))
        return result if whole else [result, None, None]
    scale = g.full([channels], 1, dtype) if weight is None else g.operand(weight, dtype)
    shift = g.full([channels], 0, dtype) if bias is None else g.operand(bias, dtype)
    inputs = [g.operand(x, dtype), scale, shift]
    result = g.op("GroupNormalization", *inputs, num_groups=groups, epsilon=float(epsilon))
    result = g.cast(result, dtype, g.dtype(x))
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
    _refuse(not g.dtype(x).is_floating_point, f"an average of {g.dtype(x)}")
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
    _refuse(len(g.shape(x)) != len(size) + 2, "a pooling without a batch")
    kernel = [e // i for e, i in zip(extents, into)]
    return g.op("AveragePool", g.value(x), kernel_shape=kernel, strides=kernel)


def _factors(name: str, args: Sequence, axes: int) -> List[Optional[float]]:
    """Returns the scale factor of each resized axis; None if the extents decide the factor."""
    given = list(args[0] or []) if name.endswith(".vec") and args else list(args)
    return given + [None] * (axes - len(given))


def _nearest_places(x, shape: Sequence[int], factors: Sequence[Optional[float]], axis: int) -> List[int]:
    """Returns the places that eager torch reads along an axis.

    torch resizes a tensor of the places' numbers here, because torch's formula differs by rank,
    memory format, and which extents stay.
    """
    value, spatial = x.meta["val"], len(shape) - 2
    resize = getattr(torch.ops.aten, f"upsample_nearest{spatial}d").default
    with unset_fake_temporarily():
        along = [value.shape[d] if d == axis else 1 for d in range(len(shape))]
        numbers = torch.arange(value.shape[axis], dtype=torch.float64).reshape(along)
        numbers = numbers.expand(1, 4, *value.shape[2:]).contiguous()
        if spatial == 2 and torch._prims_common.suggest_memory_format(value) == torch.channels_last:
            numbers = numbers.contiguous(memory_format=torch.channels_last)
        found = resize(numbers, shape[2:], *factors)[0, 0]
    return found.movedim(axis - 2, 0).reshape(shape[axis], -1)[:, 0].long().tolist()


def _refuse_unless_doubled(found: torch.SymInt, made: torch.SymInt, factor: Optional[float]) -> None:
    """Refuses a resize of symbolic extents unless the factor is a power of two. Eager rounds the
    places in float32, so that the places of another factor are not known."""
    both = isinstance(found, torch.SymInt) and isinstance(made, torch.SymInt)
    times = made.node.hint // found.node.hint if both else 0
    doubled = times > 0 and times & (times - 1) == 0 and factor in (None, times) and made == times * found
    _refuse(not doubled, f"a resize from {found} to {made}, which is not by a power of two")


@_row(*(f"upsample_nearest{axes}d{which}" for axes in (1, 2, 3) for which in ("", ".vec")))
def _upsample_nearest(g, node, x, size, *args):
    shape, found = g.shape(node), g.shape(x)
    factors = _factors(str(node.target), args, len(shape) - 2)
    value, between = g.value(x), list(found)
    for axis in range(2, len(shape)):
        if is_symbolic(found[axis]) or is_symbolic(shape[axis]):
            _refuse_unless_doubled(found[axis], shape[axis], factors[axis - 2])
            between[axis] = shape[axis]
            continue
        places = _nearest_places(x, shape, factors, axis)
        if places == [i * found[axis] // shape[axis] for i in range(shape[axis])]:
            between[axis] = shape[axis]
        elif places != list(range(found[axis])):
            value = g.op("Gather", value, g.integers(places), axis=axis)
            found = found[:axis] + [shape[axis]] + found[axis + 1 :]
            between[axis] = shape[axis]
    if between == found:
        return value
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.op("Resize", value, "", "", g.integers(shape), **attributes)


@_row("upsample_bilinear2d.vec", "upsample_bilinear2d", "upsample_bicubic2d.vec", "upsample_bicubic2d")
def _upsample(g, node, x, size, corners, *args):
    name, shape, found = str(node.target), g.shape(node), g.shape(x)
    _refuse(not g.dtype(x).is_floating_point, f"a weighted mean of {g.dtype(x)}")
    if "bilinear" in name and shape == found:  # eager then copies, whatever the factors are
        return g.value(x)
    factors = _factors(name, args, 2)
    place = ["", "", g.integers(shape)]
    if any(each is not None for each in factors) and not corners:
        symbolic = any(map(is_symbolic, found[2:] + shape[2:]))
        fraction = any(each != int(each or 0) for each in factors)
        _refuse(symbolic and fraction, "a resize of symbolic extents by a fraction")
        extents = list(zip(factors, found[2:], shape[2:]))
        of = [float(factor) if factor else out / inside for factor, inside, out in extents]
        if "bilinear" in name:  # eager does not scale an axis whose extent stays
            of = [1.0 if inside == out else each for each, (_, inside, out) in zip(of, extents)]
        scales = torch.tensor([1.0, 1.0] + of, dtype=torch.float32)
        # A whole scale as an int keeps symbolic extents integers.
        whole = lambda scale: int(scale) if scale == int(scale) else scale  # noqa: E731
        made = [math.floor(extent * whole(scale)) for extent, scale in zip(found, scales.tolist())]
        _refuse(made != shape, f"scale factors {of} that give the shape {made}")
        place = ["", g.constant(scales)]
    attributes = {
        "mode": "cubic" if "bicubic" in name else "linear",
        "coordinate_transformation_mode": "align_corners" if corners else "half_pixel",
    }
    if "bicubic" in name:
        attributes["cubic_coeff_a"] = -0.75
    return g.op("Resize", g.value(x), *place, **attributes)
