"""Compiles graphs whose extents are symbols: finds the symbols' values in a call, and makes a
module for each range of values."""

import logging
import threading
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import torch

from pruner import _program
from pruner.torch.extents import is_symbolic
from pruner.torch.runtime import CompiledGraph, Options, Ranges, dims_of, warn_once
from pruner.torch.verify import Watch

log = logging.getLogger("pruner.torch")

_MOST_RANGES = 8  # ranges of a graph that have a module each
_MOST_REFUSED = 2  # ranges of a graph that may fail; then the graph has a module for each shape
_MOST_VERIFIED = 8  # shapes of a graph whose first call is compared with eager's
_LEAST_END = 8  # the least end of a range, so that batches of 2, 3 and 5 share one module


class Symbols:
    """The symbols of a graph, and the places in a call's arguments that show the symbols' values.

    Raises NotImplementedError if an input has an extent that is not a symbol but computed from
    symbols: ONNX has no form for such an extent.
    """

    def __init__(self, graph: torch.fx.Graph):
        self._places: Dict[str, Tuple[int, int]] = {}  # index of an argument, and one of its axes
        # The least and the greatest value of each symbol that torch's guards let through. None: the
        # guards let through every greater value.
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
        """Returns the value of each symbol in a call with these arguments."""
        return {name: int(args[i].shape[axis]) for name, (i, axis) in self._places.items()}

    def ranges_around(self, values: Dict[str, int]) -> List[Ranges]:
        """Returns the ranges around these values that a module may be compiled for, widest first.

        A range ends at the next power of two. The wide range begins at the least value that torch's
        guards let through, the narrow range at the power of two below the value.
        """
        wide, narrow = {}, {}
        for name, value in values.items():
            least, most = self.bounds[name]
            end = max(1 << (value - 1).bit_length(), _LEAST_END)
            end = end if most is None else max(value, min(end, most))
            wide[name] = (min(least, value), end)
            narrow[name] = (max(least, 1 << (value.bit_length() - 1)), end)
        return [wide, narrow] if narrow != wide else [wide]


def ranges_of(program: torch.export.ExportedProgram) -> Ranges:
    """Returns the ranges for which a program was exported. Raises NotImplementedError if a range
    has no end."""
    ranges = {}
    for name, (low, high) in Symbols(program.graph_module.graph).bounds.items():
        if high is None:
            raise NotImplementedError(f"the dimension {name} has no end; give one, as torch.export.Dim(name, max=512)")
        ranges[name] = (low, high)
    return ranges


def _holds(ranges: Ranges, values: Dict[str, int]) -> bool:
    return all(low <= values[name] <= high for name, (low, high) in ranges.items())


class ByRange:
    """A graph of symbolic shapes, with a module for each range of shapes that a call needs. If no
    range can be compiled for a call, the call goes to `otherwise`."""

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
        """Returns the graph of a range that holds these values. Makes a graph if no range holds the
        values yet. None: no graph can be made for the values."""
        if (call := self._made_for(values)) is not None:
            return call
        with self._lock:
            if (call := self._made_for(values)) is not None:  # made by another thread meanwhile
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
