"""Compares torch.compile(..., backend="pruner") with eager torch and Inductor on a GPU, in turns.

    python bench/gpu_torch_backend.py [--seconds S] [NETWORK ...]

The networks are gpu_peers.py's ResNet-50 and BERT-base, in float16 and at batch 1, which need torch
alone. Inductor runs with mode="reduce-overhead", which replays CUDA graphs; max-autotune takes
minutes. A module of Pruner is untuned. PRUNER says where the program is, and the package pruner is on
the path. A line has a network's median milliseconds of each way by the clock of the host, with a
synchronisation after each call, and `call`: the microseconds that a call returns in. The last line,
`value: ...`, has the ratios to Inductor.
"""

import argparse
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpu_peers

import pruner.torch


def time_once(call, inputs):
    torch.cuda.synchronize()
    start = time.perf_counter()
    call(*inputs)
    returned = time.perf_counter()
    torch.cuda.synchronize()
    return time.perf_counter() - start, returned - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--seconds", type=float, default=80)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    ratios = []
    for name in arguments.networks or ["resnet_50", "bert_base"]:
        model, inputs, _ = gpu_peers.network(name, "f16", "cuda")
        model = model.to("cuda", torch.float16).eval()
        ways = {
            "eager": model,
            "inductor": torch.compile(model, mode="reduce-overhead"),
            "pruner": torch.compile(model, backend="pruner", options={"fallback": False}),
        }
        times = {way: [] for way in ways}
        with torch.inference_mode():
            for way, call in ways.items():
                start = time.perf_counter()
                for _ in range(5):
                    time_once(call, inputs)
                print(f"{name} {way}: ready after {time.perf_counter() - start:.1f} s", flush=True)
            order = list(ways)
            for _ in range(200):
                order.append(order.pop(0))  # each way begins as often
                for way in order:
                    times[way].append(time_once(ways[way], inputs))
                if time.monotonic() > end:
                    break
        ms = {way: 1e3 * statistics.median(t for t, _ in each) for way, each in times.items()}
        call_us = 1e6 * statistics.median(t for _, t in times["pruner"])
        print(f"{name}: " + ", ".join(f"{way} {value:.3f} ms" for way, value in ms.items()) + f", call {call_us:.0f} us")
        ratios.append(f"{name} {ms['pruner'] / ms['inductor']:.2f}")
    print("value: over Inductor " + ", ".join(ratios))


if __name__ == "__main__":
    main()
