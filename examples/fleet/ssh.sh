#!/usr/bin/env bash
# ssh.sh DEVICE HOST...: starts a worker on each host, which goes on when the connection ends:
#   SERVER=tls://HOST:4222 CA=/etc/pruner/ca.pem KEY=/etc/pruner/worker.key ssh.sh cpu:0-7 host1 host2
# CA, KEY and LOG are files there. `pruner fleet drain` ends the workers.
set -euo pipefail
device=$1
shift
for host in "$@"; do
  # shellcheck disable=SC2029 # the variables are of this side
  ssh "$host" "nohup pruner worker --server '$SERVER' --ca '$CA' --key '$KEY' --device '$device' \
    >'${LOG:-pruner-worker.log}' 2>&1 </dev/null &"
done
