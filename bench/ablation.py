"""Measures what each part of draft and verify is worth; prints a Markdown table.

  bench/ablation.py --build build/release drafts RECORDS... [--forms release,paper,ours|cpu] [--draft-size N] [--least N]
  bench/ablation.py --build build/release search --op OP [--op OP...] [--trials N] [--seeds N] [--load-model FILE]

`drafts` leaves out each penalty in turn and gives Best-1 of `pruner eval --model draft`, over tasks
of at least N programs.

`search` compares the whole mode with modes that lack a part (`pruner compare`). A latency is a
multiple of the whole mode's final latency, as the geometric mean over operators and seeds. With
--load-model, the table also has Momentum online Adaptation, training on from the weights, and the
weights without training."""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

PENALTIES = ["compute-l0", "memory-l0", "compute-l1", "memory-l1", "compute-l2", "memory-l2"]
PARTS = ["statement", "dataflow", "draft"]


def drafts(args):
    """Prints a row for each penalty and a column for each form; a CPU has one form."""
    rows = []
    for left_out in [None] + PENALTIES:
        values = []
        for form in args.forms.split(","):
            of_form = ["--psa-form", form] if form != "cpu" else []
            command = [args.build / "pruner", "eval", "--model", f"draft-without-{left_out}" if left_out else "draft",
                       *of_form, "--draft-size", str(args.draft_size), "--min-sample-size", str(args.least), "--json",
                       "--records", *args.records]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            values.append(f"{found['best_k']['1']:.4f}")
        if not left_out:
            print(f"{found['best_k_tasks']} tasks; drawn at random {found['random']['best_k']['1']:.4f}\n")
        rows.append([left_out or "nothing", *values])
    print_table(["left out", *args.forms.split(",")], rows)


def best_after(curve, share):
    """Returns the best latency after that share of the trials, or the first known latency if none
    was known by then."""
    spent = share * curve["trials"]
    known = [latency for trials, _, latency in curve["points"] if trials <= spent]
    return known[-1] if known else curve["points"][0][2]


def search(args):
    modes = ["pruner", *(f"pruner-without-{part}" for part in PARTS), "draft-only", "ansor"]
    weights = []
    if args.load_model:
        # pam is another name of the mode pruner; here the name stands for training on from the
        # weights.
        pretrained = ["moa-pruner", "pam", "pacm-no-update"]
        modes += pretrained
        weights = [f"--load-model={mode}={args.load_model}" for mode in pretrained]
    ratios = {mode: [] for mode in modes}
    for op in args.op:
        with tempfile.TemporaryDirectory() as folder:
            command = [args.build / "pruner", "compare", "--op", op, "--modes", ",".join(modes), *weights, "--n-trials",
                       str(args.trials), "--seeds", str(args.seeds), "--work-dir", folder, "--json"]
            curves = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["curves"]
        whole = {c["seed"]: best_after(c, 1) for c in curves if c["mode"] == "pruner"}
        for curve in curves:
            ratios[curve["mode"]].append([best_after(curve, share) / whole[curve["seed"]] for share in SHARES])
    names = {"pam": "pruner from weights, no momentum", "pacm-no-update": "pruner from weights, not trained"}
    print_table(["mode", *(f"after {int(100 * share)} %" for share in SHARES)],
                [[names.get(mode, mode), *(f"{geometric_mean(values):.3f}" for values in zip(*found))]
                 for mode, found in ratios.items()])


SHARES = [0.1, 0.25, 0.5, 1]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def print_table(names, rows):
    for row in [names, ["---"] * len(names), *rows]:
        print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release")
    which = parser.add_subparsers(required=True)
    of_drafts = which.add_parser("drafts")
    of_drafts.add_argument("records", nargs="+")
    of_drafts.add_argument("--forms", default="release,paper,ours")
    of_drafts.add_argument("--draft-size", type=int, default=16)
    of_drafts.add_argument("--least", type=int, default=500)
    of_drafts.set_defaults(run=drafts)
    of_search = which.add_parser("search")
    of_search.add_argument("--op", action="append", required=True)
    of_search.add_argument("--trials", type=int, default=200)
    of_search.add_argument("--seeds", type=int, default=3)
    of_search.add_argument("--load-model")
    of_search.set_defaults(run=search)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
