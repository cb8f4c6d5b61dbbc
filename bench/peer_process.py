"""Runs peers, each in a process of its own that measures when asked and is stopped in between.

A thread pool may spin while it waits. A process that is not stopped would then take cores from the
runtime that is measured next.

The time of a peer is the time of the operator itself. If there are two ways to take the time, the
smaller time counts:

- ONNX Runtime and OpenVINO: the operator's nodes in the runtime's own profile, or the whole call.
  The profile is taken without reorders of inputs and outputs, which a network has only at its
  borders.
- ONNX Runtime profiles each run; the mean of the middle half of the runs counts.
- OpenVINO gives only means; the median over short stretches counts, without the first calls.
- Both runtimes cut times to whole microseconds, ONNX Runtime each run, OpenVINO each run and the
  mean. 0.5 us is added back for each cut.
- torch: the quickest of several eager calls, with images in both memory formats and with weights
  that oneDNN packs if it can. The calls run in a TorchScript loop, which costs less than a
  microsecond a call.

The program is called as peer_process.py PEER OPERATOR MODEL.onnx THREADS. Each line "measure" on
standard input gives a line with a JSON number of microseconds on standard output. network_peers.py
does the same for whole networks.
"""
import collections
import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import operators

LOOK_S = 0.25  # seconds of each look in each way to take the time
STRETCHES = 5  # stretches of OpenVINO's profile, which share LOOK_S
# The environment that restricts a peer to AVX2. Only torch's libraries follow it.
AVX2_ENV = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


class PeerProcess:
    """A program that answers lines, and is stopped unless it measures. `ready` is its first
    answer."""

    def __init__(self, *command, environment=None):
        # These settings keep outputs in the heap. Fresh pages for each call would add time that is
        # not the operator's.
        heap = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, env={**os.environ, **heap, **(environment or {})})
        try:
            self.ready = self._answer()
        except RuntimeError:
            self.close()
            raise
        self.process.send_signal(signal.SIGSTOP)

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            words = self.errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(" ".join(words) or "ended without an answer")
        return json.loads(line)

    def measure(self, line="measure"):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended; _answer() says why
        answer = self._answer()
        self.process.send_signal(signal.SIGSTOP)
        return answer

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.errors.close()


def operator_peer(peer, text, model, threads, environment=None):
    """Starts the process of a peer for an operator."""
    return PeerProcess(__file__, peer, text, model, threads, environment=environment)


def begin_answering():
    """Prepares a program that is a PeerProcess; the program calls this function first."""
    # PR_SET_PDEATHSIG: a stopped process would outlive its parent.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    global answers
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries may print on standard output


def answer_each_line(ready, look):
    """Answers a PeerProcess: first with `ready`, then with `look(line)` for each line of input."""
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(look(line.rstrip("\n"))), file=answers, flush=True)


def call_times_us(call, seconds=LOOK_S, least=10):
    times, start = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - before))
    return times


def median_ms(call, seconds=LOOK_S):
    return 1e-3 * statistics.median(call_times_us(call, seconds))


def mean_of_middle_half(values):
    values = sorted(values)
    return statistics.fmean(values[len(values) // 4:max(3 * len(values) // 4, len(values) // 4 + 1)])


def onnxruntime_times(model, operator, threads):
    import onnxruntime

    def prepare(profile):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        if profile:
            options.enable_profiling = True
            options.profile_file_prefix = f"{model}.profile"
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, array in operators.arrays(operator.inputs).items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for output in session.get_outputs():
            binding.bind_ortvalue_output(output.name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                output.shape, np.float32))
        return session, lambda: session.run_with_iobinding(binding)

    def profiled_us():
        session, call = prepare(profile=True)
        call_times_us(call)
        path = pathlib.Path(session.end_profiling())
        nodes = collections.defaultdict(list)
        for event in json.loads(path.read_text()):
            if event["name"].endswith("_kernel_time"):
                if event["args"]["op_name"] not in ("ReorderInput", "ReorderOutput", "Transpose"):
                    nodes[event["name"]].append(event["dur"])
        path.unlink()
        return sum(mean_of_middle_half(times) + 0.5 for times in nodes.values())

    _, whole = prepare(profile=False)
    return [profiled_us, lambda: statistics.median(call_times_us(whole))]


def openvino_times(model, operator, threads):
    import openvino

    core = openvino.Core()

    def prepare(profile):
        compiled = core.compile_model(model, "CPU", {
            "PERF_COUNT": profile, "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        for name, array in operators.arrays(operator.inputs).items():
            request.set_tensor(name, openvino.Tensor(array))
        return request

    def node_means_us(request):
        return {node.node_name: 1e6 * node.real_time.total_seconds()
                for node in request.get_profiling_info()
                if node.status == openvino.ProfilingInfo.Status.EXECUTED
                and node.node_type not in ("Reorder", "Parameter", "Result", "Constant")}

    def stretch_us():
        request, first = prepare(profile=True), 5
        for _ in range(first):
            request.infer()
        before = node_means_us(request)
        runs = first + len(call_times_us(request.infer, LOOK_S / STRETCHES))
        after = node_means_us(request)
        return sum((after[name] * runs - before.get(name, 0.0) * first) / (runs - first) + 1.0
                   for name in after)

    whole = prepare(profile=False)
    return [lambda: statistics.median(stretch_us() for _ in range(STRETCHES)),
            lambda: statistics.median(call_times_us(whole.infer))]


def torch_loop_us(torch, expression, values):
    """Returns a function that times an expression in a TorchScript loop, in microseconds a call.

    The input comes from a list, and the result goes to the list. Otherwise the loop's optimizer
    would leave out all calls but one.
    """
    arguments = "".join(f", {name}: Tensor" for name in values if name != "x")
    unit = torch.jit.CompilationUnit(
        f"def loop(xs: List[Tensor]{arguments}, n: int):\n"
        "    for i in range(n):\n"
        "        x = xs[i % 2]\n"
        f"        xs[2 + i % 2] = {expression}\n")
    xs, rest = [values["x"]] * 4, [value for name, value in values.items() if name != "x"]

    def look():
        unit.loop(xs, *rest, 3)
        start = time.perf_counter()
        unit.loop(xs, *rest, 3)
        n = max(1, int(0.02 / (time.perf_counter() - start) * 3))  # a fiftieth of a second
        return statistics.median(call_times_us(lambda: unit.loop(xs, *rest, n), least=5)) / n
    return look


def torch_times(model, operator, threads):
    import torch
    from torch import Tensor  # noqa: F401, for the scripts
    from typing import List  # noqa: F401

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    plain = {name: torch.from_numpy(array) for name, array in
             {**operators.arrays(operator.inputs), **operators.arrays(operator.weights, 1)}.items()}
    values = [plain]
    if len(operator.output) == 4:
        values.append({name: value.contiguous(memory_format=torch.channels_last) if value.dim() == 4
                       else value for name, value in plain.items()})
    if operator.packed:
        packed = eval(operator.packed, {"torch": torch, **plain})
        values = [{**given, "packed": packed} for given in values]
    return [torch_loop_us(torch, expression, given) for expression in operator.torch for given in values]


def read_bandwidth_gbs(threads):
    """Returns a function that reads 512 MiB in several ways and returns the quickest way's GB/s."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    x = torch.ones(2**27)
    reads = [lambda: torch.sum(x), lambda: torch.dot(x, x), lambda: torch.linalg.vector_norm(x),
             lambda: torch.amax(x)]
    return lambda: max(4e-3 * x.numel() / min(call_times_us(read, 0.1, least=3)) for read in reads)


def quickest(peer, text, model, threads):
    """Returns a function that times a peer in its quick ways. A way that is far from the quickest
    in the first looks is left out."""
    operator = next(o for o in operators.OPERATORS if o.text == text)
    ways = {"onnxruntime": onnxruntime_times, "openvino": openvino_times, "torch": torch_times}
    looks = ways[peer](model, operator, threads)
    first = [min(look() for _ in range(3)) for look in looks]
    kept = [look for look, us in zip(looks, first) if us < 1.5 * min(first)]
    return lambda: min(look() for look in kept)


def main():
    peer, text, model, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    begin_answering()
    look = read_bandwidth_gbs(threads) if peer == "bandwidth" else quickest(peer, text, model, threads)
    answer_each_line("ready", lambda _: look())


if __name__ == "__main__":
    main()
