"""Opens and writes the files of the commands in pruner.data."""

import contextlib
import gzip
import json
import os
import tempfile
import zlib
from typing import Any, Iterator, List, TextIO, Tuple


FAILED_S = 1e9  # a time of a failed trial is greater: 1e10 s in TVM's records


class DataError(Exception):
    """A file that cannot be read, or has a content that cannot be used. The message is one line."""

    def __init__(self, message: str):
        # A message may quote the file, which may hold anything.
        super().__init__("".join(c if c.isprintable() else repr(c)[1:-1] for c in message))


def find(paths: List[str], endings: Tuple[str, ...]) -> List[str]:
    """Returns the files of the paths, and of folders all files with one of the endings, in the
    order of their names."""
    found = []
    for path in paths:
        if os.path.isdir(path):
            inside = [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]
            found += sorted(name for name in inside if name.endswith(endings))
        elif os.path.exists(path):
            found.append(path)
        else:
            raise DataError(f"{path}: no such file")
    if not found:
        raise DataError(f"{paths[0]}: no file here ends in {' or '.join(endings)}")
    return found


def lines(path: str) -> Iterator[Tuple[int, str]]:
    """Yields the number and the text of each line that is not empty. The file may be packed."""
    open_file = gzip.open if path.endswith(".gz") else open
    try:
        with open_file(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{path}: the packed file is damaged or cut") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from None


def json_lines(path: str) -> Iterator[Tuple[str, str, Any]]:
    """Yields FILE:LINE, the text and the JSON value of each line."""
    for number, line in lines(path):
        where = f"{path}:{number}"
        try:
            yield where, line, json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"{where}: no JSON; the line may be cut") from None


@contextlib.contextmanager
def replaced(path: str) -> Iterator[str]:
    """Gives the path of a new file to write. The file takes the place of `path` when it is complete;
    after an error there is no new file."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise DataError(f"{path}: there is no folder {folder}")
    handle, scratch = tempfile.mkstemp(dir=folder)
    os.close(handle)
    try:
        yield scratch
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(scratch, 0o666 & ~mask)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


@contextlib.contextmanager
def written(path: str) -> Iterator[TextIO]:
    """Opens a file to replace `path`, packed if the name ends in .gz."""
    open_file = gzip.open if path.endswith(".gz") else open
    with replaced(path) as scratch, open_file(scratch, "wt", encoding="utf-8") as file:
        yield file
