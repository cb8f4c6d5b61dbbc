#!/usr/bin/env python3
"""Compares this project with ONNX Runtime on this CPU: both on the same file, in turns.

  cpu_peers.py network    latency of a network: ONNX Runtime, our module without a trial, and tuned
  cpu_peers.py operators  operators tuned with 64 trials: seconds used, share of the FMA peak
  cpu_peers.py tuning     a tuning run of 1,000 trials: where its seconds go

Each prints a table and writes bench/results/<what>.tsv. Needs the packages of requirements.txt:
  python3 -m venv build/venv && build/venv/bin/pip install -r bench/requirements.txt
"""
import argparse
import json
import pathlib
import shlex
import statistics
import sys
import tempfile
import time

import runtimes

# Operators as `pruner ops` spells them, and their floating-point operations.
OPERATORS = {
    "matmul 512 512 512": 2 * 512**3,
    "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu": 2 * 56 * 56 * 64 * 64 * 9,
}


def command_line():
    return shlex.join(["bench/cpu_peers.py", *sys.argv[1:]])


def compare_network(pruner, options, folder):
    source = ["--network", options.network]
    model = folder / f"{options.network}.onnx"
    pruner.run("networks", "export", options.network, "-o", model)
    modules = {"pruner, 0 trials": folder / "untuned.so"}
    pruner.compile(source, modules["pruner, 0 trials"])
    if options.records:
        modules["pruner, tuned"] = folder / "tuned.so"
        pruner.compile(source, modules["pruner, tuned"], options.records)

    peer = runtimes.OnnxRuntime(model, options.threads)
    feeds = peer.seeded_feeds()
    expected = peer.infer(feeds)
    times = {"onnxruntime": [], **{name: [] for name in modules}}
    for _ in range(options.rounds):
        times["onnxruntime"].append(peer.median_ms(feeds))
        for name, module in modules.items():
            times[name].append(pruner.median_ms(module, options.threads))

    base = statistics.median(times["onnxruntime"])
    rows = []
    for name, found in times.items():
        module = modules.get(name)
        outputs = pruner.infer(module, feeds) if module else expected
        rows.append({
            "network": options.network,
            "threads": options.threads,
            "runtime": name,
            "median_ms": statistics.median(found),
            "min_ms": min(found),
            "max_ms": max(found),
            "times_as_fast": base / statistics.median(found),
            "difference": runtimes.relative_difference(outputs, expected),
            "rounds": len(found),
        })
    runtimes.report(f"cpu_{options.network}", command_line(), rows)


def compare_operators(pruner, options, folder):
    rows = []
    for index, (operator, flops) in enumerate(OPERATORS.items()):
        source = ["--op", operator]
        work_dir, module = folder / f"op{index}", folder / f"op{index}.so"
        start = time.perf_counter()
        pruner.run("tune", *source, "--n-trials", 64, "--work-dir", work_dir)
        seconds = time.perf_counter() - start
        pruner.compile(source, module, work_dir / "records.json")
        peaks, times = [], []
        for _ in range(options.rounds):
            peaks.append(pruner.peak_gflops(options.threads))
            times.append(pruner.median_ms(module, options.threads))
        gflops = flops / (1e6 * statistics.median(times))
        rows.append({
            "operator": operator,
            "threads": options.threads,
            "trials": 64,
            "tune_s": seconds,
            "median_ms": statistics.median(times),
            "gflops": gflops,
            "peak_gflops": max(peaks),
            "percent_of_peak": 100 * gflops / max(peaks),
        })
    runtimes.report("cpu_operators", command_line(), rows)


def time_tuning(pruner, options, folder):
    work_dir = pathlib.Path(options.work_dir or folder / "tuning")
    start = time.perf_counter()
    pruner.run("tune", "--network", options.network, "--n-trials", options.trials,
               "--work-dir", work_dir)
    seconds = time.perf_counter() - start
    run = json.loads((work_dir / "run.json").read_text())
    rows = [{"network": options.network, "trials": options.trials, "wall_s": seconds,
             **{key: float(run["more"][key]) for key in ("explore_s", "train_s", "build_s", "measure_s")}}]
    runtimes.report(f"cpu_tuning_{options.network}", command_line(), rows)


def main():
    what = {"network": compare_network, "operators": compare_operators, "tuning": time_tuning}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=what)
    parser.add_argument("--network", default="resnet_50")
    parser.add_argument("--records", help="records of a tuning run, for the tuned module")
    parser.add_argument("--work-dir", help="where `tuning` leaves its run; default: nowhere")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--program", help="default: build/release/pruner")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            what[options.what](runtimes.Pruner(options.program), options, pathlib.Path(folder))
        except RuntimeError as error:
            sys.exit(f"cpu_peers.py: {error}")


if __name__ == "__main__":
    main()
