"""The package pruner without torch: programs and modules. PRUNER says where the program is."""

import json
import os
import sys
import tempfile
import threading
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import pruner
from pruner import _program
from pruner.module import _names_once
from pruner.progress import Events

MATMUL = "matmul 32 24 16 +relu"


def two_outputs(first, second, dtype=np.float32):
    """An ONNX model whose outputs are relu(x) of three elements, under these names."""
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Relu", ["x"], [name]) for name in dict.fromkeys([first, second])]
    values = [helper.make_tensor_value_info(name, kind, [3]) for name in ("x", first, second)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        rng = np.random.default_rng(0)
        self.a = rng.standard_normal((32, 16)).astype(np.float32)
        self.b = rng.standard_normal((16, 24)).astype(np.float32)
        self.c = np.maximum(self.a @ self.b, 0)


class Compile(Scratch):
    def test_gives_a_module_that_computes(self):
        module = pruner.compile(op=MATMUL)
        (found,) = module(self.a, self.b)
        np.testing.assert_allclose(found, self.c, rtol=1e-4, atol=1e-5)
        self.assertEqual(module.inputs[0].shape, (32, 16))

    def test_keeps_the_module_where_it_is_told(self):
        path = os.path.join(self.folder, "m.so")
        pruner.compile(op=MATMUL, path=path)
        np.testing.assert_allclose(pruner.Module(path)(self.a, self.b)[0], self.c, atol=1e-4)

    def test_takes_subnormal_numbers_for_zeros_unless_it_keeps_them(self):
        tiny = np.full((32, 16), 1e-30, np.float32), np.full((16, 24), 1e-10, np.float32)
        for options, is_zero in (({}, True), ({"denormals": "keep"}, False)):
            (found,) = pruner.compile(op=MATMUL, **options)(*tiny)
            self.assertEqual((found == 0).all(), is_zero)

    def test_what_is_damaged_is_not_loaded(self):
        path = os.path.join(self.folder, "m.so")
        pruner.compile(op=MATMUL, path=path)
        with open(path, "rb") as file:
            whole = file.read()
        for left, why in ((len(whole) // 2, "damaged"), (40, "short")):
            cut = os.path.join(self.folder, f"{left}.so")
            with open(cut, "wb") as file:
                file.write(whole[:left])
            self.assertRaisesRegex(OSError, why, pruner.Module, cut)

    def loaded(self):
        """The files below the folder that this process has mapped."""
        with open("/proc/self/maps") as maps:
            return {line.split()[-1] for line in maps if self.folder in line}

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "Linux says what is mapped")
    def test_a_module_that_is_dropped_is_unloaded(self):
        path = os.path.join(self.folder, "m.so")
        first, second = pruner.compile(op=MATMUL, path=path), pruner.Module(path)
        phase = first.phases["main"] if "main" in first.phases else next(iter(first.phases.values()))
        del first, second
        self.assertEqual(self.loaded(), {path})
        np.testing.assert_allclose(phase(self.a, self.b)[0], self.c, atol=1e-4)
        del phase
        self.assertEqual(self.loaded(), set())

    def test_numerics(self):
        """A sum of two quantized tensors, as ONNX defines it and as ONNX Runtime computes it."""
        try:
            from onnx import TensorProto, helper, numpy_helper
        except ImportError as missing:
            self.skipTest(str(missing))
        nodes = [
            helper.make_node("DequantizeLinear", ["p", "s", "z"], ["a"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["b"]),
            helper.make_node("Add", ["a", "b"], ["c"]),
            helper.make_node("QuantizeLinear", ["c", "t", "z"], ["y"]),
        ]
        constants = {"s": np.float32(0.1), "t": np.float32(0.2), "z": np.uint8(0)}
        p, q, y = (helper.make_tensor_value_info(name, TensorProto.UINT8, [4]) for name in "pqy")
        weights = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
        graph = helper.make_graph(nodes, "g", [p, q], [y], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        codes = np.uint8([1, 2, 3, 3]), np.uint8([30, 45, 160, 180])
        for options, wanted in ({}, [15, 23, 81, 91]), ({"numerics": "ort"}, [16, 24, 82, 92]):
            module = pruner.compile(model, **options)
            np.testing.assert_array_equal(module(*codes)[0], wanted)
            self.assertEqual(module.numerics, options.get("numerics", "onnx"))

    def test_a_file_that_is_written_anew_is_another_module(self):
        path = os.path.join(self.folder, "m.so")
        modules = [pruner.compile(op=f"matmul 4 4 {k}", path=path) for k in (8, 16, 24)]
        modules.append(pruner.Module(path))
        self.assertEqual([module.inputs[0].shape for module in modules], [(4, 8), (4, 16), (4, 24), (4, 24)])
        for module in modules:
            a, b = (np.ones(spec.shape, np.float32) for spec in module.inputs)
            np.testing.assert_array_equal(module(a, b)[0], a @ b)

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "Linux says what is mapped")
    def test_a_thousand_modules_are_loaded_and_unloaded(self):
        path = os.path.join(self.folder, "m.so")
        pruner.compile(op=MATMUL, path=path)
        with open(path, "rb") as file:
            whole = file.read()
        threads = threading.active_count()
        for i in range(1000):
            each = os.path.join(self.folder, f"{i}.so")
            with open(each, "wb") as file:
                file.write(whole)
            module = pruner.Module(each, 1)
            if i % 100 == 0:
                np.testing.assert_allclose(module(self.a, self.b)[0], self.c, atol=1e-4)
            os.remove(each)
            del module
        self.assertEqual(self.loaded(), set())
        self.assertEqual(threading.active_count(), threads)

    def test_says_what_the_program_says(self):
        for call, what in {
            lambda: pruner.compile(op="matmul 1 2"): "K is missing",
            lambda: pruner.compile("no/such.onnx"): "no such file",
            lambda: pruner.compile("resnet_1"): "there is no network",
            lambda: pruner.compile(op=MATMUL, no_such_flag=1): "unknown option",
        }.items():
            with self.assertRaisesRegex(pruner.PrunerError, what):
                call()

    def test_takes_several_files_of_records(self):
        folders = [os.path.join(self.folder, name) for name in "ab"]
        for folder in folders:
            pruner.tune(op=MATMUL, n_trials=1, mode="draft-only", work_dir=folder, progress=False)
        files = [os.path.join(folder, "records.json") for folder in folders]
        module = pruner.compile(op=MATMUL, records=files)
        np.testing.assert_allclose(module(self.a, self.b)[0], self.c, atol=1e-4)

    def test_a_budget_needs_a_unit(self):
        for budget in (3, "3"):
            with self.assertRaisesRegex(pruner.PrunerError, '--budget: "3" has no unit; write 3s, 3m or 3h'):
                pruner.tune(op=MATMUL, budget=budget, work_dir=self.folder, progress=False)

    def test_replaces_modules_only(self):
        path = os.path.join(self.folder, "m.onnx")
        with open(path, "wb") as file:
            file.write(two_outputs("y", "z").SerializeToString())
        for force in (False, True):
            with self.assertRaisesRegex(pruner.PrunerError, "names the same file, which would be lost"):
                pruner.compile(path, path=path, force=force)
        with self.assertRaisesRegex(pruner.PrunerError, "m.onnx: is an ONNX model .* --force"):
            pruner.compile(op=MATMUL, path=path)
        pruner.compile(op=MATMUL, path=path, force=True)
        pruner.compile(op=MATMUL, path=path)

    def test_asks_for_one_network(self):
        self.assertRaises(TypeError, pruner.compile)
        self.assertRaises(TypeError, pruner.compile, "resnet_18", op=MATMUL)
        self.assertRaises(TypeError, pruner.compile, 3)


class Shapes(unittest.TestCase):
    def test_are_those_of_the_arrays(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.so")
            module = pruner.compile("bert_tiny", path=path, dim="seq=2..6")
            self.assertEqual([tuple(s) for s in module.symbols], [("seq", 2, 6)])
            self.assertEqual(module.inputs[0].shape, (1, 6))
            whole = module(np.arange(6, dtype=np.int64)[None])[0]
            self.assertEqual(whole.shape, (1, 6, 512))
            part = module(np.arange(4, dtype=np.int64)[None])[0]
            self.assertEqual(part.shape, (1, 4, 512))
            alone = pruner.compile("bert_tiny", path=os.path.join(folder, "4.so"), dim="seq=4")
            np.testing.assert_allclose(part, alone(np.arange(4, dtype=np.int64)[None])[0], rtol=1e-3, atol=1e-4)
            out = [np.empty(s, np.float32) for s in ((1, 3, 512), (1, 512))]
            self.assertIs(module(np.arange(3, dtype=np.int64)[None], out=out)[0], out[0])
            self.assertRaisesRegex(ValueError, "seq is 7; the module was compiled for 2 to 6", module, np.zeros((1, 7), np.int64))
            self.assertRaisesRegex(ValueError, "expected input_ids", module, np.zeros(7, np.int64))
            self.assertTrue(module.profile(np.zeros((1, 3), np.int64)))


class Tune(Scratch):
    def test_gives_curve_tasks_records_and_module(self):
        rounds = []
        result = pruner.tune(
            op=MATMUL, n_trials=20, work_dir=self.folder, callback=rounds.append,
            mode="draft-only", seed=1,
        )  # fmt: skip
        self.assertGreaterEqual(result.trials, 20)
        self.assertEqual([task.name for task in result.tasks], [MATMUL])
        self.assertFalse(result.interrupted)
        self.assertGreater(result.latency_ms, 0)
        low, high = result.speedup_interval
        self.assertTrue(low <= result.speedup <= high)
        self.assertIn("as fast as untuned", result._repr_html_())
        self.assertEqual(rounds[-1].task, MATMUL)
        self.assertEqual(rounds[-1].all_trials, 20)
        self.assertEqual(result.curve[-1].trials, rounds[-1].trials)
        records = list(result.records())
        self.assertGreaterEqual(len(records), 20)
        self.assertTrue(any(record.seconds for record in records))
        np.testing.assert_allclose(result.module(self.a, self.b)[0], self.c, atol=1e-4)
        self.assertIn(MATMUL, result._repr_html_())
        again = pruner.compile(op=MATMUL, records=result.records_path)
        np.testing.assert_allclose(again(self.a, self.b)[0], self.c, atol=1e-4)

    def test_keeps_the_best_when_interrupted(self):
        def interrupt(progress):
            if progress.trials >= 20:
                raise KeyboardInterrupt  # as Python does for SIGINT, which may be ignored here

        result = pruner.tune(
            op=MATMUL, n_trials=100000, work_dir=self.folder, callback=interrupt, mode="draft-only"
        )
        self.assertTrue(result.interrupted)
        self.assertIsNone(result.speedup)
        self.assertGreaterEqual(result.trials, 20)
        np.testing.assert_allclose(result.module(self.a, self.b)[0], self.c, atol=1e-4)

    def test_goes_on_where_it_was(self):
        for trials in (10, 20):
            result = pruner.tune(op=MATMUL, n_trials=trials, work_dir=self.folder, mode="draft-only")
        self.assertGreaterEqual(result.trials, 20)

    def test_a_callback_that_fails_ends_it(self):
        def fail(progress):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            pruner.tune(
                op=MATMUL, n_trials=100000, work_dir=self.folder, callback=fail, mode="draft-only"
            )


class Arrays(Scratch):
    def test_are_written_where_out_says(self):
        module = pruner.compile(op=MATMUL)
        out = np.empty((32, 24), np.float32)
        (found,) = module(self.a, self.b, out=[out])
        self.assertIs(found, out)
        np.testing.assert_allclose(out, self.c, atol=1e-4)
        for wrong in (
            np.empty((24, 32), np.float32), np.empty((32, 24)), np.empty((32, 48), np.float32)[:, ::2],
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, "out: expected"):
                module(self.a, self.b, out=[wrong])
        with self.assertRaisesRegex(TypeError, "for 1 outputs"):
            module(self.a, self.b, out=[])

    def test_out_may_not_overlap_an_input(self):
        module = pruner.compile(op="add 6 35")
        x = np.ones((6, 35), np.float32)
        with self.assertRaisesRegex(ValueError, "overlaps"):
            module(x, x.copy(), out=[x])

    def test_out_arrays_may_not_overlap_each_other(self):
        module = pruner.compile(two_outputs("y", "z"))
        x = np.array([-1, 0, 2], np.float32)
        out = np.empty(3, np.float32)
        with self.assertRaisesRegex(ValueError, "two of its arrays overlap"):
            module(x, out=[out, out])

    def test_out_has_to_be_written_to(self):
        module = pruner.compile(op=MATMUL)
        with self.assertRaisesRegex(TypeError, "is a list, which cannot be written to"):
            module(self.a, self.b, out=[self.c.tolist()])
        fixed = np.empty((32, 24), np.float32)
        fixed.flags.writeable = False
        for wrong in (fixed, np.empty((32, 24), ">f4"), np.empty((24, 32), np.float32).T):
            with self.assertRaisesRegex(ValueError, "out: expected"):
                module(self.a, self.b, out=[wrong])

    def test_of_another_byte_order_are_read_as_they_are_meant(self):
        (found,) = pruner.compile(op=MATMUL)(self.a.astype(">f4"), self.b)
        np.testing.assert_allclose(found, self.c, atol=1e-4)

    def test_on_another_device_are_an_error(self):
        class Elsewhere:
            shape, dtype = (32, 16), np.dtype(np.float32)

            def __dlpack_device__(self):
                return 2, 1

            def __dlpack__(self, **_):
                raise AssertionError("it is not to be asked for")

        module = pruner.compile(op=MATMUL)
        name = module.inputs[0].name
        with self.assertRaisesRegex(ValueError, f"^{name} is on DLPack's device 2, number 1; "):
            module(Elsewhere(), self.b)
        out = module.outputs[0].name
        with self.assertRaisesRegex(ValueError, f"^out: {out} is on DLPack's device 2"):
            module(self.a, self.b, out=[Elsewhere()])

    def test_with_masked_elements_are_an_error(self):
        masked = np.ma.masked_array(self.a, mask=self.a > 1)
        with self.assertRaisesRegex(ValueError, "has masked elements; say what they are"):
            pruner.compile(op=MATMUL)(masked, self.b)

    def test_whole_numbers_that_the_type_does_not_hold_are_an_error(self):
        module = pruner.compile(two_outputs("y", "z", np.int32))
        np.testing.assert_array_equal(module(np.array([-1, 0, 2], np.int64))[0], [0, 0, 2])
        with self.assertRaisesRegex(ValueError, "x has values that int32 does not hold"):
            module(np.array([1, 2, 2**40], np.int64))

    def test_outputs_of_one_name_are_numbered(self):
        x = np.array([-1, 0, 2], np.float32)
        found = pruner.compile(two_outputs("y", "y")).run({"x": x})
        self.assertEqual(list(found), ["y", "y_2"])
        for each in found.values():
            np.testing.assert_array_equal(each, [0, 0, 2])
        self.assertEqual(_names_once(["y", "y", "y_2", "y", "z"]), ["y", "y_3", "y_2", "y_4", "z"])

    def test_may_lie_anyhow(self):
        module = pruner.compile(op=MATMUL)
        (found,) = module(self.a.T.copy().T, self.b.astype(np.float16).astype(np.float32))
        np.testing.assert_allclose(found, self.c, atol=2e-2)

    def test_threads_have_instances_of_their_own(self):
        path = os.path.join(self.folder, "m.so")
        pruner.compile(op=MATMUL, path=path)
        wrong = []

        def work():
            module = pruner.Module(path, threads=1)
            for _ in range(50):
                if not np.allclose(module(self.a, self.b)[0], self.c, atol=1e-4):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Program(unittest.TestCase):
    def test_says_where_it_looks(self):
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["PRUNER"], os.environ["PATH"] = "/nowhere", "/nowhere"
        with self.assertRaisesRegex(pruner.PrunerError, "set PRUNER"):
            _program.path()

    def test_reads_its_progress(self):
        events = Events()
        started = {"event": "started", "trials": 1000, "tasks": [{"task": 0, "name": "conv 3; x"}]}
        self.assertIsNone(events.read(json.dumps(started)))
        now = {"event": "round", "task": 0, "trials": 40, "best_ms": 0.033, "total_ms": 1.555, "eta_s": 62.2}
        self.assertEqual(events.read(json.dumps(now)), (40, 1000, "conv 3; x", 0.033, 1.555, "1:02"))
        now.update(best_ms=None, total_ms=None, eta_s=None)
        self.assertEqual(events.read(json.dumps(now)), (40, 1000, "conv 3; x", None, None, "-"))
        for line in ("Estimated total", "{", '{"event": "best"}'):
            self.assertIsNone(events.read(line))


if __name__ == "__main__":
    unittest.main()
