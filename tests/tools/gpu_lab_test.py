"""The ledger of what needs a GPU, and the program that takes its rows: by a ledger of small commands, without a GPU."""

import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
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
        self.assertEqual(list(rows), ["a", "b", "c", "beside"], "what ran")
        self.assertEqual(rows["a"]["value"], "3 cuda")
        self.assertEqual(rows["b"]["value"], "exit 3; no value; broken")
        self.assertEqual(rows["c"]["value"], "ended after 2 s; no value; no output")
        self.assertEqual(rows["beside"]["value"], "kept")
        self.assertIn("1 rows had no time", done.stdout)
        self.assertEqual(self.rows(self.ledger)["a"]["state"], "never", "the ledger that is given stays")
        self.assertEqual(self.lab("merge", self.folder / "out", self.folder / "lab").returncode, 0)
        merged = self.rows(self.ledger)
        self.assertEqual(list(merged), ["long", "a", "b", "c", "beside"])
        self.assertEqual(merged.pop("long")["state"], "never")
        self.assertEqual(merged, rows)

    def test_a_visit_takes_nothing_from_another(self):
        self.write(("a", 3, "echo value: 1"), ("b", 3, "echo value: 2"), ("c", 3, "false | echo value: 3"))
        self.lab("run", 90, self.folder / "one", "b")
        self.lab("run", 90, self.folder / "two", "a")
        self.lab("run", 90, self.folder / "two", "c")
        for out in ("one", "two"):
            self.assertEqual(self.lab("merge", self.folder / out, self.folder / "lab").returncode, 0)
        self.assertEqual({name: row["value"] for name, row in self.rows(self.ledger).items()},
                         {"a": "1", "b": "2", "c": "exit 1; 3"})  # fmt: skip

    def test_archives_are_laid_into_the_first_part_that_has_room(self):
        lab = self.folder / "lab"
        (lab / "part7").mkdir(parents=True)
        archives = [lab / name for name in ("tools.tar.xz", "a.tar.xz", "b.tar.xz", "c.tar.xz", "large.tar.xz")]
        for file, size in zip(archives, (50, 60, 40, 30, 101), strict=True):
            file.write_bytes(bytes(size))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(gpu_lab.lay_out(lab, archives, ["d"], 100), 1)
        self.assertIn("not packed: d large.tar.xz (0 MiB)", said.getvalue())
        parts = {part.name: sorted(file.name for file in part.iterdir()) for part in lab.glob("part*")}
        self.assertEqual(parts, {"part1": ["b.tar.xz", "gpu_lab.sh", "tools.tar.xz"], "part2": ["a.tar.xz", "c.tar.xz"]})

    def test_a_row_waits_until_its_part_has_arrived(self):
        here, there = self.folder / "here", self.folder / "there"
        tools = here / "tools"
        tools.mkdir(parents=True)
        shutil.copy(LAB, tools)
        rows = (("first", 3, "cat $PREPARED/file"), ("second", 3, "cat $PREPARED/file; echo 7 > $OUT/second.json"), ("plain", 3, "echo value: here"))
        self.write(*rows)
        lines = self.ledger.read_text().splitlines()
        prepared = [line.replace("\tnever\t\t\t", "\tnever\t\tfill\t") if not line.startswith("plain") else line for line in lines]
        self.ledger.write_text("\n".join(prepared) + "\n")
        shutil.copy(self.ledger, tools / "gpu_ledger.tsv")
        for name, part in (("tools", 1), ("first", 1), ("second", 2)):
            if name != "tools":
                (here / name).mkdir()
                (here / name / "file").write_text(f"value: of {name}\n")
            (here / f"part{part}").mkdir(exist_ok=True)
            gpu_lab.archive(here / name, here / f"part{part}" / f"{name}.tar.xz")
        shutil.copy(ROOT / "bench/gpu_lab.sh", here / "part1")
        values = []
        for part in (1, 2):
            shutil.copytree(here / f"part{part}", there / f"part{part}")
            done = subprocess.run(["bash", there / "part1/gpu_lab.sh", "60", there / "out", *(["second"] if part == 2 else [])],
                                  capture_output=True, text=True, check=False, env={**os.environ, "TARGET": "cuda"})  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{2 - part} wait for another part", done.stdout)
            values.append({name: row["value"] for name, row in self.rows(there / "out/gpu_ledger.tsv").items()})
        self.assertEqual(values, [{"first": "of first", "plain": "here"}, {"first": "of first", "plain": "here", "second": "of second"}])
        self.assertEqual(sorted(file.name for file in (there / "out").iterdir()), ["gpu_ledger.tsv", "visit.tar.xz"])
        self.assertEqual(self.lab("merge", there / "out", here).returncode, 0)
        self.assertEqual(self.rows(self.ledger)["second"]["value"], "of second")
        self.assertEqual((here / "records/second.json").read_text(), "7\n")

    def test_nothing_is_measured_without_a_card(self):
        self.write(("a", 3, "echo value: 1"))
        env = {name: value for name, value in os.environ.items() if name != "TARGET"}
        done = subprocess.run([sys.executable, LAB, "--ledger", self.ledger, "run", "60", self.folder / "out"],
                              capture_output=True, text=True, check=False, env={**env, "PATH": "/nonexistent"})  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (1, "no NVIDIA GPU here: nothing is measured\n"))

    def test_what_is_wrong_is_said_in_a_line(self):
        self.write(("a", 3, "true"))
        for words, why in ((("run", 1, self.folder), "no row fits"), (("run", "nan", self.folder), "no row fits"), (("run", 60, self.folder, "x"), "there is no row x")):
            done = self.lab(*words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn(why, done.stderr)
        self.assertIn("unknown: --op", self.lab("list", "--op").stderr)
        self.assertIn("a part of a row's command", self.lab("compare", "--op", "matmul 8 8 8").stderr)
        self.write(("a", 3, "true"), ("a", 3, "true"))
        self.assertIn("two rows have one name", self.lab("list").stderr)
        self.write(("a", "soon", "true"))
        self.assertIn("has not the columns", self.lab("list").stderr)


if __name__ == "__main__":
    unittest.main()
