"""TenSet's files as files of Pruner: pickles of tasks become JSON lines with compute DAGs.

TenSet's records name a task by the hash of its compute DAG. The DAG stands only in the pickles of
`network_info`: NETWORK.task.pkl holds (tasks, weights), all_tasks.pkl holds a list of tasks. Each
task is an object of TVM's class SearchTask whose parts are TVM's JSON graphs.
"""

import json
import os
import re
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from pruner.data import inert_pickle
from pruner.data.files import DataError, find, json_lines, written
from pruner.data.inert_pickle import Inert, InertPickleError, Name
from pruner.data.tvm_graph import DagReader, Graph, TvmGraphError, shape_of, target_text

# ((resnet_50,[(1,3,224,224)]),llvm).task.pkl, without spaces and quotes
FILE_NAME = re.compile(r"\(\((?P<network>[\w.-]+),\[\((?P<shape>[\d,]+)\)\]\),(?P<kind>\w+)\)\.task\.pkl")
SEARCH_TASK = "SearchTask"


class Network(NamedTuple):
    name: str
    shape: List[int]


def network_of(path: str) -> Optional[Network]:
    """Returns the network that a file's name says; None for all_tasks.pkl."""
    name = re.sub(r"[\s'\"]", "", os.path.basename(path))
    if name == "all_tasks.pkl":
        return None
    match = FILE_NAME.fullmatch(name)
    if match is None:
        raise DataError(
            f"{path}: the name does not say network, input shape and target, as in"
            " ((resnet_50,[(1,3,224,224)]),llvm).task.pkl"
        )
    return Network(match["network"], [int(extent) for extent in match["shape"].split(",") if extent])


def _is_tvm(name: Name) -> bool:
    return name.module == "tvm" or name.module.startswith("tvm.")


def _graph(value: Any) -> Graph:
    """Returns the graph of a TVM object in a pickle."""
    state = value.state if isinstance(value, Inert) else None
    text = (state.get("handle") or state.get("tensors")) if isinstance(state, dict) else None
    if not isinstance(text, str):
        raise TvmGraphError("a part of the task is no object of TVM's")
    return Graph(text)


def flat(shapes: Any) -> List[Any]:
    return [each for shape in shapes for each in (shape if isinstance(shape, list) else [shape])]


def task_line(task: Any) -> Dict[str, Any]:
    """Returns the key, the target and the DAG of a task in a pickle."""
    if not isinstance(task, Inert) or task.cls.name != SEARCH_TASK or not isinstance(task.state, dict):
        raise TvmGraphError("no task of TVM's auto-scheduler")
    missing = [key for key in ("compute_dag", "workload_key", "target") if key not in task.state]
    if missing:
        raise TvmGraphError(f"the task has no {missing[0]}")
    key = task.state["workload_key"]
    if isinstance(key, Inert) and len(key.arguments) == 1:  # TVM's String is a subclass of str
        key = key.arguments[0]
    try:
        parts = json.loads(key)
    except (TypeError, ValueError):
        parts = None
    if not isinstance(parts, list) or not parts:
        raise TvmGraphError("the workload key is no list in JSON")
    target = _graph(task.state["target"]).root
    tensors = _graph(task.state["compute_dag"]).root.items()
    if not tensors:
        raise TvmGraphError("the compute DAG has no tensors")
    shapes = [extent for tensor in tensors for extent in shape_of(tensor.shape)]
    if re.fullmatch("[0-9a-f]{32}", str(parts[0])) and len(parts) > 1 and flat(parts[1:]) != shapes:
        raise TvmGraphError(f"the workload key says the shapes {flat(parts[1:])}, the DAG has {shapes}")
    return {
        "target_kind": target.child("kind").name_of("name"),
        "workload_key": key,
        "target": target_text(target),
        "dag": DagReader(tensors).stages,
    }


def tasks_of(path: str) -> Iterator[Dict[str, Any]]:
    """Yields the line of each task in a pickle of TenSet. Raises DataError."""
    network = network_of(path)
    try:
        with open(path, "rb") as file:
            content = inert_pickle.load(file.read(), _is_tvm)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except InertPickleError as error:
        raise DataError(f"{path}: {error}") from None
    tasks, weights = content, None
    if network is not None:
        if not isinstance(content, (tuple, list)) or len(content) != 2:
            raise DataError(f"{path}: not a pair of tasks and weights")
        tasks, weights = content
    if not isinstance(tasks, list) or (weights is not None and not isinstance(weights, list)):
        raise DataError(f"{path}: no list of tasks")
    if weights is not None and len(tasks) != len(weights):
        raise DataError(f"{path}: {len(tasks)} tasks and {len(weights)} weights")
    for number, task in enumerate(tasks):
        line: Dict[str, Any] = {}
        if network is not None and weights is not None:
            line = {"network": network.name, "input_shape": network.shape, "idx": number}
            line["weight"] = weights[number]
            if not isinstance(weights[number], int):
                raise DataError(f"{path}: task {number}: its weight is no whole number")
        try:
            line.update(task_line(task))
        except TvmGraphError as error:
            raise DataError(f"{path}: task {number}: {error}") from None
        except (RecursionError, ValueError):
            raise DataError(f"{path}: task {number}: its graph is nested too deeply or damaged") from None
        yield line


def convert_tasks(paths: List[str], out: str) -> str:
    """Writes the tasks of pickles as JSON lines. Returns a summary of one line."""
    files = find(paths, (".task.pkl", "all_tasks.pkl"))
    # all_tasks.pkl repeats the networks' tasks: its tasks come last, and only those that are new.
    files.sort(key=lambda path: network_of(path) is None)
    seen: Set[Tuple[str, str]] = set()
    networks: Counter = Counter()
    empty, tasks, repeated = [], 0, 0
    with written(out) as file:
        for path in files:
            named, count = network_of(path), 0
            for line in tasks_of(path):
                count += 1
                identity = (line["workload_key"], line["target_kind"])
                if named is None and identity in seen:
                    repeated += 1
                    continue
                seen.add(identity)
                tasks += 1
                file.write(json.dumps(line) + "\n")
            if named is not None:
                networks[(named.name, tuple(named.shape))] += 1
            if count == 0:
                empty.append(path)
        if tasks == 0:
            raise DataError(f"{files[0]}: not converted, as no file has a task")
    summary = f"{out}: {tasks} tasks of {len(networks)} networks, {len(seen)} of them distinct"
    if repeated:
        summary += f"; {repeated} tasks of all_tasks.pkl are tasks of the networks"
    for path in empty:
        summary += f"\n{path}: no tasks in the file"
    return summary


def _canonical(key: str) -> str:
    """Returns one text for the two forms of a key: shapes as lists, or all extents in one list."""
    try:
        parts = json.loads(key)
    except (TypeError, ValueError):
        return str(key)
    return json.dumps(flat(parts) if isinstance(parts, list) else parts)


def _keys_of_tasks(path: str) -> Set[str]:
    keys = set()
    for where, _, task in json_lines(path):
        if not isinstance(task, dict) or not isinstance(task.get("workload_key"), str) or "dag" not in task:
            raise DataError(f"{where}: no task with a workload key and a DAG")
        keys.add(_canonical(task["workload_key"]))
    return keys


def convert_records(paths: List[str], tasks: str, out: str, drop_unknown: bool) -> str:
    """Writes the records whose task is known to one file. Returns a summary.

    A record of an unknown task is an error, or with `drop_unknown` left out and counted.
    """
    known = _keys_of_tasks(tasks)
    resolved: Dict[str, bool] = {}
    unknown: Dict[str, List[Any]] = {}  # key: the first record's place, and the records
    kept = 0
    files = find(paths, (".json", ".json.gz"))
    with written(out) as file:
        for path in files:
            for where, text, record in json_lines(path):
                try:
                    key = record["i"][0][0]
                    record["r"][0], record["i"][1][1]
                except (KeyError, IndexError, TypeError):
                    raise DataError(f"{where}: no record: keys i and r are missing or too short") from None
                if not isinstance(key, str):
                    raise DataError(f"{where}: no record: the workload key is no text")
                if key not in resolved:
                    resolved[key] = _canonical(key) in known
                if resolved[key]:
                    kept += 1
                    file.write(text + "\n")
                    continue
                if not drop_unknown:
                    raise DataError(
                        f"{where}: no task of {tasks} has the workload key {key};"
                        " --drop-unknown leaves such records out"
                    )
                unknown.setdefault(key, [where, 0])[1] += 1
        if kept == 0:
            raise DataError(f"{files[0]}: not converted, as no record has a task of {tasks}")
    tasks_kept = sum(resolved.values())
    summary = f"{out}: {kept} records of {tasks_kept} tasks from {len(files)} files"
    for key, (first, count) in unknown.items():
        summary += f"\nleft out: {count} records with no task, {key} (first: {first})"
    return summary
