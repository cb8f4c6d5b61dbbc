#!/usr/bin/env bash
# venv.sh FOLDER REQUIREMENTS: makes a Python environment with exactly these packages. An
# environment that exists is kept, and made anew if the list has changed.
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
