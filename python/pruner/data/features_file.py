"""Reads a file of features (`pruner dataset make`), and the programs that a model was trained on."""

import json
import math
import os
import struct
from typing import Dict, List, Tuple

from pruner.data.files import DataError

DATAFLOW = (8, 23)  # steps of a program's data flow, and values of a step


def is_features_file(path: str) -> bool:
    """Returns whether a file begins as a safetensors file: eight bytes of length, then JSON."""
    with open(path, "rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{" and head[0:1] != b"{"


class FeaturesFile:
    """A file of features, mapped to memory. The file's checksum is not computed."""

    _COLUMNS = {
        "id": "<u8", "latency": "<f8", "row_offset": "<i8", "primitive_offset": "<i8", "task": "<i4",
        "primitives": "<i4", "dataflow": "<f4", "rows": "<f4",
    }  # fmt: skip

    def __init__(self, path: str):
        try:
            self._read(path)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error):
            raise DataError(f"{path}: no file of features, or a damaged one") from None

    def _read(self, path: str) -> None:
        import numpy as np

        size = os.path.getsize(path)
        with open(path, "rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            if length > size:
                raise DataError(f"{path}: no file of features, or a cut one")
            header = json.loads(file.read(length))
        metadata = header["__metadata__"]
        if metadata["format"] != "pruner-dataset":
            raise DataError(f"{path}: no file of features")
        self.tasks: List[Dict[str, str]] = json.loads(metadata["tasks"])
        self.columns = {}
        for name, code in self._COLUMNS.items():
            begin, end = (8 + length + offset for offset in header[name]["data_offsets"])
            if end > size:
                raise DataError(f"{path}: the file is cut: the column {name} ends after the file")
            dtype, shape = np.dtype(code), tuple(header[name]["shape"])
            if math.prod(shape) * dtype.itemsize != end - begin:
                raise ValueError
            self.columns[name] = (np.memmap(path, dtype, "r", begin, shape) if begin < end
                                  else np.empty(shape, dtype))  # fmt: skip
        self._check(len(self.columns["id"]))

    def _check(self, programs: int) -> None:
        """Raises ValueError if columns contradict each other."""
        columns = self.columns
        flat = [columns[name].ndim == 1 for name in self._COLUMNS if name not in ("dataflow", "rows")]
        named = [isinstance(task[key], str) for task in self.tasks for key in ("workload_key", "target")]
        if not all(flat + named):
            raise ValueError
        if not (len(columns["latency"]) == len(columns["task"]) == len(columns["dataflow"]) == programs):
            raise ValueError
        if columns["rows"].ndim != 2 or columns["dataflow"].shape[1:] != DATAFLOW:
            raise ValueError
        for values, offsets in (("rows", "row_offset"), ("primitives", "primitive_offset")):
            places = columns[offsets]
            if len(places) != programs + 1 or places[0] != 0 or places[-1] != len(columns[values]):
                raise ValueError
            if (places[1:] < places[:-1]).any():
                raise ValueError
        if programs and not 0 <= columns["task"].min() <= columns["task"].max() < len(self.tasks):
            raise ValueError


def trained_on(path: str) -> Tuple[set, bool]:
    """Returns the ids of the programs that a model was trained on, and whether these are all."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        if content[:1] == b"{":
            text = json.loads(content)["learner"]["attributes"]["trained_on"]
        else:
            length = struct.unpack("<Q", content[:8])[0]
            text = json.loads(content[8 : 8 + length])["__metadata__"]["trained_on"]
        seen = json.loads(text)
        digits = seen["programs"]
        ids = {int(digits[at : at + 16], 16) for at in range(0, len(digits), 16)}
    except (KeyError, TypeError, ValueError, AttributeError, struct.error):
        raise DataError(f"{path}: the model does not say what it was trained on") from None
    return ids, seen["complete"]
