#!/usr/bin/env bash
# venv.sh FOLDER REQUIREMENTS: a Python environment with exactly these packages; kept, and made anew
# when the list changes.
set -euo pipefail
folder=$1
requirements=$2
if cmp -s "$requirements" "$folder/requirements.txt"; then
  exit 0
fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check --retries 3 -r "$requirements"
cp "$requirements" "$folder/requirements.txt"
