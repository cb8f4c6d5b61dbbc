#!/usr/bin/env bash
# release.sh FOLDER: makes the files of a release, and tries each on a system where nothing else is
# installed. The script needs root and a clean checkout whose build/release is built, and takes half
# an hour. The files are:
#
# - the wheels pruner (the program), pruner-runtime (runs modules) and onnxruntime-ep-pruner (the
#   provider for ONNX Runtime)
# - Debian packages
# - the image of the container, if docker runs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# All files must have the same version, and the changelog must have a section of that version.
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
changed=$(git status --porcelain) # an error of git ends the script here
if [ -n "$changed" ]; then
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

tools/try_release.sh "$folder"

if docker info >/dev/null 2>&1; then
  docker build -q -t "pruner:$version" . && docker run --rm "pruner:$version" pruner --version
  docker save "pruner:$version" | gzip >"$folder/pruner-$version-container.tar.gz"
else
  echo "docker does not run here: no container's image"
fi
(cd "$folder" && sha256sum -- *.whl *.deb >SHA256SUMS)
echo "version $version is in $folder"
