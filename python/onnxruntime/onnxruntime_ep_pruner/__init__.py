"""Registers Pruner as an execution provider of ONNX Runtime.

The parts of a network that Pruner compiles run as Pruner's modules. The other parts run as before.

    import onnxruntime as ort, onnxruntime_ep_pruner as pruner
    session = ort.InferenceSession("model.onnx", pruner.session_options(threads=4))

Programs in other languages register the library at get_library_path() and choose the devices whose
provider is get_ep_name().
"""

import os
from typing import List

__all__ = ["devices", "get_ep_name", "get_ep_names", "get_library_path", "session_options"]

_REGISTERED = "pruner"
# The names of the provider's options (plugins/onnxruntime/settings.h).
_OPTIONS = (
    "program", "records", "budget", "precision", "denormals", "numerics", "cache_dir", "threads", "min_nodes", "dims",
)  # fmt: skip


def get_library_path() -> str:
    """Returns the path of the library that register_execution_provider_library() takes:
    $PRUNER_ONNXRUNTIME_LIBRARY, or the library in this package."""
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpruner_onnxruntime.so")
    return os.environ.get("PRUNER_ONNXRUNTIME_LIBRARY") or bundled


def get_ep_name() -> str:
    """Returns the name of the provider."""
    return "PrunerExecutionProvider"


def get_ep_names() -> List[str]:
    """Returns the names of the library's providers, a list of one."""
    return [get_ep_name()]


def devices() -> list:
    """Returns the devices for add_provider_for_devices(): the CPU of this machine. The first call
    registers the library."""
    import onnxruntime

    def ours():
        return [each for each in onnxruntime.get_ep_devices() if each.ep_name == get_ep_name()]

    if not ours():
        onnxruntime.register_execution_provider_library(_REGISTERED, get_library_path())
    return ours()


def session_options(options=None, **provider):
    """Adds the provider to `options`, or to new session options, and returns these options.

    The keywords are the provider's options. An option that is None counts as not given.

    records: the record file of `pruner tune`; the modules take its schedules.
    budget: the time to tune each part before the session is ready, such as "3m".
    threads: the number of threads of each run.
    precision: "f32", "bf16" or "auto".
    denormals: "flush" or "keep".
    numerics: "onnx" or "ort".
    dims: the extents of open dimensions until a run tells them, such as "batch=4,seq=128".
    cache_dir: the folder of the modules of parts that were seen before.
    min_nodes: the least number of nodes of a part. A smaller part without a product stays with ONNX
        Runtime.
    program: the path of the program pruner.

    Raises TypeError if a keyword is none of these options.
    """
    unknown = sorted(set(provider) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"options {', '.join(unknown)} are unknown; there are {', '.join(_OPTIONS)}")
    import onnxruntime

    options = options or onnxruntime.SessionOptions()
    given = {key: str(value) for key, value in provider.items() if value is not None}
    options.add_provider_for_devices(devices(), given)
    return options
