"""torch.compile(model.cuda(), backend="pruner") without a GPU: graphs are traced on torch's fake
tensors of a CUDA device, and modules run on the fake driver (tests/fakes), whose folder is in
LD_LIBRARY_PATH. Needs torch 2.11 or newer; PRUNER says where the program is."""

import ctypes
import gc
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from recent_torch import torch  # first: it finds the package, too
from torch import nn

import pruner.torch
from pruner.torch import devices, runtime
from pruner.torch.importer import unsupported

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))
import torch_cuda_graphs

LOG = logging.getLogger("pruner.torch")
driver = ctypes.CDLL("libcuda.so.1")
CUDA = torch.device("cuda", 0)


def check(status):
    if status:
        raise RuntimeError(f"the fake driver's status is {status}")


class OnCuda:
    """Stands for a torch tensor on the fake device, with what the backend asks of one."""

    layout, device, is_cpu, is_cuda = torch.strided, CUDA, False, True

    def __init__(self, tensor):
        self.like = tensor.contiguous()
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self.address = ctypes.c_uint64()
        check(driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(max(self.like.nbytes, 1))))
        self._copy(driver.cuMemcpyHtoDAsync_v2, self.address, ctypes.c_void_p(self.like.data_ptr()))

    def _copy(self, call, to, source):
        check(call(to, source, ctypes.c_size_t(self.like.nbytes), None))
        check(driver.cuStreamSynchronize(None))

    def __del__(self):
        driver.cuMemFree_v2(self.address)

    def is_contiguous(self):
        return True

    def resolve_neg(self):
        return self

    def data_ptr(self):
        return self.address.value

    def read(self):
        found = torch.empty_like(self.like)
        self._copy(driver.cuMemcpyDtoHAsync_v2, ctypes.c_void_p(found.data_ptr()), self.address)
        return found


def empty(shape, dtype, device):
    assert device == CUDA
    return OnCuda(torch.zeros(shape, dtype=dtype))


def traced(model, *inputs):
    """Returns the graph of a model on fake tensors of a CUDA device, and its weights in the order of
    the placeholders; None stands for an input."""
    graphs, weights = torch_cuda_graphs.traced(model, inputs)
    assert len(graphs) == 1
    return graphs[0], weights


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.all, self.last = nn.Linear(32, 96), nn.Linear(32, 8)

    def forward(self, ids, x):
        q, k, v = (each.reshape(2, 6, 4, 8).transpose(1, 2) for each in self.all(x).split(32, -1))
        places = torch.arange(6, device=x.device, dtype=x.dtype)
        y = nn.functional.scaled_dot_product_attention(q, k, v + places[:, None], is_causal=True)
        return self.last(y.transpose(1, 2).reshape(2, 6, 32))[:, ids]


class Fused(nn.Module):
    """Attention by the operators that torch has on CUDA devices alone, one behind the other."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 1, 8, 8))

    def forward(self, q, k, v):
        x, rest = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True, scale=0.5)[:2]
        x = torch.ops.aten._scaled_dot_product_efficient_attention(x, k, v, self.bias, False)[0]
        return torch.ops.aten._scaled_dot_product_cudnn_attention(x, k, v, None, False, 0.0, True)[0].reshape(-1)


class OnTheFakeDevice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.context = ctypes.c_void_p()
        check(driver.cuInit(0))
        check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(cls.context), 0))
        check(driver.cuCtxPushCurrent_v2(cls.context))
        cls.stream = ctypes.c_void_p()
        check(driver.cuStreamCreate(ctypes.byref(cls.stream), 1))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        gc.collect()
        check(driver.cuStreamDestroy_v2(cls.stream))
        check(driver.cuCtxPopCurrent_v2(ctypes.byref(cls.context)))
        check(driver.cuDevicePrimaryCtxRelease_v2(0))
        violations = driver.fake_cuda_restart()
        assert violations == 0, f"{violations} violations, which standard error has"

    def setUp(self):
        self.pool, self.captures = {}, False
        stream = mock.Mock(cuda_stream=self.stream.value)
        stream.synchronize = lambda: check(driver.cuStreamSynchronize(self.stream))
        for name, value in {
            "torch.cuda.get_device_capability": lambda device: (8, 0),
            "torch.cuda.current_stream": lambda device: stream,
            "torch.cuda.is_current_stream_capturing": lambda: self.captures,
            "torch.cuda.caching_allocator_alloc": self._allocate,
            "torch.cuda.caching_allocator_delete": lambda address: self.pool.pop(address),
        }.items():
            patch = mock.patch(name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def _allocate(self, size, device):
        self.assertEqual(device, CUDA)
        made = OnCuda(torch.zeros(size, dtype=torch.uint8))
        self.pool[made.data_ptr()] = made
        return made.data_ptr()

    def _compiled(self, gm, held, **options):
        static = [i for i, weight in enumerate(held) if weight is not None]
        chosen = runtime.Options(cache_dir=self.folder.name, verify=False, fallback=False, **options)
        return runtime.CompiledGraph(gm, static, chosen)

    def test_runs_on_the_tensors_of_the_device(self):
        model = Attention().eval()
        ids, x = torch.tensor([5, 0, 3]), torch.randn(2, 6, 32)
        wanted = model(ids, x).detach()
        gm, weights = traced(model, ids, x)
        self.assertEqual(devices.graph_device(gm.graph), CUDA)
        self.assertEqual({**unsupported(gm.graph), **devices.elsewhere(gm.graph)}, {})
        types = [node.meta["val"].dtype for node in gm.graph.find_nodes(op="placeholder")]
        for kept in ("constants", "inputs"):
            call = self._compiled(gm, weights, weights=kept)
            # The module reads no weights that are its constants.
            given = [weight if kept == "constants" or weight is None else OnCuda(weight) for weight in weights]
            for i, dtype in enumerate(types):
                if given[i] is None:
                    given[i] = OnCuda(ids if dtype == torch.int64 else x)
            with mock.patch.object(runtime.torch, "empty", empty):
                for _ in range(3):
                    with self.assertNoLogs(LOG, logging.WARNING):
                        (found,) = call(*given)
                    check(driver.cuStreamSynchronize(self.stream))
                    torch.testing.assert_close(found.read(), wanted, rtol=1e-4, atol=1e-4)
            self.assertEqual(len(self.pool), 1)  # the activations
            self.assertNotEqual(os.path.basename(os.path.dirname(call._records())), "tuned")  # a CPU's folder
            del call, found, given
            gc.collect()
            self.assertEqual(len(self.pool), 0)

    def test_takes_the_attention_of_cuda(self):
        q, k, v = (torch.randn(2, 3, 8, 16) for _ in range(3))
        attention = nn.functional.scaled_dot_product_attention
        wanted = attention(q, k, v, is_causal=True, scale=0.5)
        wanted = attention(attention(wanted, k, v), k, v, is_causal=True).reshape(-1)
        gm, weights = traced(Fused().eval(), q, k, v)
        self.assertEqual({**unsupported(gm.graph), **devices.elsewhere(gm.graph)}, {})
        call = self._compiled(gm, weights)
        left = iter([q, k, v])
        given = [OnCuda(next(left)) if weight is None else weight for weight in weights]
        with mock.patch.object(runtime.torch, "empty", empty):
            (found,) = call(*given)
        check(driver.cuStreamSynchronize(self.stream))
        torch.testing.assert_close(found.read(), wanted, rtol=1e-4, atol=1e-4)

    def test_a_graph_of_torch_keeps_its_instance(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
        x = torch.randn(2, 8)
        wanted = model(x).detach()
        gm, weights = traced(model, x)
        call = self._compiled(gm, weights, weights="inputs")
        given = [OnCuda(x if weight is None else weight) for weight in weights]
        before = len(runtime._CAPTURED)
        with mock.patch.object(runtime.torch, "empty", empty):
            call(*given)
            self.captures = True  # the fake's stream takes the kernels; torch would capture them
            call(*given)
            self.captures = False
            self.assertEqual(len(runtime._CAPTURED), before + 1)
            (found,) = call(*given)  # another instance runs
        check(driver.cuStreamSynchronize(self.stream))
        torch.testing.assert_close(found.read(), wanted, rtol=1e-4, atol=1e-4)
        self.assertEqual(len(self.pool), 2)
        runtime._CAPTURED.clear()

    def test_names_what_lies_elsewhere(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
        gm, weights = traced(model, torch.randn(2, 8))
        call = self._compiled(gm, weights, weights="inputs")
        tensors = [torch.randn(2, 8) if weight is None else OnCuda(weight) for weight in weights]
        with mock.patch.object(runtime.torch, "empty", empty), self.assertRaisesRegex(
            ValueError, "the input .* is on the device cpu; this graph is compiled for dense tensors on cuda:0"
        ):
            call(*tensors)

    def test_a_tuner_stands_still_while_calls_run(self):
        def state(pid):
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0]

        def becomes(wanted):
            end = time.monotonic() + 10
            while (state(tuner.pid) == "T") != wanted and time.monotonic() < end:
                time.sleep(0.005)
            return (state(tuner.pid) == "T") == wanted

        tuner = subprocess.Popen(["sleep", "60"], start_new_session=True)
        self.addCleanup(tuner.wait)
        self.addCleanup(tuner.kill)
        ended = threading.Event()
        pause = devices.Pause(idle_s=0.01)
        pause.call_begins()  # there is no tuner yet
        pause.tuner_began(tuner.pid)
        for _ in range(2):
            ended.clear()
            pause.call_begins()
            self.assertTrue(becomes(True))
            pause.call_returned(ended.is_set)
            time.sleep(0.05)
            self.assertEqual(state(tuner.pid), "T")  # the work of the call goes on
            ended.set()
            self.assertTrue(becomes(False))
        pause.tuner_ended()
        pause.call_begins()
        self.assertNotEqual(state(tuner.pid), "T")

    def test_takes_tf32_as_torchs_flags_say(self):
        gm, _ = traced(nn.Linear(8, 8).eval(), torch.randn(2, 8))
        self.assertEqual(devices.target_arguments(gm.graph), ["--target", "cuda --arch=sm_80"])
        with mock.patch.object(devices, "_multiplies_tf32", lambda graph: True):
            self.assertIn("tf32", devices.target_arguments(gm.graph))
        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("high")
            self.assertIn("tf32", devices.target_arguments(gm.graph))
        finally:
            torch.set_float32_matmul_precision(before)


if __name__ == "__main__":
    unittest.main()
