"""Pruner as an execution provider of ONNX Runtime: the parts of a network that Pruner compiles run as its
modules, the others as before.

    import onnxruntime as ort, onnxruntime_ep_pruner as pruner
    session = ort.InferenceSession("model.onnx", pruner.session_options(threads=4))

In other languages: register get_library_path() and choose the devices whose provider is get_ep_name().
"""

import os
from typing import List

__all__ = ["devices", "get_ep_name", "get_ep_names", "get_library_path", "session_options"]

_REGISTERED = "pruner"
# The options of the provider (plugins/onnxruntime/settings.h).
_OPTIONS = (
    "program", "records", "budget", "precision", "denormals", "numerics", "cache_dir", "threads", "min_nodes", "dims",
)  # fmt: skip


def get_library_path() -> str:
    """The library that register_execution_provider_library() takes: $PRUNER_ONNXRUNTIME_LIBRARY, or the
    package's own."""
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpruner_onnxruntime.so")
    return os.environ.get("PRUNER_ONNXRUNTIME_LIBRARY") or bundled


def get_ep_name() -> str:
    """The provider's name."""
    return "PrunerExecutionProvider"


def get_ep_names() -> List[str]:
    """The names of the library's providers."""
    return [get_ep_name()]


def devices() -> list:
    """The devices of add_provider_for_devices(): this machine's CPU. Registers the library the first time."""
    import onnxruntime

    def ours():
        return [each for each in onnxruntime.get_ep_devices() if each.ep_name == get_ep_name()]

    if not ours():
        onnxruntime.register_execution_provider_library(_REGISTERED, get_library_path())
    return ours()


def session_options(options=None, **provider):
    """Session options with the provider: `options`, or new ones.

    provider: records (file of `pruner tune`), budget (time to tune each part for, as "3m"), threads,
    precision ("f32", "bf16", "auto"), denormals ("flush", "keep"), numerics ("onnx", "ort"), dims
    ("batch=4,seq=128": what open dimensions are until a run says it), cache_dir, min_nodes (smaller
    parts stay with ONNX Runtime), program (the program pruner). None: as if it were not given.
    TypeError: an option that is none of these.
    """
    unknown = sorted(set(provider) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"options {', '.join(unknown)} are unknown; there are {', '.join(_OPTIONS)}")
    import onnxruntime

    options = options or onnxruntime.SessionOptions()
    given = {key: str(value) for key, value in provider.items() if value is not None}
    options.add_provider_for_devices(devices(), given)
    return options
