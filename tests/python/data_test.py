"""The commands of pruner.data on small files in the formats of TenSet and MetaSchedule."""

import contextlib
import importlib.util
import io
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import tvm_samples as samples
from pruner import _program
from pruner.data import __main__ as command
from pruner.data import inert_pickle, tenset

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
M, N, K = samples.DENSE["a"]
RESNET_18 = samples.RESNET_18


class Runs:
    """What happens if a pickle is unpickled by Python: the file grows."""

    path = ""

    def __reduce__(self):
        return os.system, (f"echo ran >> {Runs.path}",)


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, name, content):
        return samples.write(self.folder, name, content)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read_lines(self, name):
        with open(self.path(name)) as file:
            return [json.loads(line) for line in file]

    def data(self, *arguments):
        """Runs a command of pruner.data. Returns its exit code, output and errors."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main([*arguments])
        return code, out.getvalue(), err.getvalue()

    def passes(self, *arguments):
        code, out, err = self.data(*arguments)
        self.assertEqual((code, err), (0, ""))
        return out

    def refuses(self, words, *arguments):
        """Checks that the command ends with one line on standard error that has these words."""
        code, out, err = self.data(*arguments)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn(words, err)

    def pruner(self, *arguments):
        done = subprocess.run([_program.path(), *arguments], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class TenSet(Scratch):
    """Four tasks. resnet_18 has the first two, resnet_50 the second, third and fourth."""

    def setUp(self):
        super().setUp()
        self.keys = {digit: samples.dense_key(digit, *size) for digit, size in samples.DENSE.items()}
        self.task = (self.keys["a"], samples.te_dense(*samples.DENSE["a"]))

    def convert(self):
        samples.write_tenset_tasks(self.folder)
        return self.passes("tenset-tasks", self.path("network_info"), "-o", self.path("tasks.jsonl"))

    def test_tasks_have_network_weight_target_and_dag(self):
        out = self.convert()
        self.assertIn("5 tasks of 2 networks, 4 of them distinct; 4 tasks of all_tasks.pkl", out)
        first = self.read_lines("tasks.jsonl")[0]
        self.assertEqual({key: first[key] for key in first if key != "dag"}, {
            "network": "resnet_18", "input_shape": [1, 3, 224, 224], "idx": 0, "weight": 3, "target_kind": "llvm",
            "workload_key": self.keys["a"], "target": "llvm -keys=cpu -mcpu=core-avx2 -model=e5-2673",
        })  # fmt: skip
        dense = {"op": "T_dense", "kind": "compute", "tag": "dense", "axis": [["i", M], ["j", N]]}
        dense.update({"reduce_axis": [["k", K]], "attrs": {"layout_free_placeholders": ["placeholder_1"]}})
        body = "reduce[(x + y)]((placeholder[i, k] * placeholder_1[j, k]); axis=[k]; value_index=0)"
        self.assertEqual(first["dag"], [
            {"op": "placeholder", "kind": "placeholder", "shape": [M, K], "dtype": "float32"},
            {"op": "placeholder_1", "kind": "placeholder", "shape": [N, K], "dtype": "float32"},
            {**dense, "body": [body], "output": True},
        ])  # fmt: skip

    def test_all_protocols_and_an_epilogue(self):
        tensors = samples.te_dense(M, N, K, relu=True)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            path = self.put(RESNET_18, samples.task_pickle([(self.keys["a"], tensors)], [1], protocol))
            dag = next(tenset.tasks_of(path))["dag"]
            self.assertEqual([stage.get("output", False) for stage in dag], [False, False, False, True])
            self.assertEqual(dag[3]["body"], ["max(T_dense[ax0, ax1], 0.0)"])

    def test_records_train_a_model_that_is_judged_by_a_network_that_was_held_out(self):
        self.convert()
        samples.write_tenset_records(self.folder)
        out = self.passes("tenset-records", self.path("measure_records"), "--tasks", self.path("tasks.jsonl"),
                          "-o", self.path("records.json.gz"))  # fmt: skip
        self.assertIn("240 records of 4 tasks from 4 files", out)
        shared = ["--records", "records.json.gz", "--dags", "tasks.jsonl", "--json"]
        kept = json.loads(self.pruner("dataset", "make", *shared, "--hold-out", "resnet_18", "-o", "train.ds"))
        self.assertEqual([kept["total"][key] for key in ("records", "held_out", "no_dag", "not_rebuilt", "kept")],
                         [240, 120, 0, 0, 120])  # fmt: skip
        held = json.loads(self.pruner("dataset", "make", *shared, "--preset", "resnet_18", "-o", "held.ds"))
        self.assertEqual((held["total"]["kept"], held["total"]["tasks"]), (120, 2))
        train = subprocess.run([_program.path(), "train", "--dataset", "train.ds", "--model", "xgb", "--epochs", "40",
                                "-o", "model.json"], capture_output=True, text=True, cwd=self.folder)  # fmt: skip
        if "libxgboost" in train.stderr:
            self.skipTest("the program has no libxgboost")
        self.assertEqual(train.returncode, 0, train.stderr)
        judged = json.loads(self.pruner("eval", "--dataset", "held.ds", "--load-model", "model.json", "--new-tasks",
                                        "--network", "resnet_18", "--dags", "tasks.jsonl", "--json"))  # fmt: skip
        self.assertEqual((judged["programs"], len(judged["tasks"])), (120, 2))
        (network,) = judged["networks"]
        self.assertEqual([network[key] for key in ("network", "tasks", "missing")], ["resnet_18 1x3x224x224", 2, 0])
        self.assertGreater(judged["pairwise_accuracy"], 0.6)
        if HAS_PYARROW:
            import pyarrow.parquet

            self.passes("parquet", self.path("train.ds"), "--model", self.path("model.json"),
                        "-o", self.path("train.parquet"))  # fmt: skip
            sides = pyarrow.parquet.read_table(self.path("train.parquet"))["side"].to_pylist()
            self.assertEqual((sides.count("train"), sides.count("test")), (108, 12))

    def test_a_record_of_an_unknown_task_is_named_or_counted(self):
        self.convert()
        samples.write_tenset_records(self.folder, "ae", 3)
        both = ["tenset-records", self.path("measure_records"), "--tasks", self.path("tasks.jsonl"),
                "-o", self.path("out.json")]  # fmt: skip
        self.refuses("([e],llvm).json:1: no task of", *both)
        self.assertFalse(os.path.exists(self.path("out.json")))
        out = self.passes(*both, "--drop-unknown")
        self.assertIn("3 records of 1 tasks from 2 files", out)
        self.assertIn('left out: 3 records with no task, ["' + "e" * 32, out)
        self.assertEqual(len(self.read_lines("out.json")), 3)

    def test_a_pickle_that_would_run_code_is_refused_and_nothing_runs(self):
        Runs.path = self.path("ran")
        out = ["-o", self.path("tasks.jsonl")]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            path = self.put(RESNET_18, pickle.dumps(([Runs()], [1]), protocol))
            words = f"the pickle asks for {os.system.__module__}.system, which is refused"
            self.refuses(words, "tenset-tasks", path, *out)
        path = self.put(RESNET_18, b"ctvm.runtime.object\nload_library\n(Vx\ntR.")
        self.refuses("calls the function tvm.runtime.object.load_library", "tenset-tasks", path, *out)
        for operation in (b"(S'x'\nitvm.Object\nSearchTask\n.", b"(ctvm\nObject\no.", b"\x82\x01.", b"Pname\n."):
            path = self.put(RESNET_18, operation)
            self.refuses("which is refused", "tenset-tasks", path, *out)
        self.assertFalse(os.path.exists(Runs.path))
        self.assertFalse(os.path.exists(self.path("tasks.jsonl")))

    def test_damaged_pickles(self):
        whole, out = samples.task_pickle([self.task], [1]), ["-o", self.path("tasks.jsonl")]
        for length in range(0, len(whole), len(whole) // 40):
            self.refuses("damaged or cut", "tenset-tasks", self.put(RESNET_18, whole[:length]), *out)
        for content in (b"0.", b"K\x01R.", b"K\x01K\x02s.", b"h\x07.", b"(.", b"K\x01b.", b"}]K\x01s.", b"(u."):
            self.refuses(f"{RESNET_18}: byte", "tenset-tasks", self.put(RESNET_18, content), *out)
        changed = bytearray(whole)
        for at in range(0, len(whole), 7):
            changed[at] ^= 0x15
            try:
                list(tenset.tasks_of(self.put(RESNET_18, bytes(changed))))
            except tenset.DataError as error:
                self.assertNotIn("\n", str(error))
            changed[at] = whole[at]

    def test_files_that_are_no_tasks(self):
        out = ["-o", self.path("tasks.jsonl")]
        key, tensors = self.task

        def one(key, tensors):
            return samples.task_pickle([(key, tensors)], [1])

        for words, name, content in (
            ("the name does not say network", "resnet.task.pkl", samples.task_pickle([], [])),
            ("not a pair of tasks and weights", RESNET_18, pickle.dumps([1])),
            ("1 tasks and 2 weights", RESNET_18, samples.task_pickle([self.task], [1, 2])),
            ("its weight is no whole number", RESNET_18, samples.task_pickle([self.task], [1.5])),
            ("no task of TVM's auto-scheduler", RESNET_18, pickle.dumps(([3], [1]))),
            ("not converted, as no file has a task", RESNET_18, pickle.dumps(([], []))),
            ("the workload key is no list", RESNET_18, one("dense", tensors)),
            ("says the shapes [7, 8]", RESNET_18, one(json.dumps(["a" * 32, 7, 8]), tensors)),
            ("no graph of TVM's nodes", RESNET_18, one(key, "{")),
            ("is not in the graph", RESNET_18, one(key, tensors.replace('"op": "', '"op": "9'))),
            ("the node Let has", RESNET_18, one(key, tensors.replace("tir.Mul", "tir.Let"))),
        ):
            with self.subTest(words):
                self.refuses(words, "tenset-tasks", self.put(name, content), *out)
        self.refuses("no such file", "tenset-tasks", self.path("nothing"), *out)

    def test_graphs_that_never_end(self):
        nodes = samples.Nodes()
        tree = nodes.real(1)
        for _ in range(64):
            tree = nodes.binary("Add", tree, tree)
        loop = nodes.binary("Add", 1, 1)
        nodes.nodes[loop]["attrs"]["a"] = str(loop)
        for body, words in ((tree, "more than a million characters"), (loop, "nested too deeply")):
            op = nodes.add("ComputeOp", attrs=nodes.add("Map"), axis=nodes.array(), body=nodes.array(body), name="x",
                           reduce_axis=nodes.array(), tag="")  # fmt: skip
            tensor = nodes.add("Tensor", dtype="float32", op=op, shape=nodes.array(), value_index=0)
            key = json.dumps(["a" * 32])
            path = self.put(RESNET_18, samples.task_pickle([(key, nodes.graph(nodes.array(tensor)))], [1]))
            self.refuses(words, "tenset-tasks", path, "-o", self.path("tasks.jsonl"))

    def test_damaged_records_and_tasks(self):
        self.convert()
        records = ["tenset-records", "--tasks", self.path("tasks.jsonl"), "-o", self.path("out.json")]
        self.refuses("x.json:1: no JSON", *records, self.put("x.json", '{"i": [["a'))
        self.refuses("x.json:1: no record", *records, self.put("x.json", '{"i": [], "r": []}\n'))
        self.refuses("packed file is damaged or cut", *records, self.put("x.json.gz", b"\x1f\x8b\x08\x00"))
        self.refuses("no task with a workload key and a DAG", "tenset-records", "--tasks", self.put("t.jsonl", "[]\n"),
                     "-o", self.path("out.json"), self.put("x.json", "{}"))  # fmt: skip


class InertPickle(unittest.TestCase):
    def test_values_are_those_of_pickle(self):
        value = [None, True, False, 0, 255, 65535, -1, 2**31, 2**70, 1.5, "x", "é" * 300, b"y", b"z" * 300,
                 (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1], {}, {"a": 1, 2: [3]}]  # fmt: skip
        value.append(value[-1])
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            # Before protocol 3, bytes are pickled as a call.
            own = [each for each in value if not isinstance(each, bytes)] if protocol < 3 else value
            self.assertEqual(inert_pickle.load(pickle.dumps(own, protocol), lambda name: False), own)


class MetaSchedule(Scratch):
    def put_database(self, modules, records, folder="ms"):
        samples.write_metaschedule(self.path(folder), modules, records)
        return ["metaschedule", self.path(folder), "-o", self.path("out.jsonl")]

    def test_lines_have_times_arguments_and_trace(self):
        modules = [samples.tir_matmul(32, 24, 16), samples.tir_matmul(32, 24, 16, scheduled=True)]
        arguments = self.put_database(modules, [(0, [2e-6, 4e-6]), (0, [1e10]), (1, None)])
        out = self.passes(*arguments, "--tasks", self.path("tasks"))
        self.assertIn("3 records of 2 workloads", out)
        self.assertIn("workload 0: 2 records, 1 failed, best 0.0030 ms, median 0.0030 ms\n", out)
        self.assertIn("workload 1: 1 records, 1 failed; no task: the function is scheduled already", out)
        self.assertIn("traces have no form as Pruner's candidates", out)
        first, failed, _ = self.read_lines("out.jsonl")
        self.assertEqual((first["seconds"], failed["seconds"]), (3e-6, None))
        self.assertEqual(first["target"], "llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=4")
        self.assertEqual(first["arguments"][0], {"dtype": "float32", "shape": [32, 16]})
        self.assertEqual((first["instructions"][2][0], first["decisions"]), ("SamplePerfectTile", [[2, [4, 2, 2, 2]]]))
        self.assertEqual(os.listdir(self.path("tasks")), ["workload_0.json"])
        (task,) = self.read_lines("tasks/workload_0.json")
        self.assertEqual([stage.get("body") for stage in task["dag"]], [
            None, None, ["reduce[(x + y)]((A[vi, vk] * B[vk, vj]); axis=[vk]; value_index=0)"],
            ["max(C[ax0, ax1], 0.0)"],
        ])  # fmt: skip
        self.assertIn('"weight": 1', self.pruner("tasks", "--task", "tasks/workload_0.json", "--json"))
        if HAS_PYARROW:
            import pyarrow.parquet

            self.passes("parquet", self.path("out.jsonl"), "-o", self.path("out.parquet"))
            times = pyarrow.parquet.read_table(self.path("out.parquet"))["seconds"].to_pylist()
            self.assertEqual(times, [3e-6, None, None])

    def test_what_cannot_be_mapped_is_refused(self):
        modules = [samples.tir_matmul(32, 24, 16)]
        self.refuses("workload 1 is not among the 1", *self.put_database(modules, [(1, [1e-6])]))
        self.refuses("the times are no list of numbers above 0", *self.put_database(modules, [(0, [-1])]))
        self.refuses("as there is no record", *self.put_database(modules, []))
        self.refuses("no workload has a form as a compute DAG",
                     *self.put_database([samples.tir_matmul(32, 24, 16, scheduled=True)], [(0, [1e-6])]),
                     "--tasks", self.path("tasks"))  # fmt: skip
        arguments = self.put_database(modules, [(0, [1e-6])])
        for words, name, content in (
            ("tuning_record.json:1: no record", "tuning_record", "[0, []]\n"),
            ("the trace is no pair", "tuning_record", "[0, [[1], null, null, null]]\n"),
            ("an argument is no", "tuning_record", '[0, [[[], []], null, null, [["SCALAR"]]]]\n'),
            ("the target has no kind", "tuning_record", "[0, [[[], []], null, {}, null]]\n"),
            ("workload.json:1: no workload", "workload", "[3]\n"),
            ("workload.json:1: the module is no base64", "workload", '["1", "abc"]\n'),
            ("workload.json:1: no JSON", "workload", '["1", "abc\n'),
        ):
            with self.subTest(words):
                self.put_database(modules, [(0, [1e-6])])
                self.put(f"ms/database_{name}.json", content)
                self.refuses(words, *arguments)
        os.unlink(self.path("ms/database_workload.json"))
        self.refuses("no such file; a database of MetaSchedule has both", *arguments)


class Parquet(Scratch):
    @unittest.skipIf(HAS_PYARROW, "pyarrow is here")
    def test_says_that_pyarrow_is_missing(self):
        arguments = ["parquet", self.put("x.json", "{}"), "-o", self.path("x.parquet")]
        self.refuses("parquet needs the package pyarrow", *arguments)

    @unittest.skipUnless(HAS_PYARROW, "no pyarrow")
    def test_records_and_their_split(self):
        import pyarrow.parquet

        key = samples.dense_key("a", M, N, K)
        lines = list(samples.dense_records(key, M, N, K, 40))
        failed = json.loads(lines[0])
        failed["r"] = [[1e10], 6, 1.0, 7]
        failed["i"][1][1][0][4] = [2, 2, 2]
        self.put("records.json", "\n".join([*lines, json.dumps(failed)]) + "\n")
        self.pruner("records", "split", "records.json", "--by", "share", "--train-ratio", "0.5", "-o", "parts")
        out = self.passes("parquet", self.path("parts"), "-o", self.path("p.parquet"))
        self.assertIn("41 records from 2 files", out)
        rows = pyarrow.parquet.read_table(self.path("p.parquet")).to_pylist()
        self.assertEqual({row["side"] for row in rows}, {"train", "test"})
        (row,) = [row for row in rows if row["error"] != 0]
        self.assertEqual((row["mean_s"], row["seconds"], row["error"], row["time"]), (None, [1e10], 6, 7))
        self.assertEqual(json.loads(row["steps"])[0], ["SP", 2, 0, M, [2, 2, 2], 1])

    @unittest.skipUnless(HAS_PYARROW, "no pyarrow")
    def test_features_are_those_of_the_file(self):
        import pyarrow.parquet

        self.pruner("dataset", "collect", "--op", "matmul 16 16 16", "--programs-per-task", "12", "-o", "set.json")
        self.pruner("dataset", "make", "--records", "set.json", "--min-sample-size", "4", "-o", "set.ds")
        self.put("lines.jsonl", self.pruner("features", "--records", "set.json", "--json"))
        for name in ("set.ds", "lines.jsonl"):
            self.assertIn("12 programs", self.passes("parquet", self.path(name), "-o", self.path(name + ".parquet")))
        table, lines = (pyarrow.parquet.read_table(self.path(f"{name}.parquet")).to_pylist()
                        for name in ("set.ds", "lines.jsonl"))  # fmt: skip
        self.assertEqual([row["latency_s"] for row in table], [row["measured_s"] for row in lines])
        for row, line in zip(table, lines):
            self.assertEqual(len(row["rows"]), len(line["rows"]))
            self.assertEqual(row["dataflow"], [value for step in line["dataflow"] for value in step])

    @unittest.skipUnless(HAS_PYARROW, "no pyarrow")
    def test_damaged_files(self):
        out = ["-o", self.path("x.parquet")]
        self.pruner("dataset", "collect", "--op", "matmul 16 16 16", "--programs-per-task", "4", "-o", "set.json")
        self.pruner("dataset", "make", "--records", "set.json", "--min-sample-size", "1", "-o", "set.ds")
        with open(self.path("set.ds"), "rb") as file:
            whole = file.read()
        for length in range(0, len(whole), 997):
            self.assertEqual(self.data("parquet", self.put("cut.ds", whole[:length]), *out)[0], 2, length)
        self.refuses("the model does not say what it was trained on", "parquet", self.path("set.ds"), "--model",
                     self.put("m.json", "{}"), *out)  # fmt: skip
        self.refuses("only a file of features has a side", "parquet", self.path("set.json"), "--model", "m.json", *out)
        self.refuses("neither records nor features", "parquet", self.put("x.json", "[1]\n"), *out)
        self.refuses("x.json:1: no record", "parquet", self.put("x.json", '{"i": [1, 2], "r": []}\n'), *out)
        self.assertFalse(os.path.exists(self.path("x.parquet")))


class Page(Scratch):
    """The commands of docs/research/data.md print what the page shows."""

    ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    BLOCK = re.compile(r"^```(sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

    def run_block(self, commands):
        place = {"python3": sys.executable, "pruner": os.path.abspath(_program.path())}
        functions = "".join(f'{name}() {{ {shlex.quote(path)} "$@"; }}\n' for name, path in place.items())
        environment = {**os.environ, "PYTHONPATH": os.path.join(self.ROOT, "python")}
        done = subprocess.run(["bash", "-ec", functions + commands], cwd=self.folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        self.assertEqual(done.returncode, 0, commands + done.stdout)
        return done.stdout

    @unittest.skipUnless(HAS_PYARROW, "no pyarrow")
    def test_shows_what_its_commands_print(self):
        for name in ("tests", "docs"):
            os.symlink(os.path.join(self.ROOT, name), self.path(name))
        with open(os.path.join(self.ROOT, "docs", "research", "data.md")) as file:
            blocks = self.BLOCK.findall(file.read())
        printed = None
        for kind, text in blocks:
            if kind == "sh":
                if "train" in text and not self.can_train():
                    self.skipTest("the program has no libxgboost")
                printed = self.run_block(text)
                continue
            for line in text.splitlines() if printed is not None else []:  # the first block is no output
                # A number with a point, and what is left out, may be anything.
                pattern = re.sub(r"\d+\\\.\d+|\\\.\\\.\\\.", ".*", re.escape(line))
                self.assertRegex(printed, f"(?m)^{pattern}$")

    def can_train(self):
        done = subprocess.run([_program.path(), "eval", "--dataset", "none.ds", "--load-model", "none.json"],
                              capture_output=True, text=True)  # fmt: skip
        return "libxgboost" not in done.stderr


if __name__ == "__main__":
    unittest.main()
