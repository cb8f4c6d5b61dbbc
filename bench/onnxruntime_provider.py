"""Compares networks in our provider for ONNX Runtime with modules alone and ONNX Runtime's kernels.

    python bench/onnxruntime_provider.py [NETWORK ...] --program build/release/pruner -o results.tsv

The networks are the built-in networks or ONNX files, with 0 trials, on all threads of the machine.
Each network has a row with these numbers:

- the median milliseconds, in turns, of the session with the provider, of the same module called by
  itself, and of ONNX Runtime
- the ratios of these times
- the microseconds that a call of the session costs over the module
- the largest difference from ONNX Runtime, in parts of the largest output
- the number of nodes that stay with ONNX Runtime
- the seconds until the session is ready
"""

import argparse
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = (
    "network provider_ms module_ms onnxruntime_ms over_module over_onnxruntime call_us error left session_s"
).split()
SIZES = {"gpt2": ["--seq-len", "128"], "llama_135m": ["--seq-len", "128"]}


def built_in(program):
    listed = subprocess.run([program, "networks", "--json"], check=True, capture_output=True, text=True)
    import json

    return [each if isinstance(each, str) else each["name"] for each in json.loads(listed.stdout)]


def inputs_of(session, rng):
    import numpy as np

    kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    feeds = {}
    for each in session.get_inputs():
        if each.type == "tensor(float)":
            feeds[each.name] = rng.standard_normal(each.shape).astype(np.float32)
        else:
            feeds[each.name] = rng.integers(0, 2, each.shape).astype(kinds[each.type])
    return feeds


def measure(name, program, rounds, seconds):
    import numpy as np
    import onnx
    import onnxruntime as ort

    import onnxruntime_ep_pruner as provider
    import pruner

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = name
        if not name.endswith(".onnx"):
            path = os.path.join(folder, "model.onnx")
            sizes = SIZES.get(name, [])
            subprocess.run([program, "networks", "export", name, *sizes, "-o", path], check=True)
        own = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        feeds = inputs_of(own, rng)
        expected = own.run(None, feeds)

        cache = os.path.join(folder, "cache")
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(folder, "profile")
        start = time.perf_counter()
        session = ort.InferenceSession(
            path, provider.session_options(options, program=program, cache_dir=cache)
        )
        session_s = time.perf_counter() - start
        found = session.run(None, feeds)
        with open(session.end_profiling()) as file:
            left = sum('"provider":"CPUExecutionProvider"' in line.replace(" ", "") for line in file)
        error = max(
            float(np.abs(ours.astype(np.float64) - theirs).max()) / max(1e-9, float(np.abs(theirs).max()))
            for ours, theirs in zip(found, expected)
        )
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(
            path, provider.session_options(options, program=program, cache_dir=cache)
        )
        calls = {"provider": bound(session, feeds), "onnxruntime": bound(own, feeds)}
        modules = glob.glob(os.path.join(cache, "*", "*.so"))
        if len(modules) == 1:
            module = pruner.Module(modules[0])
            ours = [aligned(feeds[each.name]) for each in module.inputs]
            outs = [aligned(array) for array in (np.zeros(o.shape, np.dtype(o.dtype)) for o in module.outputs)]
            places = [x.ctypes.data for x in ours], [y.ctypes.data for y in outs]
            calls["module"] = lambda: module.run_pointers(*places)
        times = {each: [] for each in calls}
        for _ in range(rounds):
            for each, call in calls.items():
                time.sleep(0.05)  # ONNX Runtime's threads spin for a while
                call()
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    start = time.perf_counter()
                    call()
                    times[each].append(time.perf_counter() - start)
    ms = {each: statistics.median(found) * 1e3 for each, found in times.items()}
    alone = ms.get("module", float("nan"))
    return [
        os.path.basename(name), ms["provider"], alone, ms["onnxruntime"], ms["provider"] / alone,
        ms["provider"] / ms["onnxruntime"], (ms["provider"] - alone) * 1e3, error, left, session_s,
    ]  # fmt: skip


def aligned(array):
    """Returns a copy at an address that is a multiple of 64 bytes, like ONNX Runtime's tensors."""
    import numpy as np

    space = np.empty(array.nbytes + 64, np.uint8)
    first = -space.ctypes.data % 64
    copy = space[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def bound(session, feeds):
    """Returns a call whose tensors are ONNX Runtime's own, so that Python copies nothing."""
    import onnxruntime as ort

    binding = session.io_binding()
    kept = [ort.OrtValue.ortvalue_from_numpy(array) for array in feeds.values()]
    for name, tensor in zip(feeds, kept):
        binding.bind_ortvalue_input(name, tensor)
    session.run(None, feeds)
    for each, array in zip(session.get_outputs(), session.run(None, feeds)):
        tensor = ort.OrtValue.ortvalue_from_numpy(array)
        kept.append(tensor)
        binding.bind_ortvalue_output(each.name, tensor)
    return lambda: session.run_with_iobinding(binding) and kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/pruner"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each, a round")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--out")
    given = parser.parse_args()
    program = os.path.abspath(given.program)
    sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "python", "onnxruntime")]
    library = os.path.join(os.path.dirname(program), "libpruner_onnxruntime.so")
    os.environ.setdefault("PRUNER_ONNXRUNTIME_LIBRARY", library)
    os.environ["PRUNER"] = program
    if given.one:
        row = measure(given.networks[0], program, given.rounds, given.seconds)
        print("\t".join(each if isinstance(each, str) else f"{each:.4g}" for each in row))
        return
    lines = ["\t".join(COLUMNS)]
    print(lines[0])
    for name in given.networks or built_in(program):
        command = [sys.executable, __file__, name, "--one", "--program", program]
        command += ["--rounds", str(given.rounds), "--seconds", str(given.seconds)]
        ran = subprocess.run(command, capture_output=True, text=True)
        last = (ran.stdout if ran.returncode == 0 else f"{name}\tfailed: {ran.stderr}").strip()
        lines.append(last.splitlines()[-1] if ran.returncode == 0 else last.replace("\n", " ")[:400])
        print(lines[-1], flush=True)
    if given.out:
        with open(given.out, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
