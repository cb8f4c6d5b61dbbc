"""Compares operators with their bars: tunes them here, then times them in turns with the peers.

The FMA probe uses the widest vectors of this CPU, whatever --target says. On a Zen 4 the peak of
AVX2 code is the same. On other CPUs the shares of AVX2 code in the peak look smaller than they are.
"""
import contextlib
import re
import statistics
import sys
import time

import operators
import runtimes
from clean_rounds import CLEAN_ROUNDS, Rounds
from peer_process import AVX2_ENV, operator_peer

BENCH_S = 0.5  # seconds of each look at one of our modules
UNTUNED_BAR = 1.5  # greatest allowed ratio of the untuned module's time to the tuned module's


def build_modules(pruner, operator, options, folder):
    """Returns (modules by name, seconds of tuning, form of the best record). The modules are
    untuned, tuned, and direct if forms can be chosen."""
    target = ["--target", options.target] if options.target else []
    source = ["--op", operator.text, *target]
    modules = {"untuned": folder / "untuned.so"}
    pruner.compile(source, modules["untuned"])

    def tune(name, *more):
        pruner.run("tune", *source, "--n-trials", options.trials, "--work-dir", folder / name, *more)
        modules[name] = folder / f"{name}.so"
        pruner.compile(source, modules[name], folder / name / "records.json")

    start = time.perf_counter()
    tune("tuned")
    seconds = time.perf_counter() - start
    candidate = pruner.run("compile", *source, "--records", folder / "tuned" / "records.json",
                           "--print", "candidate")
    if operator.forms and "--forms" in pruner.run("tune", "--help"):
        tune("direct", "--forms", "direct")
    return modules, seconds, candidate.split(":")[0].strip()


def start_peers(stack, operator, options, folder):
    """Returns the processes of the peers, by name. Code for Haswell is compared only with torch,
    which can also be restricted to AVX2."""
    names, environment = ["onnxruntime", "openvino", "torch"], None
    if options.target:
        names, environment = (["torch"] if "haswell" in options.target else []), AVX2_ENV
    model = folder / "operator.onnx"
    operators.write_onnx(operator, model)
    peers = {}
    for name in [] if options.no_peers else names:
        try:
            peers[name] = operator_peer(name, operator.text, model, options.threads, environment)
            stack.callback(peers[name].close)
        except RuntimeError as error:
            print(f"{operator.text}: no {name}: {error}", file=sys.stderr)
    return peers


def bandwidth_turn(stack, pruner, operator, options, folder):
    """Returns a call that measures the bandwidth in GB/s: the program's probe if it has one, and
    otherwise torch, which reads 512 MiB."""
    if "dram_bandwidth" in pruner.probe(options.threads):
        return lambda: 1e-9 * pruner.probe(options.threads)["dram_bandwidth"]
    reader = operator_peer("bandwidth", operator.text, "-", options.threads)
    stack.callback(reader.close)
    return reader.measure


def compare_operator(pruner, rounds, operator, options, folder):
    """Measures an operator and returns its row of the table. A value that cannot be measured is
    None."""
    try:
        modules, seconds, form = build_modules(pruner, operator, options, folder)
    except RuntimeError as error:
        if "unknown operator" not in str(error):
            raise
        print(f"{operator.text}: not measured, the program does not know it", file=sys.stderr)
        modules, seconds, form = {}, None, None
    with contextlib.ExitStack() as stack:
        peers = start_peers(stack, operator, options, folder)
        turns = {name: (lambda module=module: 1e3 * pruner.median_ms(module, options.threads, BENCH_S))
                 for name, module in modules.items()}
        if "bandwidth" in operator.bars:  # this turn stands next to the turn of our tuned module
            turns["gbs"] = bandwidth_turn(stack, pruner, operator, options, folder)
        turns |= {name: peer.measure for name, peer in peers.items()}
        times, clean, dropped = rounds.run(turns, options.rounds)
    middle = {name: statistics.median(values) for name, values in times.items()}
    best_peer = min(peers, key=middle.get, default=None)
    tuned, direct = middle.get("tuned"), middle.get("direct")
    # The share of the peak is that of the direct form, because Winograd's form has fewer
    # operations.
    gflops = ratio(1e-3 * operator.flops or None, direct or tuned)
    row = {
        "operator": operator.text,
        "threads": options.threads,
        "trials": options.trials,
        "bar": ", ".join(bar_text(*bar) for bar in operator.bars.items()),
        "tune_s": seconds,
        "untuned_us": middle.get("untuned"),
        "tuned_us": tuned,
        "min_us": min(times.get("tuned", []), default=None),
        "max_us": max(times.get("tuned", []), default=None),
        "gflops": gflops,
        "peak_gflops": max(times["peak_gflops"]),
        "percent_of_peak": ratio(gflops, max(times["peak_gflops"]), 100),
        "bandwidth_gbs": middle.get("gbs"),
        # The share is computed within each round: the bandwidth of a shared machine changes by half
        # from minute to minute.
        "percent_of_bandwidth": statistics.median(
            ratio(1e-3 * operator.bytes, us * gbs, 100)
            for us, gbs in zip(times["tuned"], times["gbs"])) if "gbs" in times else None,
        "direct_us": direct,
        "winograd_speedup": ratio(direct, tuned),
        "onnxruntime_us": middle.get("onnxruntime"),
        "openvino_us": middle.get("openvino"),
        "torch_us": middle.get("torch"),
        "best_peer": best_peer,
        "ratio_to_best_peer": ratio(tuned, middle.get(best_peer)),
        "untuned_over_tuned": ratio(middle.get("untuned"), tuned),
        "form": form,
        "rounds": clean,
        "dropped": dropped,
    }
    return {**row, "met": met(operator.bars, row)}


def ratio(a, b, scale=1):
    return None if a is None or b is None else scale * a / b


def bar_text(kind, value):
    return {"peak": f">= {value} % of peak", "bandwidth": f">= {value} % of bandwidth",
            "peer": f"<= {value} x best peer", "winograd": f"winograd >= {value} x direct"}[kind]


def met(bars, row):
    """Returns "yes", or "no: " and the missed bars: a kind of bar, "untuned", or "rounds" for too
    few clean rounds."""
    shares = {"peak": "percent_of_peak", "bandwidth": "percent_of_bandwidth",
              "winograd": "winograd_speedup"}
    missed = [kind for kind, key in shares.items() if kind in bars and (row[key] or 0) < bars[kind]]
    if "peer" in bars and (row["ratio_to_best_peer"] is None or row["ratio_to_best_peer"] > bars["peer"]):
        missed.append("peer")
    if row["untuned_over_tuned"] is None or row["untuned_over_tuned"] > UNTUNED_BAR:
        missed.append("untuned")
    if row["rounds"] < CLEAN_ROUNDS:
        missed.append("rounds")
    return f"no: {', '.join(missed)}" if missed else "yes"


def compare_operators(pruner, options, folder, command):
    chosen = [o for o in operators.OPERATORS if re.search(options.only or "", o.text)]
    if not chosen:
        raise RuntimeError(f"--only: no operator matches {options.only!r}")
    rounds, rows = Rounds(pruner, options.threads), []
    for index, operator in enumerate(chosen):
        place = folder / str(index)
        place.mkdir()
        rows.append(compare_operator(pruner, rounds, operator, options, place))
        shown = [f"{key} {value:.4g}" for key, value in rows[-1].items()
                 if key in ("tuned_us", "percent_of_peak", "ratio_to_best_peer") and value is not None]
        print(f"[{index + 1}/{len(chosen)}] {operator.text}: {', '.join(shown)}; met: {rows[-1]['met']}",
              file=sys.stderr, flush=True)
    cpu = re.search(r"-mcpu=([\w-]+)", options.target or "")
    name = "_".join(["cpu_operators", *([cpu.group(1)] if cpu else [])])
    runtimes.report(name, command, rows, keep=not options.only)
