"""Records, features and splits as Parquet files. Needs pyarrow.

The kind of an input is found from its content: record files of Ansor or Pruner, files of features
of `pruner dataset make`, lines of `pruner features --json`, or lines of `pruner.data metaschedule`.
"""

import contextlib
import json
import math
import os
import statistics
from typing import Any, Dict, Iterator, List, Optional

from pruner.data.features_file import DATAFLOW, FeaturesFile, is_features_file, trained_on
from pruner.data.files import FAILED_S, DataError, find, json_lines, replaced

ROWS = 4096  # rows that are in memory at a time


def _pyarrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError("parquet needs the package pyarrow: pip install pyarrow") from None
    return pyarrow


def _json(value: Any) -> Optional[str]:
    return None if value is None else json.dumps(value)


def _side(path: str) -> Optional[str]:
    """Returns the side of a split that a file of `pruner records split --by share` has."""
    stem = os.path.basename(path).split(".")[0]
    return stem if stem in ("train", "test") else None


def _record_row(where: str, record: Any) -> Dict[str, Any]:
    path, line = where.rsplit(":", 1)
    try:
        (task, state), result, own = record["i"], record["r"], record.get("p") or {}
        times, error = [float(time) for time in result[0]], int(result[1])
        row = {
            "file": path,
            "line": int(line),
            "side": _side(path),
            "workload_key": task[0],
            "target": task[1],
            "task": own.get("task"),
            "device": own.get("device"),
            "threads": own.get("threads"),
            "seconds": times,
            "mean_s": statistics.fmean(times) if error == 0 and times else None,
            "error": error,
            "spent_s": float(result[2]),
            "time": int(result[3]),
            "version": record.get("v"),
            "steps": _json(state[1]) if state[1] else None,
            "sketch": own.get("sketch"),
            "decisions": _json(own.get("decisions")),
            "origin": own.get("origin"),
            "mode": own.get("mode"),
        }
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise DataError(f"{where}: no record: keys i and r are missing or too short") from None
    return row


def _record_schema(pa):
    text, number, whole = pa.string(), pa.float64(), pa.int64()
    return pa.schema([
        ("file", text), ("line", whole), ("side", text), ("workload_key", text), ("target", text), ("task", text),
        ("device", text), ("threads", pa.int32()), ("seconds", pa.list_(number)), ("mean_s", number),
        ("error", pa.int32()), ("spent_s", number), ("time", whole), ("version", text), ("steps", text),
        ("sketch", text), ("decisions", text), ("origin", text), ("mode", text),
    ])  # fmt: skip


def _features_schema(pa):
    matrix = pa.list_(pa.list_(pa.float32()))
    rows = pa.list_(pa.struct([("buffer", pa.string()), ("symbols", pa.list_(pa.float32())),
                               ("statement", pa.list_(pa.float32()))]))  # fmt: skip
    return pa.schema([
        ("rows", rows), ("dataflow", matrix), ("primitives", matrix), ("draft_score", pa.float64()),
        ("draft_form", pa.string()), ("measured_s", pa.float64()), ("model_score", pa.float64()),
    ])  # fmt: skip


def _metaschedule_schema(pa):
    text, number = pa.string(), pa.float64()
    arguments = pa.list_(pa.struct([("dtype", text), ("shape", pa.list_(pa.int64()))]))
    return pa.schema([
        ("workload", pa.int32()), ("workload_hash", text), ("workload_key", text), ("target", text),
        ("arguments", arguments), ("run_secs", pa.list_(number)), ("seconds", number), ("instructions", text),
        ("decisions", text),
    ])  # fmt: skip


def _metaschedule_row(_: str, line: Dict[str, Any]) -> Dict[str, Any]:
    return {**line, "instructions": _json(line["instructions"]), "decisions": _json(line["decisions"])}


# A key that only lines of this kind have; what the lines are, their schema and a row of theirs.
_KINDS = (
    ("i", "records", _record_schema, _record_row),
    ("run_secs", "records of MetaSchedule", _metaschedule_schema, _metaschedule_row),
    ("draft_form", "programs", _features_schema, lambda _, line: line),
)


def _batches(rows: Iterator[Dict[str, Any]]) -> Iterator[List[Dict[str, Any]]]:
    batch: List[Dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


@contextlib.contextmanager
def _writer(pa, path: str, schema) -> Iterator[Any]:
    with replaced(path) as scratch, pa.parquet.ParquetWriter(scratch, schema, compression="zstd") as writer:
        yield writer


def _convert_lines(pa, files: List[str], out: str) -> str:
    first = next((line for path in files for _, _, line in json_lines(path)), None)
    kinds = [kind for kind in _KINDS if isinstance(first, dict) and kind[0] in first]
    if not kinds:
        raise DataError(f"{files[0]}: neither records nor features: a line has none of their keys")
    key, what, schema_of, row_of = kinds[0]
    schema, count = schema_of(pa), 0

    def rows() -> Iterator[Dict[str, Any]]:
        for path in files:
            for where, _, line in json_lines(path):
                if not isinstance(line, dict) or key not in line:
                    raise DataError(f"{where}: the line is not one of {what}, as the first line is")
                yield row_of(where, line)

    with _writer(pa, out, schema) as writer:
        for batch in _batches(rows()):
            count += len(batch)
            try:
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise DataError(f"{files[0]}: a value has the wrong type: {str(error).splitlines()[0]}") from None
    return f"{out}: {count} {what} from {len(files)} files"


def _convert_dataset(pa, path: str, out: str, model: Optional[str]) -> str:
    import numpy as np

    features = FeaturesFile(path)
    columns, tasks = features.columns, features.tasks
    seen, complete = trained_on(model) if model else (set(), True)
    width, flow = columns["rows"].shape[1], math.prod(DATAFLOW)
    fixed = lambda size: pa.list_(pa.float32(), size)  # noqa: E731
    schema = pa.schema([
        ("id", pa.uint64()), ("workload_key", pa.string()), ("target", pa.string()), ("latency_s", pa.float64()),
        ("side", pa.string()), ("rows", pa.list_(fixed(width))), ("dataflow", fixed(flow)),
        ("primitives", pa.list_(pa.int32())),
    ])  # fmt: skip
    count, trained = len(columns["id"]), 0

    def part(values, offsets, begin, end, kind):
        """Returns lists of different lengths."""
        first, last = offsets[begin], offsets[end]
        return pa.ListArray.from_arrays(pa.array((offsets[begin : end + 1] - first).astype(np.int32)),
                                        kind(np.ascontiguousarray(values[first:last])))  # fmt: skip

    with _writer(pa, out, schema) as writer:
        for begin in range(0, count, ROWS):
            end = min(begin + ROWS, count)
            ids, latency = columns["id"][begin:end], columns["latency"][begin:end]
            sides: List[Optional[str]] = [None] * (end - begin)
            if model:
                sides = ["train" if int(each) in seen else "test" for each in ids]
            trained += sides.count("train")
            named = [tasks[task] for task in columns["task"][begin:end]]
            writer.write_table(pa.table([
                pa.array(ids), pa.array([task["workload_key"] for task in named]),
                pa.array([task["target"] for task in named]),
                pa.array(latency, mask=np.asarray(latency >= FAILED_S)), pa.array(sides, pa.string()),
                part(columns["rows"], columns["row_offset"], begin, end,
                     lambda v: pa.FixedSizeListArray.from_arrays(pa.array(v.ravel()), width)),
                pa.FixedSizeListArray.from_arrays(
                    pa.array(np.ascontiguousarray(columns["dataflow"][begin:end]).ravel()), flow),
                part(columns["primitives"], columns["primitive_offset"], begin, end, pa.array),
            ], schema=schema))  # fmt: skip
    summary = f"{out}: {count} programs of {len(tasks)} tasks"
    if model:
        summary += f"; {trained} train, {count - trained} test"
        summary += "" if complete else f"\n{model}: began from weights whose programs are not known"
    return summary


def convert(paths: List[str], out: str, model: Optional[str]) -> str:
    """Writes one Parquet file. Returns a summary of one line."""
    pa = _pyarrow()
    files = find(paths, (".json", ".jsonl", ".json.gz", ".ds"))
    datasets = [path for path in files if is_features_file(path)]
    if model and not datasets:
        raise DataError("--model: only a file of features has a side for each program; name a .ds file")
    if not datasets:
        return _convert_lines(pa, files, out)
    if len(files) > 1:
        raise DataError(f"{datasets[0]}: a file of features is converted alone, here are {len(files)} files")
    return _convert_dataset(pa, files[0], out, model)
