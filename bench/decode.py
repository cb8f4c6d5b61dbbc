#!/usr/bin/env python3
"""Compares decoding with ONNX Runtime: one token at a time, behind kept keys and values.

The table has these numbers for each network and length of its caches:

- the milliseconds a token of our module, and of ONNX Runtime on the exported file (TensorScatter,
  with caches bound in place), in turns
- the share of the memory bandwidth, probed in the same run, that our bytes need; weights and caches
  count once
- whether both programs choose the same --tokens tokens, greedily

With --trials each task of the decode phase is tuned. The script writes bench/results/decode.tsv
unless --networks or --cached leave rows out. The script needs the packages of
requirements_peers.txt, and examples/decode.py for the loop.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

import runtimes

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples")]
import decode  # noqa: E402
import pruner  # noqa: E402

NETWORKS = ("gpt2", "llama_135m")
CACHED = (128, 1024)


class OnnxDecoder:
    """A session of ONNX Runtime whose caches are read and written in place."""

    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options)
        self.binding = self.session.io_binding()
        states = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]
        self.caches = []
        for state in states:
            cache = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(state.shape, np.float32))
            self.caches.append(cache)
            self.binding.bind_ortvalue_input(state.name, cache)
            self.binding.bind_ortvalue_output(state.name.replace("past_key_values", "present"), cache)
        self.binding.bind_output("logits")

    def __call__(self, token, past):
        self.binding.bind_cpu_input("input_ids", np.array([[token]]))
        self.binding.bind_cpu_input("past_length", np.array([past]))
        self.session.run_with_iobinding(self.binding)
        return self.binding.get_outputs()[-1].numpy()

    def decode(self, prompt, count):
        tokens = list(prompt)
        for seen in range(len(prompt) + count - 1):
            logits = self(tokens[seen], seen)
            if seen + 1 >= len(prompt):
                tokens.append(int(logits[0, 0].argmax()))
        return tokens[len(prompt):]


def timed(step, seconds):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def profile(binary, module, threads):
    """Returns the bytes that a token needs, and the bandwidth of this machine in bytes a second."""
    found = json.loads(subprocess.run(
        [binary, "bench", "--module", module, "--phase", "decode", "--threads", str(threads),
         "--profile", "--json"], check=True, capture_output=True, text=True).stdout)
    # Routines that update the caches are left out, because a routine's bytes are the whole caches.
    moved = sum(k["bytes"] for k in found["kernels"] if k["sketch"] != "routine")
    return moved, found["bandwidth_gbs"] * 1e9


def measure(binary, network, cached, options, folder):
    module, file = folder / f"{network}.so", folder / f"{network}.onnx"
    sizes = ["--network", network, "--cache-len", str(cached), "--seq-len", "16", "--decode", "1",
             "--threads", str(options.threads)]
    records = []
    if options.trials:
        subprocess.run([binary, "tune", *sizes, "--n-trials", str(options.trials), "--work-dir",
                        folder / "tuned", "-o", folder / "tuned.so"], check=True, capture_output=True)
        records = ["--records", folder / "tuned" / "records.json"]
    subprocess.run([binary, "compile", *sizes, *records, "-o", module], check=True,
                   capture_output=True)
    subprocess.run([binary, "networks", "export", network, "--cache-len", str(cached), "--seq-len",
                    "1", "-o", file], check=True, capture_output=True)
    ours, theirs = pruner.Module(module, options.threads), OnnxDecoder(file, options.threads)

    vocabulary = ours.phases["decode"].outputs[0].shape[2]
    prompt = [int(t) for t in np.random.default_rng(0).integers(0, vocabulary, 16)]
    count = min(options.tokens, cached - len(prompt))
    same = decode.decode(ours, prompt, count) == theirs.decode(prompt, count)

    token, past = np.array([[7]]), np.array([cached - 2])
    step = ours.phases["decode"]
    times = {"ours": [], "onnxruntime": []}
    for _ in range(options.rounds):
        times["ours"].append(timed(lambda: step(token, past), options.seconds))
        times["onnxruntime"].append(timed(lambda: theirs(7, cached - 2), options.seconds))
    moved, bandwidth = profile(binary, module, options.threads)
    ms = {who: statistics.median(all_ms) for who, all_ms in times.items()}
    return {"network": network, "cached": cached, "trials": options.trials,
            "ours_ms": ms["ours"], "onnxruntime_ms": ms["onnxruntime"],
            "ratio": ms["ours"] / ms["onnxruntime"],
            "ours_spread": f"{min(times['ours']):.2f}-{max(times['ours']):.2f}",
            "onnxruntime_spread": f"{min(times['onnxruntime']):.2f}-{max(times['onnxruntime']):.2f}",
            "bandwidth_share": moved / (ms["ours"] * 1e-3) / bandwidth,
            "same_tokens": f"{count if same else 'no'}"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pruner", default=ROOT / "build/release/pruner")
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--cached", nargs="+", type=int, default=CACHED)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    rows = []
    for network in options.networks:
        for cached in options.cached:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(options.pruner, network, cached, options, pathlib.Path(folder)))
                print(rows[-1], flush=True)
    whole = tuple(options.networks) == NETWORKS and tuple(options.cached) == CACHED
    runtimes.report("decode", " ".join(["bench/decode.py", *sys.argv[1:]]), rows, whole)


if __name__ == "__main__":
    main()
