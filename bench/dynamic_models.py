#!/usr/bin/env python3
"""Exports the networks of dynamic_shapes.py, whose sizes vary, with seeded random weights.

  dynamic_models.py FOLDER                  all of them, by both of torch's exporters
  dynamic_models.py FOLDER --only REGEX     files whose names match

These networks are exported:

- bert_base (transformers, 12 layers; input_ids and attention_mask), with the dims batch and seq
- bert_base_unmasked (input_ids alone), with the same dims
- bert_base_eager (attention as transformers writes it out), with the same dims
- resnet_50, with the dim batch
- mobilenet_v2, with the dims height and width

NAME.onnx comes from the exporter that traces with torch.export, NAME_script.onnx from the older
exporter (TorchScript). ONNX Runtime runs each file at several shapes, and the results are compared
with torch's. The script needs the packages of requirements_dynamic.txt.
"""
import argparse
import collections
import pathlib
import re
import sys

import numpy as np

import runtimes

TOLERANCE = 1e-4  # max |difference| / max |expected|
SEED = 0

# `dims` maps each input to the names of its axes that vary, and `outputs` does so for each output.
# `example` and `shapes` have sizes by name: those of the export, and those of the comparison.
Network = collections.namedtuple("Network", "dims outputs example shapes")
TEXT = {0: "batch", 1: "seq"}
TEXT_OUTPUTS = {"last_hidden_state": TEXT, "pooler_output": {0: "batch"}}
TEXT_EXAMPLE = {"batch": 2, "seq": 19}
TEXT_SHAPES = [{"batch": batch, "seq": seq} for batch, seq in [(1, 1), (1, 2), (3, 61), (1, 509)]]
MASKED = Network({"input_ids": TEXT, "attention_mask": TEXT}, TEXT_OUTPUTS, TEXT_EXAMPLE, TEXT_SHAPES)
IMAGE_SHAPES = [{"height": height, "width": width} for height, width in [(224, 224), (256, 320), (384, 384)]]
NETWORKS = {
    "bert_base": MASKED,
    "bert_base_unmasked": MASKED._replace(dims={"input_ids": TEXT}),
    "bert_base_eager": MASKED,
    "resnet_50": Network({"x": {0: "batch"}}, {"scores": {0: "batch"}}, {"batch": 2},
                         [{"batch": batch} for batch in (1, 3, 16)]),
    "mobilenet_v2": Network({"x": {2: "height", 3: "width"}}, {"scores": {}}, {"height": 256, "width": 288},
                            IMAGE_SHAPES),
}
EXPORTERS = {"": "dynamo", "_script": "script"}  # exporters by the end of a file's name


def input_shape(network, name, sizes):
    shape = [1, 3, 224, 224] if name == "x" else [1, 128]
    for axis, dim in NETWORKS[network].dims[name].items():
        shape[axis] = sizes.get(dim, shape[axis])
    return shape


def feeds(network, sizes, seed=SEED):
    """Returns inputs by name at these sizes: images from a normal distribution, or random tokens.
    In every second row of tokens the last fifth is masked as padding."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name in NETWORKS[network].dims:
        shape = input_shape(network, name, sizes)
        if name == "x":
            arrays[name] = rng.standard_normal(shape).astype(np.float32)
        elif name == "input_ids":
            arrays[name] = rng.integers(1000, 30000, shape)
        else:
            arrays[name] = np.ones(shape, np.int64)
            arrays[name][1::2, shape[1] - shape[1] // 5:] = 0
    return arrays


def build(network):
    """Returns the torch module in evaluation mode, with weights drawn by SEED."""
    import torch

    torch.manual_seed(SEED)
    if not network.startswith("bert"):
        import torchvision

        model = getattr(torchvision.models, network.replace("resnet_", "resnet"))(weights=None)
        spread_norms(model)
        return model.eval()
    import transformers

    config = transformers.BertConfig(use_cache=False, return_dict=False)
    config._attn_implementation = "eager" if network.endswith("eager") else "sdpa"
    bert = transformers.BertModel(config)

    class Text(torch.nn.Module):
        """Hides the other arguments of BertModel, which the script exporter would fill in by
        place."""

        def __init__(self):
            super().__init__()
            self.bert = bert

        def forward(self, input_ids, attention_mask=None):
            return self.bert(input_ids, attention_mask)
    return Text().eval()


def spread_norms(model):
    """Gives batch norms other means and variances than 0 and 1, as training does."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


def export(network, exporter, model, path):
    import torch

    row = NETWORKS[network]
    example = {name: torch.from_numpy(array) for name, array in feeds(network, row.example).items()}
    dims = {"dynamo": True, "dynamic_shapes": row.dims}
    if exporter == "script":
        dims = {"dynamo": False, "dynamic_axes": {**row.dims, **row.outputs}, "opset_version": 17}
    with torch.no_grad():
        torch.onnx.export(model, (), str(path), kwargs=example, input_names=list(row.dims),
                          output_names=list(row.outputs), **dims)


def difference(network, model, path):
    """Returns the largest relative difference between ONNX Runtime and torch over the network's
    shapes."""
    import torch

    session, worst = runtimes.OnnxRuntime(path, threads=0), 0.0
    for sizes in NETWORKS[network].shapes:
        arrays = feeds(network, sizes)
        with torch.no_grad():
            outputs = model(**{name: torch.from_numpy(array) for name, array in arrays.items()})
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        expected = {name: output.numpy() for name, output in zip(session.names, outputs)}
        worst = max(worst, runtimes.relative_difference(session.infer(arrays), expected))
    return worst


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="REGEX")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    wrong = []
    for network in NETWORKS:
        paths = [options.folder / f"{network}{ending}.onnx" for ending in EXPORTERS
                 if re.search(options.only, network + ending)]
        model = build(network) if paths else None
        for path in paths:
            exporter = EXPORTERS[path.stem.removeprefix(network)]
            try:
                export(network, exporter, model, path)
            except Exception as error:  # the exporter may raise anything
                wrong.append(path.name)
                print(f"{path.name}: not exported: {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            found = difference(network, model, path)
            wrong += [path.name] if found > TOLERANCE else []
            print(f"{path.name}: differs from torch by {found:.1e}", flush=True)
    sys.exit(f"dynamic_models.py: wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
