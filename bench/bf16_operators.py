#!/usr/bin/env python3
"""Compares three bfloat16 contractions, tuned with 64 trials, with torch's (oneDNN).

  bf16_operators.py       writes bench/results/cpu_bf16_operators.tsv

Our program is the module of one operator, whose weight is packed. Torch's program is the layer in
bfloat16. The layer runs eager, and compiled with frozen weights, which oneDNN packs; the faster of
the two counts. The programs take turns. `ratio` is our time over torch's. `share` is our share of
the unit's peak, which `device probe` finds in the same run.

If the unit has tiles (AMX), the script also times matmuls of bfloat16 and of bytes whose operands
and sums lie in one core's L1. All sums of these matmuls are in tiles. `share` is the share of the
peak over the whole call. Least squares over the lengths of the sums give two more numbers:
`share_added` is the share over the time that longer sums add, and `fixed_ns` is the rest.
"""
import json
import pathlib
import statistics
import sys
import tempfile

import torch

import peer_process
import runtimes
from clean_rounds import Rounds

TRIALS, ROUNDS, LOOK_S, THREADS = 64, 7, 0.4, 2
OPERATORS = {
    "512x512x512": ("dense 512 512 512", torch.nn.Linear(512, 512), (512, 512)),
    "128x768x3072": ("dense 128 768 3072", torch.nn.Linear(3072, 768), (128, 3072)),
    "conv 64x56x56 3x3": ("conv2d 1 64 56 56 64 3 3 padding=1",
                          torch.nn.Conv2d(64, 64, 3, padding=1), (1, 64, 56, 56)),
}
# Matmuls with 32x32 results that fit into one core's L1 of 48 KiB, for machines with tiles (AMX).
# Each row has the type of the operands and the lengths of the sums.
RESIDENT = {
    "32x32x{} bf16": ("bits=16 exponent=8", (64, 128, 192, 256, 320)),
    "32x32x{} int8": ("bits=8", (128, 256, 384, 512, 640)),
}


def layers(layer, shape):
    """Returns calls of the layer in bfloat16: eager, and compiled if the compiler works here."""
    layer = layer.to(torch.bfloat16).eval()
    x = torch.randn(shape).to(torch.bfloat16)
    if len(shape) == 4:
        layer, x = layer.to(memory_format=torch.channels_last), x.to(
            memory_format=torch.channels_last)
    calls = {"eager": lambda: layer(x)}
    try:
        compiled = torch.compile(layer, mode="max-autotune")
        compiled(x)
        calls["compiled"] = lambda: compiled(x)
    except Exception as error:  # noqa: BLE001: whatever the compiler lacks here
        print(f"torch.compile: {str(error).splitlines()[0]}", file=sys.stderr)
    return calls


def tuned(pruner, op, threads, folder):
    source = ["--op", f"{op} bits=16 exponent=8", "--threads", threads]
    pruner.compile_tuned(source, folder / "module.so", TRIALS, folder)
    return folder / "module.so"


def flops(pruner, module, threads):
    """Returns the floating-point operations of the module's kernel, the kernel's unit, and the peak
    of the unit in GFLOP/s."""
    profile = pruner.json("bench", "--module", module, "--threads", threads, "--profile",
                          "--min-time", 0.1)
    kernel = profile["kernels"][0]
    peaks = {"float32": profile["peak_gflops"], **profile["unit_gflops"]}
    return kernel["flops"], kernel["precision"], peaks[kernel["precision"]]


def compare(pruner, rounds, name, folder):
    op, layer, shape = OPERATORS[name]
    module = tuned(pruner, op, THREADS, folder)
    turns = {"ours": lambda: pruner.median_ms(module, THREADS, LOOK_S)}
    for way, call in layers(layer, shape).items():
        turns[way] = lambda call=call: peer_process.median_ms(call, LOOK_S)
    times, clean, dropped = rounds.run(turns, ROUNDS)
    ways = [way for way in turns if way != "ours"]
    medians = {way: statistics.median(times[way]) for way in turns}
    ratios = [ours / min(peers) for ours, *peers in zip(times["ours"], *(times[w] for w in ways))]
    work, unit, peak = flops(pruner, module, THREADS)
    return {"operator": name, "unit": unit, "threads": THREADS, "trials": TRIALS,
            "ours_ms": medians["ours"], "torch_ms": min(medians[way] for way in ways),
            "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios),
            "share": work / medians["ours"] * 1e-6 / peak, "rounds": clean, "dropped": dropped,
            "share_added": None, "fixed_ns": None}


def in_cache(pruner, op, folder):
    """Returns (ms, module) of the faster of two programs that keep 2 x 2 tiles of sums and prefetch
    nothing. The tuner would not choose these programs, because the tuner times with weights in
    memory."""
    source = ["--op", op, "--threads", 1]
    pruner.run("tune", *source, "--policy", "uniform", "--n-trials", TRIALS, "--work-dir", folder)
    records = map(json.loads, (folder / "records.json").read_text().splitlines())
    record = next(one for one in records if one["p"]["sketch"].endswith("-matrix-tile"))
    sum_stage = next(name for name in record["p"]["decisions"] if name.endswith(".prefetch"))[:-9]
    found = []
    for unroll in 4, 16:
        for name in record["p"]["decisions"]:
            record["p"]["decisions"][name] = {"rows": 2, "vectors": 2, "inner": 1, "middle": 1}.get(
                name.rsplit(".", 1)[1], 0)
        record["p"]["decisions"][sum_stage + ".unroll"] = unroll
        one, module = folder / "one.json", folder / f"{unroll}.so"
        one.write_text(json.dumps(record) + "\n")
        pruner.compile(source, module, one)
        times = [pruner.median_ms(module, 1, 0.1) for _ in range(ROUNDS)]
        found.append((statistics.median(times), module))
    return min(found)


def resident(pruner, name):
    kind, lengths = RESIDENT[name]
    work, times = [], []
    for length in lengths:
        with tempfile.TemporaryDirectory(prefix="resident_") as folder:
            ms, module = in_cache(pruner, f"dense 32 32 {length} {kind}", pathlib.Path(folder))
            operations, unit, peak = flops(pruner, module, 1)
        work.append(operations)
        times.append(ms)
    slope, fixed = statistics.linear_regression(work, times)
    return {"operator": name.format(lengths[-1]), "unit": unit, "threads": 1, "trials": TRIALS,
            "ours_ms": times[-1], "torch_ms": None, "ratio": None, "ratio_min": None,
            "ratio_max": None, "share": work[-1] / times[-1] * 1e-6 / peak, "rounds": ROUNDS,
            "dropped": 0, "share_added": 1e-6 / slope / peak, "fixed_ns": fixed * 1e6}


def main():
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    torch._inductor.config.freezing = True
    pruner = runtimes.Pruner()
    rounds, rows = Rounds(pruner, THREADS), []
    for name in OPERATORS:
        with tempfile.TemporaryDirectory(prefix="bf16_") as folder:
            rows.append(compare(pruner, rounds, name, pathlib.Path(folder)))
            print(rows[-1], flush=True)
    for name in RESIDENT if rows[0]["unit"].endswith("_tile") else ():
        rows.append(resident(pruner, name))
        print(rows[-1], flush=True)
    runtimes.report("cpu_bf16_operators", "bf16_operators.py", rows)


if __name__ == "__main__":
    main()
