"""Compares whole networks with their peers: tunes them here, then times all in turns.

The networks are built-in networks or ONNX files. The table has a row for each network and runtime.
`ratio_to_best_peer` is the time over the best peer's time; both are medians over the clean rounds.
"""
import contextlib
import pathlib
import statistics
import sys
import time

import numpy as np

import runtimes
from clean_rounds import Rounds
from network_peers import PEERS
from peer_process import PeerProcess

NETWORKS = ["resnet_50", "mobilenet_v2", "inception_v3", "densenet_121", "bert_base", "vit"]
BENCH_S = 1.0


def is_file(network):
    return network.endswith(".onnx")


def source(network):
    return [network] if is_file(network) else ["--network", network]


def tuned_records(pruner, network, options, folder):
    """Returns the records of --trials trials. Tuning goes on from records in --work-dir."""
    work_dir = pathlib.Path(options.work_dir or folder) / pathlib.Path(network).stem
    pruner.run("tune", *source(network), "--n-trials", options.trials, "--threads", options.threads,
               "--work-dir", work_dir)
    return work_dir / "records.json"


def build_modules(pruner, network, options, folder):
    """Returns the modules, and the seconds that compiling each module took, both by name."""
    ways = {"0 trials": [], "no records": ["--no-shipped-records"]}
    if options.trials > 0:
        ways["tuned"] = ["--records", tuned_records(pruner, network, options, folder)]
    modules, seconds = {}, {}
    for name, more in ways.items():
        modules[name] = folder / f"{name.replace(' ', '_')}.so"
        start = time.perf_counter()
        pruner.run("compile", *source(network), "--threads", options.threads, *more, "-o", modules[name])
        seconds[name] = time.perf_counter() - start
    return modules, seconds


def start(runtime, model, folder, options):
    """Starts the process of a runtime. The process writes its outputs to <runtime>.npz."""
    script = pathlib.Path(__file__).with_name("network_peers.py")
    return PeerProcess(script, runtime, model, options.threads, folder / "inputs.npz",
                       folder / f"{runtime}.npz")


def start_peers(stack, network, models, folder, options):
    """Returns the processes of runtimes by name. `models` has the model that each runtime reads. A
    runtime that cannot run the network is left out, and the reason is printed."""
    peers = {}
    for name, model in models.items():
        try:
            peers[name] = start(name, model, folder, options)
            stack.callback(peers[name].close)
        except RuntimeError as error:
            print(f"{network}: no {name}: {error}", file=sys.stderr)
    return peers


def load(path):
    with np.load(path) as arrays:
        return dict(arrays)


def compare_network(pruner, rounds, network, options, folder):
    model = pathlib.Path(network)
    if not is_file(network):
        model = folder / f"{network}.onnx"
        pruner.run("networks", "export", network, "-o", model)
    modules, compile_s = build_modules(pruner, network, options, folder)
    np.savez(folder / "inputs.npz", **runtimes.OnnxRuntime(model, options.threads).seeded_feeds())
    with contextlib.ExitStack() as stack:
        models = dict.fromkeys(options.peers or PEERS, model)
        peers = start_peers(stack, model.stem, models, folder, options)
        turns = {name: (lambda module=module: pruner.median_ms(module, options.threads, BENCH_S))
                 for name, module in modules.items()}
        turns |= {name: peer.measure for name, peer in peers.items()}
        times, clean, dropped = rounds.run(turns, options.rounds)
        prepared = {name: peer.ready for name, peer in peers.items()}
    middle = {name: statistics.median(times[name]) for name in turns}
    best_ms = min((middle[name] for name in peers), default=None)
    expected = load(folder / "onnxruntime.npz") if "onnxruntime" in peers else None
    rows = []
    for name in turns:
        ours = name in modules
        if ours:
            process = start("pruner", modules[name], folder, options)
            process.close()
            prepared[name] = {**process.ready, "prepare_s": compile_s[name]}
        outputs = load(folder / f"{'pruner' if ours else name}.npz")
        rows.append({
            "network": model.stem,
            "threads": options.threads,
            "runtime": f"pruner, {name}" if ours else name,
            "median_ms": middle[name],
            "min_ms": min(times[name]),
            "max_ms": max(times[name]),
            "ratio_to_best_peer": middle[name] / best_ms if best_ms else None,
            "over_tuned": middle[name] / middle["tuned"] if ours and "tuned" in middle else None,
            "prepare_s": prepared[name]["prepare_s"],
            "peak_mb": prepared[name]["peak_mb"],
            "layers_percent": prepared[name].get("layers_percent"),
            "difference": runtimes.relative_difference(outputs, expected) if expected else None,
            "rounds": clean,
            "dropped": dropped,
        })
    return rows


def compare_networks(pruner, options, folder, command):
    rounds, rows = Rounds(pruner, options.threads), []
    for network in options.networks or NETWORKS:
        place = folder / pathlib.Path(network).stem
        place.mkdir()
        rows += compare_network(pruner, rounds, network, options, place)
        runtimes.report("cpu_networks", command, rows, keep=not options.networks)
