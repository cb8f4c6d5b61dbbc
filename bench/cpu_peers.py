#!/usr/bin/env python3
"""Compares this project with other runtimes on this CPU, on the same file and in turns.

  cpu_peers.py networks   latency, memory and values of whole networks: our modules without a trial and
                          tuned with 1,000, ONNX Runtime, OpenVINO and torch's max-autotune
  cpu_peers.py operators  the operators of operators.py tuned with 64 trials, against their bars:
                          share of the FMA peak or the memory bandwidth, or the time of the best of
                          ONNX Runtime, OpenVINO and torch (peer_process.py says how they are timed)
  cpu_peers.py tuning     a tuning run of 1,000 trials: where its seconds go

Each command prints a table and writes bench/results/cpu_<what>.tsv, unless --only or --networks
leave rows out. A time is the median over rounds; in each round every runtime has a turn. A round
counts only if the FMA probe before it reaches 0.95 of the best probe and no one else uses the
cores.

The script needs the packages of requirements_peers.txt:
  python3 -m venv build/venv && build/venv/bin/pip install -r bench/requirements_peers.txt
"""
import argparse
import json
import pathlib
import shlex
import sys
import tempfile
import time

import network_rounds
import operator_rounds
import runtimes


def command_line():
    return shlex.join(["bench/cpu_peers.py", *sys.argv[1:]])


def compare_networks(pruner, options, folder):
    network_rounds.compare_networks(pruner, options, folder, command_line())


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
    what = {"networks": compare_networks, "operators": compare_operators, "tuning": time_tuning}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=what)
    parser.add_argument("--network", default="resnet_50", help="that is tuned")
    parser.add_argument("--networks", nargs="+", help="of `networks`, ONNX files too; default: all six")
    parser.add_argument("--peers", nargs="+", help="of `networks`: onnxruntime, openvino, torch")
    parser.add_argument("--work-dir", help="where tuning runs are left, and gone on from; default: nowhere")
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
