"""Pruner from Python: tune and compile networks, run modules on numpy arrays, torch tensors or
anything with DLPack.

    import pruner
    result = pruner.tune("model.onnx", budget="3m")
    scores, = result.module(image)

    module = pruner.compile("model.onnx")                 # in seconds, without tuning
    fast = torch.compile(model, backend="pruner")         # needs torch; see pruner.torch
"""

from pruner._program import PrunerError, version
from pruner.module import KernelTime, Module, Phase, TensorSpec
from pruner.progress import Progress
from pruner.tuning import Point, Record, Result, Task, compare, compile, records, tune

__all__ = [
    "KernelTime",
    "Module",
    "Phase",
    "Point",
    "Progress",
    "PrunerError",
    "Record",
    "Result",
    "Task",
    "TensorSpec",
    "compare",
    "compile",
    "records",
    "tune",
    "version",
]
