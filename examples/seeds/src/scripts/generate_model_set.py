"""Exports the networks of a set: the command line of Transfer-Tuning's script, run by `pruner
networks export`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

line = published.Line(__doc__)
line.add_argument("--model_set", required=True, help="the name of a set: chocolate")
line.add_argument("--output_dir", help="the folder of the networks; default: models/SET")
args = line.parse_args()

networks = model_set.read_set(args.model_set)
folder = model_set.here(args.output_dir or f"models/{args.model_set}")
folder.mkdir(parents=True, exist_ok=True)
for name, row in networks.items():
    sizes = [published.option(f"--{key}", value) for key, value in row.items() if key not in ("network", "from")]
    published.run("networks", "export", row["network"], *sum(sizes, []), "-o", folder / f"{name}.onnx")
models = {name: {"model": f"{name}.onnx", "from": row.get("from")} for name, row in networks.items()}
model_set.write(folder / model_set.DATA, models)
