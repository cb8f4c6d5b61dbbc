"""Reads and shows the progress that a tuning reports while it runs."""

import contextlib
import json
import shutil
import sys
from typing import Callable, Iterator, List, NamedTuple, Optional


class Progress(NamedTuple):
    """The state of a tuning after a round.

    trials, all_trials: the number of trials so far, and in all. None: a budget of time decides.
    task, task_ms: the name of the round's task, and the task's best time in ms. None: no program of
        the task has worked yet.
    latency_ms: the estimated latency of the network in ms. None: a task has no time yet.
    left: the time that is left, as text: "2:03", or "-" if the time is not known.
    """

    trials: int
    all_trials: Optional[int]
    task: str
    task_ms: Optional[float]
    latency_ms: Optional[float]
    left: str

    def __str__(self) -> str:
        total = "-" if self.latency_ms is None else f"{self.latency_ms:.3f} ms"
        of = "" if self.all_trials is None else f"/{self.all_trials}"
        return f"{self.trials}{of} trials, {total}, {self.left} left: {self.task}"


class Events:
    """Reads the events that `tune --events` writes, line by line."""

    def __init__(self) -> None:
        self._tasks: List[str] = []
        self._all_trials: Optional[int] = None

    def read(self, line: str) -> Optional[Progress]:
        """Returns the Progress of a round's event. Other events, and lines that hold no event, give
        None."""
        try:
            event = json.loads(line) if line.startswith("{") else {}
        except ValueError:
            return None
        if event.get("event") == "started":
            self._tasks = [task["name"] for task in event["tasks"]]
            self._all_trials = event["trials"]
        if event.get("event") != "round":
            return None
        return Progress(
            event["trials"],
            self._all_trials,
            self._tasks[event["task"]],
            event["best_ms"],
            event["total_ms"],
            _clock(event["eta_s"]),
        )


def _clock(seconds: Optional[float]) -> str:
    """Returns the seconds as text, such as "1:05:09" or "2:03"; None gives "-"."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


@contextlib.contextmanager
def shown(wanted: bool) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that shows a Progress.

    The function writes one line to a terminal or to a notebook's output; the next Progress replaces
    the line. Without either, or if `wanted` is false, the function does nothing.
    """
    notebook = _notebook() if wanted else None
    terminal = wanted and notebook is None and sys.stderr is not None and sys.stderr.isatty()

    def show(progress: Progress) -> None:
        if notebook is not None:
            notebook.update({"text/plain": str(progress)}, raw=True)
        elif terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write("\r" + str(progress)[:width].ljust(width))
            sys.stderr.flush()

    yield show
    if terminal:
        sys.stderr.write("\n")


def _notebook():
    """Returns a place in the output of a notebook's cell, or None outside of a notebook."""
    try:
        shell = sys.modules["IPython"].get_ipython()
        if shell is None or not hasattr(shell, "kernel"):
            return None
        return sys.modules["IPython"].display.display({"text/plain": ""}, raw=True, display_id=True)
    except (KeyError, AttributeError):
        return None
