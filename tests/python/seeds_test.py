"""The published command lines of Pruner and of Transfer-Tuning, letter by letter, in a copy of
examples/seeds. PRUNER says where the program is. Lines for a GPU run up to the refusal of the
device, the others run at tiny size. Needs Python's standard library alone."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "research" / "seeds.md"

TUNE = "python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model"
A100 = '--target "cuda --model=a100"'
# Lines without weights, then lines with weights.
ONLINE = [f"{TUNE} pam {A100} --psa a100_40", f"{TUNE} mlp {A100}"]
WITH_WEIGHTS = [
    f"{TUNE} pam-siamese-update --load-model pam_k80_1500.pkl {A100} --psa a100_40",
    f"{TUNE} pam-no-update --load-model pam_finetune.pkl {A100} --psa a100_40",
    f"{TUNE} pam-no-update --load-model fine_tune_pam_a100.pkl {A100} --psa a100_40",
    f"{TUNE} mlp-no-update --load-model mlp_finetune.pkl {A100}",
]
# The tutorial names weights of a PaCM for TenSetMLP.
WRONG_WEIGHTS = f"{TUNE} mlp-no-update --load-model pam_finetune.pkl {A100}"
MAKE = ("python make_dataset.py --logs ./dataset/measure_records/k80/*.json --hold-out all_five "
        "--out-file dataset_pam_k80_500.pkl --pam 1 --sample-in-files 500")
TRAIN = "python3 pruner_train_model.py --dataset dataset_pam_k80_500.pkl --model pam"
FINE_TUNE = "python3 fine_tune_model.py --dataset pam_a100_dataset.pkl --load-model pam_k80_1500.pkl"

MODEL_SET = r"""python3 src/scripts/generate_model_set.py \
    --model_set chocolate"""
ANSOR = r"""python3 src/scripts/autoschedule_models.py \
   --model_path models/chocolate \
   --ntrials 20000 \
   --device_name xeon_cpu \
   --output_dir data/raw/chocolate"""
DISTIL = r"""python3 src/scripts/distil_logfiles.py \
    --log_file_dir data/raw/chocolate"""
TASKS = r"""python3 src/scripts/generate_task_info.py \
    --network_dir models/chocolate \
    --device_name xeon_cpu"""
SPLIT = r"""python3 src/scripts/split_logfiles.py \
    --log_file_dir data/raw/chocolate \
    --network_dir models/chocolate \
    --output_dir data/processed/split_logs/chocolate"""
ONE = r"""python3 src/scripts/tt_single_model_pact.py \
    --model_name mobilenetv2 \
    --tt_model_name efficentnetb4 \
    --split_log_file_dir data/processed/split_logs/chocolate \
    --model_path models/chocolate \
    --device_name xeon_cpu"""
ALL = r"""python3 src/scripts/tt_multi_models_pact.py \
    --split_log_file_dir data/processed/split_logs/chocolate/ \
    --model models/chocolate \
    --device_name xeon_cpu"""
ANSOR_IN_THAT_TIME = r"""python3 src/scripts/autoschedule_models.py \
     --model_path models/chocolate \
     --output_dir data/raw/chocolate_tt_ansor \
     --ntrials 8000 \
     --device_name xeon_cpu \
     --tt_path /workspace/data/results/tt_multi_models \
     --minute_check"""
PLOT = "python3 src/visualization/visualize.py"
LINES = [*ONLINE, *WITH_WEIGHTS, WRONG_WEIGHTS, MAKE, TRAIN, FINE_TUNE,
         MODEL_SET, ANSOR, DISTIL, TASKS, SPLIT, ONE, ALL, ANSOR_IN_THAT_TIME, PLOT]

# A small network under the name that the published lines have. Each network that is tuned takes the
# test some nine seconds, so the records of this network also stand for those of its source.
SOURCE = "efficentnetb4"
TINY_SET = {"mobilenetv2": {"network": "dcgan", "image-size": 32, "from": SOURCE}}


class Seeds(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.seeds = self.folder / "seeds"
        shutil.copytree(ROOT / "examples" / "seeds", self.seeds)
        programs = self.folder / "bin"
        programs.mkdir()
        for name, path in (("python", sys.executable), ("python3", sys.executable), ("pruner", os.environ["PRUNER"])):
            (programs / name).write_text(f'#!/bin/sh\nexec "{path}" "$@"\n')
            (programs / name).chmod(0o755)
        # CUDA_VISIBLE_DEVICES hides a GPU of this machine, where the lines would tune for hours.
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "",
                            "PRUNER_SEEDS_TRIALS": "8", "PYTHONDONTWRITEBYTECODE": "1"}
        del self.environment["PRUNER"]

    def run_line(self, line):
        return subprocess.run(["bash", "-c", line], cwd=self.seeds, env=self.environment, text=True,
                              capture_output=True, timeout=120)

    def has(self, part):
        """Returns whether the program has a part, by its row in `pruner doctor`."""
        rows = json.loads(self.expect_run("pruner doctor --look-s 0.02 --json"))
        return {row["part"]: row["found"] for row in rows}[part]

    def expect_run(self, line):
        done = self.run_line(line)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
        return done.stdout

    def expect_refusal(self, line, words):
        """Runs a line, which has to fail with one line that contains `words`."""
        done = self.run_line(line)
        self.assertEqual(done.returncode, 2, f"{line}\n{done.stdout}{done.stderr}")
        said = [text for text in done.stderr.splitlines() if "warning:" not in text]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(words, said[0])
        return said[0]


class Refusals(Seeds):
    def test_lines_without_weights_run_up_to_the_device(self):
        # Without LibTorch, the modes that train are refused before the device is looked for.
        words = "pruner: --target: " if self.has("training by LibTorch") else "training needs"
        for line in ONLINE:
            self.expect_refusal(line, words)
        command = self.run_line(ONLINE[0]).stdout
        self.assertEqual(command, "$ pruner tune --network resnet_50 --n-trials 8 --cost-model pam "
                                  "--target 'cuda --model=a100' --psa a100_40 --fresh\n")

    def test_missing_files_name_the_line_that_makes_them(self):
        for line in WITH_WEIGHTS:
            self.expect_refusal(line, "this line makes it: pruner ")
        self.expect_refusal(MAKE, "pruner dataset collect")
        self.expect_refusal(TRAIN, "this line makes one of records: python make_dataset.py")
        self.expect_refusal(FINE_TUNE, "-o pam_k80_1500.pkl")
        self.expect_refusal(ANSOR, "src/scripts/generate_model_set.py --model_set chocolate")
        self.expect_refusal(DISTIL, "src/scripts/autoschedule_models.py --output_dir data/raw/chocolate makes them")
        self.expect_refusal(PLOT, "src/scripts/tt_multi_models_pact.py makes them")

    def test_unknown_flags_and_values_are_errors(self):
        self.expect_refusal("python3 tune_network.py --network resnet_50 --trials 5",
                            "unrecognized arguments: --trials 5")
        self.expect_refusal(MODEL_SET.replace("chocolate", "vanilla"), "--model_set: expected chocolate, found vanilla")
        self.expect_refusal(ANSOR.replace("xeon_cpu", "pi"), "expected xeon_cpu")
        self.environment["PRUNER_SEEDS_TRIALS"] = "few"
        self.expect_refusal(ONLINE[0], "expected a number, found 'few'")

    def test_flags_without_effect_say_so(self):
        said = self.run_line(f"{ONLINE[0]} --run-timeout 25 --log-file a100.json").stdout
        self.assertIn("--run-timeout: no effect: ", said)
        self.assertIn("--log-file: no effect: the records lie in out_NETWORK/records.json", said)

    def test_a_program_that_is_not_there_is_named(self):
        self.environment["PRUNER"] = "no/pruner"
        self.expect_refusal(ONLINE[0], "no/pruner: No such file or directory; PRUNER names the program")

    def test_the_page_shows_every_line(self):
        words = " ".join(PAGE.read_text(encoding="utf-8").replace("\\\n", " ").split())
        for line in LINES:
            self.assertIn(" ".join(line.replace("\\\n", " ").split()), words)


class OfPruner(Seeds):
    def test_run_from_records_to_the_device(self):
        logs = "dataset/measure_records/k80"
        (self.seeds / logs).mkdir(parents=True)
        self.expect_run("pruner dataset collect --op 'matmul 16 16 16' --op 'dense 8 16 16 +bias' "
                        f"--programs-per-task 48 -o {logs}/two_tasks.json")
        self.assertIn("--pam: no effect: the file has the features of every model", self.expect_run(MAKE))
        if not self.has("training by LibTorch"):
            self.expect_refusal(TRAIN, "training needs")
            self.skipTest("no LibTorch: no model is trained")
        self.assertIn("./ckpt/k80/500/1/pam_k80_2_2.pkl: trained on", self.expect_run(TRAIN))
        shutil.copy(self.seeds / "dataset_pam_k80_500.pkl", self.seeds / "pam_a100_dataset.pkl")
        for line in WITH_WEIGHTS:
            # Each line is refused at first, and the line that the refusal names makes the weights.
            refusal = self.expect_refusal(line, "this line makes it: ")
            self.expect_run(refusal.split("this line makes it: ")[1] + " --epochs 2")
            self.expect_refusal(line, "pruner: --target: ")
        self.assertIn("./ckpt/a100/500k/1/fine_tune_pam_a100_2_2.pkl: trained on", self.expect_run(FINE_TUNE))
        self.expect_refusal(WRONG_WEIGHTS, "pam_finetune.pkl: weights of pacm, expected tenset-mlp")


class OfTransferTuning(Seeds):
    def test_run_from_the_networks_to_the_figures(self):
        if not self.has("training by xgboost"):
            self.skipTest("no xgboost: Ansor's search has no model")
        (self.seeds / "model_sets" / "chocolate.json").write_text(json.dumps(TINY_SET))
        self.assertIn("$ pruner networks export dcgan --image-size 32 -o models/chocolate/mobilenetv2.onnx",
                      self.expect_run(MODEL_SET))
        self.assertIn("--device_name xeon_cpu: the CPU of this machine", self.expect_run(ANSOR))
        self.expect_run(TASKS)
        tasks = len(json.loads((self.seeds / "models/chocolate/mobilenetv2_tasks.json").read_text()))
        self.assertIn(f"{tasks} tasks, 0 of them without a valid record", self.expect_run(DISTIL))
        self.assertIn(f"{tasks} records in {tasks} files", self.expect_run(SPLIT))
        self.expect_refusal(ONE, f"no records of {SOURCE}; tune {SOURCE}")
        split = self.seeds / "data/processed/split_logs/chocolate"
        shutil.copytree(split / "mobilenetv2", split / SOURCE)
        self.assertRegex(self.expect_run(ONE),
                         r"mobilenetv2: \S+ ms untuned, \S+ ms with the schedules of efficentnetb4")
        self.assertIn("written: data/results/tt_multi_models/mobilenetv2.json", self.expect_run(ALL))
        said = self.expect_run(ANSOR_IN_THAT_TIME)
        self.assertIn("/workspace/data/results/tt_multi_models: taken as data/results/tt_multi_models", said)
        self.assertRegex(said, r"mobilenetv2: \S+ x by the transfer in \S+ s; \S+ x by Ansor in the same time")
        self.assertRegex(self.expect_run(PLOT), r"\| mobilenetv2 \| \d")
        for name in ("fig_5a.svg", "fig_5b.svg"):
            figure = xml.etree.ElementTree.parse(self.seeds / "data/results" / name)
            self.assertIn("mobilenetv2", [text.text for text in figure.iter("{http://www.w3.org/2000/svg}text")])


if __name__ == "__main__":
    unittest.main()
