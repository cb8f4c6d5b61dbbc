#!/usr/bin/env bash
# retag.sh PYTHON WHEEL FOLDER: gives a wheel the oldest manylinux tag that the wheel fits, moves
# the wheel into the folder, and prints the path of the wheel. PYTHON needs the packages auditwheel
# and wheel.
set -euo pipefail
python=$1 wheel=$2 folder=$3
tag=$("$python" -m auditwheel show "$wheel" | tr '\n' ' ' |
  sed -n 's/.*following platform tag: "\([^"]*\)".*/\1/p')
case $tag in
  manylinux_*) ;;
  *)
    echo "the wheel fits no manylinux tag: $tag" >&2
    exit 1
    ;;
esac
name=$(cd "$(dirname "$wheel")" &&
  "$python" -m wheel tags --remove --platform-tag "$tag" "$(basename "$wheel")" | tail -1)
mv "$(dirname "$wheel")/$name" "$folder"
echo "$folder/$name"
