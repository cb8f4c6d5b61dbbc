"""The command line of pruner.data: python3 -m pruner.data COMMAND --help."""

import argparse
import sys
from typing import List, Optional

from pruner.data import metaschedule, parquet, tenset
from pruner.data.files import DataError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m pruner.data", description="Data in and out.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    tasks = commands.add_parser("tenset-tasks", help="Make a file of tasks from TenSet's pickles.")
    tasks.add_argument("paths", nargs="+", metavar="PATH", help="a folder network_info, or its .pkl files")
    tasks.add_argument("-o", "--out-file", required=True, help="the file of tasks, for --dags")
    tasks.set_defaults(run=lambda o: tenset.convert_tasks(o.paths, o.out_file))

    records = commands.add_parser("tenset-records", help="Write the records whose task is known to one file.")
    records.add_argument("paths", nargs="+", metavar="PATH", help="folders or files of measure_records")
    records.add_argument("--tasks", required=True, metavar="FILE", help="what tenset-tasks wrote")
    records.add_argument("--drop-unknown", action="store_true",
                         help="leave out and count records of unknown tasks")  # fmt: skip
    records.add_argument("-o", "--out-file", required=True, help="the record file; packed if it ends in .gz")
    records.set_defaults(run=lambda o: tenset.convert_records(o.paths, o.tasks, o.out_file, o.drop_unknown))

    database = commands.add_parser("metaschedule", help="Make lines of times and traces from MetaSchedule's database.")
    database.add_argument("folder", metavar="WORK_DIR", help="the folder of database_workload.json and"
                          " database_tuning_record.json")  # fmt: skip
    database.add_argument("--tasks", metavar="FOLDER", help="also write each workload as a task of Pruner")
    database.add_argument("-o", "--out-file", required=True, help="the file of lines; packed if it ends in .gz")
    database.set_defaults(run=lambda o: metaschedule.convert(o.folder, o.out_file, o.tasks))

    table = commands.add_parser("parquet", help="Write records, features and splits as a Parquet file.")
    table.add_argument("paths", nargs="+", metavar="PATH", help="record files or folders, a .ds file, lines of"
                       " `pruner features --json`, or what metaschedule wrote")  # fmt: skip
    table.add_argument("--model", metavar="FILE", help="of a .ds file: the model whose split the file gets")
    table.add_argument("-o", "--out-file", required=True, help="the .parquet file")
    table.set_defaults(run=lambda o: parquet.convert(o.paths, o.out_file, o.model))
    return parser


def main(arguments: Optional[List[str]] = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
    except DataError as error:
        print(f"pruner.data {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
