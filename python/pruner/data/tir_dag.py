"""Makes compute DAGs of TensorIR functions that are not scheduled yet, as in MetaSchedule's files.

Such a function has a loop nest for each stage, around one block. The block's iterators are the
loops, and the block stores one element: a stage of a compute DAG is exactly this.
"""

from typing import Any, Dict, List, Optional

from pruner.data.tvm_graph import ExprPrinter, Node, TvmGraphError, extent_of, shape_of, unique_name

SPATIAL, REDUCE = "0", "2"  # IterVar's kinds
# The combiner of each node, and whether a number is the value that the combiner begins with. The
# bound is the greatest number of float16, the smallest of the types that MetaSchedule reduces.
_LARGE = 65504.0
_COMBINERS = {
    "Add": ("(x + y)", lambda first: first == 0),
    "Mul": ("(x * y)", lambda first: first == 1),
    "Max": ("max(x, y)", lambda first: first <= -_LARGE),
    "Min": ("min(x, y)", lambda first: first >= _LARGE),
}


def _is_null(node: Node) -> bool:
    return node.kind == ""


class TirDag:
    """The stages of the only function of an IRModule."""

    def __init__(self, module: Node):
        functions = [node for node in _values(module.functions) if node.kind == "PrimFunc"]
        if len(functions) != 1:
            raise TvmGraphError(f"the module has {len(functions)} functions, expected 1")
        self.stages: List[Dict[str, Any]] = []
        self.names: Dict[int, str] = {}  # number of a node: name of its buffer
        self.taken: set = set()
        self.written: set = set()
        function = functions[0]
        buffers = _map_items(function.buffer_map)
        parameters = [buffers[var.number] for var in function.params.items() if var.number in buffers]
        stores: List[Node] = []
        self.collect(function.body, stores)
        written = {block.body.buffer.number for block in stores}
        for buffer in parameters:
            if buffer.number not in written:
                stage = {"kind": "placeholder", "shape": shape_of(buffer.shape), "dtype": buffer.text("dtype")}
                self.stages.append({"op": self.name(buffer), **stage})
        outputs = {buffer.number for buffer in parameters}
        for block in stores:
            self.stages.append(self.compute(block, block.body.buffer.number in outputs))

    def name(self, buffer: Node) -> str:
        if buffer.number not in self.names:
            self.names[buffer.number] = unique_name(buffer.name_of("name"), self.taken)
        return self.names[buffer.number]

    def collect(self, node: Node, stores: List[Node]) -> None:
        """Adds the blocks that store an element, in their order."""
        if node.kind == "For":
            if node.text("kind") != "0":  # serial
                raise TvmGraphError("the function is scheduled already: a loop is not serial")
            return self.collect(node.body, stores)
        if node.kind == "SeqStmt":
            for each in node.seq.items():
                self.collect(each, stores)
            return None
        if node.kind != "BlockRealize":
            raise TvmGraphError(f"the statement {node.kind or 'null'} has no form in a compute DAG")
        block = node.block
        if block.body.kind != "BufferStore":
            return self.collect(block.body, stores)
        predicate = node.predicate
        if predicate.kind != "IntImm" or predicate.text("value") != "1":
            raise TvmGraphError("the function is scheduled already: a block has a predicate")
        if any(value.kind != "Var" for value in node.iter_values.items()):
            raise TvmGraphError("the function is scheduled already: a block's iterator is no loop")
        stores.append(block)
        return None

    def compute(self, block: Node, output: bool) -> Dict[str, Any]:
        def load(node: Node, to_text: ExprPrinter) -> Optional[str]:
            if node.kind != "BufferLoad":
                return None
            if node.buffer.number not in self.names:
                raise TvmGraphError("a block reads a buffer before the buffer is written")
            return f"{self.names[node.buffer.number]}[{', '.join(map(to_text, node.indices.items()))}]"

        to_text = ExprPrinter(load)
        taken: set = set()
        axes: Dict[str, List] = {SPATIAL: [], REDUCE: []}
        spatial = []
        for axis in block.iter_vars.items():
            kind = axis.text("iter_type")
            if kind not in axes:
                raise TvmGraphError("a block's iterator is neither spatial nor reduced")
            if extent_of(axis.dom.min, to_text) != 0:
                raise TvmGraphError("an axis does not begin at 0")
            name = unique_name(axis.var.name_of("name"), taken)
            axes[kind].append([name, extent_of(axis.dom.extent, to_text)])
            to_text.names[axis.var.number] = name
            if kind == SPATIAL:
                spatial.append(axis.var.number)
        store = block.body
        if [index.number for index in store.indices.items()] != spatial:
            raise TvmGraphError("a block stores at other places than its iterators")
        if store.buffer.number in self.written:
            raise TvmGraphError("two blocks write one buffer")
        if axes[REDUCE]:
            text = self.reduction(block, axes[REDUCE], to_text)
        elif not _is_null(block.init):
            raise TvmGraphError("a block without reduced iterators has a first value")
        else:
            text = to_text(store.value)
        self.written.add(store.buffer.number)
        dtype = store.buffer.text("dtype")
        stage: Dict[str, Any] = {"op": self.name(store.buffer), "kind": "compute", "tag": ""}
        stage.update({"dtype": dtype} if dtype != "float32" else {})
        stage.update({"axis": axes[SPATIAL], "reduce_axis": axes[REDUCE], "body": [text]})
        return {**stage, "attrs": {}, "output": output}

    def reduction(self, block: Node, reduce_axes: List, to_text: ExprPrinter) -> str:
        store, value = block.body, block.body.value
        if value.kind not in _COMBINERS:
            raise TvmGraphError(f"the node {value.kind or 'null'} combines no terms of a reduction")
        combiner, is_identity = _COMBINERS[value.kind]
        places = [index.number for index in store.indices.items()]
        sides = [value.a, value.b]
        sums = [side for side in sides if side.kind == "BufferLoad" and side.buffer.number == store.buffer.number
                and [index.number for index in side.indices.items()] == places]  # fmt: skip
        if len(sums) != 1 or _is_null(block.init):
            raise TvmGraphError("a reduced block does not add to its own element")
        first = block.init.value
        if first.kind not in ("IntImm", "FloatImm"):
            raise TvmGraphError("a reduction begins with a value that is no number")
        if not is_identity(float(first.text("value"))):
            raise TvmGraphError(f"a reduction {combiner} begins with {first.text('value')}")
        term = sides[1] if sides[0].number == sums[0].number else sides[0]
        names = ", ".join(name for name, _ in reduce_axes)
        return f"reduce[{combiner}]({to_text(term)}; axis=[{names}]; value_index=0)"


def _values(node: Node) -> List[Node]:
    raw = node.graph.raw(node.number)
    return node.items() if raw.get("keys") else node.items()[1::2]


def _map_items(node: Node) -> Dict[int, Node]:
    """Returns the entries of a Map whose keys are nodes, by number of the key."""
    data = node.items()
    return {key.number: value for key, value in zip(data[::2], data[1::2])}
