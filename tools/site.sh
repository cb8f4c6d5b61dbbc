#!/usr/bin/env bash
# tools/site.sh OUT: builds docs/ as a site in the folder OUT and checks the links of the site. This
# command serves the site with its search: python3 -m http.server -d OUT. Exit code 77: mkdocs is
# missing (tools/packages.sh names its package).
set -euo pipefail
[ $# = 1 ] || { echo "usage: tools/site.sh OUT" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v mkdocs >/dev/null || { echo "no mkdocs: apt-get install mkdocs" >&2; exit 77; }

PYTHONDONTWRITEBYTECODE=1 mkdocs build --quiet --strict --site-dir "$out"
python3 tools/check_site.py "$out"
