"""Imports torch and the package of this checkout, for tests; a process whose torch is older than 2.11 ends with the
code 77, which ctest takes for "skipped"."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
try:
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11):
        raise ImportError
except ImportError:
    print("torch 2.11 or newer is not here")
    sys.exit(77)
