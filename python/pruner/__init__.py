"""The package pruner tunes and compiles networks, and runs the compiled modules.

A module takes numpy arrays, torch tensors, or anything with DLPack.

    import pruner
    result = pruner.tune("model.onnx", budget="3m")
    scores, = result.module(image)

    module = pruner.compile("model.onnx")                 # in seconds, without tuning
    fast = torch.compile(model, backend="pruner")         # needs torch; see pruner.torch

Every failure of the program pruner is a PrunerError.
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
