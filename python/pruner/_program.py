"""Finds and runs the program `pruner`."""

import functools
import os
import shutil
import signal
import subprocess
import tempfile
from typing import Callable, Dict, List, Optional, Sequence


class PrunerError(RuntimeError):
    """A command of the program has failed. The message is the program's own line, which names what
    to mend."""


def path() -> str:
    """Returns the path of the program, the first that exists: $PRUNER, the program inside this
    package, the program on the PATH, or the program that quickstart.sh builds in this package's
    source tree. Raises PrunerError if there is none."""
    given, folder = os.environ.get("PRUNER"), os.path.dirname(os.path.abspath(__file__))
    bundled = os.path.join(folder, "bin", "pruner")
    tree = os.path.dirname(os.path.dirname(folder))
    built = None if given else os.path.join(tree, "build", "release", "pruner")
    for each in (given, bundled, shutil.which("pruner"), built):
        if each and os.access(each, os.X_OK):
            return each
    raise PrunerError(
        "the program pruner is not here: put it on the PATH, or set PRUNER to where it is"
    )


def version() -> str:
    """Returns the line that `pruner --version` prints."""
    return _version_of(path())


@functools.lru_cache(maxsize=None)
def _version_of(program: str) -> str:
    return run(["--version"]).strip()


def run(
    arguments: Sequence[str],
    on_line: Optional[Callable[[str], None]] = None,
    keeps_on_interrupt: bool = False,
    environment: Optional[Dict[str, str]] = None,
    on_start: Optional[Callable[[int], None]] = None,
) -> str:
    """Runs a command and returns its standard output.

    Each line of standard error goes to `on_line` as the command prints the line. `on_start` gets
    the number of the process, which is also the number of its process group.

    A KeyboardInterrupt ends the command as Ctrl-C does in a terminal, and is then raised again.
    With `keeps_on_interrupt`, the interrupted command's output is returned instead, unless the
    output is empty.

    Raises PrunerError if the command fails.
    """
    command = [path(), *map(os.fspath, arguments)]
    lines: List[str] = []
    interrupted = False
    with tempfile.TemporaryFile("w+", errors="replace") as output, subprocess.Popen(
        command,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        start_new_session=True,  # a terminal's Ctrl-C reaches this process alone
    ) as process:
        try:
            if on_start is not None:
                on_start(process.pid)
            for line in process.stderr:
                lines.append(line.rstrip("\n"))
                if on_line is not None:
                    on_line(lines[-1])
            process.wait()
        except BaseException as error:
            process.send_signal(signal.SIGINT)
            process.communicate()
            interrupted = keeps_on_interrupt and isinstance(error, KeyboardInterrupt)
            if not interrupted:
                raise
        output.seek(0)
        text = output.read()
    if interrupted and not text:
        raise KeyboardInterrupt
    if process.returncode != 0 and not interrupted:
        said = [line for line in lines if line.startswith("pruner: ")] or lines[-1:]
        said = [line[len("pruner: ") :] if line.startswith("pruner: ") else line for line in said]
        raise PrunerError(said[-1] if said else f"pruner {arguments[0]} failed")
    return text


def main() -> None:
    """Runs the program in place of this process, with the same arguments."""
    import sys

    program = path()
    os.execv(program, [program, *sys.argv[1:]])
