"""Computes extents that the shapes of a graph's inputs decide: torch.SymInt, an expression of
symbols."""

from typing import Dict, Union

import sympy
import torch

Extent = Union[int, torch.SymInt]


def is_symbolic(extent) -> bool:
    return isinstance(extent, torch.SymInt) and not extent.node.expr.is_Integer


def value_at(extent: Extent, values: Dict[str, int]) -> int:
    """Returns the extent when the symbols have these values."""
    if not is_symbolic(extent):
        return int(extent)
    expression = extent.node.expr
    return int(expression.xreplace({each: sympy.Integer(values[str(each)]) for each in expression.free_symbols}))
