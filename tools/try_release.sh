#!/usr/bin/env bash
# try_release.sh FOLDER: tries the wheels and packages of a folder (tools/release.sh) in bare Debian
# systems. The script needs root and mmdebstrap, and takes five minutes. SUITES names the suites;
# each suite has its own Python. The Debian packages are tried only in the suite of this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(cd "$1" && pwd)
suites=${SUITES:-bookworm trixie sid}

# These commands run in a bare system, which has no compiler and none of our Python packages.
debian='
apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends /release/pruner_*.deb >/dev/null
if command -v cc; then exit 1; fi
cd "$(mktemp -d)"
pruner --version && pruner compile --network resnet_18 -o r.so && pruner bench --module r.so --min-time 1'
wheels='
apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends python3-venv >/dev/null
if command -v cc; then exit 1; fi
python3 --version && python3 -m venv /venv && cd "$(mktemp -d)"
/venv/bin/pip install -q /release/pruner-*.whl /release/onnxruntime_ep_pruner-*.whl
/venv/bin/python /release/try.py
/venv/bin/pip install -q onnxruntime && /venv/bin/python /release/try_provider.py
python3 -m venv /venv2 && /venv2/bin/pip install -q /release/pruner_runtime-*.whl
/venv2/bin/python -c "import numpy, pruner; print(pruner.Module(\"net.so\")(numpy.ones((1, 3, 224, 224), \"f\"))[0].shape)"'
cat >"$folder/try.py" <<'END'
import time

start = time.time()
import numpy
import pruner

module = pruner.compile("resnet_50", path="net.so")
(scores,) = module(numpy.ones((1, 3, 224, 224), numpy.float32))
assert scores.shape == (1, 1000) and numpy.isfinite(scores).all()
print(f"ResNet-50 compiled and run: {time.time() - start:.1f} s")
END
cat >"$folder/try_provider.py" <<'END'
import subprocess

import numpy
import onnxruntime
import onnxruntime_ep_pruner
from pruner import _program

subprocess.run([_program.path(), "networks", "export", "mobilenet_v2", "-o", "net.onnx"], check=True)
session = onnxruntime.InferenceSession("net.onnx", onnxruntime_ep_pruner.session_options())
feed = {session.get_inputs()[0].name: numpy.ones((1, 3, 224, 224), numpy.float32)}
own = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
difference = numpy.abs(session.run(None, feed)[0] - own.run(None, feed)[0]).max()
assert session.get_providers()[0] == "PrunerExecutionProvider" and difference < 1e-3, difference
print(f"onnxruntime {onnxruntime.__version__}: differs by {difference:.1e}")
END
trap 'rm -f "$folder"/try.py "$folder"/try_provider.py' EXIT
for suite in $suites; do
  echo "== $suite"
  tools/bare_root.sh "$suite" "$folder" "$wheels"
  if [ "$suite" = "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" ]; then
    tools/bare_root.sh "$suite" "$folder" "$debian"
  fi
done
