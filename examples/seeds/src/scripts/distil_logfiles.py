"""Keeps the best record of each task: the command line of Transfer-Tuning's script, run by `pruner
records distill`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

line = published.Line(__doc__)
line.add_argument("--log_file_dir", required=True, help="the folder of the records")
args = line.parse_args()

folder = model_set.here(args.log_file_dir)
logs = sorted(folder.glob("*/records.json"))
if not logs:
    published.refuse(f"{folder}: no records; src/scripts/autoschedule_models.py --output_dir {folder} makes them")
for log in logs:
    published.run("records", "distill", log, "-o", folder / f"{log.parent.name}.best.json")
