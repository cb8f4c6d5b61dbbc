"""Measures the rate of a fleet on this machine, and how two runs at once share its workers.

    python bench/fleet.py --program build/release/pruner [--rounds 3] [--trials 200]

The script prints the trials a second of a run with one worker, with two workers (a core each), and
without a fleet. The script needs nats-server.

The search also takes the time of a core. With as many workers as cores, the search and the workers
share the cores. The rate of two workers is then lower than on machines of their own.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time


def rate(command, folder, trials):
    """Returns the trials a second of a whole run of the program."""
    shutil.rmtree(folder, ignore_errors=True)
    start = time.perf_counter()
    subprocess.run([*command, "--work-dir", folder, "--n-trials", str(trials)], check=True, capture_output=True)
    return trials / (time.perf_counter() - start)


def share(command, folder, trials):
    """Starts two runs at once. Returns the trials that the slower run has when the faster run is
    done, over the trials of the faster run."""
    runs = []
    for name in ("a", "b"):
        shutil.rmtree(folder + name, ignore_errors=True)
        runs.append(subprocess.Popen(
            [*command, "--work-dir", folder + name, "--n-trials", str(trials)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ))  # fmt: skip
    while all(run.poll() is None for run in runs):
        time.sleep(0.02)
    with open(folder + ("a" if runs[1].poll() is not None else "b") + "/records.json", encoding="utf-8") as lines:
        done = sum(1 for _ in lines)
    for run in runs:
        if run.wait() != 0:
            raise SystemExit("a run has failed")
    return min(done / trials, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/pruner")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--op", default="conv2d 1 128 28 28 128 3 3 padding=1")
    parser.add_argument("--model", default="draft-only")
    given = parser.parse_args()
    program = os.path.abspath(given.program)
    url = "nats://127.0.0.1:14333"
    search = [program, "tune", "--op", given.op, "--threads", "1", "--model", given.model]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            ["nats-server", "-a", "127.0.0.1", "-p", "14333", "-js", "-sd", folder + "/store"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        workers = []
        try:
            time.sleep(1)
            subprocess.run([program, "fleet", "init", "--server", url], check=True, capture_output=True)
            rates = {"here": [], "one": [], "two": []}
            shares = []
            for _ in range(given.rounds):
                rates["here"].append(rate(["taskset", "-c", "0", *search], folder + "/run", given.trials))
                for name in ("one", "two"):
                    core = len(workers)
                    workers.append(subprocess.Popen(
                        [program, "worker", "--server", url, "--device", f"cpu:{core}", "--name", name,
                         "--most-drift", "100"],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    ))  # fmt: skip
                    time.sleep(3)
                    rates[name].append(rate([*search, "--fleet", url], folder + "/run", given.trials))
                shares.append(share([*search, "--fleet", url], folder + "/run", given.trials))
                while workers:
                    workers[-1].terminate()
                    workers.pop().wait()
                time.sleep(16)  # the server forgets the workers meanwhile
        finally:
            for worker in workers:
                worker.kill()
            server.kill()
    for name, found in rates.items():
        print(f"{name:5} {statistics.median(found):7.1f} trials/s  ({', '.join(f'{x:.1f}' for x in found)})")
    print(f"two over one: {statistics.median(rates['two']) / statistics.median(rates['one']):.2f}")
    print(f"one over here: {statistics.median(rates['one']) / statistics.median(rates['here']):.2f}")
    print(f"of two runs at once, the second's trials over the first's: {', '.join(f'{x:.2f}' for x in shares)}")


if __name__ == "__main__":
    main()
