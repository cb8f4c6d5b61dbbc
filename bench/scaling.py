#!/usr/bin/env python3
"""Simulates how far networks scale: `bench/scaling.py [NETWORK ...]`. The script needs only numpy.

The network is compiled for each number n of threads (`--threads n`) and run on one thread. In the
run the iterations (tiles) of each parallel loop are counted and timed. The replay of a kernel on n
cores takes

    max(sum of seconds * ceil(tiles / n) / tiles, bytes / bandwidth) + loops * fork-join + serial

The terms of the formula mean:

- The pool gives each core tiles / n tiles, and one more tile to some cores.
- `bandwidth` is the bandwidth of the machine (--bandwidth-gbs). The limit of one core is part of
  the tiles' times.
- Fork and join take --fork-join-us * log2(cores with tiles).
- `serial` is the time of the kernel outside of its loops.

The replay leaves out the time that a core loses to other cores' caches, to another socket's memory
and to a lower clock.

The table has a row for each network, kind of schedules, and n. Schedules come from records, which
were made for 2 threads, or are drafted for n. The columns mean:

- `doubling` is the gain over n/2 threads.
- The percentages are the parts of the time that are not work / n. `slower_tiles` is work that the
  schedules for 1 thread do not have.
- `own_speedup` is the speedup if each kernel runs on the best number of threads up to n, with the
  schedule for that number.
"""
import argparse
import collections
import ctypes
import math
import pathlib
import sys
import tempfile
import time
from typing import List, NamedTuple

import numpy as np

import runtimes

sys.path.insert(0, str(runtimes.ROOT / "python"))
import pruner.module  # noqa: E402

NETWORKS = ["resnet_50", "mobilenet_v2", "bert_base", "gpt2"]
THREADS = [1, 2, 4, 8, 16, 32, 64, 128]
SCHEDULES = {"records": [], "drafted": ["--no-shipped-records"]}
SCALES = 1.3  # least gain of doubling the threads with which a network still scales


class Loop(NamedTuple):
    tiles: int
    seconds: float  # time on one thread


class Kernel(NamedTuple):
    name: str
    bytes: int
    loops: List[Loop]
    serial_s: float

    def work_s(self):
        return sum(loop.seconds for loop in self.loops)


class Machine(NamedTuple):
    bandwidth: float  # in bytes/s
    fork_join_s: float  # time with two threads; each doubling adds as much


BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64)


class Pool(ctypes.Structure):
    """The struct PrunerPool of include/pruner/kernel.h."""
    _fields_ = [("parallel_for", PARALLEL_FOR), ("threads", ctypes.c_int32)]


class LoopRecorder:
    """Replaces parallel_for() in an instance of one thread, and records the loops."""

    def __init__(self, module, kernels):
        self.seconds = (ctypes.c_double * kernels)()  # times of the kernels, written by the module
        self.function = PARALLEL_FOR(self.run)  # kept while the instance may call the function
        # An instance begins with a pointer to its pool (cpu_executor.c).
        ctypes.cast(module._instance, ctypes.POINTER(ctypes.POINTER(Pool)))[0][0].parallel_for = self.function

    def begin(self):
        self.seconds[:] = [-1.0] * len(self.seconds)
        self.loops = [[] for _ in self.seconds]
        self.kernel = 0  # the running kernel: the first whose time the module has not written

    def run(self, _, body, closure, tiles):
        while self.seconds[self.kernel] >= 0:
            self.kernel += 1
        begin = time.perf_counter()
        body(closure, 0, tiles)
        self.loops[self.kernel].append(Loop(tiles, time.perf_counter() - begin))


def seeded_inputs(specs):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(spec.shape).astype(spec.dtype) if spec.dtype.kind == "f" else
            np.zeros(spec.shape, spec.dtype) for spec in specs]


def timed_run(module, recorder, inputs, outputs):
    """Runs the module once; returns the seconds and the loops of each kernel."""
    recorder.begin()
    pointers = [pruner.module._pointers(arrays) for arrays in (inputs, outputs)]
    module._check(module._run_phase(module._instance, 0, *pointers, recorder.seconds))
    return list(recorder.seconds), recorder.loops


def record(path, rounds):
    """Returns the module's kernels. Each time is the least time of the rounds."""
    module = pruner.module.Module(path, 1)
    numbers = next(iter(module.phases.values()))._kernels
    recorder = LoopRecorder(module._opened, len(numbers))
    inputs = seeded_inputs(module.inputs)
    outputs = [np.empty(spec.shape, spec.dtype) for spec in module.outputs]
    runs = [timed_run(module._opened, recorder, inputs, outputs) for _ in range(rounds)]
    loops = [[Loop(same[0].tiles, min(loop.seconds for loop in same)) for same in zip(*kernel, strict=True)]
             for kernel in zip(*(run[1] for run in runs))]
    rest = [min(run[0][k] - sum(loop.seconds for loop in run[1][k]) for run in runs)
            for k in range(len(numbers))]
    # The recorder's own time lies outside of the loops. The estimate is the least time outside of
    # the loops, per loop, over all kernels.
    beside = min((rest[k] / len(loops[k]) for k in range(len(rest)) if loops[k]), default=0)
    specs = [module._opened._kernel(number).contents for number in numbers]
    return [Kernel(spec.name.decode(), spec.bytes, of, max(0.0, more - beside * len(of)))
            for spec, of, more in zip(specs, loops, rest)]


def replay(kernel, n, machine):
    """Returns the seconds of a kernel on n cores, by the reason for the time."""
    work = kernel.work_s() / n
    few = sum(loop.seconds * (1 / loop.tiles - 1 / n) for loop in kernel.loops if loop.tiles < n)
    uneven = sum(loop.seconds * (math.ceil(loop.tiles / n) / loop.tiles - 1 / n)
                 for loop in kernel.loops if loop.tiles >= n)
    forks = sum(math.log2(min(n, loop.tiles)) for loop in kernel.loops)
    return {"work": work,
            "few_tiles": few,
            "uneven_tiles": uneven,
            "bandwidth": max(0.0, kernel.bytes / machine.bandwidth - work - few - uneven),
            "fork_join": forks * machine.fork_join_s,
            "serial": kernel.serial_s}


def total_s(kernel, n, machine):
    return sum(replay(kernel, n, machine).values())


def most_lost(kernels, n, machine):
    """Returns a text: the kernel that loses most, its share of the network's time, and the reason.
    Kernels of the same name count together."""
    lost, time_s = collections.Counter(), collections.Counter()
    for kernel in kernels:
        spent = replay(kernel, n, machine)
        time_s[kernel.name] += sum(spent.values())
        del spent["work"]
        lost.update({(kernel.name, reason): seconds for reason, seconds in spent.items()})
    (name, reason), _ = lost.most_common(1)[0]
    return f"{name}: {100 * time_s[name] / time_s.total():.0f} %, {reason}"


def rows_of(network, schedules, modules, machine):
    """Returns a row for each number of threads. `modules` has the kernels by the number of threads
    for which they were compiled."""
    one_s = sum(total_s(kernel, 1, machine) for kernel in modules[1])
    one_work_s = sum(kernel.work_s() + kernel.serial_s for kernel in modules[1])
    rows, own = [], [math.inf] * len(modules[1])
    for n, kernels in modules.items():
        times = [total_s(kernel, n, machine) for kernel in kernels]
        own = [min(pair) for pair in zip(own, times, strict=True)]
        spent = collections.Counter()
        for kernel in kernels:
            spent.update(replay(kernel, n, machine))
        spent["slower_tiles"] = max(0.0, spent["work"] - one_work_s / n)
        seconds = sum(times)
        rows.append({
            "network": network,
            "schedules": schedules,
            "threads": n,
            "ms": 1e3 * seconds,
            "speedup": one_s / seconds,
            "doubling": rows[-1]["ms"] * 1e-3 / seconds if rows else None,
            "own_speedup": one_s / sum(own),
            **{f"{reason}_percent": round(100 * spent[reason] / seconds, 1)
               for reason in ("few_tiles", "uneven_tiles", "slower_tiles", "bandwidth", "fork_join", "serial")},
            "most_lost": most_lost(kernels, n, machine) if n > 1 else None,
        })
    return rows


def measure(program, network, schedules, options, folder):
    modules = {}
    for n in THREADS:
        path = folder / f"{n}.so"
        program.run("compile", "--network", network, "--threads", n, *SCHEDULES[schedules], "-o", path)
        modules[n] = record(path, options.rounds)
        path.unlink()
    machine = Machine(options.bandwidth_gbs * 1e9, options.fork_join_us * 1e-6)
    return rows_of(network, schedules, modules, machine)


def end_of_scaling(rows):
    """Returns the first number of threads at which doubling gains less than SCALES, or None."""
    return next((row["threads"] for row in rows if row["doubling"] and row["doubling"] < SCALES), None)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--bandwidth-gbs", type=float, default=460.8,
                        help="of the machine; default: 12 channels of DDR5-4800")
    parser.add_argument("--fork-join-us", type=float, default=1.0,
                        help="of two threads (`pruner device probe`: launch_s), and for each doubling")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pruner", help="default: build/release/pruner")
    options = parser.parse_args()
    program, rows, ends = runtimes.Pruner(options.pruner), [], []
    for network in options.networks or NETWORKS:
        for schedules in SCHEDULES:
            with tempfile.TemporaryDirectory() as folder:
                found = measure(program, network, schedules, options, pathlib.Path(folder))
            rows += found
            ends.append(f"{network}, {schedules}: doubling gains less than {SCALES} at "
                        f"{end_of_scaling(found) or 'none'} of these numbers of threads")
    command = " ".join(["bench/scaling.py", *sys.argv[1:]])
    runtimes.report("scaling", command, rows, keep=not options.networks)
    print("\n".join(ends))


if __name__ == "__main__":
    main()
