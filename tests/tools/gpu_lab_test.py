"""The ledger of what needs a GPU, and the program that takes its rows: by a ledger of small commands, without a GPU."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAB = ROOT / "bench/gpu_lab.py"
spec = importlib.util.spec_from_file_location("gpu_lab", LAB)
gpu_lab = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpu_lab)


class Lab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ledger = self.folder / "ledger.tsv"

    def write(self, *rows):
        """Rows by name, seconds and command."""
        lines = ["\t".join(gpu_lab.COLUMNS)]
        lines += ["\t".join([name, "what", "why", str(seconds), "bar", gpu_lab.NEVER, "", "", command])
                  for name, seconds, command in rows]  # fmt: skip
        self.ledger.write_text("\n".join(lines) + "\n")

    def lab(self, *words):
        return subprocess.run([sys.executable, LAB, "--ledger", self.ledger, *map(str, words)], capture_output=True,
                              text=True, check=False, env={**os.environ, "TARGET": "cuda"})  # fmt: skip

    def rows(self, file):
        return {row["row"]: row for row in gpu_lab.Ledger(file).rows}

    def test_the_rows_of_the_project_are_whole(self):
        rows = gpu_lab.Ledger(ROOT / "bench/gpu_ledger.tsv").rows
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertTrue(row["command"] and row["what"] and row["why"], row["row"])

    def test_rows_that_fit_run_in_order_and_go_to_the_end(self):
        self.write(("a", 3, "echo one; echo value: $SECONDS $TARGET; echo later"), ("long", 999, "echo value: never"),
                   ("b", 3, "echo broken; exit 3"), ("c", 2, "sleep 60"), ("beside", 0, "echo value: kept"))  # fmt: skip
        done = self.lab("run", 90, self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.rows(self.folder / "out/gpu_ledger.tsv")
        self.assertEqual(list(rows), ["long", "a", "b", "c", "beside"])
        self.assertEqual(rows["long"]["state"], "never")
        self.assertEqual(rows["a"]["value"], "3 cuda")
        self.assertEqual(rows["b"]["value"], "exit 3; no value; broken")
        self.assertEqual(rows["c"]["value"], "ended after 2 s; no value; no output")
        self.assertEqual(rows["beside"]["value"], "kept")
        self.assertIn("1 rows had no time", done.stdout)
        self.assertEqual(self.rows(self.ledger)["a"]["state"], "never", "the ledger that is given stays")
        self.assertEqual(self.lab("merge", self.folder / "out/gpu_ledger.tsv").returncode, 0)
        self.assertEqual(self.rows(self.ledger), rows)
        self.assertEqual(list(self.rows(self.ledger)), list(rows))

    def test_one_row_can_be_asked_for(self):
        self.write(("a", 3, "echo value: 1"), ("b", 3, "echo value: 2"))
        self.lab("run", 90, self.folder / "out", "b")
        self.assertEqual([row["state"] == "never" for row in gpu_lab.Ledger(self.folder / "out/gpu_ledger.tsv").rows],
                         [True, False])  # fmt: skip

    def test_what_is_wrong_is_said_in_a_line(self):
        self.write(("a", 3, "true"))
        for words, why in ((("run", 1, self.folder), "no row fits"), (("run", 60, self.folder, "x"), "there is no row x")):
            done = self.lab(*words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn(why, done.stderr)
        self.write(("a", 3, "true"), ("a", 3, "true"))
        self.assertIn("two rows have one name", self.lab("list").stderr)
        self.write(("a", "soon", "true"))
        self.assertIn("has not the columns", self.lab("list").stderr)


if __name__ == "__main__":
    unittest.main()
