#!/usr/bin/env python3
"""Compares one module for many shapes with modules for one shape and with other runtimes, in turns.

  dynamic_shapes.py bert_base           16 seeded lengths in 1..512, one in each 32, with a mask
  dynamic_shapes.py bert_base_unmasked  the same without one
  dynamic_shapes.py resnet_50           batches of 1 to 16 images
  dynamic_shapes.py mobilenet_v2        images of 224, 256, 320 and 384

dynamic_models.py makes the files in --models. Our network is tuned once for all shapes (--trials),
then for each shape alone (--static-trials). The folder --work-dir keeps the records, so that a
rerun tunes only what is missing. ONNX Runtime and OpenVINO run the same file with open dims, with
the settings of dynamic_peers.py.

Each shape has a row with these numbers:

- the milliseconds of each contestant, as medians over the rounds
- the time of our module for many shapes over each other time (ONNX Runtime's faster time), as
  medians of the ratios within a round
- max |difference| / max |expected| to ONNX Runtime's outputs

The notes have the geometric mean and the worst shape of each ratio. The notes also compare the
tuning time and the file's size of our module for many shapes with the means of the other modules.

If a contestant fails, its column is empty and the reason is printed. The script writes
bench/results/cpu_dynamic_<what>.tsv, unless --shapes is given or a column is empty. A round counts
as in cpu_peers.py. The script needs the packages of requirements_dynamic.txt:
  python3 -m venv build/venv_peers && build/venv_peers/bin/pip install -r bench/requirements_dynamic.txt
  build/venv_peers/bin/python bench/dynamic_models.py build/dynamic_models
"""
import argparse
import contextlib
import dataclasses
import json
import pathlib
import random
import shlex
import statistics
import sys
import tempfile

import numpy as np

import dynamic_models
import dynamic_peers
import runtimes
from clean_rounds import Rounds
from peer_process import PeerProcess

MODELS = runtimes.ROOT / "build" / "dynamic_models"
BENCH_S = 0.5


@dataclasses.dataclass
class Case:
    dims: list  # arguments of --dim
    sizes: list  # sizes of each measured shape, by name; fixed dims are left out


draw = random.Random(0)
LENGTHS = [least + draw.randrange(32) for least in range(1, 513, 32)]
TEXT = Case(["batch=1", "seq=1..512@16,64,160,384"], [{"seq": length} for length in LENGTHS])
CASES = {
    "bert_base": TEXT,
    "bert_base_unmasked": TEXT,
    "resnet_50": Case(["batch=1..16@1,4,16"], [{"batch": batch} for batch in range(1, 17)]),
    "mobilenet_v2": Case([f"{dim}=224..384@224,256,320,384" for dim in ("height", "width")],
                         [{"height": size, "width": size} for size in (224, 256, 320, 384)]),
}
# Our module for many shapes is compared with each rival: the fastest of these names in a round.
RIVALS = {"static": ["static"], "onnxruntime": ["onnxruntime", "onnxruntime_default"], "openvino": ["openvino"],
          "openvino_default": ["openvino_default"]}


def in_precision(options):
    """Returns the ending of the names of runs and files: "", or the precision."""
    return "" if options.precision == "f32" else f"_{options.precision}"


def words(sizes):
    """Returns the sizes as arguments of --dim of `bench`, such as "seq=77"."""
    return [f"{name}={size}" for name, size in sizes.items()]


def sizes_of(shape):
    """Returns the sizes by name that a text such as "height=224,width=256" names."""
    return {name: int(size) for name, size in (word.split("=") for word in shape.split(","))}


class Ours:
    """Tunes and compiles the file for one shape or many."""

    def __init__(self, pruner, model, options, folder):
        self.pruner, self.options, self.folder = pruner, options, folder
        self.source = [model, "--threads", options.threads, "--precision", options.precision]
        run = f"{model.stem}_{options.threads}_threads{in_precision(options)}"
        self.work_dir = pathlib.Path(options.work_dir or folder / "work") / run

    def tune(self, shapes, trials, name):
        """Returns the path of the records, and the seconds that their tuning took. Tunes unless an
        earlier run has the records."""
        work_dir = self.work_dir / f"{name}_{trials}"
        log, run = work_dir / "run.json", {}
        if log.is_file():
            run = json.loads(log.read_text())
        if run.get("status") != "done":
            self.pruner.run("tune", *self.source, *shapes, "--n-trials", trials, "--work-dir", work_dir,
                            "-o", self.folder / "tuned.so", "--quiet")
            run = json.loads(log.read_text())
        return work_dir / "records.json", run["spent_s"]

    def module(self, shapes, trials, name):
        """Returns (path of a module, its bytes, seconds of its tuning or None)."""
        more, seconds = [], None
        if trials:
            records, seconds = self.tune(shapes, trials, name)
            more = ["--records", records]
        path = self.folder / f"{name}.so"
        self.pruner.run("compile", *self.source, *shapes, *more, "-o", path)
        return path, path.stat().st_size, seconds

    def dynamic(self, dims):
        shapes = [word for dim in dims for word in ("--dim", dim)]
        return self.module(shapes, self.options.trials, "dynamic_" + "_".join(dims))

    def static(self, feeds, sizes):
        shapes = ",".join(f"{name}:{'x'.join(map(str, array.shape))}" for name, array in feeds.items())
        return self.module(["--input-shapes", shapes], self.options.static_trials,
                           "static_" + ",".join(words(sizes)))


class Contest:
    """The contestants: our modules and the peers. `reasons` has the reasons, by name, why a
    contestant is missing."""

    def __init__(self, pruner, model, case, options, folder):
        self.pruner, self.case, self.options, self.folder = pruner, case, options, folder
        self.network = model.stem.removesuffix("_script")
        self.ours = Ours(pruner, model, options, folder)
        self.rounds = Rounds(pruner, options.threads)
        self.peers, self.reasons, self.dynamic = {}, {}, None
        with self.reason("dynamic"):
            self.dynamic = self.ours.dynamic(case.dims)

    @contextlib.contextmanager
    def reason(self, name):
        try:
            yield
        except RuntimeError as error:
            self.reasons.setdefault(name, str(error))
            print(f"dynamic_shapes.py: no {name}: {error}", file=sys.stderr, flush=True)

    def start_peers(self, stack, model):
        script = pathlib.Path(__file__).with_name("dynamic_peers.py")
        for name in dynamic_peers.RUNTIMES:
            with self.reason(name):
                self.peers[name] = PeerProcess(script, name, model, self.options.threads)
                stack.callback(self.peers[name].close)

    def turn_of_module(self, module, place, feeds, name, dims=()):
        """Returns a call that times one of our modules. Writes the module's outputs to
        <name>.npz."""
        np.savez(place / f"{name}.npz", **self.pruner.infer(module, feeds))

        def turn():
            return self.pruner.median_ms(module, self.options.threads, BENCH_S, dims)
        turn()
        return turn

    def turn_of_peer(self, name, place):
        def turn():
            return self.peers[name].measure(place)
        turn()
        return turn

    def compare(self, sizes):
        """Measures one shape and returns its row."""
        shape = ",".join(words(sizes))
        place = self.folder / shape
        place.mkdir()
        feeds = dynamic_models.feeds(self.network, sizes)
        np.savez(place / "inputs.npz", **feeds)
        static, static_bytes, static_s = self.ours.static(feeds, sizes)
        turns = {}
        if self.dynamic:
            with self.reason(f"dynamic at {shape}"):
                turns["dynamic"] = self.turn_of_module(self.dynamic[0], place, feeds, "dynamic", words(sizes))
        turns["static"] = self.turn_of_module(static, place, feeds, "static")
        for name in list(self.peers):
            with self.reason(f"{name} at {shape}"):
                turns[name] = self.turn_of_peer(name, place)
        times, clean, dropped = self.rounds.run(turns, self.options.rounds)
        static.unlink()
        return {"shape": shape, **self.figures(times), **self.differences(place, turns),
                "static_mb": 1e-6 * static_bytes, "static_tuning_s": static_s, "rounds": clean, "dropped": dropped}

    def figures(self, times):
        row = {f"{name}_ms": statistics.median(times[name]) if name in times else None
               for name in ("dynamic", "static", *dynamic_peers.RUNTIMES)}
        for rival, names in RIVALS.items():
            columns = [times[name] for name in ("dynamic", *names) if name in times]
            ratios = [ours / min(theirs) for ours, *theirs in zip(*columns)] if len(columns) > 1 else []
            row[f"over_{rival}"] = statistics.median(ratios) if "dynamic" in times and ratios else None
        return row

    def differences(self, place, turns):
        """Returns the relative differences to the outputs of ONNX Runtime, of the run without
        options if the other run is missing."""
        found = {name: load(place / f"{name}.npz") for name in turns}
        expected = found.get("onnxruntime") or found.get("onnxruntime_default")
        return {f"{name}_difference": runtimes.relative_difference(found[name], expected)
                if expected and name in found else None
                for name in ("dynamic", "static", "openvino", "openvino_default")}

    def notes(self, rows):
        """Returns the notes of the table: the ratios, the size and time of our module,
        precisions."""
        lines = []
        for rival in RIVALS:
            ratios = {row["shape"]: row[f"over_{rival}"] for row in rows if row[f"over_{rival}"]}
            if ratios:
                worst = max(ratios, key=ratios.get)
                lines.append(f"dynamic over {rival}: {statistics.geometric_mean(ratios.values()):.3f}, "
                             f"worst {ratios[worst]:.3f} at {worst}; shapes: {len(ratios)}")
        if self.dynamic:
            _, size, seconds = self.dynamic
            one_mb = statistics.mean(row["static_mb"] for row in rows)
            lines.append(f"file: {1e-6 * size:.1f} MB, {1e-6 * size / one_mb:.3f} of one shape's")
            if seconds and self.options.static_trials:
                one_s = statistics.mean(row["static_tuning_s"] for row in rows)
                lines.append(f"tuning: {seconds:.0f} s, {seconds / one_s:.2f} of one shape's "
                             f"({self.options.trials} trials, {self.options.static_trials})")
        precisions = [f"{name} {peer.ready['precision']}" for name, peer in self.peers.items()]
        lines.append(f"they compute in: {', '.join(precisions)}")
        return lines + [f"no {name}: {reason}" for name, reason in self.reasons.items()]


def load(path):
    with np.load(path) as arrays:
        return dict(arrays)


def compare_shapes(pruner, options, folder):
    case = CASES[options.what]
    if options.dim:
        case = dataclasses.replace(case, dims=options.dim)
    model = options.models / f"{options.what}{'_script' if options.script else ''}.onnx"
    if not model.is_file():
        raise RuntimeError(f"{model}: no such file; bench/dynamic_models.py {options.models} makes it")
    shapes = options.shapes or case.sizes
    contest = Contest(pruner, model, case, options, folder)
    with contextlib.ExitStack() as stack:
        contest.start_peers(stack, model)
        rows = []
        for sizes in shapes:
            rows.append(contest.compare(sizes))
            print(", ".join(f"{key} {runtimes.cell(value)}" for key, value in rows[-1].items() if value is not None),
                  file=sys.stderr, flush=True)
    whole = not options.shapes and not contest.reasons
    runtimes.report(f"cpu_dynamic_{model.stem}{in_precision(options)}",
                    shlex.join(["bench/dynamic_shapes.py", *sys.argv[1:]]), rows, keep=whole, notes=contest.notes(rows))
    if contest.reasons:
        raise RuntimeError(f"without {', '.join(contest.reasons)}; nothing was written")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=CASES)
    parser.add_argument("--models", type=pathlib.Path, default=MODELS, help="folder of dynamic_models.py's files")
    parser.add_argument("--script", action="store_true", help="the file of the older exporter")
    parser.add_argument("--dim", action="append", metavar="NAME=RANGE", help="all of them, in place of the usual ones")
    parser.add_argument("--precision", default="f32", help="of ours; OpenVINO's default is bf16 where the machine has it")
    parser.add_argument("--trials", type=int, default=300, help="of the one module; 0: nothing is tuned")
    parser.add_argument("--static-trials", type=int, default=300, help="of each shape's module")
    parser.add_argument("--work-dir", help="where tuning runs are left, and gone on from; default: nowhere")
    parser.add_argument("--shapes", nargs="+", type=sizes_of, metavar="SHAPE",
                        help="others to measure, e.g. seq=77, or height=300,width=225; writes no file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", help="default: build/release/pruner")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dynamic_") as folder:
        try:
            compare_shapes(runtimes.Pruner(options.program), options, pathlib.Path(folder))
        except RuntimeError as error:
            sys.exit(f"dynamic_shapes.py: {error}")


if __name__ == "__main__":
    main()
