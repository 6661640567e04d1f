# Shared by the scripts of launch/: makes or refreshes the environment, then puts it on PATH.
# Sourced, never run. Everything that it writes lies inside the clone:
#   .venv, .venv-openmpi, .venv-system   one environment an MPI
#   .launch/                             logs, pip's cache, temporary files, locks
# shellcheck shell=bash

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
STATE=$ROOT/.launch
MPI=${RAWCOLL_LAUNCH_MPI:-mpich}

say() { printf 'launch: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

# set_mpi NAME: which MPI, and so which environment.
set_mpi() {
    case ${1-} in
        mpich) VENV=$ROOT/.venv ;;
        openmpi | system) VENV=$ROOT/.venv-$1 ;;
        *) die "--mpi: unknown MPI: found '${1-}', expected mpich, openmpi or system" ;;
    esac
    MPI=$1
}

# Keeps what pip, compilers, pytest and plotting write inside the clone. A deep path would break
# unix sockets (108 bytes with the names that MPI and multiprocessing append): then /tmp it is.
contain() {
    mkdir -p "$STATE/tmp" "$STATE/log"
    export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$STATE/pip} PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
    export MPLCONFIGDIR=${MPLCONFIGDIR:-$STATE/matplotlib} CUPY_CACHE_DIR=${CUPY_CACHE_DIR:-$STATE/cupy}
    if ((${#STATE} < 50)); then export TMPDIR=$STATE/tmp; fi
    unset PYTHONHOME PYTHONPATH PYTHONPYCACHEPREFIX VIRTUAL_ENV __PYVENV_LAUNCHER__
}

# ---- finding what is there ----

# Prints why a Python will not do, or its real path when it will. It is run, not trusted: a shim
# on PATH may exist and only print an error.
PROBE='
import os, sys, sysconfig
if sys.version_info < (3, 11):
    sys.exit("is %d.%d, older than 3.11" % sys.version_info[:2])
try:
    import ensurepip, venv
except ImportError:
    sys.exit("lacks venv and ensurepip (Debian and Ubuntu: apt install python3-venv)")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    sys.exit("lacks Python.h (Debian and Ubuntu: apt install python3-dev)")
print(os.path.realpath(sys.executable))
'

# A traceback says it in its last line, all else in its first.
reason() { if [[ $1 == Traceback* ]]; then tail -n 1 <<<"$1"; else head -n 1 <<<"$1"; fi; }

find_python() {
    local candidate answer seen=''
    for candidate in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3 /usr/bin/python3}; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if answer=$("$candidate" -I -c "$PROBE" 2>&1); then
            printf '%s\n' "$answer"
            return
        fi
        seen+=$'\n'"  $candidate: $(reason "$answer")"
    done
    die "no Python of 3.11 or newer that can build extensions${PYTHON:+: tried PYTHON=$PYTHON}${seen:-}
  Install one, or name it: PYTHON=/path/to/python3.12 launch/..."
}

check_compiler() {
    [[ -n ${CXX:-} ]] && return
    local compiler
    for compiler in c++ g++ clang++; do
        if command -v "$compiler" >/dev/null 2>&1; then return; fi
    done
    die "no C++ compiler: looked for c++, g++ and clang++ (Debian and Ubuntu: apt install g++; or set CXX)"
}

# ---- is the environment up to date? ----

# Everything that decides what is installed, bar the extras. Python sources are not part of it:
# the install is editable, so they are read where they lie.
fingerprint() {
    {
        "$VENV/bin/python" -I -S -c 'import sys; print(sys.version)'
        [[ $MPI != system ]] || { command -v mpicc && mpicc -show; } 2>/dev/null
        printf '%s\n' "$ROOT" "${CXX:-}" "${CXXFLAGS:-}"
        cd "$ROOT"
        find pyproject.toml native launch/env.sh -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    } 2>&1 | sha256sum | cut -c1-64
}

installed_extras() { cat "$VENV/extras" 2>/dev/null || true; }

# Extras only accumulate, so that launch/test and launch/bench do not undo each other.
all_extras() { printf '%s\n' "$@" $(installed_extras) | LC_ALL=C sort -u; }

is_fresh() {
    [[ -f $VENV/stamp && -x $VENV/bin/python ]] || return 1
    [[ $(all_extras "$@") == "$(installed_extras)" ]] || return 1
    if [[ -n ${PYTHON:-} ]]; then
        [[ $(find_python 2>/dev/null) == "$(cat "$VENV/base-python")" ]] || return 1
    fi
    [[ $(fingerprint) == "$(cat "$VENV/stamp")" ]]
}

# ---- making it so ----

# step WHAT COMMAND...: runs it with its output in the log; shows the end of that when it fails.
step() {
    local what=$1 began=$SECONDS
    shift
    say "$what ..."
    printf '\n== %s: %s\n' "$what" "$*" >>"$LOG"
    if "$@" >>"$LOG" 2>&1 </dev/null; then
        say "$what: done in $((SECONDS - began)) s"
        return
    fi
    {
        printf 'launch: %s failed. The end of %s:\n' "$what" "$LOG"
        tail -n 25 "$LOG" | sed 's/^/    /'
        printf 'launch: to try again, run the same command; to start over, remove %s first.\n' "$VENV"
        printf 'launch: without a network, see "Offline" in docs/install.md; other causes: docs/install.md.\n'
    } >&2
    exit 1
}

# Keeps an environment that works, unless PYTHON names another Python than it was made with.
make_venv() {
    local base current
    current=$(cat "$VENV/base-python" 2>/dev/null || true)
    "$VENV/bin/python" -I -c 'import pip' 2>/dev/null || current=
    base=$current
    if [[ -z $current || -n ${PYTHON:-} ]]; then base=$(find_python); fi
    rm -f "$VENV/stamp"
    [[ $base != "$current" ]] || return 0
    say "using $base ($("$base" -V))"
    rm -rf "$VENV" "$STATE/build/${VENV##*/}"
    step "making ${VENV##*/}" "$base" -m venv "$VENV"
    printf '%s\n' "$base" >"$VENV/base-python"
}

build_requirements() {
    "$VENV/bin/python" -I - "$ROOT/pyproject.toml" <<'END'
import sys, tomllib
print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"]))
END
}

pip_install() { "$VENV/bin/python" -I -m pip install --no-warn-script-location "$@"; }

# The build tools live in the environment and the build folder in .launch: a change of one native
# file then compiles that file, not all of them.
install_package() {
    local extras
    local -a tools
    extras=$(all_extras "$@")
    mapfile -t tools < <(build_requirements)
    step "installing the build tools" pip_install "${tools[@]}" cmake ninja
    if [[ $MPI == system ]]; then
        command -v mpicc >/dev/null || die "--mpi system: no mpicc on PATH: load your site's MPI module first"
        # Rebuilt whenever the loaded MPI changes; --no-deps leaves all else alone.
        step "building mpi4py with $(command -v mpicc) (slow: one very large C file)" pip_install \
            --no-binary=mpi4py --no-cache-dir --force-reinstall --no-deps mpi4py
    fi
    step "building and installing rawcoll[${extras//$'\n'/,}]" pip_install --no-build-isolation \
        "--config-settings=build-dir=$STATE/build/${VENV##*/}" -e "$ROOT[${extras//$'\n'/,}]"
    printf '%s\n' "$extras" >"$VENV/extras"
}

install() (
    LOG=$STATE/log/install-$MPI.log
    : >"$LOG"
    check_compiler
    say "setting up ${VENV##*/} (${MPI} MPI); the details go to ${LOG#"$ROOT"/}"
    make_venv
    install_package "$@"
    fingerprint >"$VENV/stamp"
    say "${VENV##*/} is ready"
)

# Runs its arguments while no other launch script does so for the same environment.
with_lock() {
    local lock=$STATE/lock-$MPI
    if command -v flock >/dev/null 2>&1; then
        (
            flock -n 9 || { say "waiting for another launch command to finish its set-up"; flock 9; }
            "$@" 9>&-
        ) 9>"$lock"
        return
    fi
    until mkdir "$lock.d" 2>/dev/null; do
        kill -0 "$(cat "$lock.d/pid" 2>/dev/null || echo 0)" 2>/dev/null || { rm -rf "$lock.d"; continue; }
        say "waiting for another launch command to finish its set-up"
        sleep 2
    done
    (
        trap 'rm -rf "$lock.d"' EXIT
        echo "$BASHPID" >"$lock.d/pid"
        "$@"
    )
}

install_unless_fresh() { is_fresh "$@" || install "$@"; }

# ensure_environment EXTRA...: after it, `python` and `mpirun` are the environment's own.
ensure_environment() {
    local -a extras=("$@")
    [[ $MPI == system ]] || extras+=("$MPI")
    contain
    is_fresh "${extras[@]}" || with_lock install_unless_fresh "${extras[@]}"
    mkdir -p "$STATE/tmp"
    export PATH=$VENV/bin:$PATH
    export VIRTUAL_ENV=$VENV
}
