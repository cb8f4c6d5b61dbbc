"""Times a network of many shapes in another runtime, in a process of its own
(peer_process.PeerProcess).

One session or compiled model of the file, with open dims, serves all shapes in any order. ONNX
Runtime runs with all optimizations and the given number of threads, or without any options.
OpenVINO runs for latency with one stream, in float32 or in the precision that OpenVINO chooses.

The program is called as dynamic_peers.py RUNTIME MODEL.onnx THREADS. The first answer is
{"precision"}. An input line is the folder of a shape, with the inputs in inputs.npz; the answer is
milliseconds. At the first line of a folder, the program writes the outputs to RUNTIME.npz there.
"""
import pathlib
import sys

import numpy as np

import network_peers
import peer_process
import runtimes

LOOK_S = 0.5
WARM_UP = 3  # untimed calls after a change of the shape


def onnxruntime_session(model, threads):
    session = runtimes.OnnxRuntime(model, threads).session
    return lambda feeds: network_peers.bind_onnxruntime(session, feeds), "f32"


def onnxruntime_as_it_is(model, _):
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return lambda feeds: network_peers.bind_onnxruntime(session, feeds), "f32"


def openvino_request(model, threads, more):
    import openvino

    compiled = openvino.Core().compile_model(
        model, "CPU", {**network_peers.OPENVINO, "INFERENCE_NUM_THREADS": threads, **more})
    request = compiled.create_infer_request()
    precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
    return lambda feeds: network_peers.bind_openvino(request, feeds), precision


# Each function makes a pair: a function that binds inputs, and the name of the precision. Binding
# inputs gives two functions: one runs the network, the other returns the outputs.
RUNTIMES = {
    "onnxruntime": onnxruntime_session,
    "onnxruntime_default": onnxruntime_as_it_is,
    "openvino": lambda model, threads: openvino_request(model, threads, {"INFERENCE_PRECISION_HINT": "f32"}),
    "openvino_default": lambda model, threads: openvino_request(model, threads, {}),
}


class Looks:
    """Answers input lines. Inputs stay bound while lines name the same shape."""

    def __init__(self, runtime, bind):
        self.runtime, self.bind, self.folder, self.call = runtime, bind, None, None

    def __call__(self, line):
        folder = pathlib.Path(line)
        if folder != self.folder:
            with np.load(folder / "inputs.npz") as arrays:
                self.call, outputs = self.bind(dict(arrays))
            self.folder, found = folder, folder / f"{self.runtime}.npz"
            if not found.exists():
                np.savez(found, **outputs())
            for _ in range(WARM_UP):
                self.call()
        return peer_process.median_ms(self.call, LOOK_S)


def main():
    peer_process.begin_answering()
    runtime, model, threads = sys.argv[1:]
    bind, precision = RUNTIMES[runtime](model, int(threads))
    peer_process.answer_each_line({"precision": precision}, Looks(runtime, bind))


if __name__ == "__main__":
    main()
