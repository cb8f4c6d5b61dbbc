"""Trains a cost model further on records of another device: the command line of Pruner's script, run
by `pruner fine-tune`. The file of weights says which model it is."""
import published
import training

line = published.Line(__doc__)
training.add_flags(line, save_path="./ckpt/a100/500k")
line.add_argument("--load-model", "--load_model", required=True, help="the weights to begin with")
args = line.parse_args()
published.need_weights(args.load_model, args.models or "pam")
training.run("fine-tune", args, args.models, "--load-model", args.load_model)
