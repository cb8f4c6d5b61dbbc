"""The flags that the published scripts of training and of fine-tuning share."""
import published


def add_flags(line, save_path):
    line.add_argument("--dataset", nargs="+", default=["dataset.pkl"], help="files of features")
    line.add_argument("--models", help="pam, mlp, tlp or xgb; several with @ between them")
    line.add_argument("--save_path", "--save-path", default=save_path, help="the folder of the weights")
    line.add_argument("--file_cnt", "--file-cnt", type=int, help="the number in the name of the weights")
    line.add_argument("--fold", type=int, help="the number of trainings")
    line.add_argument("--ratio", type=float, help="the share of each task's programs that is used")
    line.add_argument("--split_scheme", "--split-scheme", help="within_task, by_task or by_target")
    line.add_argument("--train_ratio", "--train-ratio", type=float, help="the share that is not held out")
    line.add_argument("--seed", type=int, help="the seed of every random choice")
    line.add_without_effect("--use_gpu", "--use-gpu", nargs="?", why="training runs on the CPU")
    line.add_without_effect("--select_cnt", type=int, why="the published script does not read the number, either")


def run(command, args, models, *more):
    """Runs a command of training once for each model."""
    published.need_files(
        args.dataset,
        f"this line makes one of records: python make_dataset.py --logs RECORDS --out-file {args.dataset[0]} --pam 1",
    )
    for model in models.split("@") if models else [None]:
        published.run(
            command,
            "--dataset", *args.dataset,
            *published.option("--model", model),
            *more,
            *published.option("--file-cnt", args.file_cnt),
            *published.option("--fold", args.fold),
            *published.option("--ratio", args.ratio),
            *published.option("--split-scheme", args.split_scheme),
            *published.option("--train-ratio", args.train_ratio),
            *published.option("--seed", args.seed),
            "--save-path", args.save_path,
        )
