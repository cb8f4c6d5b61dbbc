#!/usr/bin/env python3
"""Measures how well the draft of CPUs chooses on operators and machines that it was not fitted on.

    bench/draft_transfer.py list                    the operators, with their families
    bench/draft_transfer.py collect                 measures programs of each on this machine
    bench/draft_transfer.py report [FILE...]        what the draft makes of the programs of each machine
    bench/draft_transfer.py held-out [FILE...]      the same, its constants fitted on other machines, other families
    bench/draft_transfer.py pretrain [FILE...]      the weights that the mode pam starts from: models/pam_cpu.safetensors

The operators are drawn by a seed from a grammar (FAMILIES). `collect` makes two passes over all
operators. Each pass measures 300 programs that are drawn uniformly from the operator's space, the
same in both passes. Each pass also measures 100 programs that a search by the draft alone takes. A
program counts with its least time, because other users of the processor only ever make a program
slower. The records are kept for each kind of machine, compressed, in bench/data.

`report` shows these numbers for each family:

- the speed of the best of the draft's first k programs, relative to the best of all programs
- the same speed for k programs that are drawn at random
- the share of pairs of programs that the draft has in the right order

The next line has the numbers of a draft that knows each program's time in the other pass: noisy
times allow no better draft. The last table has the ten operators whose first program by the draft
is furthest from the best. Each comes with the number of the draft's formula that is wrong there.
"""
import argparse
import gzip
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parent / "data"
WEIGHTS = DATA.parent.parent / "models/pam_cpu.safetensors"
UNIFORM, DRAFTED, PASSES = 300, 100, 2  # programs of an operator in a pass, and passes

ROWS = [16, 32, 49, 64, 77, 96, 100, 128, 196, 197, 256, 300, 384, 500, 512, 768]
WIDTHS = [64, 80, 96, 128, 192, 256, 300, 320, 384, 512, 640, 768, 1000, 1024, 1280, 2048, 3072, 4096]
CHANNELS = [3, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 144, 160, 192, 256, 320, 384, 512]
SIZES = [7, 8, 10, 13, 14, 16, 19, 20, 26, 28, 32, 38, 40, 56, 64, 80, 112]
EPILOGUES = ["", "", " +bias", " +bias +relu", " +bias +gelu", " +bias +residual", " +bias +silu"]
LEAST_FLOP, MOST_FLOP = 2e6, 2e9


def product_of_inputs(rng):
    m, n, k = rng.choice(ROWS), rng.choice(WIDTHS), rng.choice(WIDTHS)
    return f"matmul {m} {n} {k}{rng.choice(EPILOGUES)}", 2 * m * n * k


def product_with_constant(rng):
    m, n, k = rng.choice(ROWS), rng.choice(WIDTHS), rng.choice(WIDTHS)
    return f"dense {m} {n} {k}{rng.choice(EPILOGUES)}", 2 * m * n * k


def tall_product(rng):
    m, n, k = rng.choice([1568, 3136, 4096, 6272, 12544]), rng.choice([8, 16, 30, 32, 64]), rng.choice(WIDTHS[:12])
    return f"{rng.choice(['matmul', 'dense'])} {m} {n} {k}{rng.choice(EPILOGUES)}", 2 * m * n * k


def one_row(rng):
    m, n, k = rng.choice([1, 1, 2, 4]), rng.choice(WIDTHS[6:]), rng.choice(WIDTHS[6:])
    return f"{rng.choice(['matmul', 'dense'])} {m} {n} {k}{rng.choice(EPILOGUES)}", 2 * m * n * k


def batched_product(rng):
    b, m, n, k = rng.choice([2, 4, 8, 12, 16]), rng.choice(ROWS), rng.choice(WIDTHS[:10]), rng.choice(WIDTHS[:10])
    return f"batch_matmul {b} {m} {n} {k}{rng.choice(['', ' weights=1'])}", 2 * b * m * n * k


def convolution(rng):
    window, stride = rng.choice([1, 2, 3, 3, 4, 5, 7]), rng.choice([1, 1, 2])
    size, of, to = rng.choice(SIZES), rng.choice(CHANNELS), rng.choice(CHANNELS[1:])
    return (f"conv2d 1 {to} {size} {size} {of} {window} {window} stride={stride} padding={window // 2}"
            + rng.choice(EPILOGUES), 2 * to * of * size * size * window * window)


def grouped_or_dilated_convolution(rng):
    window, size, groups = rng.choice([3, 3, 5]), rng.choice(SIZES), rng.choice([1, 2, 4, 8, 16, 32])
    of, to = (groups * rng.choice([2, 4, 6, 8, 16, 20, 32]) for _ in range(2))
    if groups == 1:
        of, to, dilation = rng.choice(CHANNELS), rng.choice(CHANNELS[1:]), rng.choice([2, 3])
    else:
        dilation = 1
    stride = rng.choice([1, 1, 2])
    return (f"conv2d 1 {to} {size} {size} {of} {window} {window} stride={stride} padding={window // 2 * dilation} "
            f"dilation={dilation} groups={groups}{rng.choice(EPILOGUES)}",
            2 * to * of * size * size * window * window / groups)


def depthwise(rng):
    window, stride, size, channels = rng.choice([3, 5, 7]), rng.choice([1, 2]), rng.choice(SIZES), rng.choice(CHANNELS[1:])
    return (f"depthwise_conv2d 1 {channels} {size} {size} {window} {window} stride={stride} padding={window // 2}"
            + rng.choice(EPILOGUES[2:4]), 2 * channels * size * size * window * window)


def pool(rng):
    window, size, channels = rng.choice([2, 3, 5]), rng.choice(SIZES), rng.choice(CHANNELS[4:])
    kind = rng.choice(["max_pool2d", "avg_pool2d"])
    return f"{kind} 1 {channels} {size} {size} {window} {window} stride=2", channels * size * size * window * window


def rows(rng):
    n, width = rng.choice(ROWS) * rng.choice([1, 4]), rng.choice(WIDTHS)
    return f"{rng.choice(['softmax', 'layernorm', 'rms_norm', 'sum'])} {n} {width}", 10 * n * width


def attention(rng):
    heads, m, d = rng.choice([4, 8, 12, 16]), rng.choice([49, 64, 128, 197, 256, 384]), rng.choice([32, 64, 80, 128])
    return f"attention 1 {heads} {m} {m} {d}{rng.choice(['', ' causal=1'])}", 4 * heads * m * m * d


# Each family has a function that draws an operator, and its number of the 40 operators.
FAMILIES = {"product of inputs": (product_of_inputs, 6), "product with a constant": (product_with_constant, 4),
            "tall product": (tall_product, 2), "one row": (one_row, 3), "batched product": (batched_product, 4),
            "convolution": (convolution, 8), "grouped or dilated": (grouped_or_dilated_convolution, 4),
            "depthwise": (depthwise, 3), "pool": (pool, 2), "rows": (rows, 2), "attention": (attention, 2)}


def operators(seed):
    """Returns (family, text) of each of the 40 operators. No two texts are equal. An operator takes
    a core between tens of microseconds and tens of milliseconds."""
    rng, found = random.Random(seed), {}
    for family, (draw, count) in FAMILIES.items():
        least = LEAST_FLOP if draw not in (pool, rows) else LEAST_FLOP / 10
        while sum(f == family for f in found.values()) < count:
            text, flop = draw(rng)
            if least < flop < MOST_FLOP:
                found.setdefault(text, family)
    return [(family, text) for text, family in found.items()]


def run(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def measure(args, text, seed):
    """Returns the records of one pass over an operator's programs."""
    with tempfile.TemporaryDirectory() as folder:
        uniform, drafted = pathlib.Path(folder) / "uniform.json", pathlib.Path(folder) / "drafted"
        run(args.program, "dataset", "collect", "--op", text, "--programs-per-task", UNIFORM, "--eps-greedy", 1,
            "--seed", args.seed, "-o", uniform, "--quiet")
        run(args.program, "tune", "--op", text, "--model", "draft-only", "--n-trials", DRAFTED, "--eps-greedy", 0,
            "--seed", seed, "--work-dir", drafted, "--quiet")
        return [line for path in (uniform, drafted / "records.json") for line in path.read_text().splitlines() if line]


def collect(args):
    """Writes FOLDER/cpu-MACHINE.json.gz with a record a line; the records of an operator stand
    together."""
    found = {}
    for number in range(PASSES):
        for _, text in operators(args.seed):
            found.setdefault(text, []).extend(measure(args, text, args.seed + number))
            print(f"pass {number + 1}: {text}: {len(found[text])} records", file=sys.stderr, flush=True)
    lines = [line for of_operator in found.values() for line in of_operator]
    machine = json.loads(lines[0])["p"]["device"]
    args.folder.mkdir(exist_ok=True)
    name = re.sub("[^a-z0-9]+", "-", machine.lower()) + (f"-seed{args.seed}" if args.seed else "")
    path = args.folder / f"cpu-{name}.json.gz"
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0))
    print(path)


def fit(args, files, *more):
    """Runs `pruner device fit` on the records; returns its tasks by (operator, target), and its
    factors."""
    said = json.loads(run(args.program, "device", "fit", "--json", "--records", *files, *more))
    return {tuple(task["name"].split(" on ", 1)): task for task in said["tasks"]}, said.get("factors", {})


def read_times(path):
    """Returns, by operator, (origin, program, seconds) of each measured program, in the order of
    measuring."""
    times = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        record = json.loads(line)
        about, costs = record["p"], sorted(record["r"][0])
        if record["r"][1] == 0:
            program = about["sketch"] + json.dumps(about["decisions"])
            times.setdefault(about["task"], []).append((about["origin"], program, costs[len(costs) // 4]))
    return times


def of_other_pass(times):
    """Returns best of 1, best of 10 and pairs of a draft that knows the time of each uniform
    program in the first pass. The times of the second pass judge the draft. The numbers are means
    over operators."""
    qualities = []
    for of in times.values():
        twice = {}
        for origin, program, seconds in of:
            if origin == "collect":
                twice.setdefault(program, []).append(seconds)
        both = sorted(pair for pair in twice.values() if len(pair) == 2)
        if len(both) < 10:
            continue
        best = min(second for _, second in both)
        pairs = [(a[0] < b[0]) == (a[1] < b[1]) for i, a in enumerate(both) for b in both[:i]]
        qualities.append((best / both[0][1], best / min(second for _, second in both[:10]), statistics.fmean(pairs)))
    return [statistics.fmean(values) for values in zip(*qualities)]


def first_over_best(times):
    """Returns, by operator, the time of the first trial of the search, which the draft alone
    chooses, over the least time of all programs."""
    found = {}
    for text, of in times.items():
        first = next((seconds for origin, _, seconds in of if origin not in ("collect", "final")), None)
        if first:
            found[text] = first / min(seconds for _, _, seconds in of)
    return found


def print_rows(rows):
    for row in rows:
        print("| " + " | ".join(row) + " |")


def table(tasks, families, key, title):
    """Prints a row for each family, with the means over its operators."""
    columns = [("best of 1", lambda t: t[key]["best_1"]), ("best of 10", lambda t: t[key]["best_10"]),
               ("10 at random", lambda t: t["random_10"]), ("pairs", lambda t: t[key]["pairwise"])]
    rows = [[title, "operators", *(name for name, _ in columns)], ["---"] * (len(columns) + 2)]
    for family in [*FAMILIES, "all"]:
        of = [task for (text, _), task in tasks.items() if family in (families.get(text), "all")]
        if of:
            rows.append([family, str(len(of)), *(f"{statistics.fmean(map(value, of)):.3f}" for _, value in columns)])
    print_rows(rows)


def report(args, families):
    for path in args.files:
        tasks, _ = fit(args, [path], "--judge")
        print(f"\n{path.name}\n")
        table(tasks, families, "prior", "family")
        times = read_times(path)
        if known := of_other_pass(times):
            print("\nby the other pass' times: best of 1 {:.3f}, best of 10 {:.3f}, pairs {:.3f}".format(*known))
        first = first_over_best(times)
        if first:
            print(f"\nfirst trial over the best program: median {statistics.median(first.values()):.3f}, "
                  f"greatest {max(first.values()):.3f} ({max(first, key=first.get)})\n")
        rows = [["operator", "best of 1", "first trial over the best", "number that is wrong", "best of 1 with it"],
                ["---"] * 5]
        for (text, _), task in sorted(tasks.items(), key=lambda item: item[1]["prior"]["best_1"])[:10]:
            wrong = task.get("wrong")
            rows.append([text, f"{task['prior']['best_1']:.3f}", f"{first.get(text, math.nan):.3f}",
                         f"{wrong['name']} x {wrong['factor']:g}" if wrong else "none alone",
                         f"{wrong['best_1']:.3f}" if wrong else ""])
        print_rows(rows)


def held_out(args, families):
    """Prints the quality of fitted drafts: each machine by numbers fitted on the other machines,
    and each family by numbers fitted on the other families."""
    stiffness = ["--stiffness", str(args.stiffness)]
    if len(args.files) > 1:
        for path in args.files:
            targets = {target for _, target in fit(args, [path], "--judge")[0]}
            these = "|".join(re.escape(f" on {target}") for target in targets)
            tasks, _ = fit(args, args.files, *stiffness, "--hold-out", f"({these})$")
            print(f"\n{path.name}, fitted on the other machines\n")
            table({key: task for key, task in tasks.items() if task["held_out"]}, families, "fitted", "family")
    for path in args.files:
        found = {}
        for family in FAMILIES:
            texts = "|".join(re.escape(text) for text, of in families.items() if of == family)
            tasks, _ = fit(args, [path], *stiffness, "--hold-out", f"^({texts}) on ")
            found.update({key: task for key, task in tasks.items() if task["held_out"]})
        print(f"\n{path.name}, each family fitted on the others\n")
        table(found, families, "fitted", "family")


def pretrain(args):
    with tempfile.TemporaryDirectory() as folder:
        features = pathlib.Path(folder) / "all.features"
        run(args.program, "dataset", "make", "--mixed-targets", "--records", *args.files, "-o", features)
        run(args.program, "train", "--dataset", features, "--model", "pam", "--train-ratio", "1", "-o", WEIGHTS)
    print(WEIGHTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "collect", "report", "held-out", "pretrain"])
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: all of FOLDER")
    parser.add_argument("--program", type=pathlib.Path, default="build/release/pruner")
    parser.add_argument("--folder", type=pathlib.Path, default=DATA)
    parser.add_argument("--seed", type=int, default=0, help="of the operators")
    parser.add_argument("--stiffness", type=float, default=0.01, help="of the fit")
    args = parser.parse_args()
    args.files = args.files or sorted(args.folder.glob("cpu-*.json.gz"))
    seeds = {args.seed} | {int(seed) for file in args.files for seed in re.findall(r"-seed(\d+)\.", file.name)}
    families = {text: family for seed in sorted(seeds) for family, text in operators(seed)}
    if args.what == "list":
        for text, family in families.items():
            print(f"{family}\t{text}")
    elif args.what == "collect":
        collect(args)
    elif not args.files:
        sys.exit(f"no records in {args.folder}: {sys.argv[0]} collect")
    elif args.what == "pretrain":
        pretrain(args)
    elif args.what == "report":
        report(args, families)
    else:
        held_out(args, families)


if __name__ == "__main__":
    main()
