#!/usr/bin/env python3
"""Compares the time of each kernel alone, which a search goes by, with its time in the network.

The script compiles a network from records and profiles the module. Each task has a line with the
milliseconds of a kernel in the network, the milliseconds of the best record, and their ratio. The
last line has the sums.

    bench/in_network.py --program build/release/pruner --network mobilenet_v2 --records RECORDS
"""

import argparse
import collections
import pathlib
import statistics
import tempfile

import runtimes


def kernels_of(module, pruner, profiles):
    """Returns the times of the kernels, by name. Each time is the median of some profiles."""
    seen = [pruner.json("bench", "--module", module, "--profile")["kernels"] for _ in range(profiles)]
    times = collections.defaultdict(list)
    for same in zip(*seen):
        times[same[0]["name"]].append(statistics.median(k["median_ms"] for k in same))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--network", required=True)
    parser.add_argument("--records", required=True)
    parser.add_argument("--profiles", type=int, default=3)
    options = parser.parse_args()
    pruner = runtimes.Pruner(options.program)
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder) / "module.so"
        pruner.compile(["--network", options.network], module, options.records)
        inside = kernels_of(module, pruner, options.profiles)
    best = {b["task"]: b["best_ms"] for b in pruner.json("records", "best", options.records)["best"]}
    ratios, sums = [], [0.0, 0.0]
    for name, times in inside.items():
        if name not in best:
            continue
        mean = statistics.mean(times)
        ratios.append(mean / best[name])
        sums[0] += sum(times)
        sums[1] += best[name] * len(times)
        print(f"{mean:9.4f} {best[name]:9.4f} {ratios[-1]:6.2f}  x{len(times):<3} {name}")
    low, middle, high = statistics.quantiles(ratios, n=10)[0], statistics.median(ratios), \
        statistics.quantiles(ratios, n=10)[-1]
    print(f"{options.network}: in the network {sums[0]:.3f} ms, alone {sums[1]:.3f} ms, ratio {sums[0] / sums[1]:.2f}; "
          f"of a kernel {middle:.2f} (80 % of them {low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
