#!/usr/bin/env python3
"""Compares modes on the 134 operators that Pruner's release tunes one by one (its auto_tune_op.sh).

  operator_sweep.py --list                     the operators, as `pruner --op` takes them
  operator_sweep.py --build build/release      `pruner compare` of each; a line of TSV each, and the
                                               geometric means
  operator_sweep.py --drawn 20 --seeds 2       the same for operators drawn at random, of which no table is
                                               kept: shapes, windows, strides, groups

The table has these numbers beside the latencies:

- the trials that a mode needs to reach the first mode's final latency (within 1 %), over the trials
  that the first mode itself needs
- the time of the first trial over the best time that any mode found

All times are times of modules of the searches' leaders, which run in turns.

The batch sizes are the release's, which are made for GPUs; `--most-gflop 2` leaves out operators
that take a CPU too long. Depthwise convolutions and poolings are NHWC here and NCHW in the release.
The release's im2col convolutions are plain convolutions here.
"""
import argparse
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

REACHED = 1.01  # a latency is reached at this multiple of it
FAR = 1.4       # leaders slower than this multiple of the best time are not raced

SWEEP = {
    "matmul {}": """128_128_128 1024_1024_1024 512_512_512 256_256_256 128_128_128 128_1000_4096 65536_1024_2
        512_1024_1024 1_1000_2048 32_1024_1024 64_1000_4096 64_756_86 740_1024_500 512_4096_1024 1024_4096_1024
        2048_4096_1024 4096_4096_1024 8192_4096_1024 16384_4096_1024""",
    "conv2d {}": """128_128_28_28_128_3_3 32_128_256_256_3_3_3 32_256_128_128_128_3_3 32_64_64_64_32_4_4
        1_512_8_8_256_4_4 3_32_114_114_3_3_3 16_110_71_71_50_5_5 128_42_83_83_42_1_1 128_42_83_83_96_1_1
        128_64_64_64_32_1_1 128_336_21_21_336_1_1 128_168_42_42_336_1_1""",
    "conv2d {} stride=2": """1_2048_14_14_1024_1_1 32_2048_14_14_1024_1_1 64_2048_14_14_1024_1_1
        128_2048_14_14_1024_1_1 256_2048_14_14_1024_1_1 512_2048_14_14_1024_1_1 1_128_256_256_3_7_7
        16_128_58_58_128_3_3 128_256_32_32_256_3_3 64_512_16_16_256_3_3 32_64_128_128_16_4_4
        3_32_128_128_16_4_4 3_512_30_30_256_5_5 16_128_64_64_32_3_3 16_128_128_128_8_3_3 32_64_28_28_16_2_2
        32_128_16_16_64_3_3 1_128_64_64_64_3_3""",
    "conv2d_nchw {}": """128_42_64_64_42_1_1 128_42_83_83_96_3_3 128_96_32_32_32_2_2 128_64_56_56_256_1_1
        128_84_42_42_168_1_1 128_84_83_83_168_1_1 128_128_28_28_512_1_1 128_168_21_21_1008_1_1
        128_168_42_42_168_1_1 128_256_16_16_256_1_1 128_256_28_28_512_1_1 128_256_56_56_64_1_1
        128_336_21_21_336_3_3 128_512_14_14_1024_1_1 128_512_28_28_128_1_1 32_128_32_32_64_1_1
        64_64_32_32_32_3_3 64_128_16_16_64_3_3""",
    "conv2d_nchw {} stride=2": """128_64_112_112_3_7_7 128_96_32_32_32_2_2 128_128_28_28_128_3_3
        128_256_14_14_256_3_3 128_512_7_7_512_3_3 128_512_28_28_256_1_1 128_1024_14_14_512_1_1
        1_32_64_64_32_3_3 1_128_128_128_32_3_3 3_64_28_28_32_3_3 32_256_14_14_128_3_3 64_128_56_56_64_3_3""",
    # The release computes these convolutions by im2col. The release's shape 1024_14_14_256_1_1
    # lacks the batch, and has a batch of 128 here, like its neighbours.
    "conv2d {} ": """64_128_16_16_64_3_3 128_168_42_42_168_1_1 128_1024_14_14_256_1_1 128_256_16_16_256_1_1
        128_512_14_14_1024_1_1 128_168_21_21_1008_1_1 128_42_64_64_42_1_1 32_128_32_32_64_1_1
        128_42_83_83_96_1_1 128_96_32_32_32_2_2 128_84_83_83_168_1_1 128_336_21_21_336_1_1
        128_256_56_56_64_1_1 128_64_56_56_256_1_1 128_512_28_28_128_1_1 128_128_28_28_512_1_1
        128_84_42_42_168_1_1 128_256_28_28_512_1_1""",
    "conv2d {} stride=2 ": """64_64_32_32_32_3_3 128_128_28_28_128_3_3 128_256_14_14_256_3_3
        128_512_7_7_512_3_3 128_1024_14_14_512_1_1 128_512_16_16_256_3_3 128_64_112_112_3_7_7
        128_96_32_32_32_2_2 128_512_28_28_256_1_1 64_128_56_56_64_3_3 1_32_64_64_32_3_3 1_128_128_128_32_3_3
        3_64_28_28_32_3_3 32_256_14_14_128_3_3""",
    "depthwise_conv2d {} padding=1": """32_256_14_14_3_3 128_64_32_32_3_3 3_128_114_114_3_3 1_32_56_56_3_3
        128_42_83_83_5_5 128_84_21_21_3_3 32_256_128_128_3_3 32_512_64_64_4_4 64_128_114_114_3_3
        64_256_56_56_3_3 1_1024_64_64_4_4""",
    "depthwise_conv2d {} stride=2": "128_16_32_32_3_3 128_128_64_64_4_4",
    "avg_pool2d {}": "64_32_83_83_3_3 32_512_16_16_2_2",
    "avg_pool2d {} stride=2": "128_168_83_83_4_4 128_617_21_21_3_3",
    "max_pool2d {} stride=2 padding=1": "64_1024_53_53_5_5",
    "sum {}": "65536_1024 1024_8192 65536_1024 516096_121 32000_16384",  # rows of 1, 2 and 2 + 2 dimensions
}


def drawn(count, seed):
    """Returns (text, floating-point operations) of `count` drawn operators, no two of the same
    text. Kinds and sizes are those of networks; an operator takes a core about a millisecond."""
    rng = random.Random(seed)
    channels = [16, 24, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512]
    sizes = [7, 10, 14, 19, 20, 28, 32, 38, 40, 56]

    def product():
        m, n, k = (rng.choice([32, 49, 64, 77, 128, 196, 197, 256, 384, 512, 768, 1000]) for _ in range(3))
        return f"matmul {m} {n} {k}{rng.choice(['', ' +bias', ' +bias +relu'])}", 2 * m * n * k

    def batch_product():
        b, (m, n, k) = rng.choice([4, 8, 12, 16]), (rng.choice([32, 64, 80, 128, 197, 256]) for _ in range(3))
        return f"batch_matmul {b} {m} {n} {k}", 2 * b * m * n * k

    def convolution(groups):
        window, stride, size = rng.choice([1, 3, 3, 5, 7]), rng.choice([1, 1, 2]), rng.choice(sizes)
        of, to = rng.choice(channels), rng.choice(channels)
        of, to = of * groups, to * groups
        text = (f"conv2d 1 {of} {size} {size} {to} {window} {window} stride={stride} padding={window // 2}"
                + (f" groups={groups}" if groups > 1 else "") + rng.choice(["", " +bias", " +bias +relu"]))
        return text, 2 * of * to * (size // stride) ** 2 * window ** 2 / groups

    def depthwise():
        window, stride, of = rng.choice([3, 5, 7]), rng.choice([1, 2]), rng.choice(channels)
        size = rng.choice(sizes)
        return (f"depthwise_conv2d 1 {of} {size} {size} {window} {window} stride={stride} padding={window // 2} +bias",
                2 * of * (size // stride) ** 2 * window ** 2)

    kinds = [product, batch_product, lambda: convolution(1), lambda: convolution(1), lambda: convolution(1),
             lambda: convolution(rng.choice([2, 4, 8])), depthwise]
    found = {}
    while len(found) < count:
        text, flop = kinds[len(found) % len(kinds)]()
        if 1e6 < flop < 1e9:
            found[text] = flop
    return list(found.items())


def operators():
    """Yields (text, floating-point operations) of each operator, in the release's order."""
    for template, shapes in SWEEP.items():
        for shape in shapes.split():
            numbers = [int(n) for n in shape.split("_")]
            yield template.format(" ".join(map(str, numbers))).strip(), 2 * math.prod(numbers)


class Leaders:
    """The leaders of a search: the trials that were its best when they were measured.

    Leaders are timed again, in turns with the leaders of other searches: the least of a few hundred
    timings need not be the time of the fastest program.
    """

    def __init__(self, path):
        self.trials = []  # (number, line, seconds) of each leader
        best = math.inf
        for number, line in enumerate(path.read_text().splitlines()):
            record = json.loads(line)
            if record["r"][1] != 0 or record["p"]["origin"] == "final":
                continue
            seconds = statistics.fmean(record["r"][0])
            if seconds < best or not self.trials:
                self.trials.append((number + 1, line, seconds))
            best = min(best, seconds)
        self.best = best
        self.seconds = {}  # times in the race, by a trial's number

    def reach(self, seconds):
        """Returns the number of trials until a leader reached that time."""
        return next((n for n, _, _ in self.trials if self.seconds.get(n, math.inf) <= REACHED * seconds), math.inf)

    def first(self):
        return self.seconds[self.trials[0][0]]

    def final(self):
        return min(self.seconds.values())


def race(build, text, searches, args, folder):
    """Races the leaders and fills in their seconds. Leaders far from the best are left out, except
    for the first trial of each search."""
    pruner, racers = build / "pruner", {}  # `racers` has the paths of the modules, by record line
    best = min(search.best for search in searches)
    target = ["--target", args.target] if args.target else []
    for search in searches:
        for number, line, seconds in search.trials:
            if line in racers or (seconds > FAR * best and number != search.trials[0][0]):
                continue
            record, racers[line] = folder / "racer.json", folder / f"racer{len(racers)}.so"
            record.write_text(line + "\n")
            subprocess.run([pruner, "compile", "--op", text, "--records", record, "--no-shipped-records", "-o",
                            racers[line], *target], check=True, stdout=subprocess.DEVNULL)
    times = {line: [] for line in racers}
    for _ in range(args.rounds):
        for line, module in racers.items():
            said = subprocess.run([pruner, "bench", "--module", module, "--min-time", "0.05", "--json"], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout
            times[line].append(json.loads(said)["median_ms"] * 1e-3)
    for search in searches:
        search.seconds = {number: statistics.median(times[line]) for number, line, _ in search.trials if line in times}


def compare(build, text, args):
    """Runs `pruner compare` on an operator; returns the raced leaders of each seed, by mode."""
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        folder = args.work_dir / re.sub("[^A-Za-z0-9=]+", "_", text) if args.work_dir else temporary
        command = [build / "pruner", "compare", "--op", text, "--modes", args.modes, "--n-trials", str(args.trials),
                   "--seeds", str(args.seeds), "--work-dir", folder, "--json"]
        if args.target:
            command += ["--target", args.target]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = {mode: [Leaders(folder / f"records-{mode}-{seed}.json") for seed in range(args.seeds)]
                 for mode in args.modes.split(",")}
        race(build, text, [search for of_mode in found.values() for search in of_mode], args, temporary)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default="build/release")
    parser.add_argument("--modes", default="ansor,pruner")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="of the race")
    parser.add_argument("--target", help="default: this machine's CPU")
    parser.add_argument("--work-dir", type=pathlib.Path, help="records are kept there, a folder an operator")
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="N operators drawn at random instead")
    parser.add_argument("--draw-seed", type=int, default=0)
    parser.add_argument("--most-gflop", type=float, default=math.inf)
    args = parser.parse_args()
    known = drawn(args.drawn, args.draw_seed) if args.drawn else operators()
    chosen = [text for text, flop in known if re.search(args.only, text) and flop <= args.most_gflop * 1e9]
    if args.list:
        print("\n".join(chosen))
        return
    modes = args.modes.split(",")
    first_mode, others = modes[0], modes[1:]
    print("operator", *(f"{mode} ms" for mode in modes), *(f"{mode} trials to {first_mode}'s" for mode in modes),
          *(f"{mode} over {first_mode}'s own" for mode in others), *(f"{mode} first/best" for mode in modes), sep="\t")
    logs = {mode: 0.0 for mode in modes}
    shares, firsts = {mode: [] for mode in others}, {mode: [] for mode in modes}
    for text in chosen:
        found = compare(args.build, text, args)
        median = {mode: statistics.median(s.final() for s in found[mode]) for mode in modes}
        best = min(search.final() for of_mode in found.values() for search in of_mode)
        goals = [search.final() for search in found[first_mode]]  # a goal for each seed
        trials = {mode: [s.reach(goal) for s, goal in zip(found[mode], goals)] for mode in modes}
        for mode in others:
            shares[mode].append(statistics.median(t / own for t, own in zip(trials[mode], trials[first_mode])))
        for mode in modes:
            firsts[mode].append(statistics.median(s.first() / best for s in found[mode]))
            logs[mode] += math.log(median[mode] / median[first_mode])
        print(text, *(f"{1e3 * median[mode]:.4f}" for mode in modes),
              *(f"{statistics.median(trials[mode]):.0f}" for mode in modes),
              *(f"{shares[mode][-1]:.2f}" for mode in others), *(f"{firsts[mode][-1]:.3f}" for mode in modes),
              sep="\t", flush=True)
    for mode, total in logs.items():
        print(f"{mode}: {math.exp(total / max(len(chosen), 1)):.3f} x {first_mode}'s latency, geometric mean of "
              f"{len(chosen)}", file=sys.stderr)
    for what, of in (("trials to its final latency over its own", shares), ("first trial over the best", firsts)):
        for mode, values in of.items():
            print(f"{mode}, {what}: median {statistics.median(values):.2f}, most {max(values):.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
