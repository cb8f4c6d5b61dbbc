#!/usr/bin/env python3
"""Compares float32 networks that multiply bfloat16 with OpenVINO, which does so by default.

  precision.py                    all of them; writes bench/results/cpu_precision.tsv
  precision.py NETWORK...         those (printed, not written)

The same ONNX file runs in turns in our float32 and bfloat16 modules, in OpenVINO (with float32 and
with its default), and in ONNX Runtime. Our modules are untuned, or tuned with `--trials` trials.
OpenVINO tells the type of its default. The columns mean:

  ratio           our bfloat16 time over the time of OpenVINO's default
  gain            our float32 time over our bfloat16 time
  f32_ratio       our float32 time over the better float32 time of the peers
  error           our bfloat16 error relative to OpenVINO in float32, the mean over `--inputs`
                  inputs: the root mean square of the outputs' differences over that of the outputs
  openvino_error  the same error of OpenVINO's default
  f32_error       our largest float32 difference over the largest output

The script needs openvino.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import peer_process
import runtimes
from clean_rounds import Rounds

NETWORKS = ("resnet_50", "mobilenet_v2", "inception_v3", "densenet_121", "bert_base", "vit")
BENCH_S = 0.7


class OpenVino:
    """A network that OpenVINO compiles for latency. `precision` None is OpenVINO's own choice."""

    def __init__(self, model, threads, precision):
        import openvino
        wish = {"INFERENCE_PRECISION_HINT": precision} if precision else {}
        self.compiled = openvino.Core().compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads, **wish})
        self.type = self.compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        self.request = self.compiled.create_infer_request()

    def run(self, feeds):
        found = self.request.infer(feeds)
        return {output.get_any_name(): np.array(found[output]) for output in self.compiled.outputs}

    def median_ms(self):
        return peer_process.median_ms(self.request.infer, BENCH_S)


def error(found, expected):
    a, b = (np.concatenate([np.ravel(outputs[name]).astype(np.float64) for name in expected])
            for outputs in (found, expected))
    return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(b ** 2)))


def compare(pruner, rounds, network, options, folder):
    model = folder / "network.onnx"
    pruner.run("networks", "export", network, "-o", model)
    modules = {precision: folder / f"{precision}.so" for precision in ("f32", "bf16")}
    for precision, module in modules.items():
        source = [model, "--precision", precision, "--threads", options.threads]
        pruner.compile_tuned(source, module, options.trials, folder / precision)
    exact, default = (OpenVino(model, options.threads, wish) for wish in ("f32", None))
    session = runtimes.OnnxRuntime(model, options.threads)
    ours, theirs, f32_errors = [], [], []
    for seed in range(options.inputs):
        feeds = session.seeded_feeds(seed)
        expected = exact.run(feeds)
        ours.append(error(pruner.infer(modules["bf16"], feeds), expected))
        theirs.append(error(default.run(feeds), expected))
        f32_errors.append(runtimes.relative_difference(pruner.infer(modules["f32"], feeds), expected))
    turns = {precision: (lambda module=module: pruner.median_ms(module, options.threads, BENCH_S))
             for precision, module in modules.items()}
    feeds = session.seeded_feeds()
    turns |= {"openvino_f32": exact.median_ms, "openvino": default.median_ms,
              "onnxruntime": lambda: peer_process.median_ms(lambda: session.infer(feeds), BENCH_S)}
    times, clean, dropped = rounds.run(turns, options.rounds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = [a / b for a, b in zip(times["bf16"], times["openvino"])]
    f32_ratios = [a / min(b, c) for a, b, c in
                  zip(times["f32"], times["openvino_f32"], times["onnxruntime"])]
    return {"network": network, "threads": options.threads, "trials": options.trials,
            "f32_ms": medians["f32"], "bf16_ms": medians["bf16"], "openvino_f32_ms": medians["openvino_f32"],
            "openvino_ms": medians["openvino"], "openvino_type": default.type,
            "onnxruntime_ms": medians["onnxruntime"],
            "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios),
            "gain": medians["f32"] / medians["bf16"], "error": statistics.mean(ours),
            "openvino_error": statistics.mean(theirs),
            "f32_ratio": statistics.median(f32_ratios), "f32_error": max(f32_errors),
            "rounds": clean, "dropped": dropped}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS], metavar="NETWORK")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--program", type=pathlib.Path)
    options = parser.parse_args()
    pruner = runtimes.Pruner(options.program)
    rounds, rows = Rounds(pruner, options.threads), []
    for network in options.networks or NETWORKS:
        with tempfile.TemporaryDirectory(prefix="precision_") as folder:
            rows.append(compare(pruner, rounds, network, options, pathlib.Path(folder)))
            print(rows[-1], flush=True)
    runtimes.report("cpu_precision", " ".join(["precision.py", *sys.argv[1:]]), rows,
                    keep=not options.networks)


if __name__ == "__main__":
    main()
