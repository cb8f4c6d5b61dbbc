"""Compares compiled graphs with eager torch, which runs the module that Dynamo recorded.

The two runs share neither torch's decompositions nor the rows of operators.py.
"""

import logging
import time
from typing import Dict, Iterable, List, Optional

import torch
from torch.utils._pytree import tree_leaves

from pruner import _program
from pruner.torch import devices

log = logging.getLogger("pruner.torch")

_LAST_CALL = 1024  # the number of the last call that may be compared
# A repeated comparison begins if all repeated comparisons together take at most this share of the
# time since the first call ended. A comparison is expected to take as long as the comparison before
# it; the comparison at call 2 does not wait.
_SHARE_OF_TIME = 0.01

# Each precision has two bounds: the largest error relative to an element, and the floor. The floor
# is an error that any element may have, in parts of the largest element; sums in another order
# differ by the floor.
_BOUNDS = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-3, 2e-4),
    torch.float16: (2e-2, 2e-2),
    torch.bfloat16: (5e-2, 3e-2),
}
# The floor of a graph without sums, in roundings of the largest element.
_ROUNDINGS = 4
_SUMS = (
    "mm bmm addmm baddbmm matmul linear convolution mean sum var std var_mean cumsum softmax log_softmax norm attention"
    " pool upsample"
).split()


class Precision:
    """The precision of a graph: the least precise floating-point type of its values, and whether
    the graph computes sums."""

    def __init__(self, graph: torch.fx.Graph):
        types = [x.dtype for node in graph.nodes for x in tree_leaves(node.meta.get("val")) if _is_tensor(x)]
        floats = [each for each in types if each in _BOUNDS]
        if torch.float32 in floats and devices.may_use_tf32(graph):
            floats.append(torch.float16)  # tf32 has as many bits
        self.dtype = max(floats, key=lambda each: torch.finfo(each).eps, default=torch.float32)
        calls = [str(node.target) for node in graph.nodes if node.op == "call_function"]
        self.sums = any(name in call for call in calls for name in _SUMS)

    def joined(self, other: "Precision") -> "Precision":
        """Returns the precision of two graphs together."""
        joined = Precision(torch.fx.Graph())
        joined.dtype = max(self.dtype, other.dtype, key=lambda each: torch.finfo(each).eps)
        joined.sums = self.sums or other.sums
        return joined


def _is_tensor(x) -> bool:
    return isinstance(x, torch.Tensor)


def difference(found: Iterable, wanted: Iterable, precision: Precision) -> str:
    """Returns a text of the first difference between the outputs `found` and eager's outputs
    `wanted`, or "". Integers and booleans have to be equal."""
    for i, (x, y) in enumerate(zip(found, wanted)):
        if not _is_tensor(y) or y.device.type not in ("cpu", "cuda") or y.layout is not torch.strided:
            continue
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"output {i} is {x.dtype}{list(x.shape)}, eager's {y.dtype}{list(y.shape)}"
        if y.is_complex() or not y.is_floating_point():
            wrong = int((x != y).sum()) if not y.is_complex() else 0
            if wrong:
                return f"{wrong} of {y.numel()} elements of output {i}, which are {y.dtype}"
            continue
        exact = max(precision.dtype, y.dtype, key=lambda each: torch.finfo(each).eps if each in _BOUNDS else 0)
        share, floor = _BOUNDS.get(exact, _BOUNDS[torch.float16])
        if not precision.sums:
            floor = min(floor, _ROUNDINGS * torch.finfo(exact).eps)
        largest = y.abs().nan_to_num(0, 0, 0).max().item() if y.numel() else 0
        # Numbers below the smallest normal number count as zero.
        least = max(floor * largest, torch.finfo(y.dtype).tiny)
        if not torch.allclose(x, y, rtol=share, atol=least, equal_nan=True):
            off = (x.double() - y.double()).abs().nan_to_num(float("inf"))
            at = int((off - share * y.double().abs().nan_to_num(0)).argmax())
            pair = f"{x.reshape(-1)[at].item():.9g} for {y.reshape(-1)[at].item():.9g}"
            return f"output {i}, element {at}: {pair}, of at most {largest:.9g}"
    return ""


def _draws(node: torch.fx.Node) -> bool:
    """Returns whether an operator draws random numbers. An operator with dropout, such as
    attention, draws none if the probability is 0."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    for place, argument in enumerate(node.target._schema.arguments):
        if argument.name in ("dropout_p", "p"):
            given = node.args[place] if place < len(node.args) else argument.default_value
            return node.kwargs.get(argument.name, given) != 0
    return True


class Watch:
    """The callable that torch.compile gets. A call runs the compiled module, and compares the
    outputs with eager's when a comparison is due.

    A comparison is due at the first call, and whenever a graph has a new module, because of another
    shape, changed weights or a tuning. With verify="repeatedly" comparisons are also due at calls
    2, 4, 8 and so on to 1,024. A repeated comparison waits if the comparisons would take more than
    _SHARE_OF_TIME together.
    """

    def __init__(self, gm: torch.fx.GraphModule, verify, fallback: bool):
        self._gm, self._fallback = gm, fallback
        self._repeats = verify == "repeatedly"
        self._call = None
        self._mutated: Optional[List[int]] = []
        self._input_count = 0
        self._precision: Optional[Precision] = None
        self._calls, self._next = 0, 2
        # Seconds of all repeated comparisons together, and of the last repeated comparison.
        self._spent_s, self._last_s = 0.0, 0.0
        self._start_s = 0.0
        self._in_eager = False
        self.is_due = True
        self.comparisons = 0

    def watches(self, graph: torch.fx.Graph) -> bool:
        """Adds a graph that is compiled. Returns False if a graph draws random numbers, because
        eager would draw other numbers."""
        if any(_draws(node) for node in graph.nodes):
            self._mutated = None
        precision = Precision(graph)
        self._precision = precision if self._precision is None else self._precision.joined(precision)
        context = torch._guards.TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        if self._mutated is not None and metadata is not None:
            self._input_count = len(metadata.input_info)
            changed = [i for i, each in enumerate(metadata.input_info) if each.mutates_data or each.mutates_metadata]
            self._mutated = changed
        return self._mutated is not None

    def around(self, call):
        """Returns a callable that runs `call` and compares its outputs. Returns `call` itself if
        nothing of the model is compiled, or if nothing can be compared."""
        if self._precision is None or self._mutated is None:
            return call
        self._call = call
        return self.run

    def run(self, *args):
        if self._in_eager:
            return self._gm(*args)
        self._calls += 1
        if not self.is_due and (self._calls < self._next or not self._is_cheap()):
            outputs = self._call(*args)
            # If a module is new in this call, the outputs are compared now. A model that changes
            # inputs in place is the exception: eager cannot run again on the changed inputs.
            return self._compared(outputs, args, {}) if self.is_due and not self._mutated else outputs
        before = self._copies(args)
        outputs = self._call(*args)
        return outputs if before is None else self._compared(outputs, args, before)

    def _is_cheap(self) -> bool:
        since_s = time.perf_counter() - self._start_s
        return self._spent_s + self._last_s <= _SHARE_OF_TIME * since_s

    def _copies(self, args) -> Optional[Dict[int, torch.Tensor]]:
        """Returns copies of the inputs that the model changes in place, by their places. None:
        eager cannot run again on copies."""
        places = [i - (self._input_count - len(args)) for i in self._mutated]
        if any(i < 0 or not _is_tensor(args[i]) for i in places):
            return None
        storages = [x.untyped_storage()._cdata for x in args if _is_tensor(x) and x.layout is torch.strided]
        if any(storages.count(args[i].untyped_storage()._cdata) > 1 for i in places):
            return None
        return {i: args[i].detach().clone() for i in places}

    def _compared(self, outputs, args, before: Dict[int, torch.Tensor]):
        self.is_due = False
        repeated = self._calls > 1
        while self._next <= self._calls:
            self._next *= 2
        if not self._repeats or self._next > _LAST_CALL:
            self._next = float("inf")
        start_s = time.perf_counter()
        with torch.no_grad():
            wanted = self._gm(*(before.get(i, x) for i, x in enumerate(args)))
        found = [*tree_leaves(outputs), *(args[i] for i in before)]
        why = difference(found, [*tree_leaves(wanted), *before.values()], self._precision)
        if repeated:
            self._last_s = time.perf_counter() - start_s
            self._spent_s += self._last_s
        self.comparisons += 1
        self._start_s = self._start_s or time.perf_counter()
        if not why:
            return outputs
        why = f"outputs differ from eager's at call {self._calls}: {why}"
        if not self._fallback:
            raise _program.PrunerError(why)
        log.warning("a module of %d calls stays in eager: %s", len(self._gm.graph.nodes), why)
        self._in_eager = True
        with torch.no_grad():
            for i, copy in before.items():
                args[i].copy_(copy)
        return wanted
