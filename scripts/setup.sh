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

announce() {
    echo "Installing citebot into $venv (once; it takes a minute or two) ..." >&2
}

version_of() {
    "$1" -c 'import sys; print("python%d.%d" % sys.version_info[:2])'
}

with_uv() {
    announce
    if ! suitable "$venv/bin/python"; then
        uv venv -q --clear --python "${PYTHON:->=3.11,<3.14}" "$venv"
    fi
    uv pip install -q --python "$venv/bin/python" -c constraints.txt -e "$target"
}

with_pip() {
    if ! suitable "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        find_python
        announce
        "$python" -m venv --clear "$venv"
    else
        announce
    fi
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt -e "$target"
}

command -v git >/dev/null 2>&1 || fail "git is missing; install it (on Debian: apt install git; on macOS: xcode-select --install)."
# Standard output belongs to the answer of `make ask`.
if command -v uv >/dev/null 2>&1; then
    with_uv >&2
else
    with_pip >&2
fi
