#!/usr/bin/env python3
"""Times operators, ResNets and BERTs in torch on a GPU (or a CPU), in a process that answers
requests.

The process needs only torch, because the networks are written out here. Products of float32 run
without TF32, products of 16 bits as torch has them by default. cuDNN chooses by measuring. Images
are tried in both memory formats. Attention is torch's own function. int8 has the products that
torch has on a GPU.

A time is the median over stretches of calls between two CUDA events. If the calls can be captured,
a stretch is also one CUDA graph of calls: Python's launches then do not limit a kernel of a
microsecond. The smaller of the two times counts. On a CPU whole calls are timed.

The program is called as gpu_peers.py cuda|cpu. A line of standard input is a JSON list [OP or
NETWORK, PRECISION, WAY]. PRECISION is f32, f16, bf16 or int8; WAY is "eager" or "compile"
(torch.compile, max-autotune). The answer is a line {"ms", "low_ms", "high_ms", "prepare_s"} or
{"error"} on standard output. Functions of earlier questions are kept ready.
"""
import copy
import json
import re
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

WARM_UP_S, LOOK_S, STRETCHES = 0.1, 0.3, 11


class Block(nn.Module):
    """A ResNet block: two 3x3 convolutions, or 1x1, 3x3, 1x1 with the stride on the 3x3."""

    def __init__(self, channels, inner, stride, bottleneck):
        super().__init__()
        width = inner * 4 if bottleneck else inner
        shapes = [(1, 1), (3, stride), (1, 1)] if bottleneck else [(3, stride), (3, 1)]
        layers, size = [], channels
        for i, (kernel, step) in enumerate(shapes):
            out = width if i == len(shapes) - 1 else inner
            layers += [nn.Conv2d(size, out, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
            size = out
        self.main = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return functional.relu(self.main(x) + self.shortcut(x))


def resnet(depths, bottleneck):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            block = Block(channels, 64 << stage, 2 if stage > 0 and i == 0 else 1, bottleneck)
            channels = (64 << stage) * (4 if bottleneck else 1)
            layers.append(block)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class Layer(nn.Module):
    """A layer of BERT."""

    def __init__(self, hidden, inner, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.output, self.norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, eps=1e-12)
        self.feed = nn.Sequential(nn.Linear(hidden, inner), nn.GELU(), nn.Linear(inner, hidden))
        self.feed_norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x):
        q, k, v = (part(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.norm(x + self.output(mixed))
        return self.feed_norm(x + self.feed(x))


class Bert(nn.Module):
    """BERT on token numbers. Returns the last layer and the pooled first token, like HuggingFace's
    BertModel."""

    def __init__(self, layers, hidden, inner, heads):
        super().__init__()
        self.words, self.positions, self.types = (nn.Embedding(count, hidden) for count in (WORDS, 512, 2))
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.Sequential(*(Layer(hidden, inner, heads) for _ in range(layers)))
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, ids):
        embedded = self.words(ids) + self.types.weight[0] + self.positions.weight[:ids.shape[1]]
        x = self.layers(self.norm(embedded))
        return x, torch.tanh(self.pooler(x[:, 0]))


WORDS = 30522  # size of BERT's vocabulary
RESNETS = {"resnet_18": ((2, 2, 2, 2), False), "resnet_50": ((3, 4, 6, 3), True)}
BERTS = {"bert_tiny": (6, 512, 2048, 8), "bert_base": (12, 768, 3072, 12)}
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8}


def numbers(shape, precision, device):
    if precision == "int8":
        return torch.randint(-128, 128, shape, dtype=torch.int8, device=device)
    return torch.randn(*shape, device=device).to(TYPES[precision])


def operator(text, precision):
    """Returns (function, shapes of its inputs, whether the inputs are NCHW images) for a text of
    `pruner --op`. Raises ValueError if torch's form of the operator is not written here."""
    name, *words = text.split()
    sizes = [int(word) for word in words if "=" not in word]
    options = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}
    if precision == "int8" and name not in ("matmul", "dense"):
        raise ValueError(f"torch has no int8 {name} on a GPU")
    if name in ("matmul", "dense"):
        m, n, k = sizes
        product = torch._int_mm if precision == "int8" else torch.mm
        if name == "matmul":
            return product, [(m, k), (k, n)], False
        return lambda x, w: product(x, w.t()), [(m, k), (n, k)], False
    if name == "batch_matmul":
        b, m, n, k = sizes
        return torch.bmm, [(b, m, k), (b, k, n)], False
    if name == "attention":
        b, h, m, n, d = sizes
        sharing, causal = options.get("sharing", 1), bool(options.get("causal", 0))
        call = lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=sharing > 1)
        return call, [(b, h, m, d), (b, h // sharing, n, d), (b, h // sharing, n, d)], False
    if name == "softmax":
        return lambda x: torch.softmax(x, -1), [sizes], False
    if name == "layernorm":
        width = sizes[-1:]
        return lambda x, scale, shift: functional.layer_norm(x, width, scale, shift), [sizes, width, width], False
    if name == "conv2d":
        n, out, height, width, channels, kh, kw = sizes
        stride, padding = options.get("stride", 1), options.get("padding", 0)
        shape = (n, channels, (height - 1) * stride + kh - 2 * padding, (width - 1) * stride + kw - 2 * padding)
        return (lambda x, w: functional.conv2d(x, w, stride=stride, padding=padding),
                [shape, (out, channels, kh, kw)], True)
    raise ValueError(f"torch's form of \"{text}\" is not written here")


def network(text, precision, device):
    """Returns (network, its inputs, whether the inputs are images) for a network's name and
    sizes."""
    name, *words = text.split()
    sizes = dict(word.split("=") for word in words)
    if precision == "int8":
        raise ValueError("torch's quantized networks are of CPUs")
    if name in BERTS:
        ids = torch.randint(0, WORDS, (1, int(sizes.get("seq_len", 128))), device=device)
        return Bert(*BERTS[name]), [ids], False
    image = int(sizes.get("image_size", 224))
    return resnet(*RESNETS[name]), [numbers((1, 3, image, image), precision, device)], True


def calls(device, what, precision, way):
    """Returns a call without arguments for each memory format, by the format's name."""
    if what.split()[0] in (*RESNETS, *BERTS):
        function, tensors, images = network(what, precision, device)
        function = function.to(device, TYPES[precision]).eval()
    else:
        function, shapes, images = operator(what, precision)
        tensors = [numbers(shape, precision, device) for shape in shapes]
    layouts = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last} if images else {"": torch.contiguous_format}
    if way == "compile":
        layouts = dict(list(layouts.items())[:1])  # torch.compile chooses formats itself

    def call(layout):
        chosen, arguments = function, tensors
        if images:
            arguments = [tensor.to(memory_format=layout) for tensor in tensors]
            if isinstance(function, nn.Module):
                chosen = copy.deepcopy(function).to(memory_format=layout)
        if way == "compile":
            chosen = torch.compile(chosen, mode="max-autotune")
        return lambda: chosen(*arguments)
    return {name: call(layout) for name, layout in layouts.items()}


class Timer:
    """Times a call in stretches of `reps` calls."""

    def __init__(self, call, device, captured):
        self.call, self.cuda, self.replay = call, device == "cuda", None
        start = time.perf_counter()
        reps = 0
        while reps < 3 or time.perf_counter() - start < WARM_UP_S:
            call()
            if self.cuda:
                torch.cuda.synchronize()
            reps += 1
        each = (time.perf_counter() - start) / reps
        self.reps = max(1, min(200, int(LOOK_S / STRETCHES / each)))
        if captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(self.reps):
                    call()
            self.replay = graph.replay

    def stretch(self):
        for _ in range(1 if self.replay else self.reps):
            (self.replay or self.call)()

    def look_ms(self):
        """Returns the milliseconds of a call in each stretch."""
        if not self.cuda:
            found = []
            for _ in range(STRETCHES):
                start = time.perf_counter()
                self.stretch()
                found.append((time.perf_counter() - start) / self.reps * 1e3)
            return found
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * STRETCHES)]
        self.stretch()
        for i in range(STRETCHES):
            events[2 * i].record()
            self.stretch()
            events[2 * i + 1].record()
        torch.cuda.synchronize()
        return [events[2 * i].elapsed_time(events[2 * i + 1]) / self.reps for i in range(STRETCHES)]


def timers(device, what, precision, way):
    found = {}
    for name, call in calls(device, what, precision, way).items():
        found[name] = Timer(call, device, False)
        # torch.compile with max-autotune already replays CUDA graphs.
        if device == "cuda" and way == "eager":
            try:
                found[f"{name} captured".strip()] = Timer(call, device, True)
            except RuntimeError as problem:
                print(f"{what}: no CUDA graph: {problem}", file=sys.stderr)
    return found


def main():
    device = sys.argv[1]
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries may print on standard output
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    ready = {}
    for line in sys.stdin:
        question = json.loads(line)
        key = json.dumps(question)
        try:
            with torch.inference_mode():
                start = time.perf_counter()
                if key not in ready:
                    ready[key] = timers(device, *question)
                prepare_s = time.perf_counter() - start
                looks = {name: sorted(timer.look_ms()) for name, timer in ready[key].items()}
            best = min(looks, key=lambda name: statistics.median(looks[name]))
            answer = {"ms": statistics.median(looks[best]), "low_ms": looks[best][0], "high_ms": looks[best][-1],
                      "way": best, "prepare_s": prepare_s}
        except Exception as problem:  # out of memory, no C compiler for Triton, ...
            answer = {"error": " ".join(f"{type(problem).__name__}: {problem}".split())[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
