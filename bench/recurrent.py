#!/usr/bin/env python3
"""Compares LSTM, GRU and RNN with ONNX Runtime.

  recurrent.py [--threads N] [--rounds N] [-o FILE.tsv]

A module of one length, a module of a range of lengths (--dim), and ONNX Runtime take turns of
several runs; the median counts. Weights and inputs are drawn by seed. Outputs may differ by 1e-5 of
the largest output.
"""
import argparse
import pathlib
import statistics
import tempfile
import time

import clean_rounds
import numpy as np
import runtimes

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Each case is (operator, units, steps, batch, directions). The number of inputs is that of the
# units.
CASES = [
    ("LSTM", 64, 64, 1, 1), ("LSTM", 128, 64, 1, 2), ("LSTM", 256, 64, 1, 1),
    ("LSTM", 256, 64, 1, 2),
    ("LSTM", 512, 32, 1, 1), ("LSTM", 1024, 16, 1, 1), ("LSTM", 256, 32, 8, 1), ("LSTM", 512, 32, 16, 2),
    ("GRU", 256, 64, 1, 2), ("GRU", 512, 32, 4, 1), ("RNN", 256, 64, 1, 1),
]
TOLERANCE = 1e-5
TURN = 20  # timed runs of ONNX Runtime in a turn


def write_model(path, op, units, steps, batch, directions):
    """Writes a network of one node. `steps` is a number, or the name of a dim."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)

    def drawn(*shape):
        return (rng.standard_normal(shape) / np.sqrt(units)).astype(np.float32)

    rows = GATES[op] * units
    attributes = {"hidden_size": units, "direction": "bidirectional" if directions == 2 else "forward"}
    if op == "GRU":
        attributes["linear_before_reset"] = 1  # torch exports GRUs so
    node = helper.make_node(op, ["x", "W", "R", "B"], ["y", "last"], **attributes)
    weights = {"W": drawn(directions, rows, units), "R": drawn(directions, rows, units),
               "B": drawn(directions, 2 * rows)}
    graph = helper.make_graph(
        [node], "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, units])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "last")],
        [numpy_helper.from_array(weight, name) for name, weight in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              str(path))


def compare(case, folder, options):
    op, units, steps, batch, directions = case
    pruner = runtimes.Pruner(options.program)
    fixed, varying = folder / "fixed.onnx", folder / "varying.onnx"
    write_model(fixed, *case)
    write_model(varying, op, units, "n", batch, directions)
    x = np.random.default_rng(1).standard_normal((steps, batch, units)).astype(np.float32)
    seconds = {}
    for name, more in (("fixed", []), ("varying", ["--dim", f"n=1..{2 * steps}"])):
        start = time.perf_counter()
        pruner.run("compile", folder / f"{name}.onnx", *more, "--threads", options.threads,
                   "-o", folder / f"{name}.so")
        seconds[name] = time.perf_counter() - start
    session = runtimes.OnnxRuntime(fixed, options.threads)
    expected = session.infer({"x": x})
    error = max(runtimes.relative_difference(pruner.infer(folder / f"{name}.so", {"x": x}), expected)
                for name in seconds)

    def onnxruntime_ms():
        runs = []
        for _ in range(2 * TURN):
            start = time.perf_counter()
            session.infer({"x": x})
            runs.append((time.perf_counter() - start) * 1e3)
        time.sleep(0.2)  # ONNX Runtime's threads spin on for a while
        return statistics.median(runs[TURN:])

    turns = {
        "fixed": lambda: pruner.median_ms(folder / "fixed.so", options.threads),
        "varying": lambda: pruner.median_ms(folder / "varying.so", options.threads,
                                            dims=[f"n={steps}"]),
        "onnxruntime": onnxruntime_ms,
    }
    times, _, _ = clean_rounds.Rounds(pruner, options.threads).run(turns, options.rounds)
    median = {name: statistics.median(times[name]) for name in turns}
    return [op, units, steps, batch, directions, *(f"{median[name]:.3f}" for name in turns),
            f"{median['fixed'] / median['onnxruntime']:.2f}",
            f"{median['varying'] / median['onnxruntime']:.2f}",
            f"{seconds['fixed']:.1f}", f"{seconds['varying']:.1f}",
            "right" if error <= TOLERANCE else f"differs by {error:.1e}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", type=pathlib.Path, default=None)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=None)
    options = parser.parse_args()
    lines = ["op\tunits\tsteps\tbatch\tdirections\tfixed_ms\tvarying_ms\tonnxruntime_ms\tratio_fixed"
             "\tratio_varying\tcompile_fixed_s\tcompile_varying_s\toutputs"]
    print(lines[0])
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="recurrent_") as folder:
            lines.append("\t".join(map(str, compare(case, pathlib.Path(folder), options))))
        print(lines[-1], flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
