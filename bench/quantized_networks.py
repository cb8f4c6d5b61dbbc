#!/usr/bin/env python3
"""Compares quantized networks with ONNX Runtime and OpenVINO.

  quantized_networks.py                    all of them; writes bench/results/cpu_quantized.tsv
  quantized_networks.py NETWORK...         those (printed, not written)

ONNX Runtime's quantize_static writes a built-in network as QDQ, with uint8 activations and int8
weights by channel. The ranges come from four seeded inputs, which is right for times but not for
accuracy.

The same file runs in turns in our module, in ONNX Runtime, and in OpenVINO. Our products that are
not quantized follow `--precision auto`. OpenVINO runs with its default precision, and with float32
for the parts that are not quantized. If OpenVINO's process dies of a file, only ONNX Runtime is
compared.

`ratio` is our time over the best of the peers' times. `agrees` is the cosine of our outputs and
ONNX Runtime's. The script needs openvino.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

import peer_process
import precision
import runtimes
from clean_rounds import Rounds

CALIBRATION_INPUTS = 4


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def quantized(pruner, network, folder, threads):
    """Writes a built-in network as a QDQ file and returns its path."""
    whole, folded, path = (folder / f"{name}.onnx" for name in ("whole", "folded", network))
    pruner.run("networks", "export", network, "-o", whole)
    quant_pre_process(str(whole), str(folded), skip_symbolic_shape=True)
    session = runtimes.OnnxRuntime(whole, threads)
    feeds = [session.seeded_feeds(seed) for seed in range(1, 1 + CALIBRATION_INPUTS)]
    quantization.quantize_static(
        str(folded), str(path), Calibration(feeds), quant_format=quantization.QuantFormat.QDQ,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
        per_channel=True, calibrate_method=quantization.CalibrationMethod.MinMax)
    return path


def cosine(found, expected):
    a, b = (np.concatenate([np.ravel(outputs[name]).astype(np.float64) for name in expected])
            for outputs in (found, expected))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def survives_openvino(model):
    program = "import sys, openvino; openvino.Core().compile_model(sys.argv[1], 'CPU')"
    done = subprocess.run([sys.executable, "-c", program, model], capture_output=True)
    return done.returncode == 0


def compare(pruner, rounds, network, options, folder):
    model, module = quantized(pruner, network, folder, options.threads), folder / "module.so"
    source = [model, "--precision", "auto", "--threads", options.threads]
    pruner.compile_tuned(source, module, options.trials, folder / "work")
    session = runtimes.OnnxRuntime(model, options.threads)
    feeds = session.seeded_feeds()
    agrees = cosine(pruner.infer(module, feeds), session.infer(feeds))
    turns = {"ours": lambda: pruner.median_ms(module, options.threads, precision.BENCH_S),
             "onnxruntime": lambda: peer_process.median_ms(
                 lambda: session.infer(feeds), precision.BENCH_S)}
    if survives_openvino(model):
        for name, wish in (("openvino", None), ("openvino_f32", "f32")):
            peer = precision.OpenVino(model, options.threads, wish)
            peer.run(feeds)
            turns[name] = peer.median_ms
    times, clean, dropped = rounds.run(turns, options.rounds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = [ours / min(peers) for ours, *peers in zip(*(times[name] for name in turns))]
    return {"network": network, "threads": options.threads, "trials": options.trials,
            **{f"{name}_ms": medians.get(name)
               for name in ("ours", "onnxruntime", "openvino", "openvino_f32")},
            "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios),
            "agrees": agrees, "rounds": clean, "dropped": dropped}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[[], *precision.NETWORKS], metavar="NETWORK")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--program", type=pathlib.Path)
    options = parser.parse_args()
    pruner = runtimes.Pruner(options.program)
    rounds, rows = Rounds(pruner, options.threads), []
    for network in options.networks or precision.NETWORKS:
        with tempfile.TemporaryDirectory(prefix="quantized_") as folder:
            rows.append(compare(pruner, rounds, network, options, pathlib.Path(folder)))
            print(rows[-1], flush=True)
    runtimes.report("cpu_quantized", " ".join(["quantized_networks.py", *sys.argv[1:]]), rows,
                    keep=not options.networks)


if __name__ == "__main__":
    main()
