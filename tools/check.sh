#!/usr/bin/env bash
# Checks what a change must keep: format, lint, layers, types, the container file, and links, lines
# and quoted code of pages. Then prints the map and the sizes of the tree, to read. --fix first formats the
# files and wraps the pages in place.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v clang-format-14 >/dev/null || { echo "tools/check.sh: no clang-format-14 here" >&2; exit 1; }
# `mapfile < <(...)` would take a listing that failed for an empty listing.
files=$(python3 tools/tree.py 'src/*.cpp' 'src/*.h' 'src/*.c' 'include/*.h' 'include/*.hpp' 'tests/*.cpp' \
  'tests/*.h' 'bench/*.cpp' 'plugins/*.cpp' 'plugins/*.h')
mapfile -t sources <<<"$files"

if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${sources[@]}"
  python3 tools/check_pages.py --fix
fi

failed=0
unformatted=$(clang-format-14 --dry-run "${sources[@]}" 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: .*/\1/p' | sort -u)
if [ -n "$unformatted" ]; then
  printf 'not as clang-format has it: %s\n' $unformatted
  failed=1
fi
python3 tools/lint.py "${sources[@]}" || failed=1
python3 tools/check_layers.py || failed=1
python3 tools/check_types.py || failed=1
python3 tools/check_container.py || failed=1
python3 tools/check_links.py || failed=1
python3 tools/check_pages.py || failed=1
python3 tools/check_quotes.py || failed=1
python3 tools/map.py
python3 tools/size.py
if [ "$failed" != 0 ]; then
  echo "tools/check.sh: failed (tools/check.sh --fix formats)" >&2
  exit 1
fi
