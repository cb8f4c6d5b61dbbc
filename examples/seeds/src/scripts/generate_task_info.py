"""Writes the tasks of each network: the command line of Transfer-Tuning's script, run by `pruner
tasks`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

line = published.Line(__doc__)
line.add_argument("--network_dir", required=True, help="the folder of the networks")
line.add_argument("--device_name", required=True, help="xeon_cpu")
line.add_argument("--output_dir", help="the folder of the lists of tasks; default: that of the networks")
args = line.parse_args()

model_set.check_device(args.device_name)
folder = model_set.here(args.output_dir or args.network_dir)
folder.mkdir(parents=True, exist_ok=True)
for name, row in model_set.read_models(args.network_dir).items():
    published.run("tasks", row["model"], "--json", into=folder / f"{name}_tasks.json")
