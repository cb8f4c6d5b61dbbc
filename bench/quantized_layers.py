#!/usr/bin/env python3
"""Compares every layer of a QDQ file with ONNX Runtime's layer on equal inputs.

  quantized_layers.py MODEL.onnx...       a line for each kind of layer

A layer is the part of a network between quantized tensors and the next quantized tensor. The inputs
of a layer are the tensors that ONNX Runtime computes in the whole network. The output is compared
in steps of quantization. `apart` is the largest difference in steps, `share` the share of elements
that differ.

The exit code is 1 if a layer differs by more than a step, or on more than 0.1 % of its elements.
The commands `pruner networks export` and `pruner quantize` make files of built-in networks.
"""
import argparse
import collections
import pathlib
import sys
import tempfile

import numpy as np
import onnx

import runtimes

MOST_SHARE = 1e-3


def is_byte(array):
    return array.dtype in (np.uint8, np.int8)


def with_outputs(model, names):
    """Returns the model with these tensors as further outputs."""
    types = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {output.name for output in copy.graph.output}
    copy.graph.output.extend(types[name] for name in names if name in types and name not in known)
    return copy


def layer_inputs(model, output):
    """Returns the inputs and the kind of the layer that computes `output`. The inputs are quantized
    tensors and inputs of the network; the kind is the operators' names."""
    maker = {name: node for node in model.graph.node for name in node.output}
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs, kinds, open_names, seen = set(), [], list(maker[output].input), set()
    while open_names:
        name = open_names.pop()
        if not name or name in constants or name in seen:
            continue
        seen.add(name)
        node = maker.get(name)
        if node is None or node.op_type == "QuantizeLinear":
            inputs.add(name)
            continue
        if node.op_type not in ("DequantizeLinear", "Constant", "Identity"):
            kinds.append(node.op_type)
        open_names.extend(node.input)
    return sorted(inputs), " ".join(kinds) or "QuantizeLinear"


def compare(path, pruner, folder, threads):
    model = onnx.load(path)
    names = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    whole = folder / "whole.onnx"
    onnx.save(with_outputs(model, names), whole)
    reference = runtimes.OnnxRuntime(whole, threads)
    feeds = reference.seeded_feeds()
    tensors = {**reference.infer(feeds), **feeds}
    extractor = onnx.utils.Extractor(onnx.load(whole))
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name in names:
        if name not in tensors or not is_byte(tensors[name]):
            continue
        inputs, kind = layer_inputs(model, name)
        if not inputs:  # a weight that is quantized in the file
            continue
        part, module = folder / "part.onnx", folder / "part.so"
        onnx.save(extractor.extract_model(inputs, [name]), part)
        given = {i: tensors[i] for i in inputs}
        expected = runtimes.OnnxRuntime(part, threads).infer(given)[name]
        pruner.compile([part, "--numerics", "ort"], module)
        found = pruner.infer(module, given)[name]
        apart = np.abs(found.astype(int) - expected.astype(int))
        row = rows[kind]
        row[0] += 1
        row[1] = max(row[1], int(apart.max()))
        row[2] += int((apart > 0).sum())
        row[3] += apart.size
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    pruner, wrong = runtimes.Pruner(), False
    print(f"{'network':24} {'layers':>6} {'apart':>5} {'share':>9}  kind")
    for path in options.models:
        with tempfile.TemporaryDirectory() as folder:
            rows = compare(path, pruner, pathlib.Path(folder), options.threads)
        for kind, (layers, apart, differ, elements) in sorted(rows.items()):
            share = differ / elements
            wrong |= apart > 1 or share > MOST_SHARE
            print(f"{path.stem:24} {layers:6} {apart:5} {share:9.2e}  {kind}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
