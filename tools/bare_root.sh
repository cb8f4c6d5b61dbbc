#!/usr/bin/env bash
# bare_root.sh SUITE FOLDER COMMAND: makes a bare Debian system of the suite in a temporary folder.
# Copies FOLDER to /release in the system, and runs the shell command there. The script needs root
# and mmdebstrap. The settings of apt and pip are those of this machine.
set -euo pipefail
suite=$1 folder=$2 command=$3
root=$(mktemp -d)/root
options=()
for file in /etc/apt/apt.conf.d/*; do
  if grep -qs '^ *Acquire::' "$file"; then options+=("--aptopt=$file"); fi
done
mmdebstrap --quiet --variant=minbase --include=ca-certificates "${options[@]}" "$suite" "$root" \
  "${MIRROR:-http://deb.debian.org/debian}"
for file in /etc/apt/apt.conf.d/*; do
  if grep -qs '^ *Acquire::' "$file"; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
done
cp /etc/resolv.conf /etc/hosts "$root/etc/"
if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc/"; fi
certificate=()
if [ -f "${PIP_CERT:-}" ]; then
  cp "$PIP_CERT" "$root/etc/pip-ca.crt"
  certificate=(PIP_CERT=/etc/pip-ca.crt)
fi
cp -r "$folder" "$root/release"
for part in proc sys dev; do
  mount --bind "/$part" "$root/$part"
  mount --make-rslave "$root/$part"
done
leave() {
  for part in dev sys proc; do umount -l "$root/$part"; done
  rm -rf --one-file-system "$root"
}
trap leave EXIT
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
  "${certificate[@]}" bash -euc "$command"
