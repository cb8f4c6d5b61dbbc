"""Compares torch.compile with Pruner (0 trials) with eager and Inductor, in turns.

    python bench/torch_compile.py [NETWORK ...] --program build/release/pruner -o results.tsv

The networks are those of torchvision, and HuggingFace's BERT, GPT-2 and a Llama-shaped network. All
have random weights and batch 1, and run on as many threads as torch takes, each in a process of its
own. The script needs torch 2.11 or newer, torchvision and transformers.

Each network has a row with these numbers:

- the median milliseconds of each way, and the ratios to Inductor
- the largest difference from eager, in parts of the largest output
- the seconds until the first result
- guards_us: the microseconds that torch's guards and wrappers cost a call, with any backend
- call_us: the microseconds that the backend costs a call, over the module's own time
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

NETWORKS = (
    "alexnet vgg11 vgg16 squeezenet1_1 resnet18 resnet50 resnext50_32x4d wide_resnet50_2 densenet121 googlenet"
    " inception_v3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small mnasnet1_0 shufflenet_v2_x1_0"
    " efficientnet_b0 efficientnet_v2_s regnet_y_400mf regnet_x_400mf convnext_tiny vit_b_16 swin_t swin_v2_t"
    " maxvit_t bert_base gpt2 llama"
).split()
COLUMNS = (
    "network eager_ms inductor_ms max_autotune_ms pruner_ms over_inductor over_max_autotune error first_s"
    " guards_us call_us"
).split()


def network(name):
    """Returns a model and its inputs."""
    import torch

    ids = torch.randint(0, 1000, (1, 128), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    if name in ("bert_base", "gpt2", "llama"):
        import transformers as t

        if name == "bert_base":
            return t.BertModel(t.BertConfig()), (ids,)
        if name == "gpt2":
            return t.GPT2LMHeadModel(t.GPT2Config(use_cache=False)), (ids,)
        shape = {
            "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
            "num_attention_heads": 9, "num_key_value_heads": 3, "use_cache": False,
        }  # fmt: skip
        return t.LlamaForCausalLM(t.LlamaConfig(**shape)), (ids,)
    import torchvision

    extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    size = 299 if name == "inception_v3" else 224
    return getattr(torchvision.models, name)(weights=None, **extra), (torch.randn(1, 3, size, size),)


def first_tensor(result):
    import torch

    if isinstance(result, torch.Tensor):
        return result
    return first_tensor(next(iter(result.values() if hasattr(result, "values") else result)))


def overheads(graphs, call, inputs):
    """Returns the microseconds a call of torch's wrappers, and of the backend. A model of several
    graphs or inputs gives NaN."""
    from pruner.torch.runtime import CompiledGraph

    if len(graphs) != 1 or len(inputs) != 1:
        return float("nan"), float("nan")
    instance = graphs[0].take()
    graphs[0].give_back(instance)  # the next call takes it again
    inner, alone, whole = [], [], []
    before, run = CompiledGraph.__call__, instance.run_pointers

    def timed(function, into):
        def call(*args):
            start = time.perf_counter()
            result = function(*args)
            into.append(time.perf_counter() - start)
            return result

        return call

    CompiledGraph.__call__ = timed(before, inner)
    instance.run_pointers = timed(run, alone)
    for _ in range(200):
        start = time.perf_counter()
        call(*inputs)
        whole.append(time.perf_counter() - start)
    CompiledGraph.__call__ = before
    median = statistics.median
    guards = median(w - i for w, i in zip(whole, inner))
    return guards * 1e6, median(i - a for i, a in zip(inner, alone)) * 1e6


def measure(name, rounds, peers):
    import torch

    import pruner.torch
    from pruner.torch.runtime import CompiledGraph

    model, inputs = network(name)
    model = model.eval()
    graphs = []
    before = CompiledGraph._bind
    CompiledGraph._bind = lambda self, weights: graphs.append(before(self, weights)) or graphs[-1]
    with torch.inference_mode():
        expected = first_tensor(model(*inputs))
        calls = {"eager": model}
        start = time.perf_counter()
        calls["pruner"] = torch.compile(model, backend=pruner.torch.backend)
        found = first_tensor(calls["pruner"](*inputs))
        first_s = time.perf_counter() - start
        error = ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-9)).item()
        for peer, mode in peers.items():
            calls[peer] = torch.compile(model, mode=mode)
            first_tensor(calls[peer](*inputs))
        times = {each: [] for each in calls}
        for _ in range(rounds):
            for each, call in calls.items():
                end = time.perf_counter() + 0.5
                while True:
                    start = time.perf_counter()
                    call(*inputs)
                    times[each].append(time.perf_counter() - start)
                    if time.perf_counter() > end:
                        break
        ms = {each: statistics.median(taken) * 1e3 for each, taken in times.items()}
        guards_us, call_us = overheads(graphs, calls["pruner"], inputs)
    default, tuned = ms.get("inductor", float("nan")), ms.get("max_autotune", float("nan"))
    row = [name, ms["eager"], default, tuned, ms["pruner"], ms["pruner"] / default, ms["pruner"] / tuned]
    print("\t".join(f"{x:.4g}" if isinstance(x, float) else x for x in row + [error, first_s, guards_us, call_us]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--program", default="build/release/pruner")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-max-autotune", action="store_true")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--out-file")
    options = parser.parse_args()
    os.environ["PRUNER"] = os.path.abspath(options.program)
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
    if options.in_process:
        peers = {"inductor": None}
        if not options.no_max_autotune:
            peers["max_autotune"] = "max-autotune-no-cudagraphs"
        return measure(options.networks[0], options.rounds, peers)
    rows = ["\t".join(COLUMNS)]
    print(rows[0])
    for name in options.networks:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "PRUNER_TORCH_CACHE": cache}
            command = [sys.executable, __file__, name, "--in-process", "--program", options.program]
            command += ["--rounds", str(options.rounds)]
            command += ["--no-max-autotune"] if options.no_max_autotune else []
            run = subprocess.run(command, env=environment, capture_output=True, text=True)
        said = run.stdout.strip().splitlines()
        rows.append(said[-1] if run.returncode == 0 and said else f"{name}\tfailed: {run.stderr[-300:]!r}")
        print(rows[-1], flush=True)
        if options.out_file:
            with open(options.out_file, "w", encoding="utf-8") as file:
                file.write("\n".join(rows) + "\n")
    return None


if __name__ == "__main__":
    main()
