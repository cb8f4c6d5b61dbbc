# Lists the Debian 12 packages of this project, in one place; quickstart.sh and test.sh read this
# file.
build_packages="g++ cmake ninja-build lld ccache nlohmann-json3-dev libfmt-dev libspdlog-dev
  libcli11-dev libexpected-dev libxxhash-dev libzip-dev zlib1g-dev libzstd-dev libprotobuf-dev
  protobuf-compiler libonnx-dev llvm-19-dev liblld-19-dev libnats-dev libssl-dev libjs-chart.js"
# These packages train cost models, as the default mode does while it tunes. LibTorch multiplies
# matrices with the BLAS that is installed.
training_packages="libtorch-dev libopenblas0-openmp libxgboost-dev"
test_packages="git clang-19 libclang-rt-19-dev libgtest-dev libgmock-dev libbenchmark-dev clang-format-14 python3 python3-venv qemu-user
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross ocl-icd-libopencl1 pocl-opencl-icd oclgrind dpkg-dev file
  nats-server openssl python3-yaml slurm-wlm munge systemd openssh-server podman runc mkdocs chromium"

# install_packages names...: installs the missing packages, as root or through sudo. Asks nothing,
# and does nothing if all packages are there.
install_packages() {
  local missing="" package root=""
  for package in "$@"; do
    if ! dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed'; then
      missing="$missing $package"
    fi
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "missing packages, to be installed as root: apt-get install$missing" >&2
      return 1
    fi
    root="sudo -n env"
  fi
  echo "installing:$missing"
  # shellcheck disable=SC2086
  install_once() {
    DEBIAN_FRONTEND=noninteractive $root ${root:+DEBIAN_FRONTEND=noninteractive} \
      apt-get install -y -q --no-install-recommends -o Acquire::Retries=3 $missing
  }
  # The package lists may be absent, or may name versions that the archive no longer holds.
  if ! ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || ! install_once; then
    $root apt-get update -q -o Acquire::Retries=3 && install_once
  fi
}
