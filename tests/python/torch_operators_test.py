"""Each row of python/pruner/torch/operators.py against eager torch: a call of the operator is one node of a
graph, which is compiled and compared element by element.

Integers and booleans are compared exactly. Floats are compared by the error relative to each element; NaN,
infinities and the sign of a zero have to be eager's. The results of sums have a floor: a share of the largest
input or output. PRUNER_LONG_TESTS=N takes all types of each row with N seeds; the short run draws a type and two calls of
each row.

Needs torch 2.11 or newer; PRUNER says where the program is.
"""

import os
import random
import re
import tempfile
import unittest
import warnings
from typing import NamedTuple

from recent_torch import torch  # first: it finds the package, too

import operator

from torch._subclasses.fake_tensor import FakeTensorMode

import pruner.torch
from pruner import _program
from pruner.module import Module
from pruner.torch.importer import Importer, unsupported, write_onnx

LONG = bool(os.environ.get("PRUNER_LONG_TESTS"))
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
ALL = FLOATS + INTEGERS + [torch.bool]

# Some units in the last place: eager's own functions have one to four.
RELATIVE = {torch.float32: 2e-6, torch.float64: 1e-14, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def special(dtype):
    """The values that functions get wrong: both zeros, tiny, large, infinite, NaN, halves, negative integers."""
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        of = torch.iinfo(dtype)
        values = {0, 1, 2, 3, 5, 7, 20, 100, 127, of.max, of.max - 1, of.min, of.min + 1, 200, 255, 1000, -1, -2, -3, -7,
                  -20, -100, -128, 2**31 - 1, 2**33 + 1, -(2**33) - 1}  # fmt: skip
        return torch.tensor(sorted(v for v in values if of.min <= v <= of.max), dtype=dtype)
    of = torch.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 2, -2, 3, -3, 7, -7, 0.1, -0.1, 0.3, 1 / 3, 1e-3, -1e-3,
              1e-4, -1e-4, 20, -20, 20.5, 88, -88, 100, -100, 1000.0, -1000.0, of.tiny, -of.tiny, of.max, -of.max,
              float("inf"), -float("inf"), float("nan"), of.tiny * 4, of.eps, -of.eps, 1 + of.eps, 1 - of.eps]  # fmt: skip
    if dtype in (torch.float32, torch.float64):
        values += [1e-10, -1e-10, 1e-30, 1e10, -1e10, 1e30, 16777217.0, -16777216.0]
    return torch.tensor(values, dtype=dtype)


class Values:
    """Tensors of one type for the arguments of a call."""

    def __init__(self, dtype, seed=0):
        self.dtype = dtype
        self._draws = torch.Generator().manual_seed(seed)
        self.special = special(dtype)
        self.columns, self.rows = self.special[:, None], self.special[None, :]

    def __call__(self, *shape):
        """Values near 1, of both signs, with a spread."""
        return self._of(shape, torch.randn(shape, generator=self._draws, dtype=torch.float64) * 3)

    def positive(self, *shape):
        return self._of(shape, torch.rand(shape, generator=self._draws, dtype=torch.float64) * 3 + 0.25)

    def apart(self, *shape):
        """Values that differ from each other, so that the place of the largest is one place."""
        count = int(torch.Size(shape).numel())
        drawn = torch.randperm(count, generator=self._draws).reshape(shape)
        return (drawn - count // 2).to(self.dtype) if self.dtype.is_signed else drawn.to(self.dtype)

    def _of(self, shape, drawn):
        if self.dtype == torch.bool:
            return drawn > 1
        return drawn.abs().to(self.dtype) if self.dtype == torch.uint8 else drawn.to(self.dtype)

    def index(self, most, *shape):
        return torch.randint(-most if most else 0, most or 1, shape, generator=self._draws)

    def place(self, most, *shape):
        return torch.randint(0, most, shape, generator=self._draws)

    def strided(self):
        """The same kind of values in tensors that lie anyhow: transposed, stepped, expanded, with an offset."""
        return [self(4, 3).t(), self(3, 8)[:, ::2], self(3, 1).expand(3, 4), self(1).expand(2, 3), self(5, 4)[2:]]

    def shapes(self):
        return [self(), self(1), self(1, 1), self(3, 1, 2), self(0), self(2, 0, 3)]


class Call(NamedTuple):
    """One call of an operator. `floor`: the share of the largest element of the inputs and of the output that an error
    may have, for sums."""

    args: tuple
    named: dict = {}
    floor: float = 0.0
    outputs: int = 0  # how many of several are compared; 0: all
    signs: bool = True  # whether the sign of a zero is eager's; of two equal zeros either may be the largest


def call(*args, floor=0.0, outputs=0, signs=True, **named):
    return Call(args, named, floor, outputs, signs)


_SUM = 1.0  # in units of RELATIVE of the type

TABLE = {}


def rows(*names, types=ALL):
    def add(function):
        for name in names:
            TABLE["aten." + (name if "." in name else name + ".default")] = (function, types)
        return function

    return add


UNARY = """relu abs neg exp log sqrt reciprocal sin cos tan asin acos atan sinh cosh asinh acosh atanh tanh sigmoid erf
floor ceil round sign isnan isinf logical_not hardswish mish bitwise_not hardsigmoid rsqrt log1p expm1 log2 log10 trunc silu
gelu leaky_relu elu softplus relu6 hardtanh clone alias detach lift_fresh_copy contiguous zeros_like ones_like""".split()
PERIODIC = ("sin", "cos", "tan")


@rows(*[name for name in UNARY if name not in PERIODIC])
def _unary(v):
    return [call(each) for each in [v.special, *v.shapes(), *v.strided()]]


@rows("log1p")
def _log1p(v):
    """Eager loses the sign of the smallest normal number."""
    return [call(each, signs=False) for each in [v.special, *v.shapes(), *v.strided()]]


@rows(*PERIODIC)
def _periodic(v):
    # torch's own vectors are off beyond some 1e4 turns.
    near = v.special[v.special.isfinite() & (v.special.abs() < 1e3)] if v.dtype.is_floating_point else v(4)
    return [call(each) for each in [near, *v.shapes(), *v.strided()]]


@rows("gelu", types=FLOATS)
def _gelu(v):
    """Eager's tail of 1 + erf(x) has an absolute error, and its gelu of inf is NaN."""
    near = v.special[~(v.special.abs() > 25)]
    calls = [call(near, approximate=how) for how in ("none", "tanh")] + [call(v(3, 1).expand(3, 4))]
    return [each._replace(floor=_SUM) for each in calls]


@rows("hardswish", "hardsigmoid", types=FLOATS)
def _hardswish(v):
    """Near -3 the sum has few digits, eager's too."""
    return [call(each, floor=_SUM) for each in [v.special[~(v.special.abs() > 25)], *v.shapes(), *v.strided()]]


@rows("leaky_relu")
def _slopes(v):
    return [call(v.special), call(v.special, 0.25), call(v(4, 3).t(), -0.5)]


@rows("elu")
def _elu(v):
    return [call(v.special), call(v.special, 0.5), call(v(4), 1.0, 1.5), call(v(4), 1.0, 1.0, 2.0)]


@rows("softplus")
def _softplus(v):
    return [call(v.special), call(v.special, 2), call(v.special, 1, 5)]


@rows("hardtanh")
def _hardtanh(v):
    return [call(v.special), call(v.special, -2, 3), call(v(3, 1).expand(3, 4), 0, 1)]


PAIRS = """add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum atan2 fmod.Tensor remainder.Tensor floor_divide eq.Tensor
ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor bitwise_and.Tensor bitwise_or.Tensor
bitwise_xor.Tensor __and__.Tensor __or__.Tensor __xor__.Tensor""".split()


def _nonzero(v, x):
    return torch.where(x == 0, torch.ones_like(x), x) if not v.dtype.is_floating_point else x


def _divides(name):
    return any(each in name for each in ("div", "remainder", "fmod"))


def _of_moderate_quotients(x):
    """Eager's vectors give NaN for the remainder of a quotient beyond some 1e30."""
    if not x.dtype.is_floating_point:
        return x
    size = x.abs()[:, 0]
    return x[(size == 0) | ~size.isfinite() | ((size > 1e-5) & (size < 1e5))]


def _of_pairs(name):
    def pairs(v):
        right = _nonzero(v, v.rows) if _divides(name) else v.rows
        some = lambda x: _nonzero(v, x) if _divides(name) else x  # noqa: E731
        if v.dtype.is_signed and not v.dtype.is_floating_point and _divides(name):
            # The least integer by -1 has no quotient.
            right = torch.where(right == -1, torch.full_like(right, -2), right)
        signs, left = name not in ("maximum", "minimum"), v.columns
        if "fmod" in name or "remainder" in name:
            left, right = _of_moderate_quotients(left), _of_moderate_quotients(right.t()).t()
        calls = [call(left, right, signs=signs), call(v.special, v.special) if not _divides(name) else call(left[: right.shape[1], 0], right[0])]
        calls += [call(v(2, 3, 1), some(v(3, 4))), call(v(), some(v(3))), call(v(2, 0), some(v(1, 1)))]
        calls += [call(a, some(b)) for a, b in zip(v.strided(), v.strided())]
        # Promotion: another type in a tensor of one dimension and of none. All of them in a long run.
        others = ALL if LONG else random.Random(f"{name} {v.dtype}").sample(ALL, 2)
        positive = [Values(each).positive(2, 3) for each in others]
        return calls + [call(v.positive(3), x) for x in positive] + [call(v.positive(3), x[0, 0]) for x in positive]

    return pairs


for _name in PAIRS:
    rows(_name)(_of_pairs(_name))


def _number(v, which):
    if v.dtype == torch.bool:
        return True
    return [2, 3, 7, 5][which] if not v.dtype.is_floating_point else [0.1, -0.7, 3.0, 41.0][which]


def _of_scalars(name):
    def scalars(v):
        x = v.special
        if name in ("fmod", "remainder"):
            x = _of_moderate_quotients(v.columns)[:, 0]
        calls = [call(x, _number(v, i)) for i in range(4)]
        if v.dtype.is_signed:
            calls += [call(x, -3), call(x, -7)]
        calls += [call(x, 3), call(v(3, 1).expand(3, 4), 2), call(v(), 2), call(v(0), 2)]
        if not v.dtype.is_floating_point and "bitwise" not in name:
            calls += [call(v.special, 2.5), call(v.special, -0.5)]
        return calls

    return scalars


for _name in "add sub mul div fmod remainder eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor".split():
    rows(_name + ".Scalar")(_of_scalars(_name))
rows("rsub.Scalar", types=FLOATS + INTEGERS)(_of_scalars("rsub"))
rows("rsub.Tensor", types=FLOATS + INTEGERS)(_of_pairs("rsub"))


@rows("add.Tensor", "sub.Tensor")
def _scaled(v):
    alpha = True if v.dtype == torch.bool else 3
    other = Values(torch.int32 if v.dtype.is_floating_point else torch.float32)
    return _of_pairs("add")(v) + [call(v(2, 3, 1), v(3, 4), alpha=alpha, floor=_SUM), call(v(3, 2), other(3, 2)), call(v(3, 2), 3)]


@rows("div.Tensor_mode")
def _div_mode(v):
    return [call(*each.args, rounding_mode=how) for how in ("floor", "trunc", None) for each in _of_pairs("div")(v)]


@rows("div.Scalar_mode")
def _div_scalar_mode(v):
    return [call(*each.args, rounding_mode=how) for how in ("floor", "trunc", None) for each in _of_scalars("div")(v)]


@rows("pow.Tensor_Scalar")
def _pow(v):
    exponents = [2, 3, 1, 0] + ([0.5, -1, -2, 1.5, -0.5, 2.0, 1 / 3] if v.dtype.is_floating_point else [0.5])
    x = v.special
    return [call(x, each) for each in exponents] + [call(v.positive(3, 1).expand(3, 4), 2), call(v(0), 2)]


@rows("pow.Tensor_Tensor")
def _powers(v):
    if not v.dtype.is_floating_point:
        return [call(v.special, v.positive(1)), call(v(3, 1), v.positive(4))]
    few = torch.tensor([0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, float("inf"), -float("inf")], dtype=v.dtype)
    return [call(v.columns, few[None]), call(v.positive(3, 1).expand(3, 4), v(4))]


@rows("pow.Scalar")
def _powers_of(v):
    few = [x for x in v.special.tolist() if x == x and abs(x) < 30] if v.dtype != torch.bool else [True, False]
    few = torch.tensor([x for x in few if v.dtype.is_floating_point or x >= 0], dtype=v.dtype)
    return [call(2, few), call(3, few), call(0, few), call(1, few)] + (
        [call(0.5, few), call(-1.5, v(4).round())] if v.dtype.is_floating_point else []
    )


@rows("clamp", "clamp_min", "clamp_max")
def _clamps(v):
    low, high = (False, True) if v.dtype == torch.bool else (1, 5)
    return [call(x, low) for x in (v.special, v(), v(4, 3).t(), v(0))] + [call(v.special, high)]


@rows("clamp")
def _clamp(v):
    calls = [call(v.special, -2, 3), call(v.special, None, 3), call(v.special, 1), call(v.special, 3, 1)]
    return calls + ([call(v.special, -0.5, 0.25)] if v.dtype.is_floating_point else [call(v.special, 1.5, 2.5)])


@rows("clamp.Tensor")
def _clamp_tensor(v):
    return [call(v.columns, *each, signs=False) for each in ((v.rows,), (None, v.rows), (v(1, 1), v.rows))]


@rows("where.self")
def _where(v):
    condition = v.place(2, 3, 4).bool()
    other = Values(torch.float32)(4) if v.dtype != torch.float64 else v(4)
    return [call(condition, v(3, 4), v(4)), call(condition[:, :1].expand(3, 4), v(4), v()), call(condition, v(4), other)]


@rows("where.ScalarOther")
def _where_other(v):
    return [call(v.special != 1, v.special, 2), call(v.special != 1, v.special, 2.5)]


@rows("where.ScalarSelf")
def _where_self(v):
    return [call(v.special != 1, 2, v.special), call(v.special != 1, float("inf"), v.special)]


@rows("where.Scalar", types=[torch.bool])
def _where_scalars(v):
    return [call(v(3), 1, 0), call(v(3), 1.5, 0), call(v(3), True, False)]


@rows("masked_fill.Scalar")
def _masked_fill(v):
    return [call(v(3, 4), v.place(2, 3, 4).bool(), 1), call(v(3, 4).t(), v.place(2, 3).bool(), 1)] + (
        [call(v(3, 4), v.place(2, 4).bool(), -float("inf"))] if v.dtype.is_floating_point else []
    )


@rows("masked_fill.Tensor")
def _masked_fill_tensor(v):
    return [call(v(3, 4), v.place(2, 3, 4).bool(), v()), call(v(1), v.place(2, 1).bool(), v())]


@rows("full_like")
def _full_like(v):
    return [call(v(3, 4), 1), call(v(3, 4).t(), 1), call(v(2), 2, dtype=torch.float32)]


@rows("_to_copy")
def _to_copy(v):
    """Floats that no integer holds have no defined integer."""
    calls = []
    for dtype in ALL:
        x = v.special
        if v.dtype.is_floating_point and not dtype.is_floating_point and dtype != torch.bool:
            of = torch.iinfo(dtype)
            x = x[(x.double() < min(of.max, 2**24)) & (x.double() > max(of.min, -(2**24)) - 0.5) & ~x.isnan()]
            x = x if dtype.is_signed else x.abs()
        calls += [call(x, dtype=dtype), call(x[:2].expand(3, 2), dtype=dtype)]
    return calls


TABLE["prims.convert_element_type.default"] = (
    lambda v: [call(*each.args, each.named["dtype"]) for each in _to_copy(v)], ALL)


@rows("dropout")
def _dropout(v):
    return [call(v(3, 4), 0.5, False), call(v(3, 1).expand(3, 4), 0.0, True)]


@rows("copy")
def _copy(v):
    return [call(v(3, 4), v(4)), call(v(3, 4), Values(torch.int32)(3, 1)), call(v(3, 4).t(), v())]


# Shapes and places.


@rows("view", "_unsafe_view", "reshape", "view_copy")
def _view(v):
    return [call(v(3, 4), [2, 6]), call(v(3, 4), [-1]), call(v(), [1, 1]), call(v(1), []), call(v(2, 0), [0, 5])]


@rows("flatten.using_ints")
def _flatten(v):
    return [call(v(2, 3, 4), 1, 2), call(v(), 0, -1), call(v(4, 3, 2).permute(2, 1, 0), 0, 1)]


@rows("unflatten.int")
def _unflatten(v):
    return [call(v(2, 6), 1, [2, 3]), call(v(2, 6), -1, [-1, 2])]


@rows("squeeze")
def _squeeze(v):
    return [call(v(1, 3, 1)), call(v()), call(v(2, 3).t())]


@rows("squeeze.dim", "unsqueeze")
def _squeeze_dim(v):
    return [call(v(1, 3, 1), 0), call(v(1, 3, 1), -1), call(v(2, 1, 3).transpose(0, 2), 1)]


@rows("squeeze.dims")
def _squeeze_dims(v):
    return [call(v(1, 3, 1), [0, 2]), call(v(1, 3, 1), [0, 1])]


@rows("as_strided")
def _as_strided(v):
    return [call(v(3, 4), [3, 4], [4, 1]), call(v(3, 4), [4, 3], [1, 4]), call(v(3, 4).t(), [4, 3], [1, 4]),
            call(v(3, 4), [2, 2], [4, 1], 1), call(v(1, 4), [1, 4], [7, 1])]  # fmt: skip


@rows("expand", "expand_copy")
def _expand(v):
    return [call(v(3, 1), [3, 4]), call(v(3, 1), [2, -1, 4]), call(v(), [2]), call(v(1), [0]), call(v(1, 4).t(), [4, 2])]


@rows("permute")
def _permute(v):
    return [call(v(2, 3, 4), [2, 0, 1]), call(v(2, 3, 4), [-1, 0, 1]), call(v(), []), call(v(3, 1).expand(3, 4), [1, 0])]


@rows("transpose.int")
def _transpose(v):
    return [call(v(2, 3, 4), 0, 2), call(v(2, 3, 4), -1, -2), call(v(), 0, 0), call(v(3), 0, 0)]


@rows("t")
def _t(v):
    return [call(v(2, 3)), call(v(3)), call(v())]


@rows("slice.Tensor")
def _slice(v):
    x = v(5, 6)
    return [call(x, 0, 1, 3), call(x, 1, -3), call(x, -1, 0, 100, 2), call(x, 1, 1, -1, 3), call(x, 0, 4, 2), call(x.t(), 0, 1, 2)]


@rows("narrow")
def _narrow(v):
    return [call(v(5, 6), 1, 2, 3), call(v(5, 6), -1, -3, 2), call(v(5, 6).t(), 0, 0, 1), call(v(5, 6), 0, 1, 0)]


@rows("select.int")
def _select(v):
    return [call(v(5, 6), 0, 2), call(v(5, 6), -1, -1), call(v(3), 0, 1), call(v(3, 1).expand(3, 4), 1, 2)]


@rows("slice_scatter")
def _slice_scatter(v):
    return [call(v(5, 6), v(2, 6), 0, 1, 3), call(v(5, 6), v(5, 3), 1, -3), call(v(5, 6), v(5, 3), 1, 0, 6, 2), call(v(3), v(3))]


@rows("select_scatter")
def _select_scatter(v):
    return [call(v(5, 6), v(6), 0, 2), call(v(5, 6), v(5), -1, -1), call(v(3), v(), 0, 0)]


@rows("split_with_sizes", "split_with_sizes_copy")
def _split_sizes(v):
    return [call(v(5, 6), [2, 3]), call(v(5, 6), [1, 2, 3], 1), call(v(5, 6), [6], -1), call(v(5), [0, 5])]


@rows("split.Tensor", "chunk")
def _split(v):
    return [call(v(5, 6), 2), call(v(5, 6), 4, 1), call(v(5, 6).t(), 3, -1), call(v(1), 1)]


@rows("unbind.int")
def _unbind(v):
    return [call(v(2, 3)), call(v(2, 3), -1), call(v(1))]


@rows("cat")
def _cat(v):
    return [call([v(2, 3), v(1, 3)]), call([v(2, 3), v(2, 1)], -1), call([v(0), v(2, 3)]), call([v(1)]), call([v(2, 0), v(2, 3)], 1),
            call([v(3, 2).t(), v(1).expand(2, 3)], 0), call([v(2, 3), Values(torch.int32)(2, 3)])]  # fmt: skip


@rows("stack")
def _stack(v):
    return [call([v(2, 3), v(2, 3)]), call([v(2, 3), v(3, 2).t()], -1), call([v(), v()]), call([v(1)])]


@rows("repeat")
def _repeat(v):
    return [call(v(2, 3), [2, 2]), call(v(3), [2, 1, 3]), call(v(), [2]), call(v(3, 1).expand(3, 2), [1, 2]), call(v(2), [0])]


@rows("flip")
def _flip(v):
    return [call(v(2, 3, 4), [0, 2]), call(v(2, 3), [-1]), call(v(2, 3), []), call(v(1), [0])]


@rows("roll")
def _roll(v):
    return [call(v(4, 5), [2], [0]), call(v(4, 5), [-1, 7], [0, 1]), call(v(4, 5), [3]), call(v(4, 5), [0], [1]), call(v(1), [5], [0])]


@rows("constant_pad_nd")
def _pad(v):
    return [call(v(3, 4), [1, 2]), call(v(3, 4), [1, 0, 2, 1], 1), call(v(3, 4), [-1, 1]), call(v(3, 4), [0, 0]), call(v(3, 4).t(), [0, 1])]


@rows("reflection_pad1d", "replication_pad1d")
def _pad1(v):
    return [call(v(2, 3, 5), [2, 1]), call(v(3, 5), [0, 3]), call(v(2, 5, 3).transpose(1, 2), [1, 1])]


@rows("reflection_pad2d", "replication_pad2d")
def _pad2(v):
    return [call(v(2, 3, 5, 4), [2, 1, 1, 0]), call(v(3, 5, 4), [0, 3, 2, 2]), call(v(1, 1, 5, 4), [1, 1, -1, 1])]


@rows("tril", "triu")
def _triangle(v):
    return [call(v(4, 5)), call(v(2, 4, 5), 1), call(v(5, 4).t(), -2), call(v(1, 1)), call(v(4, 4), 9)]


@rows("pixel_shuffle")
def _pixel_shuffle(v):
    return [call(v(2, 8, 3, 4), 2), call(v(1, 9, 1, 2), 3), call(v(8, 3, 4), 2), call(v(2, 3, 8, 4, 2)[:, 0], 2)]


@rows("pixel_unshuffle")
def _pixel_unshuffle(v):
    return [call(v(2, 3, 4, 6), 2), call(v(3, 4, 6), 2), call(v(1, 1, 3, 3), 3)]


# Rows at indices.


@rows("embedding")
def _embedding(v):
    return [call(v(5, 3), v.place(5, 2, 4)), call(v(5, 3), v.place(5)), call(v(3, 5).t(), v.place(5, 2).int()), call(v(5, 1), v.place(5, 1))]


@rows("index_select")
def _index_select(v):
    return [call(v(5, 6), 1, v.place(6, 4)), call(v(5, 6), 0, v.place(5, 1).int()), call(v(5, 6).t(), -1, v.place(5, 3)), call(v(3), 0, v.place(3, 2))]


@rows("gather")
def _gather(v):
    return [call(v(5, 6), 1, v.place(6, 5, 2)), call(v(5, 6), 0, v.place(5, 2, 6)), call(v(5, 6).t(), -1, v.place(5, 3, 4)), call(v(3), 0, v.place(3, 2))]


@rows("index.Tensor", "_unsafe_index.Tensor")
def _index(v):
    i, j = v.index(5, 2, 3), v.index(6, 3)
    return [call(v(5, 6), [i]), call(v(5, 6), [None, j]), call(v(5, 6), [i, j]), call(v(4, 5, 6), [None, i, j]), call(v(5, 4, 6), [i, None, j]),
            call(v(5, 6), [v.index(5, 3).int()]), call(v(6, 5).t(), [i]), call(v(5), [v.index(5)])]  # fmt: skip


# Reductions.


@rows("sum", "prod", "mean")
def _sum(v):
    return [call(x, floor=_SUM) for x in (v(3, 4), v(), v(1), v(4, 3).t(), v(3, 1).expand(3, 4))] + [call(v.positive(40)), call(v(0))]


@rows("sum")
def _sum_of(v):
    return _sum(v) + [call(v(3, 4), dtype=torch.float32, floor=_SUM), call(v(3, 4), dtype=torch.int32), call(v.special)]


@rows("sum.dim_IntList", "mean.dim")
def _sum_dim(v):
    return [call(v(3, 4, 5), [1], floor=_SUM), call(v(3, 4, 5), [0, -1], True, floor=_SUM), call(v(3, 4), [], floor=_SUM), call(v(3, 4), None, floor=_SUM),
            call(v(3, 1).expand(3, 4), [1], floor=_SUM), call(v(3, 1), [1]), call(v(), [0]), call(v(3, 0), [1]), call(v.special, [0])]  # fmt: skip


@rows("prod.dim_int")
def _prod_dim(v):
    return [call(v(3, 4), 1), call(v(3, 4), 0, True), call(v(4, 3).t(), -1), call(v(), 0), call(v.special, 0)]


@rows("amax", "amin")
def _amax(v):
    return [call(v(3, 4)), call(v(3, 4), [1]), call(v(3, 4, 5), [0, -1], True), call(v.special), call(v.columns, [1]), call(v(), []), call(v(3, 1).expand(3, 4), [0])]


@rows("max", "min")
def _max(v):
    return [call(v(3, 4)), call(v.special), call(v()), call(v(1)), call(v(4, 3).t())]


@rows("any", "all")
def _any(v):
    return [call(v(3, 4)), call(v.special), call(v()), call(v(0)), call(torch.zeros(3, dtype=v.dtype)), call(v(3, 1).expand(3, 4))]


@rows("any.dim", "all.dim")
def _any_dim(v):
    return [call(v(3, 4), 1), call(v.columns, -1, True), call(v(4, 3).t(), 0), call(v(), 0), call(v(3, 0), 1)]


@rows("any.dims", "all.dims")
def _any_dims(v):
    return [call(v(3, 4, 5), [0, 2]), call(v(3, 4), [1], True), call(v(3, 4), None), call(v(3, 4), [])]


@rows("var.correction", "std.correction", "var_mean.correction")
def _var(v):
    return [call(v(3, 5), [1], floor=_SUM), call(v(3, 5), None, correction=0, floor=_SUM), call(v(3, 5), [0], correction=1, keepdim=True, floor=_SUM),
            call(v(5, 3).t(), [-1], correction=2, floor=_SUM), call(v(3, 1), [1], correction=0), call(v(3, 1), [1]), call(v(3, 5) + 100, [1], floor=_SUM)]  # fmt: skip


@rows("argmax", "argmin")
def _arg(v):
    return [call(v.apart(3, 4)), call(v.apart(3, 4), 1), call(v.apart(3, 4), 0, True), call(v.apart(4, 3).t(), -1), call(v()), call(v(1)), call(v.special), call(v(3, 3), 1)]


@rows("max.dim", "min.dim")
def _max_dim(v):
    return [call(v.apart(3, 4), 1), call(v.apart(3, 4), 0, True), call(v.apart(4, 3).t(), -1), call(v(), 0), call(v.special, 0)]


@rows("topk")
def _topk(v):
    return [call(v.apart(3, 6), 2), call(v.apart(3, 6), 3, 0), call(v.apart(3, 6), 6, -1, False), call(v.apart(6, 3).t(), 2), call(v(), 1), call(v.apart(7), 1, 0, True, False),
            call(v.special.unique()[1:4], 2)]  # fmt: skip


@rows("cumsum")
def _cumsum(v):
    return [call(v(3, 4), 1, floor=_SUM), call(v(3, 4), 0, floor=_SUM), call(v(4, 3).t(), -1, floor=_SUM), call(v(), 0), call(v(1), 0), call(v(3, 4), 0, dtype=torch.float32, floor=_SUM)]


@rows("_softmax", "_log_softmax", types=FLOATS + INTEGERS)
def _softmax(v):
    wide = torch.tensor([[0, 10, -10, 80], [1, 1, 1, 1], [-60000, 3, 2, 1], [60000, 1, -1, 59999]]).to(v.dtype)
    calls = [call(v(3, 4), 1, False), call(v(3, 4), 0, False), call(v(4, 3).t(), -1, False), call(v(), 0, False), call(v(1), 0, False), call(wide, 1, False), call(v(0), 0, False)]
    return [each._replace(floor=_SUM) for each in calls]


@rows("softmax.int", "log_softmax.int", types=FLOATS + INTEGERS)
def _softmax_int(v):
    return [each._replace(args=each.args[:2]) for each in _softmax(v)] + [call(v(3, 4), 1, torch.float32, floor=_SUM)]


# Products.


@rows("mm")
def _mm(v):
    return [call(v(3, 4), v(4, 5), floor=_SUM), call(v(4, 3).t(), v(5, 4).t(), floor=_SUM), call(v(1, 1), v(1, 1)), call(v(3, 1).expand(3, 4), v(4, 1), floor=_SUM), call(v(3, 0), v(0, 2))]


@rows("bmm")
def _bmm(v):
    return [call(v(2, 3, 4), v(2, 4, 5), floor=_SUM), call(v(2, 4, 3).transpose(1, 2), v(1, 4, 5).expand(2, 4, 5), floor=_SUM), call(v(1, 1, 1), v(1, 1, 1))]


@rows("matmul")
def _matmul(v):
    return [call(v(3, 4), v(4, 5), floor=_SUM), call(v(4), v(4), floor=_SUM), call(v(2, 3, 4), v(4), floor=_SUM), call(v(4), v(2, 4, 3), floor=_SUM), call(v(2, 1, 3, 4), v(5, 4, 2), floor=_SUM)]


@rows("addmm")
def _addmm(v):
    return [call(v(5), v(3, 4), v(4, 5), floor=_SUM), call(v(3, 5), v(4, 3).t(), v(4, 5), beta=2, alpha=3, floor=_SUM), call(v(), v(3, 4), v(4, 5), beta=0, floor=_SUM)]


@rows("baddbmm")
def _baddbmm(v):
    return [call(v(5), v(2, 3, 4), v(2, 4, 5), floor=_SUM), call(v(2, 3, 5), v(2, 3, 4), v(2, 4, 5), beta=2, alpha=3, floor=_SUM), call(v(2, 1, 5), v(2, 3, 4), v(2, 4, 5), beta=0, floor=_SUM)]


@rows("linear")
def _linear(v):
    return [call(v(3, 4), v(5, 4), floor=_SUM), call(v(2, 3, 4), v(5, 4), v(5), floor=_SUM), call(v(4), v(5, 4), v(5), floor=_SUM), call(v(4, 3).t(), v(4, 1).t().expand(5, 4), floor=_SUM)]


@rows("convolution")
def _convolution(v):
    plain = lambda n, **k: [[k.get("s", 1)] * n, [k.get("p", 0)] * n, [k.get("d", 1)] * n, k.get("t", False), [k.get("o", 0)] * n, k.get("g", 1)]  # noqa: E731
    return [call(v(2, 3, 7, 8), v(4, 3, 3, 3), v(4), *plain(2, p=1), floor=_SUM), call(v(1, 4, 7, 8), v(4, 2, 3, 3), None, *plain(2, s=2, g=2), floor=_SUM),
            call(v(2, 3, 9), v(4, 3, 3), None, *plain(1, d=2), floor=_SUM), call(v(1, 2, 4, 5, 6), v(3, 2, 2, 2, 2), v(3), *plain(3), floor=_SUM),
            call(v(2, 3, 5, 5), v(3, 4, 3, 3), v(4), *plain(2, s=2, t=True, o=1), floor=_SUM), call(v(1, 1, 1, 1), v(1, 1, 1, 1), None, *plain(2)),
            call(v(2, 7, 8, 3).permute(0, 3, 1, 2), v(4, 3, 1, 1), None, *plain(2), floor=_SUM), call(v(3, 7, 8), v(4, 3, 3, 3), None, *plain(2), floor=_SUM)]  # fmt: skip


@rows("_scaled_dot_product_flash_attention_for_cpu", types=FLOATS)
def _flash(v):
    q = v(2, 4, 5, 8)
    return [call(q, v(2, 4, 5, 8), v(2, 4, 5, 8), 0.0, causal, floor=_SUM * 4, outputs=1) for causal in (False, True)] + [
        call(q, v(2, 4, 7, 8), v(2, 4, 7, 8), scale=0.3, floor=_SUM * 4, outputs=1),
        call(q, v(2, 4, 7, 8), v(2, 4, 7, 8), attn_mask=v(2, 1, 5, 7), floor=_SUM * 4, outputs=1)]  # fmt: skip


@rows("scaled_dot_product_attention", types=FLOATS)
def _attention(v):
    q, k = v(2, 4, 5, 8), v(2, 4, 7, 8)
    return [call(q, k, k, floor=_SUM * 4), call(q, k, k, v.place(2, 2, 1, 5, 7).bool() | torch.eye(5, 7).bool(), floor=_SUM * 4), call(q, k, k, v(5, 7), floor=_SUM * 4),
            call(q, q, q, None, 0.0, True, floor=_SUM * 4), call(q, k, k, scale=0.3, floor=_SUM * 4), call(q[0], k[0], k[0], floor=_SUM * 4),
            call(q, v(2, 2, 7, 8), v(2, 2, 7, 8), enable_gqa=True, floor=_SUM * 4)]  # fmt: skip


# Normalization.


@rows("_native_batch_norm_legit_no_training", types=FLOATS)
def _batch_norm(v):
    c = lambda: v(3)  # noqa: E731
    calls = [call(v(2, 3, 4, 5), c(), c(), c(), v.positive(3), 0.1, 1e-5, floor=_SUM, outputs=1), call(v(2, 3), None, None, c(), v.positive(3), 0.1, 1e-3, floor=_SUM, outputs=1)]
    single = Values(torch.float32)
    mixed = call(v(2, 3, 4), single(3), single(3), single(3), single.positive(3), 0.1, 1e-5, floor=_SUM, outputs=1)
    return calls + ([mixed] if v.dtype != torch.float64 else [])


@rows("_native_batch_norm_legit.no_stats", types=FLOATS)
def _batch_norm_alone(v):
    return [call(v(4, 3, 4, 5), v(3), v(3), True, 0.1, 1e-5, floor=_SUM * 4, outputs=1), call(v(4, 3, 2), None, None, True, 0.1, 1e-3, floor=_SUM * 4, outputs=1)]


def _singles(v):
    return [] if v.dtype == torch.float64 else [Values(torch.float32)]


@rows("native_layer_norm", types=FLOATS)
def _layer_norm(v):
    calls = [call(v(2, 3, 8), [8], v(8), v(8), 1e-5, floor=_SUM * 4, outputs=1), call(v(2, 3, 8), [3, 8], None, None, 1e-3, floor=_SUM * 4, outputs=1),
             call(v(8, 3).t(), [8], v(8), None, 1e-5, floor=_SUM * 4, outputs=1)]  # fmt: skip
    return calls + [call(v(2, 3, 8), [8], s(8), s(8), 1e-5, floor=_SUM * 4, outputs=1) for s in _singles(v)]


@rows("layer_norm", types=FLOATS)
def _whole_layer_norm(v):
    return [call(v(2, 3, 8), [8], v(8), v(8), 1e-5, floor=_SUM * 4), call(v(2, 3, 8), [3, 8], floor=_SUM * 4), call(v(2, 8), [8], v(8), floor=_SUM * 4)]


@rows("rms_norm", types=FLOATS)
def _rms_norm(v):
    return [call(v(2, 3, 8), [8], v(8), 1e-5, floor=_SUM), call(v(2, 3, 8), [3, 8], floor=_SUM), call(v(8, 3).t(), [8], v(8), floor=_SUM)]


@rows("_fused_rms_norm", types=FLOATS)
def _fused_rms_norm(v):
    return [call(v(2, 3, 8), [8], v(8), 1e-5, floor=_SUM, outputs=1), call(v(2, 3, 8), [3, 8], None, None, floor=_SUM, outputs=1)]


@rows("native_group_norm", types=FLOATS)
def _group_norm(v):
    calls = [call(v(2, 6, 5), v(6), v(6), 2, 6, 5, 3, 1e-5, floor=_SUM * 4, outputs=1), call(v(2, 6, 4, 5), None, None, 2, 6, 20, 2, 1e-3, floor=_SUM * 4, outputs=1)]
    return calls + [call(v(2, 6, 5), s(6), s(6), 2, 6, 5, 3, 1e-5, floor=_SUM * 4, outputs=1) for s in _singles(v)]


@rows("group_norm", types=FLOATS)
def _whole_group_norm(v):
    return [call(v(2, 6, 5), 3, v(6), v(6), 1e-5, floor=_SUM * 4), call(v(2, 6, 4, 5), 2, floor=_SUM * 4), call(v(2, 6, 5), 3, v(6), floor=_SUM * 4)]


@rows("prelu")
def _prelu(v):
    return [call(v(2, 3, 4), v(3)), call(v(2, 3), v(1)), call(v(4), v(1)), call(v.special, v(1))]


@rows("_prelu_kernel")
def _prelu_kernel(v):
    return [call(v(2, 3, 4), v(1, 3, 1)), call(v.special, v(1))]


# Windows.


@rows("max_pool2d_with_indices")
def _max_pool(v):
    x = v(2, 3, 8, 9)
    return [call(x, [2, 3], outputs=1), call(x, [3], [2], [1], outputs=1), call(x, [3, 3], [2, 2], [1, 1], [1, 1], True, outputs=1), call(x, [2, 2], [1, 1], [0, 0], [2, 2], outputs=1),
            call(x[0], [2, 2], outputs=1), call(v(2, 9, 8, 3).permute(0, 3, 2, 1), [2, 2], outputs=1), call(v(1, 1, 1, 1), [1, 1], outputs=1)]  # fmt: skip


@rows("max_pool2d")
def _max_pool2d(v):
    return [each._replace(outputs=0) for each in _max_pool(v)]


@rows("max_pool3d_with_indices")
def _max_pool3(v):
    x = v(2, 3, 4, 5, 6)
    return [call(x, [2, 2, 2], outputs=1), call(x, [3], [2], [1], outputs=1), call(x, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], True, outputs=1)]


@rows("max_pool3d")
def _max_pool3d(v):
    return [each._replace(outputs=0) for each in _max_pool3(v)]


@rows("avg_pool1d")
def _avg_pool1(v):
    return [call(v(2, 3, 9), [3], floor=_SUM), call(v(2, 3, 9), [2], [2], [1], True, False, floor=_SUM), call(v(3, 9), [3], floor=_SUM), call(v(2, 3, 9), [3], [2], [1], True, True, floor=_SUM)]


@rows("avg_pool2d")
def _avg_pool2(v):
    x = v(2, 3, 8, 9)
    return [call(x, [2, 3], floor=_SUM), call(x, [3], [2], [1], floor=_SUM), call(x, [3, 3], [2, 2], [1, 1], True, floor=_SUM), call(x, [3, 3], [2, 2], [1, 1], True, False, floor=_SUM),
            call(x, [2, 2], [2, 2], [0, 0], False, True, 3, floor=_SUM)]  # fmt: skip


@rows("avg_pool3d")
def _avg_pool3(v):
    return [call(v(2, 3, 4, 5, 6), [2, 2, 2], floor=_SUM), call(v(2, 3, 4, 5, 6), [3], [2], [1], False, False, floor=_SUM)]


@rows("_adaptive_avg_pool2d", "adaptive_avg_pool2d")
def _adaptive2(v):
    return [call(v(2, 3, 8, 6), [1, 1], floor=_SUM), call(v(2, 3, 8, 6), [4, 3], floor=_SUM), call(v(2, 3, 8, 6), [8, 6]), call(v(2, 3, 8, 6), [5, 4], floor=_SUM), call(v(3, 8, 6), [1, 1], floor=_SUM),
            call(v(3, 8, 6), [4, 3], floor=_SUM)]  # fmt: skip


@rows("_adaptive_avg_pool3d")
def _adaptive3(v):
    return [call(v(2, 3, 4, 8, 6), [1, 1, 1], floor=_SUM), call(v(2, 3, 4, 8, 6), [2, 4, 3], floor=_SUM)]


@rows("adaptive_avg_pool1d")
def _adaptive1(v):
    return [call(v(2, 3, 8), [1], floor=_SUM), call(v(2, 3, 8), [4], floor=_SUM), call(v(3, 8), [2], floor=_SUM)]


@rows("upsample_nearest2d.vec")
def _nearest_vec(v):
    x = v(2, 3, 5, 6)
    return [call(x, [7, 20], None), call(x, None, [2.0, 2.0]), call(x, None, [0.5, 1.7]), call(x, None, [1.1, 1.15]), call(v(1, 1, 1, 1), [3, 3], None), call(x, None, [1.05, 1.19])]


@rows("upsample_nearest2d")
def _nearest(v):
    x = v(2, 3, 5, 6)
    return [call(x, [7, 20]), call(x, [10, 12], 2.0, 2.0), call(x, [5, 6], 1.1, 1.15), call(x, [5, 7], 1.1, 1.19), call(x, [2, 10], 0.5, 1.7), call(x, [3, 3]), call(v(2, 5, 6, 3).permute(0, 3, 1, 2), [7, 7]),
            call(x, [5, 7], None, 1.19)]  # fmt: skip


@rows("upsample_bilinear2d.vec", "upsample_bicubic2d.vec")
def _linear_vec(v):
    x = v(2, 3, 5, 6)
    return [call(x, [7, 20], False, None, floor=_SUM * 4), call(x, [7, 20], True, None, floor=_SUM * 4), call(x, None, False, [2.0, 2.0], floor=_SUM * 4), call(x, None, True, [2.0, 1.5], floor=_SUM * 4), call(x, None, False, [1.1, 1.4], floor=_SUM * 4),
            call(x, None, False, [0.5, 1.7], floor=_SUM * 4), call(x, [1, 1], True, None, floor=_SUM * 4), call(x, None, False, [1.1, 1.15], floor=_SUM * 4)]  # fmt: skip


@rows("upsample_bilinear2d", "upsample_bicubic2d")
def _linear2(v):
    x = v(2, 3, 5, 6)
    return [call(x, [7, 20], False, floor=_SUM * 4), call(x, [7, 20], True, floor=_SUM * 4), call(x, [5, 6], False, 1.1, 1.15, floor=_SUM * 4), call(x, [10, 10], False, 2.0, 1.7, floor=_SUM * 4),
            call(x, [3, 2], False, floor=_SUM * 4), call(x, [5, 7], False, None, 1.19, floor=_SUM * 4)]  # fmt: skip


@rows("upsample_nearest1d.vec")
def _nearest1_vec(v):
    return [call(v(2, 3, 5), [7], None), call(v(2, 3, 5), None, [1.1]), call(v(2, 3, 5), None, [2.0])]


@rows("upsample_nearest1d")
def _nearest1(v):
    return [call(v(2, 3, 5), [7]), call(v(2, 3, 5), [5], 1.1), call(v(2, 3, 5), [8], 1.7)]


@rows("upsample_nearest3d.vec")
def _nearest3_vec(v):
    return [call(v(1, 2, 3, 4, 5), [4, 4, 7], None), call(v(1, 2, 3, 4, 5), None, [1.1, 2.0, 1.7])]


@rows("upsample_nearest3d")
def _nearest3(v):
    return [call(v(1, 2, 3, 4, 5), [4, 4, 7]), call(v(1, 2, 3, 4, 5), [3, 8, 8], 1.1, 2.0, 1.7)]


# Rows that CPUs do not run in eager.
# What these make is a constant, unless the shapes decide it: tests/python/torch_dynamic_test.py has such graphs.
OF_SYMBOLS = ("aten.arange.start_step", "aten.full.default", "aten.scalar_tensor.default")
NOT_ON_CPUS = ("aten.cudnn_batch_norm.default", "aten._scaled_dot_product_fused_attention_overrideable.default")


def overload(name):
    namespace, packet, which = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), which)


class Node(NamedTuple):
    """A call that is in the graph, with what eager makes of it."""

    row: str
    dtype: torch.dtype
    made: Call
    wanted: list

    def __str__(self):
        text = lambda x: f"{str(x.dtype)[6:]}{list(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)  # noqa: E731
        args = ", ".join([text(each) if not isinstance(each, list) else f"[{', '.join(map(text, each))}]" for each in self.made.args])
        return f"{self.row}({args}, {self.made.named})"


def is_tensor(x):
    return isinstance(x, torch.Tensor)


def nodes_of(row, dtype, seed=0):
    """The calls of a row with this type that eager takes."""
    function, _ = TABLE[row]
    target, found = overload(row), []
    for each in function(Values(dtype, seed)):
        try:
            result = target(*each.args, **each.named)
        except (RuntimeError, TypeError, NotImplementedError, IndexError, ValueError):
            continue
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        results = results[: each.outputs or len(results)]
        if all(map(is_tensor, results)):
            found.append(Node(row, dtype, each, results))
    return found


class Graph:
    """Calls as one graph, as AOT autograd would give it."""

    def __init__(self, nodes):
        self.graph, self.inputs, self.calls, self.outputs = torch.fx.Graph(), [], {}, []
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._known = {}
        for node in nodes:
            self._add(node)
        self.graph.output([out for _, each in self.outputs for out in each])

    def _placeholder(self, x):
        if id(x) not in self._known:
            made = self._known[id(x)] = self.graph.placeholder(f"in_{len(self.inputs)}")
            made.meta["val"] = self._mode.from_tensor(x)
            self.inputs.append(x)
        return self._known[id(x)]

    def _add(self, node):
        given = (node.made.args, node.made.named)
        args, named = torch.fx.node.map_aggregate(given, lambda x: self._placeholder(x) if is_tensor(x) else x)
        target = overload(node.row)
        made = self.graph.call_function(target, args, named)
        fake, fake_named = torch.fx.node.map_arg((args, named), lambda n: n.meta["val"])
        with self._mode:
            made.meta["val"] = target(*fake, **fake_named)
        outs = [made]
        if isinstance(made.meta["val"], (list, tuple)):
            outs = []
            for i in range(len(node.wanted)):
                out = self.graph.call_function(operator.getitem, (made, i))
                out.meta["val"] = made.meta["val"][i]
                outs.append(out)
        self.calls[made] = node
        self.outputs.append((node, outs))



def refused(nodes):
    """The calls that their rows refuse, by the node's identity, each with the reason."""
    graph = Graph(nodes)
    reasons, found = unsupported(graph.graph), {}
    for made, node in graph.calls.items():
        why = [reasons[each] for each in (made, *made.users) if each in reasons]
        if why:
            found[id(node)] = why[0]
    return found


def call_that_makes(nodes, value):
    """The call one of whose values in the ONNX file has this name."""
    graph = Graph(nodes)
    importer = Importer("names")
    number = int(value.lstrip("v"))
    for made in graph.graph.nodes:
        if made.op == "placeholder":
            importer.set(made, made.name)
        elif made.op == "call_function":
            importer.call(made)
            if importer._count >= number:
                return graph.calls.get(made) or graph.calls[made.args[0]]
    raise AssertionError(value)


def compiled(nodes, folder):
    """What the calls give, one list a node, the calls that rows refuse and those that only the program refuses."""
    by_row, by_program = refused(nodes), {}
    nodes = [node for node in nodes if id(node) not in by_row]
    while nodes:
        graph = Graph(nodes)
        path = os.path.join(folder, "model.onnx")
        write_onnx(graph.graph, path, {})
        try:
            _program.run(["compile", path, "--no-check", "--force", "-o", path + ".so"])
        except _program.PrunerError as error:
            found = re.search(r'that makes "(v\d+)', str(error))
            if not found:
                raise
            wrong = call_that_makes(nodes, found.group(1))
            by_program[id(wrong)] = f"{wrong}: {error}"
            nodes = [node for node in nodes if node is not wrong]
            continue
        module = Module(path + ".so", 2)
        specs = [out.meta["val"] for _, each in graph.outputs for out in each]
        outputs = [torch.empty(y.shape, dtype=y.dtype) for y in specs]
        inputs = [x.contiguous() for x in graph.inputs]
        module.run_pointers([x.data_ptr() for x in inputs], [y.data_ptr() for y in outputs])
        left = iter(outputs)
        return [(node, [next(left) for _ in each]) for node, each in graph.outputs], by_row, by_program
    return [], by_row, by_program


def difference(found, wanted, made):
    """What is wrong with an output, or "". What is not far from subnormal may be zero, as a factor may be."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)} for {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.is_floating_point:
        least = torch.finfo(wanted.dtype).tiny * (128 if wanted.dtype != torch.float16 else 1)
        x, y = found.double(), wanted.double()
        # Sums differ by roundings of their terms, which are inputs.
        terms = [y, *(each.double() for each in made.args if is_tensor(each))] if made.floor else []
        largest = [each[each.isfinite()].abs().max().item() for each in terms if each.isfinite().any()]
        share = RELATIVE[wanted.dtype]
        bound = share * y.abs() + made.floor * share * max(largest, default=0)
        right = ((x - y).abs() <= bound.clamp(min=least)) | (x == y) | (x.isnan() & y.isnan())
        right &= (y != 0) | (x != 0) | (x.signbit() == y.signbit()) | (not made.signs or made.floor > 0)
    else:
        right = found == wanted
    if right.all():
        return ""
    wrong = (~right).reshape(-1).nonzero().reshape(-1)
    at = [f"[{i}] {found.reshape(-1)[i].item()!r} for {wanted.reshape(-1)[i].item()!r}" for i in wrong[:4].tolist()]
    return f"{len(wrong)} of {right.numel()}: " + ", ".join(at)


class Rows(unittest.TestCase):
    """Every row of the table; what it refuses stays in eager, which is right."""

    def test_have_a_case_each(self):
        rows_of_table = set(pruner.torch.operators())
        self.assertEqual(rows_of_table - set(TABLE) - set(NOT_ON_CPUS) - set(OF_SYMBOLS), set())
        self.assertEqual(set(TABLE) - rows_of_table, set())

    def agree(self, nodes):
        with tempfile.TemporaryDirectory() as folder:
            found, by_row, by_program = compiled(nodes, folder)
        # A row has to refuse what the program would, or the whole graph stays in eager for it.
        self.assertEqual(list(by_program.values()), [])
        wrong = []
        for node, outputs in found:
            differences = [difference(x, y, node.made) for x, y in zip(outputs, node.wanted)]
            wrong += [f"{node}: {each}" for each in differences if each]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))
        return len(found), len(by_row)

    def test_agree_with_eager(self):
        torch.set_flush_denormal(True)
        self.addCleanup(torch.set_flush_denormal, False)
        draws = random.Random(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not LONG:
                few = []
                for row, (_, types) in TABLE.items():
                    drawn = draws.sample([types[0], *types], len(types))
                    nodes = next(filter(None, (nodes_of(row, dtype) for dtype in drawn)), [])
                    self.assertTrue(nodes, row)
                    few += nodes[:1] + draws.sample(nodes[1:], min(len(nodes) - 1, 1))
                self.agree(few)
                return
            for seed in range(int(os.environ["PRUNER_LONG_TESTS"])):
                for dtype in ALL:
                    taken = [row for row, (_, types) in TABLE.items() if dtype in types]
                    with self.subTest(f"{dtype}, seed {seed}"):
                        counts = self.agree([node for row in taken for node in nodes_of(row, dtype, seed)])
                        print(f"{dtype}, seed {seed}: {counts[0]} calls agree, {counts[1]} stay in eager", flush=True)


if __name__ == "__main__":
    unittest.main()
