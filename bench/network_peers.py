"""Times a network in a runtime, in a process of its own (peer_process.PeerProcess).

The peers take the same ONNX file, in float32. ONNX Runtime runs with all its optimizations,
OpenVINO for latency with one stream, and torch through onnx2torch and
torch.compile(mode="max-autotune") with frozen weights. The peer "inductor" compiles the torch model
of a network of sweep.py in the same way: its MODEL is the network's name. A time is the median of
whole calls. Inputs and outputs stay in place if the runtime allows it.

With the runtime "pruner" the process reads a module. The process then gives the outputs, the
memory, and the share of a run that is spent in kernels; `pruner bench` times the module.

The program is called as network_peers.py RUNTIME MODEL THREADS INPUTS.npz OUTPUTS.npz. The first
answer is {"prepare_s", "peak_mb"}, with "layers_percent" for pruner; the outputs then lie in
OUTPUTS. Each further answer is milliseconds. `peak_mb` is the peak of the process's memory, less
its memory before the network is loaded.
"""
import operator
import pathlib
import statistics
import sys
import time

import numpy as np

import peer_process
import runtimes

LOOK_S = 1.0


def bind_onnxruntime(session, feeds):
    """Binds inputs in place. Returns two functions: one runs the network, the other returns the
    outputs by name."""
    import onnxruntime

    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    names = [output.name for output in session.get_outputs()]
    for name in names:
        binding.bind_output(name)

    def outputs():
        session.run_with_iobinding(binding)
        return dict(zip(names, binding.copy_outputs_to_cpu()))
    return lambda: session.run_with_iobinding(binding), outputs


def onnxruntime_call(model, threads, feeds):
    import onnxruntime  # noqa: F401, loads the library before main() looks at the memory

    return lambda: bind_onnxruntime(runtimes.OnnxRuntime(model, threads).session, feeds)


OPENVINO = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}


def bind_openvino(request, feeds):
    """Does the same as bind_onnxruntime() for a request of a compiled model."""
    import openvino

    for name, array in feeds.items():
        request.set_tensor(name, openvino.Tensor(array))

    def outputs():
        request.infer()
        return {output.get_any_name(): request.get_tensor(output).data.copy()
                for output in request.model_outputs}
    return request.infer, outputs


def openvino_call(model, threads, feeds):
    import openvino

    core = openvino.Core()

    def prepare():
        compiled = core.compile_model(model, "CPU", {
            **OPENVINO, "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"})
        return bind_openvino(compiled.create_infer_request(), feeds)
    return prepare


def reshape(x, shape):
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def expand(x, shape):
    import torch

    return torch.broadcast_to(x, torch.broadcast_shapes(x.shape, shape))


def cut(x, starts, ends, axes=None, steps=None):
    index = [slice(None)] * x.dim()
    for i, (start, end) in enumerate(zip(starts, ends)):
        axis = axes[i] if axes else i
        index[axis] = slice(start, min(end, x.shape[axis]), steps[i] if steps else 1)
    return x[tuple(index)]


def make_shapes_static(module):
    """Makes the shapes constants. onnx2torch reads shapes from tensors, which torch.compile
    cannot."""
    static = {"OnnxReshape": reshape, "OnnxExpand": expand, "OnnxSlice": cut}

    def numbers(argument):
        return None if argument is None else [
            int(v) for v in operator.attrgetter(argument.target)(module).tolist()]

    for node in list(module.graph.nodes):
        kind = node.op == "call_module" and type(module.get_submodule(node.target)).__name__
        if kind not in static or any(a is not None and a.op != "get_attr" for a in node.args[1:]):
            continue
        with module.graph.inserting_after(node):
            call = module.graph.call_function(
                static[kind], (node.args[0], *map(numbers, node.args[1:])))
        node.replace_all_uses_with(call)
        module.graph.erase_node(node)
    module.recompile()


def set_up_torch(threads):
    import torch
    import torch._inductor.config

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    torch._inductor.config.freezing = True


def torch_call(model, threads, feeds):
    import onnx
    import onnx2torch
    import torch

    set_up_torch(threads)

    def prepare():
        graph = onnx.load(model)
        names = [output.name for output in graph.graph.output]
        module = onnx2torch.convert(graph).eval()
        make_shapes_static(module)
        compiled = torch.compile(module, mode="max-autotune")
        arguments = [torch.from_numpy(array) for array in feeds.values()]

        def outputs():
            found = compiled(*arguments)
            found = [found] if isinstance(found, torch.Tensor) else found
            return dict(zip(names, (tensor.numpy() for tensor in found)))
        return lambda: compiled(*arguments), outputs
    return prepare


def inductor_call(name, threads, feeds):
    import torch

    import sweep

    set_up_torch(threads)

    def prepare():
        model, _ = sweep.build(name)
        compiled = torch.compile(model, mode="max-autotune")
        arguments = [torch.from_numpy(array) for array in feeds.values()]

        def outputs():
            compiled(*arguments)
            return {}  # the weights are drawn anew: the outputs are no file's
        return lambda: compiled(*arguments), outputs
    return prepare


def pruner_call(module, threads, feeds):
    sys.path.insert(0, str(runtimes.ROOT / "python"))
    import pruner

    def prepare():
        loaded = pruner.Module(module, threads)

        def layers_percent():
            start = time.perf_counter()
            kernels = loaded.profile(**feeds)
            return 0.1 * sum(kernel.ms for kernel in kernels) / (time.perf_counter() - start)
        return layers_percent, lambda: loaded.run(feeds)
    return prepare


PEERS = ["onnxruntime", "openvino", "torch"]
CALLS = {"pruner": pruner_call, "onnxruntime": onnxruntime_call, "openvino": openvino_call,
         "torch": torch_call, "inductor": inductor_call}


def main():
    peer_process.begin_answering()
    peer, model, threads, inputs, outputs_file = sys.argv[1:]
    with np.load(inputs) as arrays:
        feeds = dict(arrays)
    prepare = CALLS[peer](model, int(threads), feeds)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets the peak of the memory
    before_mb, start = runtimes.memory_mb("VmRSS"), time.perf_counter()
    call, outputs = prepare()
    np.savez(outputs_file, **outputs())
    ready = {"prepare_s": time.perf_counter() - start, "peak_mb": runtimes.memory_mb("VmHWM") - before_mb}
    for _ in range(3):
        call()
    if peer == "pruner":
        ready["layers_percent"] = statistics.median(call() for _ in range(30))
    peer_process.answer_each_line(
        ready, lambda _: 1e-3 * statistics.median(peer_process.call_times_us(call, LOOK_S)))


if __name__ == "__main__":
    main()
