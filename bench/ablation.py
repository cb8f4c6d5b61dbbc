"""Measures what each penalty of the draft is worth; prints a Markdown table. What the parts of a
search are worth is printed by `pruner compare --ablate MODE`.

  bench/ablation.py --build build/release RECORDS... [--forms release,paper,ours|cpu] [--draft-size N] [--least N]

The script leaves out each penalty in turn and gives Best-1 of `pruner eval --model draft`, over tasks
of at least N programs."""
import argparse
import json
import pathlib
import subprocess

PENALTIES = ["compute-l0", "memory-l0", "compute-l1", "memory-l1", "compute-l2", "memory-l2"]


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


def print_table(names, rows):
    for row in [names, ["---"] * len(names), *rows]:
        print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release")
    parser.add_argument("records", nargs="+")
    parser.add_argument("--forms", default="release,paper,ours")
    parser.add_argument("--draft-size", type=int, default=16)
    parser.add_argument("--least", type=int, default=500)
    drafts(parser.parse_args())


if __name__ == "__main__":
    main()
