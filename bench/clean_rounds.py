"""Interleaved rounds of measurements on a machine that others may be using."""
import pathlib
import time

CLEAN = 0.95  # of the best FMA probe: below, the machine was slower
IDLE = 0.9  # of the CPU time while we wait, before and after a round: below, others used the machine
CLEAN_ROUNDS = 5  # without so many, a comparison with a peer does not count
ATTEMPTS = 3  # rounds tried for each one wanted


def idle_share(seconds=0.2):
    """Of all cores, while this program and its peers wait. The FMA probe does not show the load: it
    reports its best stretch. (Not on Linux: 1.)"""
    stat = pathlib.Path("/proc/stat")
    if not stat.exists():
        return 1.0

    def ticks():
        return [int(word) for word in stat.read_text().splitlines()[0].split()[1:9]]

    before = ticks()
    time.sleep(seconds)
    spent = [after - first for after, first in zip(ticks(), before)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)


class Rounds:
    """Interleaved rounds; those on a machine that was slower or in use do not count."""

    def __init__(self, pruner, threads):
        self.pruner, self.threads, self.best_gflops = pruner, threads, 0.0

    def run(self, turns, wanted):
        """`turns`: name -> a call that measures. Returns its values by name over the clean rounds,
        their number, and how many were dropped. Without a clean one, the values are of them all."""
        found, clean = [], []
        while len(found) < ATTEMPTS * wanted and len(clean) < wanted:
            idle, gflops = idle_share(), self.pruner.peak_gflops(self.threads)
            self.best_gflops = max(self.best_gflops, gflops)
            # Every other round backwards, so that nobody always follows the same one.
            order = list(turns) if len(found) % 2 else list(reversed(turns))
            values = {name: turns[name]() for name in order}
            found.append({"peak_gflops": gflops, "idle": min(idle, idle_share()), **values})
            clean = [one for one in found if one["idle"] >= IDLE
                     and one["peak_gflops"] >= CLEAN * self.best_gflops]
        used = clean or found
        return {name: [one[name] for one in used] for name in used[0]}, len(clean), len(found) - len(clean)
