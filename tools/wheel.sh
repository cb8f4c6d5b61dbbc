#!/usr/bin/env bash
# wheel.sh FOLDER: makes the wheel of pyproject.toml, gives the wheel the oldest manylinux tag that
# it fits, and tries the wheel. The wheel has at most 60 MB, and its program needs only the C
# library. In an environment without a compiler on the PATH, the wheel compiles a network and runs
# the module.
#
# The script needs the build packages of tools/packages.sh, python3-venv and PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$1"
folder=$(cd "$1" && pwd)

requirements=$(mktemp)
scratch=$(mktemp -d)
trap 'rm -rf "$requirements" "$scratch"' EXIT
printf '%s\n' build==1.4.0 auditwheel==6.6.0 wheel==0.46.3 >"$requirements"
tools/venv.sh build/venv_wheel "$requirements"
python=$PWD/build/venv_wheel/bin/python
"$python" -m build --wheel --outdir "$scratch" . >"$scratch/build.log" 2>&1 || {
  tail -30 "$scratch/build.log"
  exit 1
}

mkdir "$scratch/tagged"
wheel=$(tools/retag.sh "$python" "$scratch"/*.whl "$scratch/tagged")
bytes=$(stat -c %s "$wheel")
if [ "$bytes" -gt 60000000 ]; then
  echo "$wheel has $bytes bytes"
  exit 1
fi

python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install -q --disable-pip-version-check "$wheel"
tools/check_portable.sh "$scratch"/venv/lib/python3*/site-packages/pruner/bin/pruner
env -i PATH="$scratch/venv/bin" HOME="$scratch" "$scratch/venv/bin/pruner" --version
env -i PATH="$scratch/venv/bin" HOME="$scratch" "$scratch/venv/bin/python" -c '
import time
start = time.time()
import numpy, pruner
module = pruner.compile("resnet_50")
(scores,) = module(numpy.ones((1, 3, 224, 224), numpy.float32))
assert scores.shape == (1, 1000) and numpy.isfinite(scores).all()
print(f"ResNet-50 compiled and run: {time.time() - start:.1f} s")'
mv "$wheel" "$folder"
echo "$folder/$(basename "$wheel"): $bytes bytes"
