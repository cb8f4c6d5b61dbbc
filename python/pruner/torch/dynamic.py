"""Graphs whose extents are symbols: what the symbols are in a call, and a module for each range of them."""

import logging
import threading
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import torch

from pruner import _program
from pruner.torch.extents import is_symbolic
from pruner.torch.runtime import CompiledGraph, Options, Ranges, dims_of, warn_once
from pruner.torch.verify import Watch

log = logging.getLogger("pruner.torch")

_MOST_RANGES = 8
_MOST_REFUSED = 2  # ranges of a graph; then it has modules of one shape
_MOST_VERIFIED = 8  # shapes of a graph that are compared with eager's at their first call
_LEAST_END = 8  # a range ends here or above, so that batches of 2, 3 and 5 are one module


class Symbols:
    """The symbols of a graph and where a call's arguments show their values. NotImplementedError: an input has an
    extent that is no symbol but computed from some, which ONNX has no form for."""

    def __init__(self, graph: torch.fx.Graph):
        self._places: Dict[str, Tuple[int, int]] = {}  # an argument and an axis of it
        # The values of each that torch's guards let through; None: there is no greatest one.
        self.bounds: Dict[str, Tuple[int, Optional[int]]] = {}
        for i, node in enumerate(graph.find_nodes(op="placeholder")):
            value = node.meta.get("val")
            for axis, extent in enumerate(value.shape if isinstance(value, torch.Tensor) else []):
                if is_symbolic(extent):
                    self._add(node.name, extent, (i, axis))

    def _add(self, input_name: str, extent: torch.SymInt, place: Tuple[int, int]) -> None:
        symbol = extent.node.expr
        if not symbol.is_Symbol:
            raise NotImplementedError(f"the input {input_name} has an extent of {symbol}")
        self._places.setdefault(str(symbol), place)
        allowed = extent.node.shape_env.var_to_range[symbol]
        end = int(allowed.upper) if allowed.upper.is_Integer else None
        self.bounds[str(symbol)] = (max(int(allowed.lower), 1), end)

    def values(self, args: Sequence) -> Dict[str, int]:
        """The value of each symbol in a call with these arguments."""
        return {name: int(args[i].shape[axis]) for name, (i, axis) in self._places.items()}

    def ranges_around(self, values: Dict[str, int]) -> List[Ranges]:
        """The ranges that a module may be compiled for, widest first: up to the next power of two, from the least
        value that torch lets through, or from the power of two below."""
        wide, narrow = {}, {}
        for name, value in values.items():
            least, most = self.bounds[name]
            end = max(1 << (value - 1).bit_length(), _LEAST_END)
            end = end if most is None else max(value, min(end, most))
            wide[name] = (min(least, value), end)
            narrow[name] = (max(least, 1 << (value.bit_length() - 1)), end)
        return [wide, narrow] if narrow != wide else [wide]


def ranges_of(program: torch.export.ExportedProgram) -> Ranges:
    """The ranges that a program was exported for. NotImplementedError: one has no end."""
    ranges = {}
    for name, (low, high) in Symbols(program.graph_module.graph).bounds.items():
        if high is None:
            raise NotImplementedError(f"the dimension {name} has no end; give one, as torch.export.Dim(name, max=512)")
        ranges[name] = (low, high)
    return ranges


def _holds(ranges: Ranges, values: Dict[str, int]) -> bool:
    return all(low <= values[name] <= high for name, (low, high) in ranges.items())


class ByRange:
    """A graph of symbolic shapes: a module for each range of them that is called, and `otherwise` where a range cannot
    be compiled."""

    def __init__(
        self,
        gm: torch.fx.GraphModule,
        static: Sequence[int],
        options: Options,
        watch: Optional[Watch],
        otherwise: Callable,
    ):
        self._gm, self._static, self._options, self._watch = gm, list(static), options, watch
        self._otherwise = otherwise
        self._symbols = Symbols(gm.graph)
        self._compiled: List[Tuple[Ranges, CompiledGraph]] = []
        self._refused: List[Ranges] = []
        self._verified: List[Dict[str, int]] = []
        self._lock = threading.Lock()

    def __call__(self, *args):
        values = self._symbols.values(args)
        while (call := self._call_at(values)) is not None:
            try:
                outputs = call(*args)
            except (NotImplementedError, _program.PrunerError, OSError) as error:
                self._refuse(call, error)
                continue
            if self._watch is not None and values not in self._verified and len(self._verified) < _MOST_VERIFIED:
                self._verified.append(values)
                self._watch.is_due = True
            return outputs
        return self._otherwise(*args)

    def _call_at(self, values: Dict[str, int]) -> Optional[CompiledGraph]:
        """The graph of a range that holds these values; None: none can be made."""
        if (call := self._made_for(values)) is not None:
            return call
        with self._lock:
            if (call := self._made_for(values)) is not None:  # another thread has made it meanwhile
                return call
            if len(self._refused) >= _MOST_REFUSED or len(self._compiled) >= _MOST_RANGES:
                return None
            untried = [each for each in self._symbols.ranges_around(values) if each not in self._refused]
            if not untried:
                return None
            call = CompiledGraph(self._gm, self._static, self._options, self._watch, untried[0])
            self._compiled.append((untried[0], call))
            return call

    def _made_for(self, values: Dict[str, int]) -> Optional[CompiledGraph]:
        return next((call for ranges, call in self._compiled if _holds(ranges, values)), None)

    def _refuse(self, call: CompiledGraph, error: Exception) -> None:
        with self._lock:
            for ranges, each in self._compiled:
                if each is call:
                    self._refused.append(ranges)
                    warn_once(f"a graph has no module for {', '.join(dims_of(ranges))}: {error}")
            self._compiled = [each for each in self._compiled if each[1] is not call]
