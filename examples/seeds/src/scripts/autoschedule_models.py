"""Tunes the networks of a set by Ansor: the command line of Transfer-Tuning's script, run by `pruner
tune`.

With --tt_path each search gets the time that the transfer of schedules to its network took. With
--minute_check the search then goes on minute by minute, until its module gains as much over the
untuned module as the transferred module does, or the trials are used up.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

line = published.Line(__doc__)
line.add_argument("--model_path", required=True, help="the folder of the networks")
line.add_argument("--ntrials", type=int, default=20000, help="the number of programs to measure a network")
line.add_argument("--device_name", required=True, help="xeon_cpu")
line.add_argument("--output_dir", required=True, help="the folder of the records")
line.add_argument("--tt_path", help="the folder of the transfers")
line.add_argument("--minute_check", action="store_true", help="go on until the search is as good")
args = line.parse_args()

MINUTE_S = 60
folder = model_set.here(args.output_dir)
most_trials = published.trials(args.ntrials)
results = {}


def tune(name, model, budget_s=None):
    """Tunes a network, from where an earlier run ended, and returns the results of the run."""
    budget = [] if budget_s is None else ["--budget", f"{budget_s:.3f}s"]
    published.run("tune", model, "--cost-model", "xgb", "--n-trials", most_trials, *budget, "--work-dir", folder / name)
    run = model_set.read(folder / name / "run.json")
    race = run["more"]["race"]
    results[name] = {"untuned_ms": race["untuned_ms"], "tuned_ms": race["ms"], "search_s": run["spent_s"]}
    model_set.write(folder / "tuning_info.json", results)
    return {"search_s": run["spent_s"], "speedup": race["speedup"], "trials": run["trials"]}


def tune_as_long_as(name, model, transfer):
    """Tunes a network in the time of its transfer, and with --minute_check until the result is as
    good. Writes what the search had reached at each stop."""
    goal = max(1, transfer["untuned_ms"] / transfer["transferred_ms"])
    budget_s, stops = transfer["search_s"], []
    while True:
        stops.append(tune(name, model, budget_s))
        model_set.write(folder / name / "stops.json", stops)
        stuck = len(stops) > 1 and stops[-1]["trials"] == stops[-2]["trials"]
        if not args.minute_check or stuck or stops[-1]["trials"] >= most_trials or stops[-1]["speedup"] >= goal:
            break
        budget_s += MINUTE_S
    print(f"{name}: {goal:.3f} x by the transfer in {transfer['search_s']:.1f} s; "
          f"{stops[0]['speedup']:.3f} x by Ansor in the same time, "
          f"{stops[-1]['speedup']:.3f} x in {stops[-1]['search_s']:.1f} s", flush=True)


model_set.check_device(args.device_name)
models = model_set.read_models(args.model_path)
transfers = model_set.here(args.tt_path) if args.tt_path else None
if transfers and not list(transfers.glob("*.json")):
    published.refuse(f"{transfers}: no transfers; src/scripts/tt_multi_models_pact.py makes them")
for name, row in models.items():
    if not transfers:
        tune(name, row["model"])
    elif (transfers / f"{name}.json").exists():
        tune_as_long_as(name, row["model"], model_set.read(transfers / f"{name}.json"))
    else:
        print(f"{name}: left out, because nothing was transferred to it", flush=True)
