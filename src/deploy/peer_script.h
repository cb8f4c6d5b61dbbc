// A program for Python that runs ONNX Runtime beside a module.
#pragma once

namespace pruner {

/// Arguments: the model, an .npz file of its inputs by name, one to write its outputs to, threads.
/// The first line of standard output is {"name"} or {"error"}; then, for each line "WARM_UP RUNS
/// SECONDS" of standard input, a list of seconds.
inline constexpr const char* kPeerScript = R"PYTHON(
import ctypes, json, os, signal, statistics, sys, time

ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # stopped, it would outlive its parent
answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
os.dup2(2, 1)
model, inputs, outputs, threads = sys.argv[1:4] + [int(sys.argv[4])]


def answer(what):
    print(json.dumps(what), file=answers, flush=True)


def fail(words):
    answer({"error": " ".join(str(words).split())})
    sys.exit(1)


try:
    import numpy, onnxruntime
except ImportError as error:
    fail(f"Python lacks what the peer needs: {error} ({sys.executable}); set PRUNER_PYTHON to one "
         "with onnxruntime and numpy")


def seconds_of(call, warm_up, runs, seconds):
    for _ in range(warm_up):
        call()
    times, begin = [], time.perf_counter()
    while len(times) < runs or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def prepare(spins):
    """A call whose tensors are ONNX Runtime's own: Python copies nothing."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", spins)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    with numpy.load(inputs) as given:
        feeds = {each.name: given[each.name] for each in session.get_inputs()}
    kept = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    for name, tensor in kept.items():
        binding.bind_ortvalue_input(name, tensor)
    names = [each.name for each in session.get_outputs()]
    found = dict(zip(names, session.run(names, feeds)))
    for name, array in found.items():
        kept[name + "/output"] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_output(name, kept[name + "/output"])
    return found, lambda: session.run_with_iobinding(binding) and kept


try:
    calls = {}
    for spins, words in ("1", "threads that spin"), ("0", "threads that sleep"):
        found, calls[words] = prepare(spins)
    numpy.savez(outputs, **found)
    first = {words: statistics.median(seconds_of(call, 2, 5, 0.3)) for words, call in calls.items()}
except Exception as error:
    fail(error)
setting = min(first, key=first.get)
call = calls[setting]
calls.clear()
answer({"name": f"onnxruntime {onnxruntime.__version__}, {setting}"})
for line in sys.stdin:
    warm_up, runs, seconds = line.split()
    answer(seconds_of(call, int(warm_up), int(runs), float(seconds)))
)PYTHON";

}  // namespace pruner
