"""Writes the best records of each network to one file a task: the command line of Transfer-Tuning's
script, run by `pruner records split`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

line = published.Line(__doc__)
line.add_argument("--log_file_dir", required=True, help="the folder of the records")
line.add_argument("--network_dir", required=True, help="the folder of the networks")
line.add_argument("--output_dir", required=True, help="the folder of the split records")
args = line.parse_args()

logs, folder = model_set.here(args.log_file_dir), model_set.here(args.output_dir)
models = model_set.read_models(args.network_dir)
if not any((logs / f"{name}.best.json").exists() for name in models):
    published.refuse(f"{logs}: no best records; this line makes them: "
                     f"python3 src/scripts/distil_logfiles.py --log_file_dir {logs}")
folder.mkdir(parents=True, exist_ok=True)
for name in models:
    best = logs / f"{name}.best.json"
    if best.exists():
        published.run("records", "split", best, "--by", "task", "-o", folder / name)
    else:
        print(f"{name}: left out, because {best} does not exist", flush=True)
