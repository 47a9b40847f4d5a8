#!/bin/sh
# Makes .venv and installs citebot into it, in the exact versions of constraints.txt: with uv where it is there, else pip.
# Usage: setup.sh VENV TARGET, where TARGET is "." to run citebot or ".[dev]" to work on it. PYTHON names an interpreter.
set -eu
venv=$1
target=$2

fail() {
    echo "citebot: $1" >&2
    exit 1
}

suitable() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# Debian ships venv and ensurepip apart from Python; a later candidate may have them.
can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

find_python() {
    lacking=
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        suitable "$candidate" || continue
        if can_make_venv "$candidate"; then
            python=$candidate
            return
        fi
        lacking=$candidate
    done
    [ -z "$lacking" ] || fail "$lacking has no venv module; install it (on Debian: apt install $(version_of "$lacking")-venv)."
    fail "Python 3.11, 3.12 or 3.13 is missing; install one (on Debian: apt install python3 python3-venv), or name it: PYTHON=/path/to/python3 make ..."
}

# Runs an installer, shows what it is at while it is at it, and all that it said if it fails.
install() {
    echo "Installing citebot into $venv (once; it takes a minute) ..." >&2
    log=$venv/install.log
    "$@" >"$log" 2>&1 &
    installer=$!
    trap 'kill $installer 2>/dev/null; exit 130' INT TERM HUP
    seconds=0
    while kill -0 $installer 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        show_progress
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    if ! wait $installer; then
        cat "$log" >&2
        fail "The installation failed; what went wrong is above, and in $log."
    fi
    rm -f "$log"
}

# On a terminal one line that changes; elsewhere a line every ten seconds.
show_progress() {
    now=$(sed -n 's/^ *\(\(Resolved\|Collecting\|Downloading\|Downloaded\|Building\|Prepared\|Installing\) [^ ]*\).*/\1/p' "$log" | tail -n 1)
    if [ -t 2 ]; then
        printf '\r\033[K  %s s  %.60s' "$seconds" "$now" >&2
    elif [ $((seconds % 10)) -eq 0 ]; then
        echo "  $seconds s  $now" >&2
    fi
}

version_of() {
    "$1" -c 'import sys; print("python%d.%d" % sys.version_info[:2])'
}

with_uv() {
    if ! suitable "$venv/bin/python"; then
        uv venv -q --clear --python "${PYTHON:->=3.11,<3.14}" "$venv"
    fi
    install uv pip install --python "$venv/bin/python" -c constraints.txt -e "$target"
}

with_pip() {
    if ! suitable "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        find_python
        "$python" -m venv --clear "$venv"
    fi
    # What is imported is compiled then, as with uv; to compile all of it takes half a minute and 150 MB.
    install "$venv/bin/python" -m pip install --no-compile --progress-bar off --no-input --disable-pip-version-check \
        -c constraints.txt -e "$target"
}

command -v git >/dev/null 2>&1 || fail "git is missing; install it (on Debian: apt install git; on macOS: xcode-select --install)."
# Standard output belongs to the answer of `make ask`.
if command -v uv >/dev/null 2>&1; then
    with_uv >&2
else
    with_pip >&2
fi
