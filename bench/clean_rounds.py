"""Runs interleaved rounds of measurements on a machine that others may use meanwhile."""
import pathlib
import time

CLEAN = 0.95  # share of the best FMA probe; below this share the machine was slower
# The idle share of the CPU time while this program waits, before and after a round. Below this
# share others used the machine.
IDLE = 0.9
CLEAN_ROUNDS = 5  # least number of clean rounds with which a comparison with a peer counts
ATTEMPTS = 3  # rounds that are tried for each wanted round


def idle_share(seconds=0.2):
    """Returns the idle share of all cores while this program and its peers wait; 1 without Linux.

    The FMA probe does not show the load of others, because the probe reports its best stretch.
    """
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
    """Interleaved rounds. A round on a machine that was slower or in use does not count."""

    def __init__(self, pruner, threads):
        self.pruner, self.threads, self.best_gflops = pruner, threads, 0.0

    def run(self, turns, wanted):
        """Measures in turns. `turns` maps a name to a call that measures.

        Returns (values by name over the clean rounds, number of clean rounds, number of dropped
        rounds). If no round is clean, the values are those of all rounds.
        """
        found, clean = [], []
        while len(found) < ATTEMPTS * wanted and len(clean) < wanted:
            idle, gflops = idle_share(), self.pruner.peak_gflops(self.threads)
            self.best_gflops = max(self.best_gflops, gflops)
            # Every other round runs backwards, so that no turn always follows the same turn.
            order = list(turns) if len(found) % 2 else list(reversed(turns))
            values = {name: turns[name]() for name in order}
            found.append({"peak_gflops": gflops, "idle": min(idle, idle_share()), **values})
            clean = [one for one in found if one["idle"] >= IDLE
                     and one["peak_gflops"] >= CLEAN * self.best_gflops]
        used = clean or found
        return {name: [one[name] for one in used] for name in used[0]}, len(clean), len(found) - len(clean)
