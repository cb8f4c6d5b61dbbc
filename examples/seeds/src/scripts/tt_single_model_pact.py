"""Measures the schedules of other networks on a network: the command line of Transfer-Tuning's script,
run by `pruner transfer`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

RESULTS = pathlib.Path("data/results")


def transfer(name, model, sources, split_logs, folder):
    """Transfers the schedules of the sources to a network, and writes folder/NAME.json."""
    for source in sources:
        if not (split_logs / source).exists():
            published.refuse(f"{split_logs / source}: no records of {source}; tune {source}, then run "
                             "src/scripts/distil_logfiles.py and src/scripts/split_logfiles.py")
    file = folder / f"{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    pools = [split_logs / source for source in sources]
    published.run("transfer", model, "--from", *pools, "--work-dir", folder / name, "--json", into=file)
    found = model_set.read(file)
    print(f"{name}: {found['untuned_ms']:.4g} ms untuned, {found['transferred_ms']:.4g} ms with the schedules of "
          f"{', '.join(sources)}, found in {found['search_s']:.1f} s; written: {file}", flush=True)


def main():
    line = published.Line(__doc__)
    line.add_argument("--model_name", required=True, help="the network that takes schedules")
    line.add_argument("--tt_model_name", required=True, nargs="+", help="the networks that give schedules")
    line.add_argument("--split_log_file_dir", required=True, help="the folder of the split records")
    line.add_argument("--model_path", required=True, help="the folder of the networks")
    line.add_argument("--device_name", required=True, help="xeon_cpu")
    args = line.parse_args()
    model_set.check_device(args.device_name)
    models = model_set.read_models(args.model_path)
    if args.model_name not in models:
        published.refuse(f"--model_name: expected one of {', '.join(models)}, found {args.model_name}")
    transfer(args.model_name, models[args.model_name]["model"], args.tt_model_name,
             model_set.here(args.split_log_file_dir), RESULTS / "tt_single_model")


if __name__ == "__main__":
    main()
