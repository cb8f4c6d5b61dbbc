#!/usr/bin/env python3
"""Measures how well cost models that are trained on records order programs that they have not seen.

The script makes feature files from Ansor's logs of V100 and K80, and trains and evaluates with
`pruner`. The table has the mean and the range of every metric over the seeds.

    bench/offline.py --program build/release/pruner --logs LOGS --work DIR [--seeds 5] [--only WHAT ...]

LOGS has the folders k80 and v100. Files that exist in DIR are used again.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

METRICS = [
    ("pairwise", lambda m: m["pairwise_accuracy"]),
    ("peak@1", lambda m: m["peak"]["1"]),
    ("peak@5", lambda m: m["peak"]["5"]),
    ("Top-1", lambda m: m["top"]["1"]),
    ("Top-5", lambda m: m["top"]["5"]),
    ("Top-1 sum", lambda m: m["pooled_top"]["1"]),
    ("Top-5 sum", lambda m: m["pooled_top"]["5"]),
]


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments):
        """Runs `pruner ARGUMENTS --json`; returns its JSON and its seconds."""
        command = [self.options.program, *map(str, arguments), "--json"]
        print("$", " ".join(command), file=sys.stderr)
        begin = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        return json.loads(done.stdout), time.monotonic() - begin

    def dataset(self, devices):
        """Returns the feature file of a device, or of several devices, such as "k80+v100"."""
        path = self.work / f"{devices}.ds"
        if not path.exists():
            logs = [pathlib.Path(self.options.logs) / device for device in devices.split("+")]
            mixed = ["--mixed-targets"] if len(logs) > 1 else []
            self.run("dataset", "make", "--records", *logs, *mixed, "-o", path)
        return path

    def train(self, device, model, split, seed, *more, name=""):
        """Returns the file of a trained model, and the JSON of `train`. Trains only if no report of
        the same name exists."""
        stem = f"{name or device}_{model}_{split}_{seed}"
        path = self.work / (stem + (".json" if model == "xgb" else ".safetensors"))
        report = self.work / (stem + ".report")
        if not report.exists():
            said, wall_s = self.run("train", "--dataset", self.dataset(device), "--model", model,
                                    "--split", split, "--seed", seed, "-o", path, *more)
            said["wall_s"] = wall_s
            report.write_text(json.dumps(said))
        return path, json.loads(report.read_text())

    def held_out(self, device, model, split, *more):
        """Shows the metrics on the records that each seed's training held out."""
        said = [self.train(device, model, split, seed, *more)[1]
                for seed in range(self.options.seeds)]
        show(f"{model}, {device}, {split}", [s["metrics"] for s in said],
             [s["wall_s"] for s in said])

    def on_new_tasks(self, device, models):
        """Returns each model's metrics, by its name, on the device's tasks that are new to all
        models."""
        unseen = {}
        for name, model in models.items():
            said, _ = self.run("eval", "--dataset", self.dataset(device), "--load-model", model,
                               "--new-tasks")
            unseen[name] = {task["workload_key"]: task for task in said["tasks"]}
        common = set.intersection(*(set(tasks) for tasks in unseen.values()))
        return {name: mean_of([tasks[key] for key in sorted(common)])
                for name, tasks in unseen.items()}

    def transfer(self):
        """Shows the transfer from K80 to V100 with 5 % of the target's records, on workloads that
        are in no training set."""
        rows = {"from scratch": [], "K80 as it is": [], "fine-tuned": []}
        for seed in range(self.options.seeds):
            few = ["--train-ratio", 0.8, "--ratio", 0.05]
            base, _ = self.train("k80", "pam", "by_task", seed, "--train-ratio", 0.8, name="base")
            scratch, _ = self.train("v100", "pam", "by_task", seed, *few, name="few")
            tuned = self.work / f"tuned_{seed}.safetensors"
            if not tuned.exists():
                self.run("fine-tune", "--dataset", self.dataset("v100"), "--load-model", base,
                         "--split", "by_task", "--seed", seed, *few, "-o", tuned)
            models = dict(zip(rows, (scratch, base, tuned)))
            for name, metrics in self.on_new_tasks("v100", models).items():
                rows[name].append(metrics)
        for name, metrics in rows.items():
            show(f"pam, K80 -> V100, 5 %, {name}", metrics, [])

    def devices(self):
        """Shows a model of both devices' records beside a model of one device's records, on tasks
        that are new to both models."""
        rows = {}
        for seed in range(self.options.seeds):
            models = {name: self.train(name, "pam", "by_task", seed)[0]
                      for name in ("k80+v100", "k80", "v100")}
            for device in ("k80", "v100"):
                pair = {name: models[name] for name in ("k80+v100", device)}
                for name, metrics in self.on_new_tasks(device, pair).items():
                    rows.setdefault(f"pam of {name}'s records, tasks of {device}", []).append(metrics)
        for name, metrics in rows.items():
            show(name, metrics, [])

    def official(self, device):
        """Shows the published checkpoint on all records of a device."""
        said, _ = self.run("eval", "--dataset", self.dataset(device), "--load-model", self.options.official, "--all")
        show(f"pam_k80_1500 as published, {device}, all", [said], [])


def mean_of(tasks):
    """Returns the metrics over tasks, averaged like in `eval`."""
    programs = sum(t["programs"] for t in tasks)

    def weighted(value):
        return sum(t["programs"] * value(t) for t in tasks) / programs

    def top(k):
        return statistics.mean(t["best_s"] / t["top_s"][k] for t in tasks)

    def pooled(k):
        return sum(t["best_s"] for t in tasks) / sum(t["top_s"][k] for t in tasks)

    return {
        "pairwise_accuracy": weighted(lambda t: t["pairwise_accuracy"]),
        "peak": {k: weighted(lambda t, k=k: t["peak"][k]) for k in "15"},
        "top": {k: top(k) for k in "15"},
        "pooled_top": {k: pooled(k) for k in "15"},
        "random": {
            "peak": {k: weighted(lambda t, k=k: t["random_peak"][k]) for k in "15"},
            "pooled_top": {k: sum(t["best_s"] for t in tasks) /
                              sum(t["random_top_s"][k] for t in tasks) for k in "15"},
        },
    }


def show(name, metrics, seconds):
    cells = []
    for _, value in METRICS:
        values = [value(m) for m in metrics]
        cells.append(f"{statistics.mean(values):.4f} ({min(values):.3f}-{max(values):.3f})")
    if seconds:
        cells.append(f"{statistics.mean(seconds):.0f} s")
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


WHAT = {
    "within": lambda b: b.held_out("k80", "pam", "within_task"),
    "k80": lambda b: [b.held_out("k80", m, "by_task") for m in ("pam", "mlp", "xgb")],
    "v100": lambda b: [b.held_out("v100", m, "by_task") for m in ("pam", "mlp", "xgb")],
    "tlp": lambda b: [b.held_out(device, "tlp", "by_task") for device in ("k80", "v100")],
    "transfer": lambda b: b.transfer(),
    "devices": lambda b: b.devices(),
    "official": lambda b: [b.official(device) for device in ("k80", "v100")],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--logs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--official", help="pam_k80_1500.pth of Pruner's release, for `official`")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=WHAT, default=list(WHAT))
    options = parser.parse_args()
    print("| what | " + " | ".join(name for name, _ in METRICS) + " | time |")
    print("|---" * (len(METRICS) + 2) + "|")
    bench = Bench(options)
    for what in options.only:
        WHAT[what](bench)


if __name__ == "__main__":
    main()
