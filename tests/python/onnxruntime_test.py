"""The execution provider in ONNX Runtime itself: what it claims agrees with ONNX Runtime's own kernels."""

import gc
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
if not hasattr(ort, "register_execution_provider_library"):
    print("skipped: onnxruntime has no plug-in providers")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python", "onnxruntime"))
import onnxruntime_ep_pruner as pruner  # noqa: E402

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, weights=None, opset=17):
    tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def perceptron(batch=4, width=64):
    """MatMul, Add, Relu, MatMul, Softmax."""
    return model_of(
        [
            helper.make_node("MatMul", ["x", "w1"], ["a"]),
            helper.make_node("Add", ["a", "b1"], ["b"]),
            helper.make_node("Relu", ["b"], ["c"]),
            helper.make_node("MatMul", ["c", "w2"], ["d"]),
            helper.make_node("Softmax", ["d"], ["y"], axis=-1),
        ],
        [value("x", [batch, width])],
        [value("y", [batch, 10])],
        {"w1": floats(width, 48), "b1": floats(48), "w2": floats(48, 10)},
    )


class Provider(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name

    def options(self, alone=True, entries=None, **provider):
        """Session options; `alone`: a node that is left to ONNX Runtime is an error."""
        options = ort.SessionOptions()
        options.log_severity_level = 4  # some tests see errors
        options.intra_op_num_threads = 2
        if alone:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        for key, text in (entries or {}).items():
            options.add_session_config_entry(key, text)
        provider.setdefault("cache_dir", os.path.join(self.folder, "cache"))
        return pruner.session_options(options, **provider)

    def session(self, model, **options):
        return ort.InferenceSession(
            model.SerializeToString(), self.options(**options), enable_fallback=0
        )

    def assert_agrees(self, session, model, feeds, tolerance=1e-5):
        expected = ort.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        ).run(None, feeds)
        found = session.run(None, feeds)
        self.assertEqual(len(found), len(expected))
        for ours, theirs in zip(found, expected):
            self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
            np.testing.assert_allclose(
                ours, theirs, rtol=tolerance, atol=tolerance * max(1e-9, float(np.abs(theirs).max()))
            )

    def test_device(self):
        (device,) = pruner.devices()
        self.assertEqual((device.ep_name, device.ep_vendor), ("PrunerExecutionProvider", "Pruner"))

    def test_whole_network(self):
        model = perceptron()
        session = self.session(model)
        self.assertEqual(session.get_providers()[0], pruner.get_ep_name())
        for _ in range(3):
            self.assert_agrees(session, model, {"x": floats(4, 64)})

    def test_subnormal_numbers(self):
        nodes = [helper.make_node("Mul", ["x", "small"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
        small = {"small": np.float32([1e-10])}
        model = model_of(nodes, [value("x", [64])], [value("y", [64])], small)
        x = np.full(64, 1e-30, np.float32)
        for way, found in (("flush", 0), ("keep", x[0] * np.float32(-1e-10)), (None, 0)):
            (y,) = self.session(model, denormals=way, min_nodes=1).run(None, {"x": x})
            np.testing.assert_array_equal(y, np.full(64, found, np.float32))

    def test_attributes_of_every_kind(self):
        model = model_of(
            [
                helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], group=2),
                helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.3),
                helper.make_node("Pad", ["b", "pads"], ["c"], mode="reflect"),
                helper.make_node("Reshape", ["c", "sequence"], ["d"]),
                helper.make_node(
                    "LSTM", ["d", "lw", "lr"], ["h"], hidden_size=6, activations=["Sigmoid", "Tanh", "Relu"]
                ),
                helper.make_node("ConstantOfShape", ["two"], ["e"],
                                 value=numpy_helper.from_array(np.array([0.5], np.float32))),
                helper.make_node("Add", ["h", "e"], ["y"]),
            ],
            [value("x", [1, 4, 8, 8])],
            [value("y", [36, 1, 1, 6])],
            {
                "w": floats(8, 2, 3, 3),
                "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
                "sequence": np.array([36, 1, 8]),
                "lw": floats(1, 24, 8),
                "lr": floats(1, 24, 6),
                "two": np.array([1, 6]),
            },
        )
        for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
            options = self.options()
            options.graph_optimization_level = level
            session = ort.InferenceSession(model.SerializeToString(), options)
            self.assert_agrees(session, model, {"x": floats(1, 4, 8, 8)})

    def test_what_is_not_supported_stays(self):
        """A node whose output's shape depends on values lies between two parts."""
        model = model_of(
            [
                helper.make_node("MatMul", ["x", "w"], ["a"]),
                helper.make_node("Relu", ["a"], ["b"]),
                helper.make_node("NonZero", ["b"], ["places"]),
                helper.make_node("Cast", ["places"], ["c"], to=TensorProto.FLOAT),
                helper.make_node("ReduceSum", ["c"], ["count"], keepdims=0),
                helper.make_node("Mul", ["b", "count"], ["d"]),
                helper.make_node("MatMul", ["d", "w"], ["y"]),
            ],
            [value("x", [8, 8])],
            [value("y", [8, 8])],
            {"w": floats(8, 8)},
        )
        with self.assertRaisesRegex(Exception, "fallback"):
            self.session(model, alone=True)
        options = self.options(alone=False)
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(self.folder, "profile")
        session = ort.InferenceSession(model.SerializeToString(), options)
        self.assert_agrees(session, model, {"x": floats(8, 8)})
        with open(session.end_profiling()) as file:
            runs = [event["args"] for event in json.load(file) if event["name"].endswith("_kernel_time")]
        self.assertEqual(sum(run["provider"] == pruner.get_ep_name() for run in runs), 2, runs)
        self.assertIn("NonZero", [run["op_name"] for run in runs])

    def test_values_that_a_branch_reads(self):
        branch = lambda op: helper.make_graph(  # noqa: E731
            [helper.make_node(op, ["b"], [op])], op, [], [value(op, [4, 4])]
        )
        model = model_of(
            [
                helper.make_node("MatMul", ["x", "w"], ["a"]),
                helper.make_node("Relu", ["a"], ["b"]),
                helper.make_node("If", ["flag"], ["c"], then_branch=branch("Exp"), else_branch=branch("Neg")),
                helper.make_node("MatMul", ["c", "w"], ["y"]),
            ],
            [value("x", [4, 4]), value("flag", [], TensorProto.BOOL)],
            [value("y", [4, 4])],
            {"w": floats(4, 4)},
        )
        session = self.session(model, alone=False)
        for flag in (True, False):
            self.assert_agrees(session, model, {"x": floats(4, 4), "flag": np.array(flag)})

    def test_batches_of_any_size(self):
        model = perceptron(batch="batch")
        session = self.session(model)
        for batch in [1, 2, 5, *range(10, 20), 1]:
            self.assert_agrees(session, model, {"x": floats(batch, 64)})
        self.assert_agrees(self.session(model, dims="batch=7"), model, {"x": floats(7, 64)})

    def test_ranges_of_open_dimensions(self):
        """Two open dimensions, of which one has no name, and an output whose extent is computed from one."""
        nodes = [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("MatMul", ["a", "w"], ["b"]),
            helper.make_node("Softmax", ["b"], ["c"], axis=1),
            helper.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 1]),
            helper.make_node("MaxPool", ["d"], ["y"], kernel_shape=[3], strides=[2], pads=[1, 1]),
        ]
        inputs, outputs = [value("x", ["batch", None, 24])], [value("y", ["batch", 16, None])]
        model = model_of(nodes, inputs, outputs, {"w": floats(24, 16)})
        session = self.session(model)
        for batch, length in ((2, 5), (1, 8), (7, 3), (8, 6), (2, 9), (3, 16), (9, 2)):
            self.assert_agrees(session, model, {"x": floats(batch, length, 24)})
        made = [name for _, _, names in os.walk(self.folder) for name in names if name.endswith(".so")]
        # The guess, 2 x 5, and the ranges 1..8 x 1..8, 1..8 x 1..16 and 1..16 x 1..8.
        self.assertEqual(len(made), 5)

    def test_what_has_no_range_is_compiled_for_each_shape(self):
        nodes = [
            helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
            helper.make_node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Sqrt", ["f"], ["r"]),
            helper.make_node("Div", ["x", "r"], ["z"]),
            helper.make_node("Relu", ["z"], ["y"]),
        ]
        model = model_of(nodes, [value("x", [2, "n"])], [value("y", [2, "n"])], {})
        session = self.session(model)
        for length in (40, 33, 50, 40):
            self.assert_agrees(session, model, {"x": floats(2, length)})

    def test_element_types(self):
        model = model_of(
            [
                helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
                helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
                helper.make_node("DequantizeLinear", ["qw", "scale", "wzero"], ["w"]),
                helper.make_node("MatMul", ["d", "w"], ["a"]),
                helper.make_node("Cast", ["a"], ["half"], to=TensorProto.FLOAT16),
                helper.make_node("ArgMax", ["a"], ["place"], axis=1),
                helper.make_node("Greater", ["a", "d0"], ["more"]),
            ],
            [value("x", [6, 32])],
            [
                value("half", [6, 16], TensorProto.FLOAT16),
                value("place", [6, 1], TensorProto.INT64),
                value("more", [6, 16], TensorProto.BOOL),
            ],
            {
                "scale": np.array(0.05, np.float32),
                "zero": np.array(128, np.uint8),
                "wzero": np.array(0, np.int8),
                "qw": RNG.integers(-127, 127, (32, 16)).astype(np.int8),
                "d0": np.array(0.0125, np.float32),
            },
        )
        self.assert_agrees(self.session(model), model, {"x": floats(6, 32)}, 2e-3)

    def test_runs_at_the_same_time(self):
        model = perceptron()
        session = self.session(model)
        feeds = [{"x": floats(4, 64)} for _ in range(8)]
        expected = [session.run(None, feed)[0] for feed in feeds]
        wrong = []

        def work(i):
            for _ in range(50):
                if not np.array_equal(session.run(None, feeds[i])[0], expected[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def counting_program(self):
        """A program that counts how often modules are compiled by it, and the file with the count."""
        path, count = os.path.join(self.folder, "counting"), os.path.join(self.folder, "count")
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\n[ "$1" != compile ] || echo >>{count}\nexec {os.environ["PRUNER"]} "$@"\n')
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path, lambda: os.path.getsize(count)

    def test_modules_are_kept(self):
        model, (program, compiled) = perceptron(), self.counting_program()
        for _ in range(3):
            self.assert_agrees(self.session(model, program=program), model, {"x": floats(4, 64)})
        self.assertEqual(compiled(), 1)
        other = perceptron()  # other weights
        self.assert_agrees(self.session(other, program=program), other, {"x": floats(4, 64)})
        self.assertEqual(compiled(), 2)
        for folder, _, files in os.walk(os.path.join(self.folder, "cache")):
            self.assertFalse([each for each in files if each != "module.so" and "module" not in each], files)
            for path in (os.path.join(folder, each) for each in files):
                with open(path, "rb") as file, open(path + ".part", "wb") as part:
                    part.write(file.read(1000))
                os.replace(path + ".part", path)  # the old one may still be loaded
        self.assert_agrees(self.session(model, program=program), model, {"x": floats(4, 64)})
        self.assertEqual(compiled(), 3)

    def test_tuned(self):
        model = perceptron()
        self.assert_agrees(self.session(model, budget="2s"), model, {"x": floats(4, 64)})
        path, work = os.path.join(self.folder, "model.onnx"), os.path.join(self.folder, "work")
        onnx.save(model, path)
        subprocess.run(
            [os.environ["PRUNER"], "tune", path, "--n-trials", "8", "--model", "draft-only", "--work-dir", work],
            check=True, capture_output=True,
        )  # fmt: skip
        records = os.path.join(work, "records.json")
        self.assert_agrees(self.session(model, records=records), model, {"x": floats(4, 64)})

    def test_compiled_models(self):
        model, feed = perceptron(), {"x": floats(4, 64)}
        source = os.path.join(self.folder, "model.onnx")
        onnx.save(model, source)
        for embed in ("0", "1"):
            made = os.path.join(self.folder, f"compiled_{embed}.onnx")
            entries = {
                "ep.context_enable": "1",
                "ep.context_embed_mode": embed,
                "ep.context_file_path": made,
            }
            ort.InferenceSession(source, self.options(alone=False, entries=entries))
            nodes = onnx.load(made).graph.node
            self.assertEqual([node.op_type for node in nodes], ["EPContext"])
            os.rename(os.path.join(self.folder, "cache"), os.path.join(self.folder, f"cache_{embed}"))
            session = ort.InferenceSession(made, self.options(program="/nowhere"))
            self.assert_agrees(session, model, feed)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "cache")))
        with self.assertRaisesRegex(Exception, "shapes are known"):
            entries["ep.context_file_path"] = os.path.join(self.folder, "open.onnx")
            self.session(perceptron(batch="n"), alone=False, entries=entries)

    def compiled(self, model, embed, name="made"):
        """The path of the model with compiled parts."""
        made = os.path.join(self.folder, f"{name}.onnx")
        entries = {
            "ep.context_enable": "1",
            "ep.context_embed_mode": embed,
            "ep.context_file_path": made,
        }
        if os.path.exists(made):
            os.remove(made)
        self.session(model, alone=False, entries=entries, min_nodes=1)
        return made

    def branching(self, read, inside=False):
        """A product with w, then branches that read w or an initializer of their own; `inside`: in a branch of a
        branch."""

        def branch(name, op):
            nodes = [helper.make_node(op, ["b", read], [name])]
            if inside:
                two = [helper.make_graph([helper.make_node(each, ["b", read], [name + each])], each, [],
                                         [value(name + each, [4, 4])]) for each in (op, "Mul")]  # fmt: skip
                nodes = [helper.make_node("If", ["flag"], [name], then_branch=two[0], else_branch=two[1])]
            return helper.make_graph(nodes, name, [], [value(name, [4, 4])])

        return model_of(
            [
                helper.make_node("MatMul", ["x", "w"], ["a"]),
                helper.make_node("Relu", ["a"], ["b"]),
                helper.make_node("If", ["flag"], ["y"], then_branch=branch("p", "Add"), else_branch=branch("q", "Sub")),
            ],
            [value("x", [4, 4]), value("flag", [], TensorProto.BOOL)],
            [value("y", [4, 4])],
            {"w": floats(4, 4), "c": floats(4, 4)},
        )

    def test_compiled_models_keep_what_branches_read(self):
        for read in "wc":
            for inside in (False, True):
                model = self.branching(read, inside)
                for embed in "01":
                    made = self.compiled(model, embed)
                    graph = onnx.load(made).graph
                    self.assertEqual([node.op_type for node in graph.node], ["EPContext", "If"])
                    self.assertEqual([each.name for each in graph.initializer], [read])
                    session = ort.InferenceSession(made, self.options(alone=False, program="/nowhere"), enable_fallback=0)
                    for flag in (True, False):
                        self.assert_agrees(session, model, {"x": floats(4, 4), "flag": np.array(flag)})

    def test_compiled_models_keep_what_a_loop_reads(self):
        body = helper.make_graph(
            [
                helper.make_node("Add", ["state", "w"], ["next"]),
                helper.make_node("Identity", ["go"], ["on"]),
            ],
            "body",
            [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("state", [4, 4])],
            [value("on", [], TensorProto.BOOL), value("next", [4, 4])],
        )
        model = model_of(
            [
                helper.make_node("MatMul", ["x", "w"], ["a"]),
                helper.make_node("Loop", ["count", "", "a"], ["b"], body=body),
                helper.make_node("MatMul", ["b", "w"], ["y"]),
            ],
            [value("x", [4, 4]), value("count", [], TensorProto.INT64)],
            [value("y", [4, 4])],
            {"w": floats(4, 4)},
        )
        for embed in "01":
            made = self.compiled(model, embed)
            session = ort.InferenceSession(made, self.options(alone=False, program="/nowhere"), enable_fallback=0)
            self.assert_agrees(session, model, {"x": floats(4, 4), "count": np.array(3)})

    def test_an_input_with_a_default(self):
        """ONNX Runtime drops it from a part's inputs unless it is asked not to."""
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "c"], ["y"])]
        inputs = [value("x", [4, 4]), value("c", [4, 4])]
        model = model_of(nodes, inputs, [value("y", [4, 4])], {"w": floats(4, 4), "c": floats(4, 4)})
        sessions = [self.session(model)]
        for embed in "01":
            made = self.compiled(model, embed)
            sessions.append(ort.InferenceSession(made, self.options(program="/nowhere"), enable_fallback=0))
        for session in sessions:
            session.disable_fallback()
            self.assert_agrees(session, model, {"x": floats(4, 4)})
        # In a compiled model, ONNX Runtime makes it a constant.
        self.assert_agrees(sessions[0], model, {"x": floats(4, 4), "c": floats(4, 4)})

    def test_compiled_models_of_one_name(self):
        """A session goes on with the files that it was made from, and the next one takes the new files."""
        models = [perceptron(), perceptron(width=32), perceptron()]
        sessions = []
        for model in models:
            made = self.compiled(model, "0")
            sessions.append(ort.InferenceSession(made, self.options(program="/nowhere"), enable_fallback=0))
        for model, session in zip(models, sessions):
            width = session.get_inputs()[0].shape[1]
            self.assert_agrees(session, model, {"x": floats(4, width)})

    def mapped(self):
        """The modules that this process has loaded."""
        gc.collect()
        with open("/proc/self/maps") as maps:
            return {line.split()[-1] for line in maps if self.folder in line or "pruner-module" in line}

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "Linux says what is mapped")
    def test_sessions_share_a_module_and_the_last_unloads_it(self):
        model = perceptron()
        first, second = self.session(model), self.session(model)
        self.assertEqual(len(self.mapped()), 1)
        del first
        self.assert_agrees(second, model, {"x": floats(4, 64)})
        del second
        self.assertEqual(self.mapped(), set())

    @unittest.skipUnless(os.path.exists("/proc/self/maps"), "Linux says what is mapped")
    def test_a_thousand_modules_are_loaded_and_unloaded(self):
        model, feed = perceptron(width=8), {"x": floats(4, 8)}
        for embed, count in (("0", 1000), ("1", 50)):
            made = self.compiled(model, embed)
            graph = onnx.load(made)
            (place,) = [each for each in graph.graph.node[0].attribute if each.name == "ep_cache_context"]
            module = os.path.join(self.folder, place.s.decode()) if embed == "0" else None
            gc.collect()
            threads, kept = threading.active_count(), []
            for i in range(count):
                if module:
                    place.s = f"{i}.so".encode()
                    shutil.copyfile(module, os.path.join(self.folder, f"{i}.so"))
                path = os.path.join(self.folder, f"{i}.onnx")
                onnx.save(graph, path)
                session = ort.InferenceSession(path, self.options(program="/nowhere", threads=1), enable_fallback=0)
                if i % 100 == 0:
                    self.assert_agrees(session, model, feed)
                kept = [*kept[-2:], session]
                if i % 100 == 50:
                    self.assertLessEqual(len(self.mapped()), 3)
            del session, kept
            self.assertEqual(self.mapped(), set())
            self.assertEqual(threading.active_count(), threads)

    def test_numerics(self):
        """A sum of two quantized tensors, as ONNX defines it and as ONNX Runtime computes it."""
        nodes = [
            helper.make_node("DequantizeLinear", ["p", "s", "z"], ["a"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["b"]),
            helper.make_node("Add", ["a", "b"], ["c"]),
            helper.make_node("QuantizeLinear", ["c", "t", "z"], ["y"]),
        ]
        byte = TensorProto.UINT8
        constants = {"s": np.float32(0.1), "t": np.float32(0.2), "z": np.uint8(0)}
        model = model_of(
            nodes, [value("p", [4], byte), value("q", [4], byte)], [value("y", [4], byte)],
            {name: np.asarray(number) for name, number in constants.items()},
        )  # fmt: skip
        feed = {"p": np.uint8([1, 2, 3, 3]), "q": np.uint8([30, 45, 160, 180])}
        for way, wanted in (("ort", [16, 24, 82, 92]), ("onnx", [15, 23, 81, 91]), (None, [15, 23, 81, 91])):
            (y,) = self.session(model, numerics=way, min_nodes=1).run(None, feed)
            np.testing.assert_array_equal(y, wanted)

    def test_without_the_program(self):
        """The session is there, without us."""
        model = perceptron()
        session = self.session(model, alone=False, program="/nowhere/pruner")
        self.assert_agrees(session, model, {"x": floats(4, 64)})

    def test_wrong_options(self):
        for name, text, why in (
            ("threads", "two", 'the option threads is "two", expected a whole number'),
            ("dims", "batch", 'the option dims has "batch", expected name=number'),
            ("budget", "3", 'the option budget is "3", which has no unit; write 30s, 3m or 1h'),
            ("denormals", "off", 'the option denormals is "off", expected flush or keep'),
            ("numerics", "torch", 'the option numerics is "torch", expected onnx or ort'),
            ("records", "/no/such.json", 'the option records is "/no/such.json", expected a file'),
        ):
            with self.assertRaisesRegex(Exception, why):
                self.session(perceptron(), **{name: text})

    def test_unknown_options(self):
        known = "program, records, budget, precision, denormals, numerics, cache_dir, threads, min_nodes, dims"
        with self.assertRaisesRegex(TypeError, f"^options thread are unknown; there are {known}$"):
            self.options(thread=2)
        # Who goes past session_options() is told by the library.
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.add_provider_for_devices(pruner.devices(), {"thread": "2"})
        with self.assertRaisesRegex(Exception, f'the option "thread" is unknown; there are {known}'):
            ort.InferenceSession(perceptron().SerializeToString(), options, enable_fallback=0)
        self.session(perceptron(), records=None)

    def test_small_parts_stay(self):
        model = model_of(
            [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])],
            [value("x", [4])],
            [value("y", [4])],
        )
        self.session(model, min_nodes=2)
        with self.assertRaisesRegex(Exception, "fallback"):
            self.session(model)


if __name__ == "__main__":
    unittest.main()
