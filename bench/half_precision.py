#!/usr/bin/env python3
"""Compares networks in float32, float16 and bfloat16 with one another, without a trial.

  half_precision.py                    all of them; writes bench/results/cpu_half_precision.tsv
  half_precision.py NETWORK...         those (printed, not written)

torch exports each network, with random weights, in each type. Our modules are timed in turns.
`ratio` is the time over the float32 module's time. `difference` is the largest difference from the
float32 module's outputs, over the largest output: the effect of weights and inputs of 16 bits. The
script needs the packages of requirements_zoo.txt.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import runtimes
from clean_rounds import Rounds

TYPES = ("float32", "float16", "bfloat16")
NETWORKS = ("resnet_18", "convnext_tiny", "bert_base")
BENCH_S = 0.5


def build(network):
    """Returns the model and its example input."""
    import torch
    import torchvision
    from transformers import BertConfig, BertModel
    torch.manual_seed(0)
    image = torch.randn(1, 3, 224, 224)
    if network == "resnet_18":
        return torchvision.models.resnet18(weights=None), image
    if network == "convnext_tiny":
        return torchvision.models.convnext_tiny(weights=None), image
    config = BertConfig()
    config._attn_implementation = "eager"
    bert = BertModel(config, add_pooling_layer=False)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert

        def forward(self, tokens):
            return self.bert(input_ids=tokens)[0]

    return Encoder(), torch.randint(3, 400, (1, 128))


def as_numpy(tensor):
    """Returns a numpy array of a tensor. An element of bfloat16, which numpy lacks, is two
    bytes."""
    import torch
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.uint16).numpy().view("V2")


def as_float32(array):
    if array.dtype != "V2":
        return array.astype(np.float32)
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def export(network, dtype, path):
    """Exports the network and returns its example input as an array."""
    import torch
    model, example = build(network)
    kind = getattr(torch, dtype)
    model = model.to(kind).eval()
    example = example.to(kind) if example.is_floating_point() else example
    with torch.no_grad():  # torch's own folding of batch norms mixes types
        torch.onnx.export(model, (example,), path, dynamo=True, optimize=dtype != "bfloat16",
                          input_names=["x"], output_names=["y"], external_data=False)
    return as_numpy(example)


def compare(pruner, rounds, network, options, folder):
    modules, outputs = {}, {}
    for dtype in TYPES:
        model, modules[dtype] = folder / f"{dtype}.onnx", folder / f"{dtype}.so"
        fed = export(network, dtype, model)
        pruner.compile([model, "--threads", options.threads], modules[dtype])
        outputs[dtype] = as_float32(pruner.infer(modules[dtype], {"x": fed})["y"])
    turns = {dtype: (lambda module=module: pruner.median_ms(module, options.threads, BENCH_S))
             for dtype, module in modules.items()}
    times, clean, dropped = rounds.run(turns, options.rounds)
    base = statistics.median(times["float32"])
    return [{"network": network, "type": dtype, "threads": options.threads,
             "median_ms": statistics.median(times[dtype]), "min_ms": min(times[dtype]),
             "max_ms": max(times[dtype]), "ratio": statistics.median(times[dtype]) / base,
             "difference": runtimes.relative_difference({"y": outputs[dtype]},
                                                        {"y": outputs["float32"]}),
             "rounds": clean, "dropped": dropped} for dtype in TYPES]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS], metavar="NETWORK")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--program", type=pathlib.Path)
    options = parser.parse_args()
    pruner = runtimes.Pruner(options.program)
    rounds, rows = Rounds(pruner, options.threads), []
    for network in options.networks or NETWORKS:
        with tempfile.TemporaryDirectory(prefix="half_precision_") as folder:
            rows += compare(pruner, rounds, network, options, pathlib.Path(folder))
    runtimes.report("cpu_half_precision", " ".join(["half_precision.py", *sys.argv[1:]]), rows,
                    keep=not options.networks)


if __name__ == "__main__":
    main()
