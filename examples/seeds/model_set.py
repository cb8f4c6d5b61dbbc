"""The folders and files that the scripts of Transfer-Tuning share.

models/SET/NAME.onnx is a network, and models/SET/models_data.json names the networks of the set:
{"NAME": {"model": "NAME.onnx", "from": "the network whose schedules NAME takes"}}.
"""
import json
import pathlib

import published

SETS = pathlib.Path(__file__).resolve().parent / "model_sets"
DATA = "models_data.json"
CONTAINER = "/workspace/"  # The folder of the scripts in the published container.


def check_device(name):
    """Refuses a device other than the published one."""
    if name != "xeon_cpu":
        published.refuse(f"--device_name: expected xeon_cpu, which is this machine's CPU, found {name}")
    print("--device_name xeon_cpu: the CPU of this machine", flush=True)


def read_set(name):
    """Returns the networks of a published set: {name: {"network": ..., "from": ...}}."""
    file = SETS / f"{name}.json"
    if not file.exists():
        known = ", ".join(sorted(path.stem for path in SETS.glob("*.json")))
        published.refuse(f"--model_set: expected {known}, found {name}")
    return json.loads(file.read_text())


def read_models(folder):
    """Returns the networks of a folder: {name: {"model": file, "from": name or None}}."""
    file = here(folder) / DATA
    if not file.exists():
        published.refuse(f"{file}: no such file; this line makes it: "
                         "python3 src/scripts/generate_model_set.py --model_set chocolate")
    models = json.loads(file.read_text())
    return {name: {"model": file.parent / row["model"], "from": row["from"]} for name, row in models.items()}


def here(path):
    """Returns a path. A path in the published container stands for one in the current folder."""
    if path.startswith(CONTAINER) and not pathlib.Path(CONTAINER).exists():
        print(f"{path}: taken as {path.removeprefix(CONTAINER)} in the current folder", flush=True)
        path = path.removeprefix(CONTAINER)
    return pathlib.Path(path)


def read(file):
    return json.loads(pathlib.Path(file).read_text())


def write(file, value):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=2) + "\n")
