#!/usr/bin/env python3
"""Measures the trials that a warm start needs to reach the end result of a cold search.

  warm_start.py --build build/release --work DIR      each network is tuned for --trials, cold; then each begins with
                                                      the schedules of the others; a row of TSV each

A warm start has reached the end result when two latencies are within 1 % of the cold search's: its
estimate, and the time of the module of its records so far. The two modules are timed in turns.
Files that exist in DIR are used again.
"""
import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

REACHED = 1.01
LOOK_EVERY = 50  # trials between two looks at the module, once the estimate is reached
NETWORKS = "resnet_18,resnet_50,mobilenet_v2,mnasnet1_0,efficientnet_b0,googlenet"


class Tuning:
    """A work dir of `pruner tune`."""

    def __init__(self, args, network, folder):
        self.args, self.network, self.folder = args, network, folder

    def run(self, *options, until=None):
        """Tunes unless the folder is done. With `until`, stops after so many trials, like
        Ctrl-C."""
        if (self.folder / "done").exists():
            return
        command = [self.args.build / "pruner", "tune", "--network", self.network, "--n-trials", str(self.args.trials),
                   "--work-dir", self.folder, "--fresh", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.5)
            if until and self.curve() and self.curve()[-1][0] >= until:
                process.send_signal(signal.SIGINT)
                break
        if process.wait() not in (0, 130):
            sys.exit(f"{command}: exit {process.returncode}")
        (self.folder / "done").touch()

    def curve(self):
        """Returns (trials, estimated ms) of each round."""
        path = self.folder / "total_latency.tsv"
        rows = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
        return [(int(row[5]), float(row[3])) for row in rows if len(row) > 5 and row[3] != "N/A"]

    def module(self, trials, path):
        """Compiles the module of the first `trials` trials, or of all records if `trials` is 0, and
        returns its path."""
        lines = (self.folder / "records.json").read_text().splitlines()
        searched = [line for line in lines if json.loads(line)["p"]["origin"] != "final"]
        records = path.with_suffix(".json")
        records.write_text("\n".join(searched[:trials] if trials else lines) + "\n")
        subprocess.run([self.args.build / "pruner", "compile", "--network", self.network, "--records", records,
                        "--no-shipped-records", "-o", path], check=True, stdout=subprocess.DEVNULL)
        return path


def race(args, modules):
    times = [[] for _ in modules]
    for _ in range(args.rounds):
        for module, of in zip(modules, times):
            said = subprocess.run([args.build / "pruner", "bench", "--module", module, "--min-time", "0.5", "--json"],
                                  check=True, stdout=subprocess.PIPE, text=True).stdout
            of.append(json.loads(said)["median_ms"])
    return [statistics.median(of) for of in times]


def trials_to(args, cold, warm):
    """Returns the trials until the warm start reaches the cold search's end result, and the ms of
    both modules. The trials are None if the warm start never reaches the end result."""
    goal = cold.curve()[-1][1]
    module, ms, looked = cold.module(0, args.work / "cold.so"), (0, 0), -LOOK_EVERY
    for trials, estimate in warm.curve():
        if estimate > REACHED * goal or trials < looked + LOOK_EVERY:
            continue
        looked = trials
        ms = race(args, [module, warm.module(trials, args.work / "warm.so")])
        if ms[1] <= REACHED * ms[0]:
            return trials, ms
    return None, ms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    networks = args.networks.split(",")
    cold = {name: Tuning(args, name, args.work / "cold" / name) for name in networks}
    for name in networks:
        cold[name].run()
    print("network", "cold trials", "warm trials", "share", "cold ms", "warm ms", sep="\t")
    shares = []
    for name in networks:
        warm = Tuning(args, name, args.work / "warm" / name)
        others = [option for other in networks if other != name for option in ("--warm-start", cold[other].folder)]
        warm.run(*others, until=args.trials // 2)
        ended = cold[name].curve()[-1][0]
        trials, ms = trials_to(args, cold[name], warm)
        shares.append(trials / ended if trials else float("inf"))
        print(name, ended, trials or f"> {warm.curve()[-1][0]}", f"{shares[-1]:.2f}", *(f"{t:.3f}" for t in ms),
              sep="\t", flush=True)
    print(f"median {statistics.median(shares):.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
