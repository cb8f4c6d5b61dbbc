"""Says on which device a graph runs, and how a module for that device is compiled: for the CPU, or
for one CUDA device."""

import contextlib
import glob
import os
import signal
import sys
import threading
import time
from typing import Callable, Dict, List, Optional, Tuple

import torch
from torch.utils._pytree import tree_leaves

CPU = torch.device("cpu")

_CONVOLUTIONS = ("convolution", "conv1d", "conv2d", "conv3d")
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "attention")


def _tensors(node: torch.fx.Node) -> List[torch.Tensor]:
    return [x for x in tree_leaves(node.meta.get("val")) if isinstance(x, torch.Tensor)]


def graph_device(graph: torch.fx.Graph) -> torch.device:
    """Returns the device of a graph: that of its first tensor on a CUDA device, else the CPU."""
    for node in graph.nodes:
        for tensor in _tensors(node):
            if tensor.device.type == "cuda":
                return tensor.device
    return CPU


def elsewhere(graph: torch.fx.Graph) -> Dict[torch.fx.Node, str]:
    """Returns the calls that read or make a tensor that a module cannot, with the reasons.

    The tensors of a module are dense and lie on the graph's device. A number that the graph makes
    on the CPU, a tensor without dimensions, may be among the values in between.
    """
    device = graph_device(graph)
    (outputs,) = graph.find_nodes(op="output")
    at_the_ends = {*graph.find_nodes(op="placeholder"), *outputs.all_input_nodes}
    reasons = {}
    for node in graph.nodes:
        for near in [node, *node.all_input_nodes] if node.op == "call_function" else []:
            for tensor in _tensors(near):
                is_number = tensor.device == CPU and tensor.dim() == 0 and near not in at_the_ends
                if tensor.device != device and not is_number:
                    reasons[node] = f"{node.target}: on the device {tensor.device}"
                    if device != CPU:
                        reasons[node] += f", other calls are on {device}"
                elif tensor.layout is not torch.strided:
                    reasons[node] = f"{node.target}: of the layout {tensor.layout}"
    return reasons


def _multiplies_tf32(graph: torch.fx.Graph) -> bool:
    """Returns whether torch's flags let all products of a graph round their operands to tf32."""
    calls = {str(node.target).split(".")[1] for node in graph.nodes if str(node.target).startswith("aten.")}
    flags = []
    if any(name in call for call in calls for name in _CONVOLUTIONS):
        flags.append(_allows_tf32(torch.backends.cudnn))
    if any(name in call for call in calls for name in _PRODUCTS):
        flags.append(_allows_tf32(torch.backends.cuda.matmul))
    return bool(flags) and all(flags)


def _allows_tf32(backend) -> bool:
    """Returns torch's flag for a kind of products. torch raises RuntimeError if a program sets its
    older and its newer flags; then the newer one holds."""
    try:
        return backend.allow_tf32
    except RuntimeError:
        newer = backend.conv if hasattr(backend, "conv") else backend
        return newer.fp32_precision == "tf32"


def may_use_tf32(graph: torch.fx.Graph) -> bool:
    """Returns whether eager torch may round an operand of the graph to tf32."""
    on_cuda = graph_device(graph).type == "cuda"
    return on_cuda and (_allows_tf32(torch.backends.cudnn) or _allows_tf32(torch.backends.cuda.matmul))


def target_arguments(graph: torch.fx.Graph) -> List[str]:
    """Returns the arguments of `pruner compile` for the device of a graph; none for the CPU."""
    device = graph_device(graph)
    if device == CPU:
        return []
    major, minor = torch.cuda.get_device_capability(device)
    arguments = ["--target", f"cuda --arch=sm_{major}{minor}"]
    return [*arguments, "--precision", "tf32"] if _multiplies_tf32(graph) and major >= 8 else arguments


def compiler_environment(device: torch.device) -> Dict[str, str]:
    """Returns the variables with which the program finds CUDA's compiler and the device. The
    compiler, NVRTC, is the one that torch brings along, unless LD_LIBRARY_PATH names another."""
    if device == CPU:
        return {}
    folders = [folder for entry in sys.path for folder in glob.glob(os.path.join(entry, "nvidia", "*", "lib"))]
    found = [folder for folder in folders if glob.glob(os.path.join(folder, "libnvrtc.so*"))]
    given = os.environ.get("LD_LIBRARY_PATH")
    paths = [given] if given else []
    environment = {"LD_LIBRARY_PATH": ":".join([*paths, *found])} if found else {}
    visible = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    number = device.index or 0
    environment["CUDA_VISIBLE_DEVICES"] = visible[number] if number < len(visible) else str(number)
    return environment


def memory_pool(device: torch.device) -> Optional[Tuple[Callable[[int], int], Callable[[int], None]]]:
    """Returns the pool of a module's activations: torch's own of a CUDA device, else None."""
    if device == CPU:
        return None

    def allocate(size: int) -> int:
        address = torch.cuda.caching_allocator_alloc(size, device)
        # Work of the current stream may still use the block that torch gives again.
        torch.cuda.current_stream(device).synchronize()
        return address

    return allocate, torch.cuda.caching_allocator_delete


class Pause:
    """Stops the processes of a tuner while calls of the model run on the same GPU.

    The processes go on when the work of the last call has ended and no other call has come for
    `idle_s` seconds.
    """

    def __init__(self, idle_s: float = 0.05):
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._group: Optional[int] = None  # the process group of the tuner
        self._is_stopped = False
        self._last_s = 0.0
        self._has_ended: Callable[[], bool] = lambda: True

    def tuner_began(self, pid: int) -> None:
        with self._lock:
            self._group = pid

    def tuner_ended(self) -> None:
        with self._lock:
            self._group, self._is_stopped = None, False

    @contextlib.contextmanager
    def during_call(self, device: torch.device):
        """Stops the tuner, if there is one, while a call runs in torch's current stream on a device."""
        if self._group is None:
            yield
            return
        self.call_begins()
        try:
            yield
        finally:
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(device))
            self.call_returned(event.query)

    def call_begins(self) -> None:
        with self._lock:
            self._last_s = float("inf")
            if not self._is_stopped and self._signal(signal.SIGSTOP):
                self._is_stopped = True
                threading.Thread(target=self._go_on, name="pruner-pause", daemon=True).start()

    def call_returned(self, has_ended: Callable[[], bool]) -> None:
        """Notes that a call has returned. `has_ended` says whether its work has ended, too."""
        with self._lock:
            self._last_s, self._has_ended = time.monotonic(), has_ended

    def _signal(self, number: int) -> bool:
        try:
            os.killpg(self._group, number)
            return True
        except (OSError, TypeError):  # there is no tuner any more
            return False

    def _work_has_ended(self) -> bool:
        try:
            return self._has_ended()
        except RuntimeError:  # an error of the device; the model's calls say so themselves
            return True

    def _go_on(self) -> None:
        while True:
            time.sleep(self._idle_s / 2)
            with self._lock:
                if not self._is_stopped:
                    return
                if time.monotonic() - self._last_s >= self._idle_s and self._work_has_ended():
                    self._signal(signal.SIGCONT)
                    self._is_stopped = False
                    return
