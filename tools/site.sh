#!/usr/bin/env bash
# tools/site.sh OUT: docs/ as a site in the folder OUT, whose links are checked. To read it with its search:
# python3 -m http.server -d OUT. Exit code 77: mkdocs is not here (tools/packages.sh has it).
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/site.sh OUT" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v mkdocs >/dev/null || { echo "no mkdocs: apt-get install mkdocs" >&2; exit 77; }

PYTHONDONTWRITEBYTECODE=1 mkdocs build --quiet --strict --site-dir "$out"
python3 tools/check_site.py "$out"
