#!/usr/bin/env python3
"""Checks that modules compute the right values, and fails if a module does not.

  accuracy.py networks [NAME...]  the built-in networks (default: all), against ONNX Runtime on the
                                  exported file; with --records FILE as tuned, otherwise untuned
  accuracy.py light [NAME...]     the model files of the onnx package (its backend test's "light"
                                  models), against the outputs stored beside them; their weights are
                                  all alike, so once more with seeded weights, against ONNX Runtime

A module passes when max |difference| / max |expected| <= 1e-3. The script needs the packages of
requirements.txt.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import runtimes

TOLERANCE = 1e-3
# Models with more weights are checked only against their stored outputs; a file has half a GB.
SEEDED_WEIGHTS = 60_000_000
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def check_network(pruner, name, records, folder):
    model, module = folder / f"{name}.onnx", folder / f"{name}.so"
    pruner.run("networks", "export", name, "-o", model)
    pruner.compile(["--network", name], module, records)
    peer = runtimes.OnnxRuntime(model, threads=2)
    feeds = peer.seeded_feeds()
    return runtimes.relative_difference(pruner.infer(module, feeds), peer.infer(feeds))


def light_inputs(model):
    """Returns the inputs of the backend test: arange(n) / n in the shape of each input."""
    constants = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name not in constants:
            shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
            n = int(np.prod(shape))
            feeds[value.name] = (np.arange(n).astype(np.float32) / n).reshape(shape)
    return feeds


def with_seeded_weights(model):
    """Returns the model with random weights in place of constant fills; None if the model is too
    large."""
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    fills = {node.output[0]: shapes[node.input[0]] for node in model.graph.node
             if node.op_type == "ConstantOfShape" and node.input[0] in shapes}
    if sum(int(np.prod(shape)) for shape in fills.values()) > SEEDED_WEIGHTS:
        return None
    seeded = onnx.ModelProto()
    seeded.CopyFrom(model)
    del seeded.graph.node[:]
    seeded.graph.node.extend(node for node in model.graph.node if node.output[0] not in fills)
    rng = np.random.default_rng(0)
    for name, shape in fills.items():
        # A vector may be a variance, so its values are positive. Matrices and filters keep the
        # scale of the tensors that they map.
        value = rng.uniform(0.5, 1.5, shape) if len(shape) == 1 else (
            rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:])))
        seeded.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    return seeded


def stored_outputs(model, name):
    expected = {}
    for index, output in enumerate(model.graph.output):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((LIGHT / f"light_{name}_output_{index}.pb").read_bytes())
        expected[output.name] = numpy_helper.to_array(tensor)
    return expected


def check_light(pruner, name, records, folder):
    path, module = LIGHT / f"light_{name}.onnx", folder / f"{name}.so"
    model = onnx.load(path)
    feeds = light_inputs(model)
    pruner.compile([path], module, records)
    stored = runtimes.relative_difference(pruner.infer(module, feeds), stored_outputs(model, name))

    seeded = with_seeded_weights(model)
    if seeded is None:
        return stored
    path, module = folder / "seeded.onnx", folder / "seeded.so"
    onnx.save(seeded, path)
    pruner.compile([path], module, records)
    expected = runtimes.OnnxRuntime(path, threads=2).infer(feeds)
    return max(stored, runtimes.relative_difference(pruner.infer(module, feeds), expected))


def network_names(pruner):
    return pruner.json("networks")


def light_names():
    return sorted(path.stem.removeprefix("light_") for path in LIGHT.glob("*.onnx"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["networks", "light"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--records", help="records of a tuning run")
    parser.add_argument("--program", help="default: build/release/pruner")
    options = parser.parse_args()

    pruner = runtimes.Pruner(options.program)
    check = check_network if options.what == "networks" else check_light
    names = options.names or (
        network_names(pruner) if options.what == "networks" else light_names())
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                difference = check(pruner, name, options.records, pathlib.Path(folder))
                verdict = "ok" if difference <= TOLERANCE else "FAILED"
                print(f"{name:<24}{difference:<12.2e}{verdict}", flush=True)
            except RuntimeError as error:
                verdict = "FAILED"
                print(f"{name:<24}{'':<12}{verdict}: {error}", flush=True)
        failed += verdict != "ok"
    print(f"{len(names)} modules, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
