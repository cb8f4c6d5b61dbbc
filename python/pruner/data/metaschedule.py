"""MetaSchedule's database as lines that Pruner and scripts can use.

A database is two files. A line of database_workload.json is [hash, base64 of the IRModule's graph behind its length];
a line of database_tuning_record.json is [number of a workload, [trace, times, target, arguments]].
A trace is MetaSchedule's own program of schedule instructions. It has no form in Pruner's schedule
space and none as Ansor's steps, so a line keeps the trace as it is and is no record of Pruner's.
"""

import base64
import binascii
import hashlib
import json
import os
import statistics
import struct
from typing import Any, Dict, List, NamedTuple, Optional

from pruner.data.files import FAILED_S, DataError, json_lines, written
from pruner.data.tir_dag import TirDag
from pruner.data.tvm_graph import Graph, TvmGraphError

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"


class Workload(NamedTuple):
    hash: str
    dag: Optional[List[Dict[str, Any]]]
    unread: str  # why there is no DAG


def _workload(where: str, line: Any) -> Workload:
    if not isinstance(line, list) or len(line) != 2 or not all(isinstance(part, str) for part in line):
        raise DataError(f"{where}: no workload: expected [hash, module in base64]")
    try:
        content = base64.b64decode(line[1], validate=True)
        if content[:8] == struct.pack("<Q", len(content) - 8):  # TVM packs a text behind its length
            content = content[8:]
        text = content.decode()
    except (binascii.Error, ValueError, struct.error):
        raise DataError(f"{where}: the module is no base64; the line may be cut") from None
    try:
        return Workload(line[0], TirDag(Graph(text).root).stages, "")
    except TvmGraphError as error:
        return Workload(line[0], None, str(error))
    except (RecursionError, ValueError):
        return Workload(line[0], None, "its graph is nested too deeply or damaged")


def _arguments(where: str, info: Any) -> Optional[List[Dict[str, Any]]]:
    if info is None:
        return None
    arguments = []
    for each in info if isinstance(info, list) else [None]:
        if not isinstance(each, list) or len(each) != 3 or each[0] != "TENSOR" or not isinstance(each[2], list):
            raise DataError(f"{where}: an argument is no [\"TENSOR\", dtype, shape]: {json.dumps(each)[:60]}")
        arguments.append({"dtype": each[1], "shape": each[2]})
    return arguments


def target_text(where: str, config: Any) -> Optional[str]:
    """Returns a target as the text that records have. MetaSchedule writes a dict, or the text."""
    if config is None or isinstance(config, str):
        return config
    if not isinstance(config, dict) or not isinstance(config.get("kind"), str):
        raise DataError(f"{where}: the target has no kind")
    words = [config["kind"]]
    if config.get("keys"):
        words.append("-keys=" + ",".join(map(str, config["keys"])))
    for key, value in sorted(config.items()):
        if key in ("kind", "keys", "tag", "host") or value in (None, "", []):
            continue
        value = ",".join(map(str, value)) if isinstance(value, list) else value
        words.append(f"-{key}={int(value) if isinstance(value, bool) else value}")
    return " ".join(words)


def _workload_key(workload: Workload, arguments: Optional[List[Dict[str, Any]]]) -> str:
    """Returns a key in the form of Ansor's: 32 digits and the shapes. The digits are a hash of
    MetaSchedule's hash."""
    digits = hashlib.md5(f"metaschedule {workload.hash}".encode()).hexdigest()
    shapes = [argument["shape"] for argument in arguments or []]
    return json.dumps([digits, *shapes])


def _record(where: str, line: Any, workloads: List[Workload]) -> Dict[str, Any]:
    if not isinstance(line, list) or len(line) != 2 or not isinstance(line[1], list) or len(line[1]) != 4:
        raise DataError(f"{where}: no record: expected [workload, [trace, times, target, arguments]]")
    number, (trace, times, target, info) = line
    if not isinstance(number, int) or not 0 <= number < len(workloads):
        raise DataError(f"{where}: workload {number!r} is not among the {len(workloads)} of {WORKLOADS}")
    if not isinstance(trace, list) or len(trace) != 2 or not all(isinstance(part, list) for part in trace):
        raise DataError(f"{where}: the trace is no pair of instructions and decisions")
    is_times = isinstance(times, list) and times and all(
        isinstance(time, (int, float)) and not isinstance(time, bool) and time > 0 for time in times)  # fmt: skip
    if times is not None and not is_times:
        raise DataError(f"{where}: the times are no list of numbers above 0")
    arguments = _arguments(where, info)
    failed = times is None or statistics.fmean(times) >= FAILED_S
    workload = workloads[number]
    return {
        "workload": number,
        "workload_hash": workload.hash,
        "workload_key": _workload_key(workload, arguments),
        "target": target_text(where, target),
        "arguments": arguments,
        "run_secs": times,
        "seconds": None if failed else statistics.fmean(times),
        "instructions": trace[0],
        "decisions": trace[1],
    }


def convert(folder: str, out: str, tasks: Optional[str]) -> str:
    """Writes the records of a database as JSON lines, and with `tasks` the workloads as tasks of
    Pruner, each as a file of this folder. Returns a summary that names each workload and what has no form in Pruner."""
    workload_path, record_path = (os.path.join(folder, name) for name in (WORKLOADS, RECORDS))
    for path in (workload_path, record_path):
        if not os.path.exists(path):
            raise DataError(f"{path}: no such file; a database of MetaSchedule has both")
    workloads = [_workload(where, line) for where, _, line in json_lines(workload_path)]
    if tasks is not None and all(workload.dag is None for workload in workloads):
        reason = workloads[0].unread if workloads else "there is none"
        raise DataError(f"{tasks}: not written, as no workload has a form as a compute DAG: {reason}")
    records: List[List[Dict[str, Any]]] = [[] for _ in workloads]
    count = 0
    with written(out) as file:
        for where, _, line in json_lines(record_path):
            record = _record(where, line, workloads)
            count += 1
            file.write(json.dumps(record) + "\n")
            del record["instructions"], record["decisions"]  # memory grows by the times alone
            records[record["workload"]].append(record)
        if count == 0:
            raise DataError(f"{record_path}: not converted, as there is no record")
    lines = [f"{out}: {count} records of {len(workloads)} workloads"]
    lines += [_summary(*entry) for entry in zip(workloads, records, range(len(workloads)))]
    if tasks is not None:
        lines.append(_write_tasks(tasks, workloads, records))
    lines.append("traces have no form as Pruner's candidates or Ansor's steps; they are kept as they are")
    return "\n".join(lines)


def _summary(workload: Workload, records: List[Dict[str, Any]], number: int) -> str:
    times = [record["seconds"] for record in records if record["seconds"] is not None]
    best = f", best {min(times) * 1e3:.4f} ms, median {statistics.median(times) * 1e3:.4f} ms" if times else ""
    text = f"workload {number}: {len(records)} records, {len(records) - len(times)} failed{best}"
    return text + (f"; no task: {workload.unread}" if workload.dag is None else "")


def _write_tasks(folder: str, workloads: List[Workload], records: List[List[Dict[str, Any]]]) -> str:
    """Writes a file for each workload that has a DAG, because `pruner tune --task` takes one task."""
    kept = [number for number, workload in enumerate(workloads) if workload.dag is not None]
    os.makedirs(folder, exist_ok=True)
    for number in kept:
        workload, mine = workloads[number], records[number]
        key = _workload_key(workload, mine[0]["arguments"] if mine else None)
        with written(os.path.join(folder, f"workload_{number}.json")) as file:
            task = {"workload_key": key, "name": f"metaschedule {workload.hash}", "dag": workload.dag}
            file.write(json.dumps(task) + "\n")
    return f"{folder}: {len(kept)} of {len(workloads)} workloads as tasks, workload_{kept[0]}.json and on"
