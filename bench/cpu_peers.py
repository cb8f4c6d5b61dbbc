#!/usr/bin/env python3
"""Compares this project with other runtimes on this CPU: on the same file, in turns.

  cpu_peers.py network    latency of a network: ONNX Runtime, our module without a trial, and tuned
  cpu_peers.py operators  the operators of operators.py tuned with 64 trials, against their bars:
                          share of the FMA peak or the memory bandwidth, or the time of the best of
                          ONNX Runtime, OpenVINO and torch (peer_process.py says how they are timed)
  cpu_peers.py tuning     a tuning run of 1,000 trials: where its seconds go

Each prints a table and writes bench/results/<what>.tsv (operators: unless --only). A time is the
median over rounds; in each, everybody has a turn. For operators a round counts only if the FMA probe
before it reaches 0.95 of the best one and nobody else was using the cores. Needs the packages of
requirements_peers.txt:
  python3 -m venv build/venv && build/venv/bin/pip install -r bench/requirements_peers.txt
"""
import argparse
import json
import pathlib
import shlex
import statistics
import sys
import tempfile
import time

import operator_rounds
import runtimes


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
    operator_rounds.compare_operators(pruner, options, folder, command_line())


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
    parser.add_argument("--trials", type=int, help="default: 64 an operator, 1000 a network")
    parser.add_argument("--only", metavar="REGEX", help="operators to measure; writes no file")
    parser.add_argument("--target", help="of operators, e.g. 'llvm -mcpu=haswell'; default: this CPU")
    parser.add_argument("--no-peers", action="store_true", help="operators: without other runtimes")
    parser.add_argument("--program", help="default: build/release/pruner")
    options = parser.parse_args()
    if options.trials is None:
        options.trials = 64 if options.what == "operators" else 1000
    with tempfile.TemporaryDirectory() as folder:
        try:
            what[options.what](runtimes.Pruner(options.program), options, pathlib.Path(folder))
        except RuntimeError as error:
            sys.exit(f"cpu_peers.py: {error}")


if __name__ == "__main__":
    main()
