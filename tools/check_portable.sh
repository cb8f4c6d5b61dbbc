#!/usr/bin/env bash
# check_portable.sh FILE...: checks that programs and libraries run on other machines. The check
# fails if a file needs a library that is neither of the C library nor one of the given files. The
# check also fails if a file needs a glibc newer than 2.35 (Ubuntu 22.04), or if the files take more
# than 64 MiB together.
#
# A library (.so) may also need the C++ library: the plug-ins are optional, and users of torch have
# the C++ library.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: tools/check_portable.sh FILE..." >&2; exit 2; }

newest=2.35
most=$((64 << 20))
failed=0
total=0
given=" ${*##*/} "
for program in "$@"; do
  needed=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  for library in $needed; do
    case $library in
      libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*.so.*) ;;
      libstdc++.so.6 | libgcc_s.so.1) [[ $program == *.so* ]] || { echo "$program needs $library"; failed=1; } ;;
      *) [[ $given == *" $library "* ]] || { echo "$program needs $library"; failed=1; } ;;
    esac
  done
  glibc=$(readelf -VW "$program" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -Vu | tail -1)
  if [ "$(printf '%s\n' "$glibc" $newest | sort -V | tail -1)" != $newest ]; then
    echo "$program needs glibc $glibc"
    failed=1
  fi
  bytes=$(stat -c %s "$program")
  total=$((total + bytes))
  echo "${program##*/}: $((bytes >> 20)) MiB, glibc $glibc, ${needed//$'\n'/ }"
done
if [ $total -gt $most ]; then
  echo "$((total >> 20)) MiB together"
  failed=1
fi
exit $failed
