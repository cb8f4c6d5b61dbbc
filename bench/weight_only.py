#!/usr/bin/env python3
"""Compares GPT-2 with weights of 8 and 4 bits, one token at a time, with ONNX Runtime on the same
file.

  weight_only.py                  all forms; writes bench/results/cpu_weight_only.tsv
  weight_only.py BITSxBLOCK...    those, e.g. 8x32 (printed, not written)

Our built-in network is exported for a sequence of one token. Products with constants become
MatMulNBits with symmetric numbers. A call streams the weights of a decoding step, without the keys
and values of earlier tokens. The columns mean:

  ours_gbs    the bytes of codes and scales over the time of a call
  share       ours_gbs over the read bandwidth that `pruner bench --profile` probes far beyond the
              caches
  near_share  ours_gbs over the rate of a float32 product with a matrix of as many bytes, in the
              same turns; a last-level cache may hold a part of both
  error       the largest difference from ONNX Runtime, which also computes in float32
              (accuracy_level 0), over the largest output
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import peer_process
import runtimes
from clean_rounds import Rounds

FORMS = ("8x32", "8x128", "4x32", "4x128")
BENCH_S = 0.7
COLUMNS = 1024  # columns of the float32 matrix that is read for comparison


def quantized(weight, bits, block):
    """Returns the codes [n, blocks, bytes] and the scales [n, blocks] of a matrix [k, n]."""
    k, n = weight.shape
    blocks = -(-k // block)
    padded = np.zeros((blocks * block, n), np.float32)
    padded[:k] = weight
    values = padded.T.reshape(n, blocks, block)
    middle = 1 << (bits - 1)
    scales = (np.abs(values).max(axis=2) / (middle - 1)).astype(np.float32)
    scales[scales == 0] = 1
    codes = np.clip(np.rint(values / scales[:, :, None]) + middle, 0, 2 * middle - 1).astype(np.uint8)
    if bits == 4:
        codes = codes[:, :, 0::2] | (codes[:, :, 1::2] << 4)
    return np.ascontiguousarray(codes), scales


def write_quantized(source, target, bits, block):
    """Writes the network with MatMulNBits, and returns the bytes of its codes and scales."""
    model = onnx.load(source)
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes, added = [], 0
    for node in graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in constants:
            nodes.append(node)
            continue
        weight = numpy_helper.to_array(constants[node.input[1]])
        if node.op_type == "Gemm":  # the product of the logits, with transB and no bias
            weight = weight.T
        codes, scales = quantized(weight, bits, block)
        names = [f"{node.name}_codes", f"{node.name}_scales"]
        for name, array in zip(names, (codes, scales)):
            graph.initializer.append(numpy_helper.from_array(array, name))
            added += array.nbytes
        nodes.append(helper.make_node(
            "MatMulNBits", [node.input[0], *names], node.output, name=node.name, domain="com.microsoft",
            K=weight.shape[0], N=weight.shape[1], bits=bits, block_size=block))
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, target)
    return added


def compare(pruner, rounds, form, options, folder):
    bits, block = map(int, form.split("x"))
    plain, model, module, floats, reader = (
        folder / name for name in ("plain.onnx", "codes.onnx", "codes.so", "floats.so", "reader.so"))
    pruner.run("networks", "export", "gpt2", "--seq-len", "1", "-o", plain)
    weight_bytes = write_quantized(plain, model, bits, block)
    threads = ["--threads", options.threads]
    pruner.compile([model, *threads], module, options.records)
    pruner.compile([plain, *threads], floats)
    rows = weight_bytes // (4 * COLUMNS)
    pruner.compile(["--op", f"dense 1 {rows} {COLUMNS}", *threads], reader)
    session = runtimes.OnnxRuntime(model, options.threads)
    feeds = session.seeded_feeds(0)
    error = runtimes.relative_difference(pruner.infer(module, feeds), session.infer(feeds))
    turns = {
        "ours": lambda: pruner.median_ms(module, options.threads, BENCH_S),
        "f32": lambda: pruner.median_ms(floats, options.threads, BENCH_S),
        "near": lambda: pruner.median_ms(reader, options.threads, BENCH_S),
        "ort": lambda: peer_process.median_ms(lambda: session.infer(feeds), BENCH_S),
        "probed": lambda: pruner.json("bench", "--module", module, "--threads", options.threads,
                                      "--profile")["bandwidth_gbs"],
    }
    times, clean, dropped = rounds.run(turns, options.rounds)
    ours, f32, near, ort, probed = (statistics.median(times[name])
                                    for name in ("ours", "f32", "near", "ort", "probed"))
    gbs = [1e-6 * weight_bytes / ms for ms in times["ours"]]
    shares = [a / b for a, b in zip(gbs, times["probed"])]
    near_shares = [a * b / (4e-6 * COLUMNS * rows) for a, b in zip(gbs, times["near"])]
    return {"form": form, "threads": options.threads, "weight_mb": weight_bytes / 1e6,
            "ours_ms": ours, "f32_ms": f32, "ort_ms": ort, "ratio": ours / ort, "ours_gbs": statistics.median(gbs),
            "probed_gbs": probed, "share": statistics.median(shares), "share_min": min(shares),
            "near_gbs": 4e-6 * COLUMNS * rows / near, "near_share": statistics.median(near_shares),
            "error": error, "rounds": clean, "dropped": dropped}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", metavar="BITSxBLOCK")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path)
    options = parser.parse_args()
    pruner = runtimes.Pruner(options.program)
    rounds, rows = Rounds(pruner, options.threads), []
    for form in options.forms or FORMS:
        with tempfile.TemporaryDirectory(prefix="weight_only_") as folder:
            rows.append(compare(pruner, rounds, form, options, pathlib.Path(folder)))
            print(rows[-1], flush=True)
    runtimes.report("cpu_weight_only", " ".join(["weight_only.py", *sys.argv[1:]]), rows,
                    keep=not options.forms)


if __name__ == "__main__":
    main()
