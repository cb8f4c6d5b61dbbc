#!/usr/bin/env bash
# release.sh FOLDER: makes what a release is made of, and tries each part where nothing else is installed: wheels of
# the program (pruner), of its modules' runtime (pruner-runtime) and of the provider for ONNX Runtime
# (onnxruntime-ep-pruner), Debian packages, and the container's image where docker runs. As root, in a clean
# checkout whose build/release is built; half an hour. SUITES: the Debian suites, each with its Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$1"
folder=$(cd "$1" && pwd)
suites=${SUITES:-bookworm trixie sid}

# One version, which the changelog has a section of.
version=$(sed -n 's/^project(pruner VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for file in pyproject.toml python/pyproject.toml python/onnxruntime/pyproject.toml; do
  grep -qx "version = \"$version\"" "$file" || {
    echo "$file is not of version $version"
    exit 1
  }
done
grep -q "pruner_onnxruntime VERSION $version" plugins/onnxruntime/CMakeLists.txt
grep -q "^## $version" CHANGELOG.md || {
  echo "CHANGELOG.md has no section \"## $version\""
  exit 1
}
if [ -n "$(git status --porcelain)" ]; then
  echo "the checkout is not clean"
  exit 1
fi

tools/wheel.sh "$folder"
python=$PWD/build/venv_wheel/bin/python
"$python" -m build --wheel --outdir "$folder" python >/dev/null
scratch=$(mktemp -d)
"$python" -m build --wheel --outdir "$scratch" python/onnxruntime >/dev/null
tools/retag.sh "$python" "$scratch"/*.whl "$folder"
(cd build/release && cpack -G DEB -B "$folder" >/dev/null && rm -rf "$folder/_CPack_Packages")
ls -l "$folder"

# In a bare system: no compiler, no Python package of ours.
debian='
apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends /release/pruner_*.deb >/dev/null
! command -v cc
pruner --version && pruner compile --network resnet_18 -o /tmp/r.so && pruner bench --module /tmp/r.so --min-time 1'
wheels='
apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends python3-venv >/dev/null
! command -v cc
python3 --version && python3 -m venv /venv && cd /tmp
/venv/bin/pip install -q /release/pruner-*.whl /release/onnxruntime_ep_pruner-*.whl
/venv/bin/python /release/try.py
/venv/bin/pip install -q onnxruntime && /venv/bin/python /release/try_provider.py
python3 -m venv /venv2 && /venv2/bin/pip install -q /release/pruner_runtime-*.whl
/venv2/bin/python -c "import numpy, pruner; print(pruner.Module(\"/tmp/net.so\")(numpy.ones((1, 3, 224, 224), \"f\"))[0].shape)"'
cat >"$folder/try.py" <<'END'
import time

start = time.time()
import numpy
import pruner

module = pruner.compile("resnet_50", out="/tmp/net.so")
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

subprocess.run([_program.path(), "networks", "export", "mobilenet_v2", "-o", "/tmp/net.onnx"], check=True)
feed = {"input": numpy.ones((1, 3, 224, 224), numpy.float32)}
session = onnxruntime.InferenceSession("/tmp/net.onnx", onnxruntime_ep_pruner.session_options())
feed = {session.get_inputs()[0].name: numpy.ones((1, 3, 224, 224), numpy.float32)}
own = onnxruntime.InferenceSession("/tmp/net.onnx", providers=["CPUExecutionProvider"])
difference = numpy.abs(session.run(None, feed)[0] - own.run(None, feed)[0]).max()
assert session.get_providers()[0] == "PrunerExecutionProvider" and difference < 1e-3, difference
print(f"onnxruntime {onnxruntime.__version__}: differs by {difference:.1e}")
END
trap 'rm -f "$folder"/try.py "$folder"/try_provider.py' EXIT
for suite in $suites; do
  echo "== $suite"
  tools/bare_root.sh "$suite" "$folder" "$wheels"
  # Packages are of the suite that they are made on.
  if [ "$suite" = "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" ]; then
    tools/bare_root.sh "$suite" "$folder" "$debian"
  fi
done

if docker info >/dev/null 2>&1; then
  docker build -q -t "pruner:$version" . && docker run --rm "pruner:$version" pruner --version
  docker save "pruner:$version" | gzip >"$folder/pruner-$version-container.tar.gz"
else
  echo "docker does not run here: no container's image"
fi
(cd "$folder" && sha256sum -- *.whl *.deb >SHA256SUMS)
echo "version $version is in $folder"
