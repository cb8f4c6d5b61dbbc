#!/usr/bin/env python3
"""Measures what Pruner needs to reach the end result of MetaSchedule's search, on this CPU.

  metaschedule.py                    ResNet-50 in each; writes bench/results/cpu_metaschedule.tsv
  metaschedule.py --precisions bf16 --network resnet_18 --trials 200 --seeds 1    (printed, not written)

`pruner compare` tunes in the modes in turns, for each precision. The table has a row for each mode
but `metaschedule`, with which the others are compared. Times and shares are the median over the
seeds, with the 95 % interval. The columns mean:

  trials, seconds              the effort to MetaSchedule's final latency
  trials_share, seconds_share  this effort over the effort of MetaSchedule's own run (bar: 1/4)
  latency_ms, metaschedule_ms  the estimated final latencies
  module                       the time of the whole network as a module, over MetaSchedule's

In bf16 and int8 Pruner's space has AMX, which MetaSchedule's rules do not have (int8: VNNI). In f32
Pruner's space has Winograd's forms and float32 in parts of bfloat16. `f32-direct` leaves both with
the same structures, so that only the searches differ. The int8 network comes from `pruner quantize`
with seeded inputs, which is right for times but not for accuracy.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

PRECISIONS = {"bf16": ["--precision", "bf16"], "int8": ["--precision", "auto"], "f32": [],
              "f32-direct": ["--forms", "direct"]}
CALIBRATION_INPUTS = 4


def network_arguments(options, precision, folder):
    """Returns the arguments with which `pruner` takes the network; for int8, a QDQ file."""
    network = ["--network", options.network]
    if precision != "int8":
        return network
    inputs, model = folder / "inputs.npz", folder / f"{options.network}.onnx"
    images = np.random.default_rng(0).standard_normal((CALIBRATION_INPUTS, 3, 224, 224))
    np.savez(inputs, input=images.astype(np.float32))
    subprocess.run(list(map(str, [options.program, "quantize", *network, "--calibration", inputs, "-o", model])),
                   check=True, stdout=subprocess.DEVNULL)
    return [model]


def compare(options, precision, folder):
    """Runs `pruner compare` and returns its JSON."""
    weights = [f"--load-model=moa-pruner={options.load_model}"] if options.load_model else []
    work_dir = options.work_dir / precision if options.work_dir else folder / "work"
    command = [options.program, "compare", *network_arguments(options, precision, folder), *PRECISIONS[precision],
               "--modes", "metaschedule," + options.modes, *weights, "--n-trials", options.trials, "--seeds",
               options.seeds, "--threads", options.threads, "--work-dir", work_dir, "--json"]
    if options.tasks:
        command += ["--tasks", options.tasks]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def text(estimate, scale=1.0, digits=3):
    """Returns "median (low to high)" with the ends of the 95 % interval, or "-" if no seed has a
    value. A value of null is the effort of a run that never got there."""
    if estimate is None:
        return "-"
    median, low, high = ("never" if estimate[key] is None else f"{scale * estimate[key]:.{digits}g}"
                         for key in ("median", "low", "high"))
    return median if low == high else f"{median} ({low} to {high})"


def rows_of(options, precision, found):
    measure, *others = found["modes"]
    for mode in others:
        modules = measure["end_to_end_s"] and mode["end_to_end_s"]
        yield {"network": options.network, "precision": precision, "mode": mode["mode"], "trials_each": options.trials,
               "seeds": mode["seeds"], "reached": mode["reached"],
               "metaschedule_ms": text(measure["latency_s"], 1e3), "latency_ms": text(mode["latency_s"], 1e3),
               "trials": text(mode["trials"]), "seconds": text(mode["seconds"]),
               "trials_share": text(mode["trials_of_reach"]), "seconds_share": text(mode["time_of_reach"]),
               "module": f"{mode['end_to_end_s']['median'] / measure['end_to_end_s']['median']:.3g}" if modules else "-"}


def print_rows(rows):
    for line in [rows[0].keys(), *(row.values() for row in rows)]:
        print("\t".join(map(str, line)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet_50")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--modes", default="pruner", help="beside metaschedule; moa-pruner needs --load-model")
    parser.add_argument("--load-model", help="weights that moa-pruner starts from")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tasks", help="only the tasks whose name matches")
    parser.add_argument("--work-dir", type=pathlib.Path, help="kept; the same command again goes on")
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--program", type=pathlib.Path, default=root / "build" / "release" / "pruner")
    options = parser.parse_args()
    rows = []
    for precision in options.precisions.split(","):
        with tempfile.TemporaryDirectory(prefix="metaschedule_") as folder:
            rows += rows_of(options, precision, compare(options, precision, pathlib.Path(folder)))
    if len(sys.argv) > 1:
        print_rows(rows)
        return
    import runtimes
    runtimes.report("cpu_metaschedule", "metaschedule.py", rows)


if __name__ == "__main__":
    main()
