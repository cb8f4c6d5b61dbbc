#!/usr/bin/env bash
# examples.sh PRUNER BUILD: starts workers in each way of examples/fleet on this machine, has each measure a search, and ends them as
# their engine would. What a way needs and is not here is named, and that way left out. A Python environment is
# kept in the folder BUILD.
set -euo pipefail
pruner=$(realpath "$1")
build=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
examples=$here/../../examples/fleet
for needed in nats-server openssl python3; do
  if ! command -v "$needed" >/dev/null; then
    echo "skipped: no $needed here"
    exit 77
  fi
done

dir=$(mktemp -d)
chmod 755 "$dir"
export PATH="$dir/bin:$PATH:/usr/sbin:/sbin"
mkdir "$dir/bin"
ln -s "$pruner" "$dir/bin/pruner"
daemons=()
podman=()
limited=""
leave() {
  status=$?
  trap - EXIT
  set +e
  if [ -e "$dir/slurm.conf" ]; then
    scancel --signal=KILL --full --user="$(id -un)" 2>/dev/null
    for _ in {1..50}; do
      [ -n "$(squeue -h 2>/dev/null)" ] || break
      sleep 0.1
    done
  fi
  if [ ${#podman[@]} != 0 ]; then "${podman[@]}" rm -f -t 0 worker >/dev/null 2>&1; fi
  kill "${daemons[@]}" 2>/dev/null
  wait
  if [ "$status" != 0 ]; then tail -n 15 "$dir"/*.log; fi
  rm -rf "$dir"
  exit "$status"
}
trap leave EXIT
trap 'exit 143' TERM INT HUP

fail() {
  echo "examples.sh: $*" >&2
  exit 1
}
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
start() { # name, command...: a daemon that ends with this script
  local log=$dir/$1.log
  shift
  "$@" >"$log" 2>&1 </dev/null &
  daemons+=($!)
}
until_true() { # seconds, what, command...
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "after a while it is not so: $what"
    sleep 0.1
  done
}

# Servers as `fleet init --files` has them, with a certificate. Nobody but a job that reaches its time limit works for the second.
CA=$dir/access/ca.pem KEY=$dir/access/worker.key
if ! "$pruner" fleet init --files "$dir/access" >"$dir/init.log" 2>&1; then
  grep -q "this build has no fleets" "$dir/init.log" || fail "fleet init --files failed"
  echo "skipped: this build has no fleets (libnats-dev)"
  exit 77
fi
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj "/CN=fleet" \
  -addext "subjectAltName=IP:127.0.0.1" -keyout "$dir/server-key.pem" -out "$CA" 2>/dev/null
start_server() { # name; its address is in SERVER
  local port
  port=$(free_port)
  sed -e "s|0.0.0.0:4222|127.0.0.1:$port|" -e "s|store_dir: .*|store_dir: \"$dir/$1_store\" }|" \
    -e "s|^# tls .*|tls { cert_file: \"$CA\", key_file: \"$dir/server-key.pem\" }|" "$dir/access/server.conf" >"$dir/$1.conf"
  start "$1" nats-server -c "$dir/$1.conf"
  SERVER=tls://127.0.0.1:$port
  until_true 10 "the server answers" "$pruner" fleet init --server "$SERVER" --ca "$CA" --key "$dir/access/admin.key"
}
start_server second
second=$SERVER
start_server server
tuner=(--ca "$CA" --key "$dir/access/tuner.key")

status() { # expression of `workers`
  "$pruner" fleet status --server "$SERVER" "${tuner[@]}" --json |
    python3 -c 'import json, sys; workers = json.load(sys.stdin)["workers"]; print(eval(sys.argv[1]))' "$1"
}
there() { [ "$(status 'len(workers)')" = "$1" ]; }
counted() { [ "$(status 'sum(w["trials"] for w in workers) >= 16')" = True ]; } # at their next sign of life
# name, count: so many workers are there and measure a search.
measures() {
  until_true 15 "$2 workers of $1 are there" there "$2"
  "$pruner" tune --op "matmul 64 64 64" --threads "$(status 'workers[0]["threads"]')" --model draft-only --n-trials 16 \
    --fleet "$SERVER" "${tuner[@]}" --work-dir "$dir/$1" >"$dir/$1_tune.log" 2>&1 || fail "$1: the search failed"
  local right
  right=$(grep '"origin": "search"' "$dir/$1/records.json" | grep -c '"r": \[\[[^]]*\], 0, ')
  [ "$right" = 16 ] || fail "$1: $right trials of 16 were measured"
  until_true 10 "the workers of $1 say that they measured them" counted
}
gone() { until_true 15 "the workers of $1 have left" there 0; }

start_slurm() {
  local name
  name=$(hostname -s)
  head -c 128 /dev/urandom >"$dir/munge.key"
  chmod 600 "$dir/munge.key"
  mkdir "$dir/state" "$dir/spool"
  cat >"$dir/slurm.conf" <<END
ClusterName=examples
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge.socket
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=all Nodes=ALL Default=YES
END
  export SLURM_CONF=$dir/slurm.conf
  start munge munged --foreground --force --num-threads=1 --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
    --pid-file="$dir/munge.pid" --seed-file="$dir/munge.seed" --log-file="$dir/munged.log"
  until_true 10 "munged answers" munge --socket="$dir/munge.socket" --no-input
  start slurmctld slurmctld -D
  start slurmd slurmd -D
  until_true 15 "Slurm's node is idle" sh -c "sinfo -h -o %T | grep -qx idle"
}
submit() { # server, log, options...
  sbatch --parsable --export="ALL,SERVER=$1,CA=$CA,KEY=$KEY" --output="$2" --cpus-per-task=1 "${@:3}" "$examples/slurm.sbatch"
}
try_slurm() {
  for needed in munged slurmctld slurmd sbatch; do
    if ! command -v $needed >/dev/null; then
      echo "skipped: Slurm: no $needed here (slurm-wlm, munge)"
      return
    fi
  done
  if ! mountpoint -q /sys/fs/cgroup; then # slurmd does not start without
    echo "skipped: Slurm: no control groups here"
    return
  fi
  start_slurm
  local count=2 job log=$dir/slurm_%a.log
  [ "$(nproc)" -ge 2 ] || count=1
  job=$(submit "$SERVER" "$log" --array=1-$count)
  measures slurm $count
  [ "$(status 'len({w["name"] for w in workers if w["name"].startswith("slurm-'"$job"'-")})')" = $count ] ||
    fail "slurm: other names than the job's"
  scancel "$job"
  gone slurm
  grep -q '^measured [1-9]' "$dir"/slurm_*.log || fail "slurm: the workers were killed"

  echo "passed: Slurm"
  # Two minutes before its limit is at once; Slurm looks each 30 s.
  limited=$(submit "$second" "$dir/limited.log" --array=1 --time=1)
}
end_slurm() {
  [ -n "$limited" ] || return 0
  until_true 45 "the job has ended at its limit" sh -c "scontrol show job $limited | grep -q ExitCode=143:0"
  grep -q '^measured 0' "$dir/limited.log" || fail "slurm: the worker was killed at its time limit"
  echo "passed: Slurm's time limit"
}

# The unit that `fleet init --files` wrote, as root would fill it in; systemd gives it the folder of its credentials.
try_systemd() {
  local unit=$dir/pruner-worker.service line end=0
  sed -e "s|tls://SERVER:4222|$SERVER|" -e "s|/usr/bin/pruner|$pruner|" "$dir/access/pruner-worker.service" >"$unit"
  if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify "$unit" >"$dir/verify.log" 2>&1 || fail "systemd-analyze does not take the unit"
    [ ! -s "$dir/verify.log" ] || fail "systemd-analyze has something to say"
  else
    echo "skipped: systemd-analyze verify: not here (systemd)"
  fi
  line=$(sed -n 's/^ExecStart=//p' "$unit")
  read -ra words <<<"${line//\$\{CREDENTIALS_DIRECTORY\}/$dir/access}"
  "${words[@]}" >"$dir/systemd.log" 2>&1 &
  local worker=$!
  daemons+=("$worker")
  measures systemd 1
  kill -TERM "$worker"
  wait "$worker" || end=$?
  gone systemd
  grep -qx "SuccessExitStatus=$end" "$unit" || fail "systemd: SIGTERM ends the worker with $end, which the unit does not know"
  echo "passed: systemd's unit"
}

lint_kubernetes() {
  if ! wait "$venv"; then
    echo "skipped: the schema of Kubernetes: tests/fleet/requirements.txt cannot be installed"
    return
  fi
  "$build/fleet_venv/bin/kubernetes-validate" --strict "$examples/k8s-job.yaml" >"$dir/validate.log" 2>&1 ||
    fail "Kubernetes' schema has no such job"
  echo "passed: the schema of Kubernetes"
}
# A container's root: the program and what it loads.
make_root() {
  mkdir -p "$1/usr/bin"
  cp "$pruner" "$1/usr/bin/pruner"
  ldd "$pruner" | grep -o '/[^ ]*' | xargs cp -L --parents -t "$1"
}
try_kubernetes() {
  if ! python3 -c "import yaml" 2>/dev/null; then
    echo "skipped: Kubernetes: no python3-yaml here"
    return
  fi
  local given=("SERVER=$SERVER" POD=pruner-worker-x7k2p) end=0
  mapfile -t words < <(python3 "$here/pod.py" "$examples/k8s-job.yaml" arguments "$dir/access" "${given[@]}")
  [ ${#words[@]} -gt 2 ] || fail "k8s: pod.py found no command"
  "${words[@]}" >"$dir/k8s.log" 2>&1 &
  local worker=$!
  daemons+=("$worker")
  measures k8s 1
  [ "$(status 'workers[0]["name"]')" = pruner-worker-x7k2p ] || fail "k8s: the worker has another name than its pod"
  "$pruner" fleet drain --server "$SERVER" "${tuner[@]}" >/dev/null
  wait "$worker" || end=$?
  [ "$end" = 0 ] || fail "k8s: a drained worker ended with $end, which the job would start again"
  gone k8s
  echo "passed: the command of Kubernetes' job"
}
# The job's container, as podman runs it: another user, nothing to write but its scratch, one core.
try_container() {
  if ! command -v podman >/dev/null || ! python3 -c "import yaml" 2>/dev/null; then
    echo "skipped: a container: no podman or python3-yaml here"
    return
  fi
  make_root "$dir/root"
  mkdir "$dir/secrets"
  install -m 644 "$CA" "$KEY" "$dir/secrets"
  podman=(podman --root "$dir/podman" --runroot "$dir/podman_run" --storage-driver vfs --cgroup-manager cgroupfs)
  if command -v runc >/dev/null; then podman+=(--runtime runc); fi
  local run=("${podman[@]}" run --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024)
  if ! timeout 20 "${run[@]}" --rm --rootfs "$dir/root" pruner --version >"$dir/container.log" 2>&1; then
    echo "skipped: no container runs here: $(tail -n 1 "$dir/container.log")"
    return
  fi
  mapfile -t words < <(python3 "$here/pod.py" "$examples/k8s-job.yaml" podman "$dir/secrets" "SERVER=$SERVER" POD=contained)
  local at
  for at in "${!words[@]}"; do [ "${words[at]}" != -- ] || break; done
  "${run[@]}" --detach --name worker --cpuset-cpus 0 "${words[@]:0:at}" --rootfs "$dir/root" "${words[@]:at+1}" \
    >"$dir/container.log" 2>&1 || fail "the container does not start"
  measures container 1
  [ "$(status 'workers[0]["threads"]')" = 1 ] || fail "container: the worker takes more than the core that it is given"
  "${podman[@]}" stop worker >/dev/null
  gone container
  [ "$("${podman[@]}" inspect --format '{{.State.ExitCode}}' worker)" = 143 ] || fail "container: the worker was killed"
  echo "passed: a container of Kubernetes' job"
}

try_ssh() {
  if ! command -v sshd >/dev/null || ! command -v ssh >/dev/null; then
    echo "skipped: ssh: no ssh or sshd here (openssh-server)"
    return
  fi
  ssh-keygen -q -t ed25519 -N "" -f "$dir/host_key"
  ssh-keygen -q -t ed25519 -N "" -f "$dir/user_key"
  local ssh_port
  ssh_port=$(free_port)
  [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
  printf '%s\n' "Port $ssh_port" "ListenAddress 127.0.0.1" "HostKey $dir/host_key" "AuthorizedKeysFile $dir/user_key.pub" \
    "StrictModes no" "UsePAM no" "PidFile none" "PermitRootLogin yes" "SetEnv PATH=$PATH" >"$dir/sshd_config"
  printf '%s\n' "Host here" "HostName 127.0.0.1" "Port $ssh_port" "IdentityFile $dir/user_key" "IdentitiesOnly yes" \
    "StrictHostKeyChecking no" "UserKnownHostsFile $dir/known_hosts" "LogLevel ERROR" >"$dir/ssh_config"
  printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$dir/ssh_config" >"$dir/bin/ssh"
  chmod +x "$dir/bin/ssh"
  start sshd "$(command -v sshd)" -D -e -f "$dir/sshd_config"
  until_true 10 "sshd answers" ssh here true
  SERVER=$SERVER CA=$CA KEY=$KEY LOG=$dir/ssh_worker.log timeout 10 "$examples/ssh.sh" cpu:0 here || fail "ssh.sh failed"
  measures ssh 1
  "$pruner" fleet drain --server "$SERVER" "${tuner[@]}" >/dev/null
  gone ssh
  grep -q '^measured [1-9]' "$dir/ssh_worker.log" || fail "ssh: the worker was killed"
  echo "passed: ssh"
}

# Made while the others run.
start venv timeout 90 "$here/../../tools/venv.sh" "$build/fleet_venv" "$here/requirements.txt"
venv=$!
try_slurm
try_systemd
try_kubernetes
try_container
try_ssh
lint_kubernetes
end_slurm
