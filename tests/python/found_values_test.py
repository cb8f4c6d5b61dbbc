"""Networks that read what the data find, beside ONNX Runtime: chains of nodes that are drawn behind NonZero, Compress,
Unique, TopK of a k of the data and NonMaxSuppression, with slices, shapes and loops whose numbers the data say, each run
on data of which nothing, some and all is found.

PRUNER_LONG_TESTS=N draws N times as many chains, PRUNER_SEED=S others. A network that is refused is counted, not
wrong; no more than a fifth may be."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
try:
    import numpy as np
    import onnx
    import onnx.parser
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import pruner
from pruner import PrunerError

CHAINS = 8 * int(os.environ.get("PRUNER_LONG_TESTS") or 1)
SEED = int(os.environ.get("PRUNER_SEED") or 0)
DATA = 6  # of each chain


class Chain:
    """A model under way. `value`: the name of what the next node reads, of shape [found, columns]."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants, self.inputs = rng, [], [], {}
        self.columns = int(rng.integers(1, 5))
        self.steps = []
        self.value = self.masked(self.input([int(rng.integers(2, 12)), self.columns]))

    def constant(self, values, dtype=np.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def input(self, shape, dtype=np.float32):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (shape, dtype)
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        names = [f"{op}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def masked(self, data):
        """The rows of `data` whose first column is above a half."""
        first = self.node("Gather", [data, self.constant(0)], axis=1)
        mask = self.node("Greater", [first, self.constant(0.5, np.float32)])
        if self.rng.random() < 0.3:
            return self.node("Compress", [data, mask], axis=0)
        places = self.node("NonZero", [mask])
        if self.rng.random() < 0.5:
            return self.node("Gather", [data, self.node("Squeeze", [places, self.constant([0])])], axis=0)
        return self.node("GatherND", [data, self.node("Transpose", [places], perm=[1, 0])])

    # Steps: what a node makes of the value, again of shape [found, columns].

    def relu(self):
        return self.node("Relu", [self.value])

    def add(self):
        row = self.rng.standard_normal(self.columns)
        return self.node("Add", [self.value, self.constant(row, np.float32)])

    def product(self):
        columns = int(self.rng.integers(1, 6))
        matrix = self.rng.standard_normal([self.columns, columns])
        self.columns = columns
        return self.node("MatMul", [self.value, self.constant(matrix, np.float32)])

    def join(self):
        other = self.masked(self.input([int(self.rng.integers(1, 9)), self.columns]))
        return self.node("Concat", [self.value, other], axis=0)

    def first_rows(self):
        most = int(self.rng.integers(1, 8))
        return self.node("Slice", [self.value, self.constant([0]), self.constant([most]), self.constant([0])])

    def best(self):
        """The rows with the greatest first columns, at most four."""
        rows = self.node("Gather", [self.node("Shape", [self.value]), self.constant([0])])
        k = self.node("Min", [rows, self.constant([4])])
        first = self.node("Gather", [self.value, self.constant(0)], axis=1)
        places = self.node("TopK", [first, k], 2)[1]
        return self.node("Gather", [self.value, places], axis=0)

    def as_many_as_given(self):
        """The first k of the first input's rows in order, where the data say k."""
        rows = int(self.rng.integers(3, 9))
        data, k = self.input([rows, self.columns]), self.input([1], np.int64)
        return self.node("TopK", [data, k], 2, axis=0)[0]

    def again(self):
        return self.masked(self.value)

    def write(self):
        """Rows that are written over others, at places that are found."""
        rows = int(self.rng.integers(2, 9))
        data = self.input([rows, self.columns])
        first = self.node("Gather", [data, self.constant(0)], axis=1)
        mask = self.node("Greater", [first, self.constant(0.5, np.float32)])
        places = self.node("Transpose", [self.node("NonZero", [mask])], perm=[1, 0])
        updates = self.node("Neg", [self.node("GatherND", [data, places])])
        written = self.node("ScatterND", [data, places, updates])
        return self.node("Concat", [self.value, written], axis=0)

    def boxes(self):
        """The rows that NonMaxSuppression chooses of boxes beside each other, by the first column."""
        rows = int(self.rng.integers(2, 9))
        data = self.input([rows, self.columns])
        corner = np.arange(rows, dtype=np.float32)[:, None] * [2, 0, 2, 0] + [0, 0, 1.0, 1.0]
        boxes = self.constant(corner[None], np.float32)
        first = self.node("Gather", [data, self.constant(0)], axis=1)
        scores = self.node("Unsqueeze", [first, self.constant([0, 1])])
        limits = [self.constant([rows]), self.constant([0.5], np.float32), self.constant([0.25], np.float32)]
        chosen = self.node("NonMaxSuppression", [boxes, scores, *limits])
        places = self.node("Gather", [chosen, self.constant(2)], axis=1)
        return self.node("Concat", [self.value, self.node("Gather", [data, places], axis=0)], axis=0)

    def number(self, least, most):
        """A number that the data say, between two others."""
        return self.node("Clip", [self.input([1], np.int64), self.constant(least), self.constant(most)])

    def rows(self):
        return self.node("Gather", [self.node("Shape", [self.value]), self.constant(0)])

    def beside(self, other):
        return self.node("Concat", [self.value, other], axis=0)

    def between(self):
        start, end = self.input([1], np.int64), self.input([1], np.int64)
        if self.rng.random() < 0.5:
            start = self.node("Sub", [start, self.constant([2])])
        if self.rng.random() < 0.5:
            end = self.node("Neg", [end])
        step = self.constant([int(self.rng.choice([1, 1, 2, -1]))])
        return self.node("Slice", [self.value, start, end, self.constant([0]), step])

    def tiled(self):
        return self.node("Tile", [self.value, self.node("Concat", [self.number(1, 3), self.constant([1])], axis=0)])

    def rows_of_one(self):
        shape = self.node("Concat", [self.number(0, 4), self.constant([self.columns])], axis=0)
        return self.beside(self.node("ConstantOfShape", [shape], value=numpy_helper.from_array(np.float32([1]), "one")))

    def expanded(self):
        shape = self.node("Concat", [self.number(1, 4), self.constant([1])], axis=0)
        return self.beside(self.node("Expand", [self.input([1, self.columns]), shape]))

    def padded(self):
        pads = self.node("Concat", [self.number(0, 3), self.constant([0, 1, 0])], axis=0)
        return self.node("Pad", [self.value, pads])

    def counted(self):
        """As many rows as a number says, each its own number."""
        count = self.node("Squeeze", [self.number(0, 5)])
        numbers = self.node("Range", [self.constant(0), count, self.constant(1)])
        column = self.node("Unsqueeze", [self.node("Cast", [numbers], to=TensorProto.FLOAT), self.constant([1])])
        return self.beside(self.node("Add", [column, self.constant(np.zeros(self.columns), np.float32)]))

    def resized(self):
        rows = int(self.rng.integers(1, 7))
        image = self.node("Reshape", [self.input([rows, self.columns]), self.constant([1, 1, rows, self.columns])])
        sizes = self.node("Concat", [self.constant([1, 1]), self.number(1, 9), self.constant([self.columns])], axis=0)
        mode = str(self.rng.choice(["nearest", "linear", "cubic"]))
        ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
        way = str(self.rng.choice(ways))
        made = self.node("Resize", [image, "", "", sizes], mode=mode, coordinate_transformation_mode=way)
        return self.beside(self.node("Squeeze", [made, self.constant([0, 1])]))

    def loop(self, trips, nodes, states, outputs, condition="", initial=()):
        """A Loop whose body has `nodes`; `states`: (name, shape) of what it hands on."""
        inputs = [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, [])]
        inputs += [(name, TensorProto.FLOAT, shape) for name, shape in states]
        body = helper.make_graph(
            nodes,
            "body",
            [helper.make_tensor_value_info(*of) for of in inputs],
            [onnx.ValueInfoProto(name=name) for name in [condition or "c", *outputs]],
        )
        going = self.constant(True, np.bool_) if condition else ""
        return self.node("Loop", [trips, going, *initial], len(outputs), body=body)

    def looped(self):
        """Each row by itself, and the sum of all rows up to it."""
        zero = self.constant(np.zeros(self.columns), np.float32)
        nodes = [
            helper.make_node("Gather", [self.value, "i"], ["row"]),
            helper.make_node("Add", ["sum", "row"], ["next"]),
            helper.make_node("Mul", ["next", self.constant(0.5, np.float32)], ["half"]),
        ]
        total, all_sums = self.loop(self.rows(), nodes, [("sum", [self.columns])], ["next", "half"], initial=[zero])
        last = self.node("Unsqueeze", [total, self.constant([0])])
        if self.rng.random() < 0.5:
            return self.beside(last)
        return self.node("Reshape", [all_sums, self.constant([-1, self.columns])])

    def appended(self):
        """The rows one by one behind nothing, as torch's scripts gather results."""
        nothing = self.constant(np.zeros((0, self.columns)), np.float32)
        nodes = [
            helper.make_node("Gather", [self.value, "i"], ["row"]),
            helper.make_node("Neg", ["row"], ["less"]),
            helper.make_node("Unsqueeze", ["less", self.constant([0])], ["part"]),
            helper.make_node("Concat", ["all", "part"], ["more"], axis=0),
        ]
        return self.loop(self.rows(), nodes, [("all", [None, self.columns])], ["more"], initial=[nothing])

    def until(self):
        """Sums of the first row, doubled until they are large, at most six times."""
        ones = self.constant(np.ones(self.columns), np.float32)
        bound = self.node("ReduceSum", [self.value], keepdims=0)
        nodes = [
            helper.make_node("Add", ["sum", "sum"], ["next"]),
            helper.make_node("ReduceMax", ["next"], ["most"], keepdims=0),
            helper.make_node("Less", ["most", bound], ["goes"]),
        ]
        made = self.loop(self.constant(6), nodes, [("sum", [self.columns])], ["next", "next"], "goes", [ones])
        return self.beside(self.node("Reshape", [made[1], self.constant([-1, self.columns])]))

    STEPS = (relu, add, product, join, first_rows, best, as_many_as_given, again, write, boxes)
    STEPS += (between, tiled, rows_of_one, expanded, padded, counted, resized, looped, appended, until)

    def extend(self):
        step = self.STEPS[int(self.rng.integers(len(self.STEPS)))]
        self.steps.append(step.__name__)
        self.value = step(self)

    def model(self):
        outputs = [self.value, self.node("ReduceSum", [self.value, self.constant([0])], keepdims=0)]
        if self.rng.random() < 0.5:
            outputs.append(self.node("Shape", [self.value]))
        kinds = {name: helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for name, (_, dtype) in self.inputs.items()}
        inputs = [helper.make_tensor_value_info(name, kinds[name], shape) for name, (shape, _) in self.inputs.items()]
        made = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "chain", inputs, made, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def data(self, number):
        """Inputs of which nothing (0), all (1) or some is above a half."""
        low, high = [(0.0, 0.5), (0.51, 1.0), (0.0, 1.0)][min(number, 2)]
        given = {}
        for name, (shape, dtype) in self.inputs.items():
            if dtype is np.int64:
                given[name] = self.rng.integers(0, 3, shape)
            else:
                given[name] = (low + (high - low) * self.rng.random(shape)).astype(np.float32)
        return given


class FoundValues(unittest.TestCase):
    def test_chains_give_what_onnx_runtime_gives(self):
        refused = []
        for number in range(CHAINS):
            rng = np.random.default_rng([SEED, number])
            chain = Chain(rng)
            for _ in range(int(rng.integers(1, 5))):
                chain.extend()
            model = chain.model()
            try:
                module = pruner.compile(model)
            except PrunerError as error:
                refused.append(f"{number} {chain.steps}: {error}")
                continue
            session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            for turn in range(DATA):
                given = chain.data(turn)
                expected = session.run(None, given)
                found = module(*[given[tensor.name] for tensor in module.inputs])
                for ours, theirs in zip(found, expected):
                    what = f"chain {number} {chain.steps}, data {turn}"
                    self.assertEqual(ours.shape, theirs.shape, what)
                    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4, err_msg=what)
        print(f"{CHAINS - len(refused)} of {CHAINS} chains compared", *refused, sep="\n  ", file=sys.stderr)
        self.assertLessEqual(len(refused), CHAINS / 5)


# Networks that were wrong once: text for onnx.parser, and the inputs of each run. What is refused says so.
CORNERS = {
    "a loop that is the first stage and begins with constants": (
        """g (float[2] x, bool go) => (float[2] p) <int64 hi={5}> {
        p = Loop(hi, go, x) <body = b (int64 i, bool c, float[2] s) => (bool c1, float[2] s1) {
        s1 = Add(s, x) c1 = Identity(c) }> }""",
        [{"x": np.float32([1, 2]), "go": np.array(go)} for go in (True, False)],
    ),
    "a number that was a bool": (
        """g (float[8] x, int64[1] n) => (float[k] y) <int64[1] o={0}> {
        b = Cast<to=9>(n) d = Cast<to=7>(b) y = Slice(x, o, d) }""",
        [{"x": np.arange(8, dtype=np.float32), "n": np.int64([n])} for n in (0, 1, 3)],
    ),
    "a number that was a byte": (
        """g (float[8] x, int64[1] n) => (float[k] y) <int64[1] o={0}> {
        b = Cast<to=2>(n) d = Cast<to=7>(b) y = Slice(x, o, d) }""",
        [{"x": np.arange(8, dtype=np.float32), "n": np.int64([n])} for n in (0, 3, 258)],
    ),
    "refused: as many as odd": (
        """g (float[9] x, int64[1] n) => (float[k] z) <int64 lo={1}, int64 hi={9}, int64[1] o={0}, int64[1] two={2}> {
        c = Clip(n, lo, hi) y = Slice(x, o, c) r = Shape(y) p = Mod(r, two) w = Slice(x, o, p) z = Neg(w) }""",
        [{"x": np.arange(9, dtype=np.float32), "n": np.int64([n])} for n in range(1, 10)],
    ),
    "places at a tie": (
        """g (float[1,1,5] x, int64[1] n) => (float[1,1,k] y) <int64 lo={1}, int64 hi={39}, int64[2] ones={1,1}> {
        c = Clip(n, lo, hi) s = Concat<axis=0>(ones, c)
        y = Resize<mode="nearest", nearest_mode="floor", coordinate_transformation_mode="half_pixel">(x,,,s) }""",
        [{"x": np.arange(5, dtype=np.float32).reshape(1, 1, 5), "n": np.int64([n])} for n in range(1, 40)],
    ),
    "two finders of equal room": (
        """g (float[6] a, float[6] b, float[6] x, int64[1] n) => (float[k] y, float[l] z)
        <float zero={0}, int64[1] o={0}, int64 least={0}, int64 most={6}> {
        ga = Greater(a, zero) ca = Compress<axis=0>(a, ga) sa = Shape(ca)
        gb = Greater(b, zero) cb = Compress<axis=0>(b, gb) sb = Shape(cb)
        c = Clip(n, least, most) ea = Min(sa, c) eb = Min(sb, c)
        ya = Slice(x, o, ea) zb = Slice(x, o, eb) y = Neg(ya) z = Neg(zb) }""",
        [
            {
                "a": np.float32([1, 1, -1, -1, 1, -1]),
                "b": np.float32([1, 1, 1, 1, 1, -1]),
                "x": np.arange(6, dtype=np.float32),
                "n": np.int64([n]),
            }
            for n in (0, 2, 4, 6)
        ],
    ),
    "an If on data whose branches read what was found": (
        """g (float[4] x, bool f) => (float[k] y) <float z={0}> { g = Greater(x, z) c = Compress<axis=0>(x, g)
        y = If(f) <then_branch = t () => (float[?] a) { a = Neg(c) }, else_branch = e () => (float[?] b) {
        b = Add(c, c) }> }""",
        [{"x": np.float32([1, -1, 2, 3]), "f": np.array(f)} for f in (True, False)],
    ),
    "rounds that the data begin, count and end": (
        """g (float[2] x, int64 n, float lim) => (float[k,2] q) <int64 hi={6}, int64 lo={0}, bool tr={1}> {
        t = Clip(n, lo, hi)
        s, q = Loop(t, tr, x) <body = b (int64 i, bool c, float[2] s) => (bool go, float[2] s1, float[2] o) {
        s1 = Add(s, x) m = ReduceMax<keepdims=0>(s1) go = Less(m, lim) o = Neg(s1) }> }""",
        [{"x": np.float32([1, 2]), "n": np.array(n), "lim": np.array(lim, np.float32)} for n in (1, 3, 6) for lim in (3, 7, 99)],
    ),
    "appended until a condition": (
        """g (float[1] x, bool go) => (float[k] q) <int64 hi={4}, bool tr={1}, int64[1] z0={0}> {
        e = ConstantOfShape(z0) q = Loop(hi, tr, e) <body = b (int64 i, bool c, float[?] s) => (bool g1, float[?] s1) {
        f = Cast<to=1>(i) v = Add(x, f) g1 = Identity(go) s1 = Concat<axis=0>(s, v) }> }""",
        [{"x": np.float32([3]), "go": np.array(go)} for go in (True, False)],
    ),
}


class Corners(unittest.TestCase):
    def test_give_what_onnx_runtime_gives(self):
        for name, (text, runs) in CORNERS.items():
            with self.subTest(name):
                model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>\n' + text)
                if name.startswith("refused"):
                    self.assertRaisesRegex(PrunerError, "at other shapes", pruner.compile, model)
                    continue
                module = pruner.compile(model)
                session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
                for given in runs:
                    found = module(*[given[tensor.name] for tensor in module.inputs])
                    found = dict(zip([tensor.name for tensor in module.outputs], found))
                    for tensor, theirs in zip(session.get_outputs(), session.run(None, given)):
                        self.assertEqual(found[tensor.name].shape, theirs.shape, given)
                        np.testing.assert_allclose(found[tensor.name], theirs, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
