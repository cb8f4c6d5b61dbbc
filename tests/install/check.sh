#!/usr/bin/env bash
# check.sh BUILD SCRATCH: what is installed from a build folder works: the program, find_package(pruner),
# a module that a project links, completion, manual page and the Debian package's files.
set -euo pipefail
build=$1
scratch=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$scratch"
mkdir -p "$scratch"

cmake --install "$build" --prefix "$scratch/usr" >"$scratch/install.log"
"$scratch/usr/bin/pruner" --version
bash -n "$scratch/usr/share/bash-completion/completions/pruner"
complete_words() { # what may follow these words
  bash -c '. "$1"; shift; COMP_WORDS=(pruner "$@"); COMP_CWORD=$#; _pruner; echo "${COMPREPLY[*]}"' - \
    "$scratch/usr/share/bash-completion/completions/pruner" "$@"
}
test "$(complete_words reco)" = records
test "$(complete_words records st)" = stat
test "$(complete_words records best --js)" = --json
test "$(complete_words tune --network resnet_18 --n-tr)" = --n-trials
grep -q '^\.SS tune$' "$scratch/usr/share/man/man1/pruner.1"

cmake -G Ninja -S "$here/../../examples/cmake" -B "$scratch/project" -DCMAKE_PREFIX_PATH="$scratch/usr" \
  >"$scratch/configure.log"
cmake --build "$scratch/project" >"$scratch/build.log"
"$scratch/project/classify"
"$scratch/project/two"

# What a project may get wrong is said when it is configured.
mkdir "$scratch/wrong"
cat >"$scratch/wrong/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(wrong LANGUAGES CXX)
find_package(pruner CONFIG REQUIRED)
pruner_add_module(nothing RECORDS a.json)
END
if cmake -G Ninja -S "$scratch/wrong" -B "$scratch/wrong/build" -DCMAKE_PREFIX_PATH="$scratch/usr" \
  >"$scratch/wrong.log" 2>&1; then
  echo "a module without a network was configured"
  exit 1
fi
grep -q "give MODEL or NETWORK" "$scratch/wrong.log"

if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "no dpkg-shlibdeps (dpkg-dev): no Debian package"
  exit 0
fi
(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -B "$scratch/packages" >"$scratch/cpack.log")
package=$(ls "$scratch"/packages/pruner_*.deb)
dpkg-deb -f "$package" Depends | grep -q libllvm19
dpkg-deb -c "$package" >"$scratch/files"
for file in bin/pruner lib/pruner/libpruner_onnxruntime.so include/pruner/module.h lib/cmake/pruner/pruner-config.cmake \
  share/man/man1/pruner.1 share/bash-completion/completions/pruner; do
  grep -q " ./usr/$file\$" "$scratch/files" || {
    echo "$package has no $file"
    exit 1
  }
done
mkdir "$scratch/unpacked"
dpkg-deb -x "$package" "$scratch/unpacked"
"$scratch/unpacked/usr/bin/pruner" --version
echo "$(basename "$package"): $(stat -c %s "$package") bytes"
