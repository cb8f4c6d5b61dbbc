"""Modules for CUDA on tensors of a device, by the fake driver (tests/fakes): LD_LIBRARY_PATH names
its folder. PRUNER says where the program is. No GPU and no torch is needed."""

import ctypes
import gc
import os
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import pruner
from pruner import device

MATMUL = "matmul 32 24 16 +relu"
driver = ctypes.CDLL("libcuda.so.1")


def check(status):
    if status:
        raise RuntimeError(f"the fake driver's status is {status}")


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Memory:
    """An array on the fake device, which the host cannot touch."""

    def __init__(self, array, offset=0):
        self.like = np.ascontiguousarray(array)
        address = ctypes.c_uint64()
        check(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(self.like.nbytes + offset)))
        self.base, self.address = address, address.value + offset
        place = ctypes.c_uint64(self.address)
        check(driver.cuMemcpyHtoDAsync_v2(place, pointer(self.like), ctypes.c_size_t(self.like.nbytes), None))
        check(driver.cuStreamSynchronize(None))

    def read(self):
        found = np.empty_like(self.like)
        place = ctypes.c_uint64(self.address)
        check(driver.cuMemcpyDtoHAsync_v2(pointer(found), place, ctypes.c_size_t(found.nbytes), None))
        return found

    def __del__(self):
        driver.cuMemFree_v2(self.base)


class Interface(Memory):
    """Has `__cuda_array_interface__`, like CuPy's and numba's arrays."""

    strides, stream, shape, mask, read_only = None, None, None, None, False

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape or self.like.shape,
            "typestr": self.like.dtype.str,
            "data": (self.address, self.read_only),
            "mask": self.mask,
            "strides": self.strides,
            "stream": self.stream,
            "version": 3,
        }


class Packed(Memory):
    """Gives DLPack capsules of kind CUDA."""

    where = (2, 0)

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, *, stream=None):
        self.streams = [*getattr(self, "streams", []), stream]
        codes = {"f": 2, "i": 0, "u": 1, "b": 6}
        self.shape = (ctypes.c_int64 * self.like.ndim)(*self.like.shape)
        self.facts = device._DLTensor(
            data=self.address,
            device_type=2,
            device_id=self.where[1],
            ndim=self.like.ndim,
            code=codes[self.like.dtype.kind],
            bits=8 * self.like.dtype.itemsize,
            lanes=1,
            shape=self.shape,
            strides=None,
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.facts), b"dltensor", None)


class OnDevice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "m.so")
        pruner.compile(op=MATMUL, target="cuda --arch=sm_80", path=cls.path)
        cls.context = ctypes.c_void_p()
        check(driver.cuInit(0))
        check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(cls.context), 0))
        check(driver.cuCtxPushCurrent_v2(cls.context))
        rng = np.random.default_rng(0)
        cls.a = rng.standard_normal((32, 16)).astype(np.float32)
        cls.b = rng.standard_normal((16, 24)).astype(np.float32)
        cls.c = np.maximum(cls.a @ cls.b, 0)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        gc.collect()
        check(driver.cuCtxPopCurrent_v2(ctypes.byref(cls.context)))
        check(driver.cuDevicePrimaryCtxRelease_v2(0))
        violations = driver.fake_cuda_restart()
        assert violations == 0, f"{violations} violations, which standard error has"

    def expect(self, found):
        np.testing.assert_allclose(found, self.c, rtol=1e-4, atol=1e-5)

    def test_is_the_device_of_the_module(self):
        module = pruner.Module(self.path)
        self.assertEqual(module.device, "cuda:0")
        self.assertEqual(pruner.compile(op=MATMUL).device, "cpu")
        with self.assertRaisesRegex(OSError, "there is no device cuda:7"):
            pruner.Module(self.path, device=7)

    def test_arrays_of_the_host_go_over_the_host(self):
        module = pruner.Module(self.path)
        for _ in range(3):
            self.expect(module(self.a, self.b)[0])

    def test_inputs_lie_on_the_device(self):
        module = pruner.Module(self.path)
        for kind in (Interface, Packed):
            for offset in (0, 4):
                a, b = kind(self.a, offset), kind(self.b, offset)
                for _ in range(3):
                    (found,) = module(a, b)  # no library that it knows: an array of numpy
                    self.expect(found)
                out = kind(np.zeros_like(self.c), offset)
                for _ in range(3):
                    (found,) = module(a, b, out=[out])
                    self.assertIs(found, out)
                    self.expect(out.read())
        self.assertGreater(len(module.profile(a, b)), 0)
        self.assertGreater(module.bench(a, b, runs=2, warm_up=1), 0)
        self.expect(module.run(dict(zip([each.name for each in module.inputs], [a, b]))).popitem()[1])

    def test_runs_in_a_stream(self):
        class Torchs:
            pass

        module = pruner.Module(self.path)
        stream = ctypes.c_void_p()
        check(driver.cuStreamCreate(ctypes.byref(stream), 1))
        torchs = Torchs()
        torchs.cuda_stream = stream.value
        a, b, out = Interface(self.a), Interface(self.b), Interface(np.zeros_like(self.c))
        for given in (stream.value, torchs, 0):
            check(driver.cuMemsetD8Async(ctypes.c_uint64(out.address), 0, ctypes.c_size_t(self.c.nbytes), stream))
            check(driver.cuStreamSynchronize(stream))
            module(a, b, out=[out], stream=given)
            module.wait()
            self.expect(out.read())
        packed = Packed(self.b)  # its producer lets our stream wait
        module(a, packed, out=[out], stream=stream.value)
        module(Packed(self.a), packed, out=[out])
        self.assertEqual(packed.streams, [stream.value, 1])
        a.stream, b.stream = stream.value, 1
        with self.assertRaisesRegex(ValueError, "made in several streams"):
            module(a, b)
        a.stream = b.stream = stream.value  # the producers work there
        self.expect(module(a, b)[0])
        module.wait()
        check(driver.cuStreamDestroy_v2(stream))

    def test_activations_come_from_a_pool(self):
        taken, given_back = [], []

        def allocate(count):
            taken.append(Interface(np.zeros(count + 16, np.uint8)))
            return taken[-1].address

        module = pruner.Module(self.path, pool=(allocate, given_back.append))
        self.expect(module(Interface(self.a), Interface(self.b))[0])
        del module
        self.assertEqual(given_back, [each.address for each in taken])

    def test_a_pool_without_memory_gives_no_module(self):
        def allocate(count):
            raise MemoryError("nothing is left")

        with self.assertWarnsRegex(RuntimeWarning, "nothing is left"), self.assertRaisesRegex(OSError, "pool has no"):
            pruner.Module(self.path, pool=(allocate, self.fail))

    def test_says_what_does_not_fit(self):
        module = pruner.Module(self.path)
        a, b = Interface(self.a), Interface(self.b)
        names = [each.name for each in module.inputs]
        with self.assertRaisesRegex(ValueError, f"{names[1]} lies in the CPU's memory and other tensors on cuda:0"):
            module(a, self.b)
        with self.assertRaisesRegex(ValueError, "found .* float64 16x24"):
            module(a, Interface(self.b.astype(np.float64)))
        with self.assertRaisesRegex(ValueError, "found .* 24x16"):
            module(a, Interface(self.b.T))
        gaps = Interface(self.b)
        gaps.strides = (4, 64)
        with self.assertRaisesRegex(ValueError, "not dense"):
            module(a, gaps)
        gaps.strides = (97, 4)
        with self.assertRaisesRegex(ValueError, "not dense"):
            module(a, gaps)
        with self.assertRaisesRegex(ValueError, "another byte order"):
            module(a, Interface(self.b.astype(">f4")))
        masked = Interface(self.b)
        masked.mask = a
        with self.assertRaisesRegex(ValueError, "masked elements"):
            module(a, masked)
        constant = Interface(self.c)
        constant.read_only = True
        with self.assertRaisesRegex(ValueError, "cannot be written to"):
            module(a, Interface(self.b), out=[constant])
        with self.assertRaisesRegex(ValueError, "lies on a CUDA device and the inputs in the CPU's memory"):
            module(self.a, self.b, out=[Interface(self.c)])
        with self.assertRaisesRegex(TypeError, "not a bool"):
            module(a, Interface(self.b), stream=True)
        with self.assertRaisesRegex(ValueError, "lies on a CUDA device"):
            pruner.compile(op=MATMUL)(Interface(self.a), self.b)
        other = Packed(self.b)
        other.where = (2, 1)
        with self.assertRaisesRegex(ValueError, "is on cuda:1; the module runs on cuda:0"):
            module(a, other)
        with self.assertRaisesRegex(ValueError, "out.*CPU's memory|lies in the CPU's memory"):
            module(a, b, out=[np.empty_like(self.c)])
        with self.assertRaisesRegex(TypeError, "out has 2 arrays"):
            module(a, b, out=[a, b])
        with self.assertRaisesRegex(RuntimeError, "overlaps"):
            module(a, Interface(self.b), out=[self._same(a)])
        with self.assertRaisesRegex(ValueError, "a stream is for a run on tensors of a CUDA device"):
            module(self.a, self.b, stream=0)
        with self.assertRaisesRegex(TypeError, "a stream is torch's, CuPy's or a handle"):
            module(a, b, stream="main")
        host = Interface(self.b)
        host.address = self.b.ctypes.data
        with self.assertRaisesRegex(RuntimeError, "lies in the memory of the host"):
            module(a, host)
        with self.assertRaisesRegex(ValueError, "takes tensors in the CPU's memory"):
            pruner.compile(op=MATMUL)(Packed(self.a), self.b)
        self.expect(module(a, b)[0])

    def _same(self, a):
        """A tensor of the output's shape whose memory is that of an input."""
        out = Interface(self.c)
        out.address = a.address
        return out


if __name__ == "__main__":
    unittest.main()
