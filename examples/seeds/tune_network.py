"""Tunes a network: the command line of TenSet's and Pruner's script, run by `pruner tune`."""
import published

line = published.Line(__doc__)
line.add_argument("--network", required=True, help="a built-in network")
line.add_argument("--batch-size", type=int, help="the batch size of the network")
line.add_argument("--target", help="e.g. 'cuda --model=a100'; default: this machine")
line.add_argument("--n-trials", type=int, default=1000, help="the number of programs to measure")
line.add_argument("--cost-model", default="xgb", help="how candidates are found and ranked")
line.add_argument("--load-model", help="a file of weights")
line.add_argument("--psa", help="the device whose numbers the draft takes")
line.add_argument("--seed", type=int, help="the seed of every random choice")
line.add_argument("--num-measure-per-iter", type=int, help="the number of programs a round")
line.add_argument("--continue-tuning", action="store_true", help="go on with the records that are there")
line.add_without_effect("--target-host", why="the program compiles for the host that it runs on")
line.add_without_effect("--log-file", why="the records lie in out_NETWORK/records.json")
line.add_without_effect("--result-file", why="the latency lies in out_NETWORK/results.tsv")
line.add_without_effect("--build-timeout", why="the program has its own limits of time")
line.add_without_effect("--run-timeout", why="the program has its own limits of time")
args = line.parse_args()

published.need_weights(args.load_model, args.cost_model.split("-")[0])
published.run(
    "tune",
    "--network", args.network,
    *published.option("--batch-size", args.batch_size),
    "--n-trials", published.trials(args.n_trials),
    "--cost-model", args.cost_model,
    *published.option("--load-model", args.load_model),
    *published.option("--target", args.target),
    *published.option("--psa", args.psa),
    *published.option("--seed", args.seed),
    *published.option("--num-measure-per-iter", args.num_measure_per_iter),
    "--continue-tuning" if args.continue_tuning else "--fresh",
)
