#!/usr/bin/env python3
"""Probes one operator at a time on difficult numbers.

The numbers are infinities, NaN, extreme integers, and sums of narrow floats. Each probe runs as a
kernel and folded as a constant. The results are compared with ONNX Runtime, or with ONNX's own
reference if the two differ or if the runtime lacks the operator.

  onnx_probes.py [OPERATOR...]  default: all

The table has the operator, the type, the probe, and the differences. The script fails if a result
differs by more than rounding. The script needs the packages of requirements.txt.
"""
import argparse
import dataclasses
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import runtimes

OPSET = 21
INF, NAN = np.inf, np.nan
# Allowed difference, relative to each expected number (see differs()).
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
BF16 = "bfloat16"  # numpy has no such type: the model casts float32 inputs to it and back


@dataclasses.dataclass
class Probe:
    op: str
    what: str
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    constants: tuple = ()  # numbers of the inputs that no network computes, such as axes
    to: int = None  # type of the output; None: the type of the first input
    bf16: bool = False
    error: str = None  # words of the expected error; "": any output is right
    exact: np.ndarray = None  # the right output; None: the output of ONNX Runtime or the reference

    @property
    def type(self):
        return BF16 if self.bf16 else str(self.inputs[0].dtype)


def floats(*values, dtype=np.float32):
    return np.array(values, dtype)


def element_wise():
    odd = floats(NAN, -INF, INF, -0.0, 0, 1, -1, 2.5, -2.5, 3e38, 1e-40, 88, -104)
    names = ("Relu Sign Abs Neg Floor Ceil Round Sqrt Exp Log Sigmoid Tanh Softplus Softsign Erf Elu "
             "Selu LeakyRelu HardSigmoid HardSwish Reciprocal Mish Gelu Sin Cos").split()
    for name in names:
        yield Probe(name, "special values", [odd])
        yield Probe(name, "special values", [np.tile(odd, 5).astype(np.float16)])
    one, other = np.meshgrid(odd, odd)
    for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"):
        yield Probe(name, "special values", [one.ravel(), other.ravel()])
    for name in ("Max", "Min"):
        yield Probe(name, "with a constant", [odd, floats(1)], constants=(1,))
        yield Probe(name, "of three", [one.ravel(), other.ravel(), one.ravel()[::-1].copy()])
    for name in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"):
        yield Probe(name, "special values", [one.ravel(), other.ravel()], to=TensorProto.BOOL)
    for exponent in (0.5, -0.5, 0, 1, 2, 3, -1, -2, 1 / 3, INF, -INF, NAN):
        yield Probe("Pow", f"exponent {exponent:.3g}", [odd, floats(exponent)], constants=(1,))
    for low, high in ((-1, 1), (NAN, 1), (-1, NAN), (1, -1), (-INF, INF)):
        yield Probe("Clip", f"to {low} and {high}", [odd, np.float32(low), np.float32(high)])
        yield Probe("Clip", f"to constants {low} and {high}",
                    [odd, np.float32(low), np.float32(high)], constants=(1, 2))
    dividends = floats(5.5, -5.5, 5.5, -5.5, INF, -INF, 1, 1, NAN, 1, 1e20, 3e38, -1e-3, 3, -1e-10)
    divisors = floats(3, 3, -3, -3, 2, 2, INF, -INF, 2, 0, 3, 1e-40, 1e-4, NAN, 1)
    yield Probe("Mod", "fmod", [dividends, divisors], {"fmod": 1})


def integers():
    for dtype in (np.int64, np.int32):
        most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
        a = np.array([most, least, 5, -5, 5, -5, most, least, 0], dtype)
        b = np.array([-1, 1, 3, 3, -3, -3, least, most, least], dtype)
        for name in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"):
            yield Probe(name, "extreme integers", [a, b], to=TensorProto.BOOL)
            yield Probe(name, "against the least", [a, b[6:7]], constants=(1,), to=TensorProto.BOOL)
            yield Probe(name, "against the most", [a, b[7:8]], constants=(1,), to=TensorProto.BOOL)
        for name in ("Max", "Min", "Add", "Sub", "Mul"):
            yield Probe(name, "extreme integers", [a, b])
        for attributes in ({}, {"fmod": 1}):
            yield Probe("Mod", f"signs {attributes or ''}", [a[2:6], b[2:6]], attributes)
        yield Probe("Div", "signs", [a[2:], b[2:]])
        yield Probe("Div", "by zero: no crash", [a, np.zeros_like(b)], error="")
        yield Probe("Mod", "by zero: no crash", [a, np.zeros_like(b)], error="")
        yield Probe("Div", "the least by -1: no crash", [a[1:2], b[:1]], error="")
        yield Probe("Abs", "extreme integers", [a])
        yield Probe("Sign", "extreme integers", [a])
        yield Probe("Pow", "large powers", [np.array([3, -3, 7, 2, 10, 1, -1, 0], dtype),
                                            np.array([17, 13, 9, 30, 9, 5, 7, 3], dtype)])
        for name in ("ReduceMax", "ReduceMin"):
            yield Probe(name, "extreme integers", [a, np.array([0])], constants=(1,))
        yield Probe("ArgMax", "extreme integers", [a], {"axis": 0}, to=TensorProto.INT64)
        data = np.arange(15, dtype=np.float32).reshape(5, 3)
        for name, shape in (("Gather", (2,)), ("GatherElements", (2, 3))):
            for index in (4, -5):
                yield Probe(name, f"index {index}", [data, np.full(shape, index, dtype)])
            for index in (5, -6, most):
                yield Probe(name, f"index {index} of 5", [data, np.full(shape, index, dtype)],
                            error="index")


def casts():
    odd = floats(NAN, INF, -INF, 3e9, -3e9, 1e20, -1e20, 300.7, -300.7, -1.5, 1.9, -0.5, 255.5, 256,
                 65536.5, 2147483648, -2147483648, 9223372036854775808)
    for name in ("INT64", "INT32", "INT8", "UINT8", "BOOL", "FLOAT16"):
        to = getattr(TensorProto, name)
        yield Probe("Cast", f"to {name.lower()}", [odd], {"to": to}, to=to)
        yield Probe("Cast", f"to {name.lower()}", [odd[[0, 1, 2, 7, 8, 9, 10, 11]].astype(np.float16)],
                    {"to": to}, to=to)
        whole = np.array([2**63 - 1, -2**63, 2**31, -2**31 - 1, 300, -300, -1, 128])
        yield Probe("Cast", f"to {name.lower()}", [whole], {"to": to}, to=to)


def sums():
    rng = np.random.default_rng(0)
    near = (300 + rng.uniform(-10, 10, (4, 512))).astype(np.float32)
    for bf16 in (False, True):
        cast = (lambda x: x.astype(np.float32)) if bf16 else (lambda x: x.astype(np.float16))
        x, image = cast(near), cast(near).reshape(1, 4, 16, 32)
        ones = cast(np.ones(512))
        for name in ("ReduceMean", "ReduceL2", "ReduceL1", "ReduceLogSum", "ReduceSum"):
            yield Probe(name, "values near 300", [x, np.array([1])], constants=(1,), bf16=bf16)
        yield Probe("ReduceSumSquare", "values near 1", [cast(near / 300), np.array([1])],
                    constants=(1,), bf16=bf16)
        yield Probe("LayerNormalization", "values near 300", [x, ones, ones], bf16=bf16)
        yield Probe("InstanceNormalization", "values near 300", [image, ones[:4], ones[:4]], bf16=bf16)
        yield Probe("GlobalAveragePool", "values near 300", [image], bf16=bf16)
        yield Probe("AveragePool", "values near 300", [image], {"kernel_shape": [16, 16]}, bf16=bf16)
        yield Probe("Softmax", "equal logits", [cast(np.full((2, 3000), 5))], bf16=bf16)
        yield Probe("LogSoftmax", "large logits", [cast(near[:, :64] * 100)], bf16=bf16)
        signed = cast(rng.uniform(-1, 1, (8, 2048)) * 30)
        weight = cast(rng.uniform(-1, 1, (2048, 16)))
        yield Probe("MatMul", "2048 products", [signed, weight], bf16=bf16)
        yield Probe("Gemm", "2048 products", [signed, weight], bf16=bf16)
        yield Probe("Conv", "2048 products", [signed.reshape(1, 128, 8, 16),
                                              weight.T.reshape(16, 128, 4, 4).copy()], bf16=bf16)


def largest_of_windows(image, kernel, pad):
    """Computes MaxPool so that a window that holds NaN gives NaN. ONNX Runtime's result depends on
    the place of the NaN."""
    padded = np.pad(image[0, 0], pad, constant_values=-INF)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel))
    return windows.max(axis=(2, 3))[None, None]


def rows():
    x = np.zeros((7, 9), np.float32)
    x[0], x[1], x[6] = -INF, INF, NAN
    x[2, 4] = x[3, 0] = x[4, 8] = NAN
    x[5, :8] = -INF
    for name in ("ReduceMax", "ReduceMin"):
        yield Probe(name, "infinities and NaN", [x, np.array([1])], {"keepdims": 0}, (1,))
        yield Probe(name, "infinities and NaN", [x.astype(np.float16), np.array([1])], {}, (1,))
        yield Probe(name, "along columns", [x.T.copy(), np.array([0])], {}, (1,))
    for name in ("ArgMax", "ArgMin"):
        for last in (0, 1):
            attributes = {"axis": 1, "select_last_index": last}
            yield Probe(name, f"infinities and NaN, last {last}", [x], attributes,
                        to=TensorProto.INT64)
    logits = floats([-INF] * 4, [-INF, 0, 1, -INF], [INF, 0, 1, 2], [NAN, 0, 1, 2],
                    [1e30, -1e30, 0, 0], [1e4, 1e4, 0, 0])
    for name in ("Softmax", "LogSoftmax"):
        yield Probe(name, "infinities and NaN", [logits])
        yield Probe(name, "infinities and NaN", [logits.astype(np.float16)])
        yield Probe(name, "along columns", [logits.T.copy()], {"axis": 0})
    image = np.ones((1, 1, 6, 6), np.float32)
    image[0, 0, 1, 1], image[0, 0, 3:, 3:] = NAN, -INF
    for kernel, pad in ((2, 0), (3, 1)):
        yield Probe("MaxPool", f"infinities and NaN, padding {pad}", [image],
                    {"kernel_shape": [kernel] * 2, "pads": [pad] * 4},
                    exact=largest_of_windows(image, kernel, pad))
        yield Probe("MaxPool", f"infinities, padding {pad}", [np.nan_to_num(image, nan=2, neginf=-INF)],
                    {"kernel_shape": [kernel] * 2, "pads": [pad] * 4},
                    exact=largest_of_windows(np.nan_to_num(image, nan=2, neginf=-INF), kernel, pad))
    yield Probe("AveragePool", "infinities and NaN", [image], {"kernel_shape": [2, 2]})
    yield Probe("GlobalMaxPool", "infinities and NaN", [image])


def model_of(probe):
    """Returns a model with the output "run", computed from inputs, and the output "folded",
    computed from the same numbers as constants."""
    nodes, values, constants = [], [], []
    names = {"run": [], "folded": []}
    for i, array in enumerate(probe.inputs):
        constants.append(numpy_helper.from_array(np.asarray(array), f"c{i}"))
        names["folded"].append(f"c{i}")
        names["run"].append(f"c{i}" if i in probe.constants else f"x{i}")
        if i not in probe.constants:
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            values.append(helper.make_tensor_value_info(f"x{i}", dtype, array.shape))
    to = probe.to or helper.np_dtype_to_tensor_dtype(probe.inputs[0].dtype)
    for output, operands in names.items():
        if probe.bf16:
            for i, operand in enumerate(operands):
                if probe.inputs[i].dtype != np.float32:
                    continue
                operands[i] = f"{output}_narrow{i}"
                nodes.append(helper.make_node("Cast", [operand], [operands[i]],
                                              to=TensorProto.BFLOAT16))
        result = f"{output}_wide" if probe.bf16 else output
        nodes.append(helper.make_node(probe.op, operands, [result], name=f"probe_{output}",
                                      **probe.attributes))
        if probe.bf16:
            nodes.append(helper.make_node("Cast", [result], [output], to=TensorProto.FLOAT))
    outputs = [helper.make_tensor_value_info(name, to, None) for name in names
               if not (probe.error and name == "folded")]
    if probe.error:
        nodes = [node for node in nodes if not node.name.endswith("folded")]
    graph = helper.make_graph(nodes, "probe", values, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def feeds_of(probe):
    return {f"x{i}": np.asarray(array) for i, array in enumerate(probe.inputs)
            if i not in probe.constants}


def in_float32(probe):
    """Returns a bfloat16 probe as a float32 probe with inputs rounded to bfloat16. Its results are
    the right results before rounding."""
    def narrowed(array):
        if array.dtype != np.float32:
            return array
        bits = array.view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
    return dataclasses.replace(probe, bf16=False, inputs=[narrowed(a) for a in probe.inputs])


def expected_of(probe, path):
    """Returns the results of ONNX Runtime and of ONNX's reference, without a result that fails."""
    exact = in_float32(probe) if probe.bf16 else probe
    found = []
    for evaluate in (lambda: runtimes.OnnxRuntime(path, threads=1).infer(feeds_of(exact))["run"],
                     lambda: ReferenceEvaluator(onnx.load(path)).run(["run"], feeds_of(exact))[0]):
        try:
            onnx.save(model_of(exact), path)
            with np.errstate(all="ignore"):
                found.append(np.asarray(evaluate()))
        except Exception:  # pylint: disable=broad-except
            continue  # the operator or its type is missing
    return found


def differs(found, expected, tolerance):
    """Returns a text of the difference, or "" if nothing differs by more than rounding.

    The tolerance is relative to each expected number. A small number counts as a thousandth of the
    greatest finite number, or as 1 in tensors of 100 elements and more.
    """
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if not np.issubdtype(expected.dtype, np.floating):
        wrong = found != expected
    else:
        a, b = found.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        scale = np.maximum(np.abs(b), 1e-3 * np.abs(b[finite]).max(initial=0) if b.size < 100 else 1)
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= tolerance * scale + 1e-37
        wrong = ~np.where(finite, near, (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    first = tuple(np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size}: {found[first]} at {list(map(int, first))}, expected {expected[first]}"


def check(pruner, probe, folder):
    """Runs a probe and returns a text for each output ("run", "folded") that differs."""
    path, module = folder / "probe.onnx", folder / "probe.so"
    onnx.save(model_of(probe), path)
    try:
        pruner.run("compile", path, "--no-shipped-records", "-o", module)
        found = pruner.infer(module, feeds_of(probe))
    except RuntimeError as error:
        said = str(error).split(": exit ")[-1]
        exit_code, words = said.split(": ", 1)
        ended = int(exit_code) > 0 and bool(probe.error) and probe.error in words
        return [] if ended else [said]
    if probe.error:
        return ["no error"]
    if probe.error == "":
        return []
    # If ONNX leaves a result open, the results of the runtime and of the reference are both right.
    choices = expected_of(probe, path) if probe.exact is None else [probe.exact]
    if not choices:
        return ["nobody knows what it is"]
    wrong = []
    for way, value in found.items():
        words = [differs(value, expected, TOLERANCE.get(probe.type, 0)) for expected in choices]
        if all(words):
            wrong.append(f"{way}: {words[0]}")
    return wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--program", help="default: build/release/pruner")
    options = parser.parse_args()
    pruner = runtimes.Pruner(options.program)
    probes = [probe for group in (element_wise, integers, casts, sums, rows) for probe in group()
              if not options.operators or probe.op in options.operators]
    failed = 0
    for probe in probes:
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(pruner, probe, pathlib.Path(folder))
        failed += bool(wrong)
        print(f"{probe.op:<22}{probe.type:<10}{probe.what:<34}{'; '.join(wrong) or 'ok'}", flush=True)
    print(f"{len(probes)} probes, {failed} differ beyond rounding")
    return 1 if failed or not probes else 0


if __name__ == "__main__":
    sys.exit(main())
