"""Measures on each network the schedules of the network that the paper chose: the command line of
Transfer-Tuning's script, run by `pruner transfer`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import model_set
import published

from tt_single_model_pact import RESULTS, transfer

line = published.Line(__doc__)
line.add_argument("--split_log_file_dir", required=True, help="the folder of the split records")
line.add_argument("--model_path", required=True, help="the folder of the networks")
line.add_argument("--device_name", required=True, help="xeon_cpu")
args = line.parse_args()

model_set.check_device(args.device_name)
models, split_logs = model_set.read_models(args.model_path), model_set.here(args.split_log_file_dir)
for name, row in models.items():
    if row["from"]:
        transfer(name, row["model"], [row["from"]], split_logs, RESULTS / "tt_multi_models")
