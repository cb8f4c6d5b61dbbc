"""Data in and out: files of TenSet, MetaSchedule and Parquet.

    python3 -m pruner.data tenset-tasks dataset/network_info -o tasks.jsonl
    python3 -m pruner.data tenset-records dataset/measure_records/k80 --tasks tasks.jsonl -o k80.json.gz
    python3 -m pruner.data metaschedule WORK_DIR -o metaschedule.jsonl --tasks workloads
    python3 -m pruner.data parquet records.json -o records.parquet

docs/research/data.md has the recipes. Each command reads its inputs without running anything of
them. Only `parquet` needs a package beside the standard library and numpy: pyarrow.
"""
