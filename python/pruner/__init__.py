"""Runs modules made by `pruner compile`: numpy (or anything with DLPack) in, numpy out.

    import pruner
    module = pruner.Module("resnet_50.so")
    scores, = module(image)

Needs numpy only; the module is loaded with ctypes, so nothing has to be built.
"""

from pruner.module import KernelTime, Module, TensorSpec

__all__ = ["KernelTime", "Module", "TensorSpec"]
