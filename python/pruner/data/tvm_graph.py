"""Reads TVM's JSON form of a graph of nodes, and the compute DAGs of `te.compute` in it.

TVM writes an object as {"root": number, "nodes": [{"type_key": ..., "attrs": {...}}, ...]}. An
attribute that is another node is the number of that node, as text.
"""

import json
import re
from typing import Any, Callable, Dict, List, Optional

MAX_TEXT = 1 << 20  # characters of an expression; a graph of shared nodes can print without end
MAX_NODES = 1_000_000


class TvmGraphError(ValueError):
    """A graph that is damaged, or a node that has no form in Pruner."""


class Node:
    """A node of a graph. `node.a` is the node that the attribute `a` names."""

    def __init__(self, graph: "Graph", number: int):
        self.graph = graph
        self.number = number

    @property
    def kind(self) -> str:
        """Returns the node's type without "tir.": newer versions of TVM add it or leave it out."""
        kind = self.graph.raw(self.number).get("type_key", "")
        return kind[4:] if kind.startswith("tir.") else kind

    def text(self, key: str) -> str:
        attributes = self.graph.raw(self.number).get("attrs") or {}
        if key not in attributes:
            raise TvmGraphError(f"node {self.number}, {self.kind or 'null'}, has no \"{key}\"")
        return str(attributes[key])

    def has(self, key: str) -> bool:
        return key in (self.graph.raw(self.number).get("attrs") or {})

    def child(self, key: str) -> "Node":
        return self.graph.node(self.text(key))

    def __getattr__(self, key: str) -> "Node":
        return self.child(key)

    @property
    def string(self) -> str:
        """Returns the text of a String node, or the name of an Op node."""
        return str(self.graph.raw(self.number).get("repr_str", ""))

    def name_of(self, key: str) -> str:
        """Returns a name that is text in the attribute, or the number of a String node there."""
        text = self.text(key)
        if text.isdigit() and int(text) < len(self.graph.nodes):
            node = self.graph.node(text)
            if node.kind in ("runtime.String", "GlobalVar"):
                return node.string
        return text

    def items(self) -> List["Node"]:
        return [self.graph.node(number) for number in self.graph.raw(self.number).get("data") or []]

    def entries(self) -> Dict[str, "Node"]:
        """Returns the entries of a Map whose keys are texts."""
        raw = self.graph.raw(self.number)
        data = self.items()
        if raw.get("keys"):
            return dict(zip(raw["keys"], data))
        return {key.string: value for key, value in zip(data[::2], data[1::2])}


def _is_node(node: Any) -> bool:
    if not isinstance(node, dict) or not isinstance(node.get("type_key", ""), str):
        return False
    data, keys = node.get("data") or [], node.get("keys") or []
    lists = isinstance(data, list) and isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    return lists and isinstance(node.get("attrs") or {}, dict)


class Graph:
    def __init__(self, text: str):
        try:
            graph = json.loads(text)
            self.nodes: List[Dict[str, Any]] = graph["nodes"]
            root = graph["root"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise TvmGraphError("no graph of TVM's nodes") from None
        if not isinstance(self.nodes, list) or len(self.nodes) > MAX_NODES:
            raise TvmGraphError(f"no list of at most {MAX_NODES} nodes")
        for number, node in enumerate(self.nodes):
            if not _is_node(node):
                raise TvmGraphError(f"node {number} of the graph is damaged")
        self.root = self.node(root)

    def raw(self, number: int) -> Dict[str, Any]:
        return self.nodes[number]

    def node(self, number: Any) -> Node:
        try:
            at = int(number)
        except (TypeError, ValueError):
            at = -1
        if not 0 <= at < len(self.nodes):
            raise TvmGraphError(f"node {number!r} is not in the graph")
        return Node(self, at)


_INFIX = {
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%",
    "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "And": "&&", "Or": "||",
}  # fmt: skip
_FUNCTIONS = {"Max": "max", "Min": "min"}


def unique_name(name: str, taken: set) -> str:
    """Returns the name, with a number behind it if the name is taken, and takes it."""
    name = re.sub(r"[^A-Za-z0-9_.@]", "_", name) or "tensor"
    if name[0].isdigit():
        name = "_" + name
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


class ExprPrinter:
    """Prints expressions in the spelling that `pruner` reads."""

    def __init__(self, load: "Callable[[Node, ExprPrinter], Optional[str]]"):
        self.load = load  # gives the text of a node that reads a tensor; None: the node reads none
        self.names: Dict[int, str] = {}  # number of a node: name of its variable
        self.texts: Dict[int, str] = {}

    def __call__(self, node: Node) -> str:
        found = self.texts.get(node.number)
        if found is None:
            found = self._print(node)
            if len(found) > MAX_TEXT:
                raise TvmGraphError("an expression prints to more than a million characters")
            self.texts[node.number] = found
        return found

    def _print(self, node: Node) -> str:
        kind = node.kind
        if kind == "Var" or kind == "SizeVar":
            if node.number not in self.names:
                raise TvmGraphError(f"the variable {node.name_of('name')} is no axis of the stage")
            return self.names[node.number]
        if kind == "IntImm":
            value = int(node.text("value"))
            return ("true" if value else "false") if node.text("dtype") == "bool" else str(value)
        if kind == "FloatImm":
            return repr(float(node.text("value")))
        if kind in _INFIX:
            return f"({self(node.a)} {_INFIX[kind]} {self(node.b)})"
        if kind == "Div" and node.text("dtype").startswith(("float", "bfloat")):
            return f"({self(node.a)} / {self(node.b)})"
        if kind in _FUNCTIONS:
            return f"{_FUNCTIONS[kind]}({self(node.a)}, {self(node.b)})"
        if kind == "Not":
            return f"!({self(node.a)})"
        if kind == "Select":
            parts = (node.condition, node.true_value, node.false_value)
            return f"select({', '.join(map(self, parts))})"
        if kind == "Cast":
            return f"cast<{node.text('dtype')}>({self(node.value)})"
        if kind == "Call":
            operands = ", ".join(map(self, node.args.items()))
            return f"{node.op.string}({operands})"
        loaded = self.load(node, self)
        if loaded is None:
            raise TvmGraphError(f"the node {kind or 'null'} has no form in a stage of Pruner's")
        return loaded


def extent_of(node: Node, to_text: ExprPrinter) -> Any:
    return int(node.text("value")) if node.kind == "IntImm" else to_text(node)


def combiner_text(combiner: Node) -> str:
    """Returns a combiner such as "(x + y)" or "max(x, y)"."""
    left, right, result = (getattr(combiner, key).items() for key in ("lhs", "rhs", "result"))
    if len(left) != 1 or len(right) != 1 or len(result) != 1:
        raise TvmGraphError("a reduction to several values has no form in a stage of Pruner's")
    to_text = ExprPrinter(lambda node, _: None)
    to_text.names = {left[0].number: "x", right[0].number: "y"}
    return to_text(result[0])


class DagReader:
    """Makes the stages of a compute DAG from the tensors of `te.compute`."""

    def __init__(self, tensors: List[Node]):
        self.stages: List[Dict[str, Any]] = []
        self.names: Dict[int, str] = {}  # number of a node: name of its operation
        self.taken: set = set()
        self.open: set = set()
        for tensor in tensors:
            self.add(tensor.op)
        outputs = {self.names[tensor.op.number] for tensor in tensors}
        for stage in self.stages:
            if stage["kind"] == "compute":
                stage["output"] = stage["op"] in outputs

    def add(self, op: Node) -> str:
        """Adds an operation after the operations that it reads. Returns the operation's name."""
        if op.number in self.names:
            return self.names[op.number]
        if op.number in self.open:
            raise TvmGraphError("a stage reads itself")
        self.open.add(op.number)
        if op.kind == "PlaceholderOp":
            stage = {"kind": "placeholder", "shape": shape_of(op.shape), "dtype": op.text("dtype")}
        elif op.kind == "ComputeOp":
            stage = self.compute(op)
        else:
            raise TvmGraphError(f"the operation {op.kind or 'null'} is no placeholder or computation")
        name = unique_name(op.name_of("name"), self.taken)
        self.names[op.number] = name
        self.stages.append({"op": name, **stage})
        return name

    def compute(self, op: Node) -> Dict[str, Any]:
        def load(node: Node, to_text: ExprPrinter) -> Optional[str]:
            if node.kind != "ProducerLoad":
                return None
            indices = ", ".join(map(to_text, node.indices.items()))
            return f"{self.add(node.producer.op)}[{indices}]"

        to_text = ExprPrinter(load)
        taken: set = set()
        axes: Dict[str, List] = {}
        for key in ("axis", "reduce_axis"):
            axes[key] = []
            for axis in getattr(op, key).items():
                if extent_of(axis.dom.min, to_text) != 0:
                    raise TvmGraphError("an axis does not begin at 0")
                extent = extent_of(axis.dom.extent, to_text)
                name = unique_name(axis.var.name_of("name"), taken)
                to_text.names[axis.var.number] = name
                axes[key].append([name, extent])
        bodies = op.body.items()
        if len(bodies) != 1:
            raise TvmGraphError("a stage of several values has no form in a stage of Pruner's")
        body, dtype = bodies[0], bodies[0].text("dtype")
        if body.kind == "Reduce":
            text = self.reduction(body, to_text)
        else:
            text = to_text(body)
        stage = {"kind": "compute", "tag": op.name_of("tag"), **axes, "body": [text]}
        if dtype != "float32":
            stage["dtype"] = dtype
        return {**stage, "attrs": self.attributes(op)}

    def reduction(self, body: Node, to_text: ExprPrinter) -> str:
        if to_text(body.condition) not in ("true", "1"):
            raise TvmGraphError("a reduction has a condition")
        if body.has("init") and body.init.items():
            raise TvmGraphError("a reduction begins with a value of its own")
        sources = body.source.items()
        if len(sources) != 1:
            raise TvmGraphError("a reduction to several values has no form in a stage of Pruner's")
        names = ", ".join(to_text(axis.var) for axis in body.axis.items())
        return f"reduce[{combiner_text(body.combiner)}]({to_text(sources[0])}; axis=[{names}]; value_index=0)"

    def attributes(self, op: Node) -> Dict[str, List[str]]:
        """Returns the attributes of a stage that `pruner` reads."""
        found: Dict[str, List[str]] = {}
        if op.attrs.kind != "Map":
            return found
        for key, value in op.attrs.entries().items():
            if key == "layout_free_placeholders":
                found[key] = [self.add(tensor.op) for tensor in value.items()]
            elif key == "auto_scheduler_simplify_const_tensor_indices":
                found[key] = [name.string for name in value.items()]
        return found


def shape_of(shape: Node) -> List[int]:
    extents = shape.items()
    if any(extent.kind != "IntImm" for extent in extents):
        raise TvmGraphError("a shape has an extent that is no number")
    return [int(extent.text("value")) for extent in extents]


def target_text(target: Node) -> str:
    """Returns a target as the text that records have: "llvm -keys=cpu -mcpu=core-avx2"."""

    def value_text(value: Node) -> Optional[str]:
        if value.kind == "Array":
            return ",".join(filter(None, map(value_text, value.items()))) or None
        return value.text("value") if value.kind == "IntImm" else value.string or None

    words = [target.child("kind").name_of("name")]
    keys = ",".join(key.string for key in target.child("keys").items())
    words += [f"-keys={keys}"] if keys else []
    for key, value in sorted(target.child("attrs").entries().items()):
        text = value_text(value)
        words += [] if text is None else [f"-{key}={text}"]
    return " ".join(words)
