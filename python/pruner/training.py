"""Compiles the plug-in that trains cost models, once for each version of torch on this machine.

Without the plug-in the learned modes cannot train (docs/inside/model.md).
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Dict, Optional

_FOLDER = os.path.join(os.path.dirname(__file__), "plugin")
_SOURCE = os.path.join(_FOLDER, "model", "nn", "torch", "plugin.cpp")


def environment() -> Dict[str, str]:
    """Returns the environment variables that the program needs to train here. Compiles the plug-in
    if the plug-in is missing."""
    path = _plugin()
    return {} if path is None else {"PRUNER_TORCH_PLUGIN": path}


def comes_with_package() -> bool:
    """Returns whether this package has the source of the plug-in: the package is then a wheel, and
    the plug-in has to be compiled."""
    return os.path.exists(_SOURCE)


def _plugin() -> Optional[str]:
    """Returns the path of the plug-in. Compiles the plug-in if it is missing, which takes a minute.

    None: $PRUNER_TORCH_PLUGIN names a plug-in already, the package has no source of the plug-in, or
    torch or a C++ compiler is missing or fails.
    """
    if "PRUNER_TORCH_PLUGIN" in os.environ or not comes_with_package():
        return None
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None or importlib.util.find_spec("torch") is None:
        return None
    # A process of its own imports torch, because the import takes seconds and starts threads.
    facts = "import torch; print(torch.__version__, torch.__path__[0], int(torch.compiled_with_cxx11_abi()))"
    asked = subprocess.run([sys.executable, "-c", facts], capture_output=True, text=True)
    if asked.returncode != 0:
        return None
    version, root, abi = asked.stdout.strip().split(" ")
    with open(_SOURCE, "rb") as file:
        key = hashlib.sha256(file.read() + f"{version} {root} {abi}".encode()).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(cache, "pruner", f"libpruner_torch-{key}.so")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as scratch:
            made = os.path.join(scratch, "plugin.so")
            include, lib = os.path.join(root, "include"), os.path.join(root, "lib")
            command = [
                compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-w",
                f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-I", _FOLDER, "-isystem", include,
                "-isystem", os.path.join(include, "torch", "csrc", "api", "include"), _SOURCE,
                "-o", made, "-L", lib, "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}",
            ]  # fmt: skip
            if subprocess.run(command, capture_output=True).returncode != 0:
                return None
            os.replace(made, path)
    return path
