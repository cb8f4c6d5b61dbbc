"""Compiles the networks of torch_compile.py for a CUDA device, without a device.

    python bench/torch_cuda_graphs.py [NETWORK ...] --program build/release/pruner --arch sm_90

Dynamo and AOTAutograd trace each network on fake tensors of a CUDA device. The graph is written
with random weights and compiled as torch.compile(model.cuda(), backend="pruner") does it. A row has
the number of graphs, the calls, why a call would stay in eager, and the kernels and seconds of the
compilation. A network is right if it is one graph, whole, and compiled.

The script needs torch 2.11 or newer, torchvision, transformers and CUDA's NVRTC.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode

from pruner.torch import devices
from pruner.torch.importer import decompositions, resizes_of_eager, unsupported, write_onnx
from torch_compile import NETWORKS, network


def fake_on_cuda(model, inputs, mode):
    """Puts fake tensors of a CUDA device in the place of all weights and inputs. Returns the inputs,
    and the weights by their fake tensors."""

    def fake(x):
        with mode:
            return torch.empty(x.shape, dtype=x.dtype, device="cuda")

    made = {}  # tied weights stay one tensor
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, held in table.items():
                if held is None:
                    continue
                if held not in made:
                    is_parameter = table is module._parameters
                    made[held] = torch.nn.Parameter(fake(held), False) if is_parameter else fake(held)
                table[name] = made[held]
    return [fake(x) for x in inputs], {made_of: held for held, made_of in made.items()}


def traced(model, inputs):
    """Returns the graphs of a model on fake tensors of a CUDA device, and the weight of each
    placeholder of the first graph; None stands for an input."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    graphs, of_graphs = [], []
    inputs, weights = fake_on_cuda(model.eval(), inputs, mode)

    def keep(gm, given):
        graphs.append(gm)
        return gm.forward

    def backend(gm, given):
        # The graphs of AOTAutograd have Dynamo's inputs, in their order.
        of_graphs.append([weights.get(value) for value in given])
        return compiler(gm, given)

    compiler = aot_autograd(fw_compiler=keep, inference_compiler=keep, decompositions=decompositions())
    torch._dynamo.reset()
    with mode, torch.no_grad(), resizes_of_eager():
        torch.compile(model, backend=backend)(*inputs)
    return graphs, of_graphs[0]


def network_graphs(name, dtype):
    """Returns the graphs of a network, and the weights of the first graph by name."""
    model, inputs = network(name)
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    graphs, weights = traced(model.to(dtype), inputs)
    places = graphs[0].graph.find_nodes(op="placeholder")
    return graphs, {node.name: weight for node, weight in zip(places, weights) if weight is not None}


def compile_graph(gm, weights, arch, program):
    with tempfile.TemporaryDirectory() as scratch:
        onnx, module = os.path.join(scratch, "graph.onnx"), os.path.join(scratch, "graph.so")
        write_onnx(gm.graph, onnx, weights)
        command = [program, "compile", onnx, "--target", f"cuda --arch={arch}", "-o", module, "--json"]
        environment = {**os.environ, **devices.compiler_environment(torch.device("cuda", 0))}
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        seconds = time.perf_counter() - start
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1], seconds
    return json.loads(done.stdout)["kernels"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--program", required=True)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--dtype", default="float32", help="the type of the weights: float32, float16, bfloat16")
    arguments = parser.parse_args()
    wrong = 0
    print("network", "graphs", "calls", "in_eager", "kernels", "compile_s", sep="\t")
    for name in arguments.networks or NETWORKS:
        graphs, weights = network_graphs(name, getattr(torch, arguments.dtype))
        reasons = [why for gm in graphs for why in {**unsupported(gm.graph), **devices.elsewhere(gm.graph)}.values()]
        calls = sum(node.op == "call_function" for gm in graphs for node in gm.graph.nodes)
        kernels, seconds = compile_graph(graphs[0], weights, arguments.arch, arguments.program)
        wrong += len(graphs) != 1 or bool(reasons) or not isinstance(kernels, int)
        print(name, len(graphs), calls, "; ".join(sorted(set(reasons))) or "-", kernels, f"{seconds:.1f}", sep="\t")
        sys.stdout.flush()
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
