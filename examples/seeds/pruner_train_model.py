"""Trains a cost model: the command line of Pruner's script, run by `pruner train`."""
import published
import training

line = published.Line(__doc__)
training.add_flags(line, save_path="./ckpt/k80/500")
args = line.parse_args()
training.run("train", args, args.models or "pam")
