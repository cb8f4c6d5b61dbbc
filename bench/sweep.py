#!/usr/bin/env python3
"""Compares networks of timm, torchvision and transformers with their best peers, in turns.

  sweep.py timm/resnet18 'timm/convnext_*' torchvision/vit_b_16 transformers/bert
  sweep.py --draw 150                           networks of timm, drawn by --seed
  sweep.py timm/swin_s3_tiny_224 --trials 1000  tuned
  sweep.py timm/resnet18 --peers inductor       beside torch.compile

The networks have random weights, batch 1 and their usual size; texts have 128 tokens. torch exports
each one to a file. ONNX Runtime and OpenVINO (for latency, float32) get this file. Inductor gets
the torch model (max-autotune, frozen weights). Each runtime runs in a process of its own, which is
stopped while others are measured.

Each network has a row:

- ms: the median of Pruner's medians over the rounds
- peer, peer_ms: the fastest peer, and its time
- ratio: the median over the rounds of Pruner's time over the time of the peer that is the fastest
  in that round. low, high: the least and the greatest of these. With five rounds, the median of
  many rounds lies between them with a confidence of 94 %; with three, of 75 %.
- rounds: the rounds that count, on a machine that nobody else used; 0: all were disturbed
- difference: the largest difference from ONNX Runtime, in parts of the largest output
- worst: the kernels that lose the most time. For each: the share of the network's time that all
  kernels of this name take, the part of the peak that the first one reaches (of the FMAs or of the
  memory, whichever is more), their number, and the name.

With --draw, each file of timm gives about as many networks as the others. Only networks of at most
--most-parameters are drawn. The script needs the packages of requirements_sweep.txt. With
--work-dir, a sweep that ended early goes on: the folder keeps the exported files and the rows.
`--export-only` makes the files.
"""
import argparse
import contextlib
import fnmatch
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import network_rounds
import runtimes
import zoo
from clean_rounds import Rounds

PEERS = ["onnxruntime", "openvino", "inductor"]
TOKENS = 128
BENCH_S = 0.7
WORST = 3  # kernels that a row names


def timm_by_file():
    """Returns the names of timm's networks, by the file that defines them."""
    import timm

    files = {}
    for name in timm.list_models():
        if not name.startswith("test_"):
            files.setdefault(timm.models.model_entrypoint(name).__module__, []).append(name)
    return files


def draw(count, seed, most_parameters):
    """Returns the names of `count` networks of timm: one of each file in turn, until there are
    enough."""
    import timm
    import torch

    generator = random.Random(seed)
    files = list(timm_by_file().values())
    for names in files:
        generator.shuffle(names)
    drawn = []
    while len(drawn) < count and any(files):
        for names in files:
            while names and len(drawn) < count:
                name = names.pop()
                try:
                    with torch.device("meta"):
                        model = timm.create_model(name)
                    if sum(p.numel() for p in model.parameters()) > most_parameters:
                        continue
                except Exception:  # some networks cannot be made without memory
                    continue
                drawn.append(f"timm/{name}")
                break
    return sorted(drawn)


def matching(pattern):
    """Returns the names that a pattern such as 'timm/convnext_*' stands for."""
    if not any(letter in pattern for letter in "*?["):
        return [pattern]
    library, _, part = pattern.partition("/")
    if library == "timm":
        import timm
        known = timm.list_models()
    elif library == "torchvision":
        import torchvision.models
        known = torchvision.models.list_models(module=torchvision.models)
    else:
        known = zoo.TRANSFORMERS
    return [f"{library}/{name}" for name in known if fnmatch.fnmatch(name, part)]


def build(name):
    """Returns the model in evaluation mode, and its example input."""
    import torch

    torch.manual_seed(0)
    library, _, model_name = name.partition("/")
    if library == "timm":
        import timm

        model = timm.create_model(model_name, exportable=True).eval()
        return model, torch.randn(1, *model.pretrained_cfg["input_size"])
    if library == "torchvision":
        import torchvision.models as models

        extra = {"aux_logits": False, "init_weights": True} if model_name in (
            "googlenet", "inception_v3") else {}
        size = models.get_model_weights(model_name).DEFAULT.transforms().crop_size[0]
        return models.get_model(model_name, weights=None, **extra).eval(), torch.randn(1, 3, size, size)
    if library != "transformers":
        raise ValueError(f"{name}: the name begins with timm/, torchvision/ or transformers/")
    import transformers

    kind = zoo.TRANSFORMERS[model_name][0]
    config = transformers.AutoConfig.for_model(model_name, use_cache=False)
    maker = transformers.T5EncoderModel if kind == "encoder" else transformers.AutoModel.from_config
    model = maker(config).eval()
    if kind == "image":
        size = config.image_size
        return zoo.OneOutput(model, 0, "pixel_values"), torch.randn(1, 3, size, size)
    if kind == "audio":
        return zoo.OneOutput(model, 0, "input_values"), torch.randn(1, 16000)
    return zoo.OneOutput(model, 0, "input_ids"), torch.randint(3, 400, (1, TOKENS))


def export_apart(name, options, folder):
    """Exports a network in a process of its own, unless its file is there."""
    path = folder / f"{name.replace('/', '_')}.{options.exporter}.onnx"
    if path.is_file():
        return path
    unfinished = folder / "unfinished.onnx"
    command = [sys.executable, __file__, name, "--export-one", unfinished, "--exporter", options.exporter]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"not exported: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    # A large network's weights lie in a file beside it, whose name is in the network.
    if unfinished.with_suffix(".onnx.data").exists():
        import onnx

        onnx.save(onnx.load(unfinished), path)
        unfinished.unlink()
        unfinished.with_suffix(".onnx.data").unlink()
    else:
        unfinished.rename(path)
    return path


def worst_kernels(pruner, module, threads):
    """Returns a text of the kernels that lose the most time beside the FMAs' or the memory's peak."""
    found = pruner.json("bench", "--module", module, "--threads", threads, "--profile",
                        "--min-time", BENCH_S)["kernels"]
    whole = sum(kernel["median_ms"] for kernel in found)

    def peak_share(kernel):
        return min(1, max(kernel.get("peak_percent") or 0, kernel.get("bandwidth_percent") or 0) / 100)

    alike = {}
    for kernel in found:
        alike.setdefault(kernel["name"], []).append(kernel)
    lost = sorted(alike.items(), reverse=True,
                  key=lambda item: sum(k["median_ms"] * (1 - peak_share(k)) for k in item[1]))
    return "; ".join(
        f"{100 * sum(k['median_ms'] for k in kernels) / whole:.0f} % at {100 * peak_share(kernels[0]):.0f} %"
        f" x{len(kernels)} {name}" for name, kernels in lost[:WORST])


def make_module(pruner, model, folder, options):
    module = folder / "module.so"
    if options.trials == 0:
        pruner.run("compile", model, "--threads", options.threads, "-o", module)
        return module
    pruner.run("tune", model, "--n-trials", options.trials, "--threads", options.threads,
               "--work-dir", folder / "run", "-o", module)
    return module


def compare(pruner, rounds, name, options, folder):
    model = export_apart(name, options, pathlib.Path(options.work_dir or folder))
    module = make_module(pruner, model, folder, options)
    feeds = runtimes.OnnxRuntime(model, options.threads).seeded_feeds()
    np.savez(folder / "inputs.npz", **feeds)
    with contextlib.ExitStack() as stack:
        # torch compiles its own model, not the file.
        models = {peer: name if peer == "inductor" else model for peer in options.peers}
        peers = network_rounds.start_peers(stack, name, models, folder, options)
        if not peers:
            raise RuntimeError("no peer runs it")
        turns = {"pruner": lambda: pruner.median_ms(module, options.threads, BENCH_S)}
        turns |= {peer: process.measure for peer, process in peers.items()}
        times, clean, _ = rounds.run(turns, options.rounds)
    middle = {peer: statistics.median(times[peer]) for peer in peers}
    best = min(middle, key=middle.get)
    ratios = [ours / min(times[peer][i] for peer in peers) for i, ours in enumerate(times["pruner"])]
    expected = network_rounds.load(folder / "onnxruntime.npz") if "onnxruntime" in peers else None
    return {
        "network": name,
        "ms": statistics.median(times["pruner"]),
        "peer": best,
        "peer_ms": middle[best],
        "ratio": statistics.median(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "rounds": clean,
        "difference": runtimes.relative_difference(pruner.infer(module, feeds), expected) if expected else None,
        "worst": worst_kernels(pruner, module, options.threads),
    }


class KeptRows:
    """The rows of a sweep, by network. With --work-dir, a file keeps them for the same setting and
    version."""

    def __init__(self, options):
        setting = (runtimes.git_version(), options.exporter, options.trials, options.threads,
                   options.rounds, *options.peers)
        self.path = options.work_dir and pathlib.Path(options.work_dir) / (
            f"rows_{'_'.join(map(str, setting))}.jsonl")
        self.rows = {}
        if self.path and self.path.is_file():
            rows = map(json.loads, self.path.read_text().splitlines())
            self.rows = {row["network"]: row for row in rows}

    def add(self, row):
        self.rows[row["network"]] = row
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps(row) + "\n")


def sweep(names, options):
    pruner = runtimes.Pruner(options.program)
    rounds = Rounds(pruner, options.threads)
    kept = KeptRows(options)
    for name in names:
        if name not in kept.rows:
            with tempfile.TemporaryDirectory() as temporary:
                try:
                    kept.add(compare(pruner, rounds, name, options, pathlib.Path(temporary)))
                except (RuntimeError, OSError) as error:
                    print(f"{name}: {error}", file=sys.stderr, flush=True)
                    continue
        row = kept.rows[name]
        print(f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}) {name}: {row['ms']:.3g} ms,"
              f" {row['peer']} {row['peer_ms']:.3g} ms, difference {row['difference'] or 0:.1e}\n"
              f"    {row['worst']}", flush=True)
    return [kept.rows[name] for name in names if name in kept.rows]


def summary(rows):
    ratios = [row["ratio"] for row in rows]
    worst = max(rows, key=lambda row: row["ratio"])
    return (f"{len(rows)} networks: geometric mean {statistics.geometric_mean(ratios):.3f}, "
            f"ahead in {100 * sum(r < 1 for r in ratios) / len(ratios):.0f} %, "
            f"worst {worst['ratio']:.2f} ({worst['network']})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="LIBRARY/NETWORK, or a pattern in quotes")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="networks of timm that are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-parameters", type=int, default=40_000_000)
    parser.add_argument("--exporter", choices=zoo.EXPORTERS, default=zoo.EXPORTERS[0])
    parser.add_argument("--trials", type=int, default=0, help="for each network; default: 0")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--export-only", action="store_true", help="needs --work-dir")
    parser.add_argument("--work-dir", help="folder of the exported files")
    parser.add_argument("--write", metavar="NAME", help="write the rows to bench/results/NAME.tsv")
    parser.add_argument("--program", default=None, help="default: build/release/pruner")
    parser.add_argument("--export-one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.export_one:
        model, example = build(options.names[0])
        zoo.export_model(model, {"input": example}, options.exporter, options.export_one)
        return
    names = [name for pattern in options.names for name in matching(pattern)]
    if options.draw:
        names += draw(options.draw, options.seed, options.most_parameters)
    if not names:
        parser.error("name networks, or draw some")
    if options.list:
        print("\n".join(names))
        return
    if options.work_dir:
        pathlib.Path(options.work_dir).mkdir(parents=True, exist_ok=True)
    if options.export_only:
        for name in names:
            try:
                print(export_apart(name, options, pathlib.Path(options.work_dir)), flush=True)
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
        return
    rows = sweep(names, options)
    if not rows:
        sys.exit(1)
    command = shlex.join(["bench/sweep.py", *sys.argv[1:]])
    if options.write:
        runtimes.report(options.write, command, rows, notes=[summary(rows)])
    else:
        print(summary(rows))


if __name__ == "__main__":
    main()
