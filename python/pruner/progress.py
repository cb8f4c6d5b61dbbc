"""What a tuning says of itself while it runs."""

import contextlib
import re
import shutil
import sys
from typing import Callable, Iterator, NamedTuple, Optional

# As `tune` writes it: "[  40/1000] again task 3: best 0.033 ms, ...; total 1.5 ms; ETA 0:12; NAME"
_LINE = re.compile(
    r"\[ *(?P<trials>\d+)(?:/(?P<all>\d+))?\].*?task +(?P<task>\d+): best (?P<best>[-\d.]+)"
    r".*?; total (?P<total>[-\d.]+).*?; ETA (?P<eta>[-\d:]+); (?P<name>.*)"
)


class Progress(NamedTuple):
    """After a round: trials so far and in all (None: a budget of time decides), the task of the round
    and its best time in ms, the network's estimated latency in ms (None: a task has none yet), and
    the time left as text."""

    trials: int
    all_trials: Optional[int]
    task: str
    task_ms: Optional[float]
    latency_ms: Optional[float]
    left: str

    @staticmethod
    def parse(line: str) -> Optional["Progress"]:
        found = _LINE.match(line)
        if found is None:
            return None
        number = lambda text: None if text in ("-", "") else float(text)  # noqa: E731
        return Progress(
            int(found["trials"]),
            int(found["all"]) if found["all"] else None,
            found["name"],
            number(found["best"]),
            number(found["total"]),
            found["eta"],
        )

    def __str__(self) -> str:
        total = "-" if self.latency_ms is None else f"{self.latency_ms:.3f} ms"
        of = "" if self.all_trials is None else f"/{self.all_trials}"
        return f"{self.trials}{of} trials, {total}, {self.left} left: {self.task}"


@contextlib.contextmanager
def shown(wanted: bool) -> Iterator[Callable[[Progress], None]]:
    """A function that shows a Progress: one line of a terminal or of a notebook's output, which the
    next replaces; elsewhere it does nothing."""
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
    """A place in the output of a notebook's cell; None outside of one."""
    try:
        shell = sys.modules["IPython"].get_ipython()
        if shell is None or not hasattr(shell, "kernel"):
            return None
        return sys.modules["IPython"].display.display({"text/plain": ""}, raw=True, display_id=True)
    except (KeyError, AttributeError):
        return None
