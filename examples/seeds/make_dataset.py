"""Makes a file of features from records: the command line of TenSet's and Pruner's script, run by
`pruner dataset make`."""
import published

line = published.Line(__doc__)
line.add_argument("--logs", nargs="+", required=True, help="files of records")
line.add_argument("--hold-out", help="the networks whose tasks are left out: all_five or resnet-50")
line.add_argument("--preset", help="only the tasks of these networks: batch-size-1")
line.add_argument("--out-file", default="dataset.pkl", help="the file to write")
line.add_argument("--sample-in-files", type=int, help="the number of files to draw at random")
line.add_argument("--min-sample-size", type=int, help="tasks with fewer programs are left out")
line.add_argument("--n-task", type=int, help="only the first tasks")
line.add_argument("--target", nargs="+", help="only the records of these devices")
line.add_argument("--seed", type=int, help="the seed of the draw")
line.add_argument("--dags", help="a file of compute DAGs, for keys that are a hash (an addition)")
line.add_without_effect("--pam", type=int, why="the file has the features of every model")
args = line.parse_args()

published.need_files(
    args.logs,
    "no data set ships with Pruner: unzip TenSet's or Pruner's data set here, or measure programs of "
    "this machine: pruner dataset collect --network bert_tiny -o dataset/measure_records/k80/bert.json",
)
published.run(
    "dataset", "make",
    "--logs", *args.logs,
    *published.option("--hold-out", args.hold_out),
    *published.option("--preset", args.preset),
    *published.option("--sample-in-files", args.sample_in_files),
    *published.option("--min-sample-size", args.min_sample_size),
    *published.option("--n-task", args.n_task),
    *(["--target", *args.target] if args.target else []),
    *published.option("--seed", args.seed),
    *published.option("--dags", args.dags),
    "-o", args.out_file,
)
