#!/bin/sh
# The two commands of the README. Each installs what is missing (Debian or Ubuntu), builds, and does its job.
#   ./quickstart.sh run    a suggestion for Llama-3.1-8B on two nodes of eight H100
#   ./quickstart.sh test   every test
set -eu
cd "$(dirname "$0")"

packages="gcc g++ cmake ninja-build pkg-config libjansson-dev libgsl-dev libcunit1-dev"
optional="libopenblas-dev" # fast matrix products of the executor; without it GSL's slow ones

have() {
    command -v gcc >/dev/null && command -v g++ >/dev/null && command -v cmake >/dev/null &&
        command -v ninja >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists jansson gsl cunit
}

install_missing() {
    if have; then
        return
    fi
    if ! command -v apt-get >/dev/null; then
        echo "quickstart.sh: no apt-get here; install the equivalents of: $packages" >&2
        exit 1
    fi
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "quickstart.sh: run as root, or install: $packages" >&2
            exit 1
        fi
        sudo=sudo
    fi
    echo "quickstart.sh: installing $packages $optional" >&2
    $sudo apt-get update -qq >&2
    # shellcheck disable=SC2086 # a list of words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $optional >/dev/null ||
        echo "quickstart.sh: $optional is not to be had; runs of layouts are slower without it" >&2
}

jobs=$(nproc 2>/dev/null || echo 2)

build() {
    cmake --preset release "-DNDPLAN_TESTS=$1" >/dev/null
    cmake --build --preset release -j "$jobs" >&2
}

case "${1:-}" in
run)
    install_missing
    build OFF
    exec build/release/cli/ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64
    ;;
test)
    install_missing
    build ON
    exec ctest --test-dir build/release -j "$jobs" --output-on-failure --no-tests=error
    ;;
*)
    echo "usage: ./quickstart.sh run|test" >&2
    exit 2
    ;;
esac
