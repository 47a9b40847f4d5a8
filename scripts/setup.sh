#!/bin/sh
# Makes .venv and installs citebot into it, in exact versions: with uv where it is there, else pip.
# Usage: setup.sh VENV TARGET, where TARGET is "." to run citebot, which needs no more than requirements/install.txt, or
# ".[dev]" to work on it, in the versions of constraints.txt. PYTHON names an interpreter.
set -eu
venv=$1
target=$2
log=$venv/install.log
began=$venv/install.began
seconds=0

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

version_of() {
    "$1" -c 'import sys; print("python%d.%d" % sys.version_info[:2])'
}

# Runs a step, shows every second what it is at, and all that it said if it fails.
run() {
    label=$1
    shift
    mkdir -p "$venv"
    : >"$log"
    : >"$began"
    "$@" >>"$log" 2>&1 &
    step=$!
    trap 'kill $step 2>/dev/null; exit 130' INT TERM HUP
    show_progress
    while kill -0 $step 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        show_progress
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    wait $step || explain
}

# A line that changes on a terminal; elsewhere a line every ten seconds.
show_progress() {
    if [ -t 2 ]; then
        printf '\r\033[K  %s s  %s' "$seconds" "$(describe)" >&2
    elif [ $((seconds % 10)) -eq 9 ]; then
        echo "  $seconds s  $(describe)" >&2
    fi
}

# What has been installed lies in site-packages; what is fetched, the installer says.
describe() {
    if [ -n "$label" ]; then
        echo "$label"
        return
    fi
    count=$(find "$venv"/lib/python*/site-packages -maxdepth 1 -name '*.dist-info' -newer "$began" 2>/dev/null | wc -l)
    verb=Installing
    name=$(ls -td "$venv"/lib/python*/site-packages/*.dist-info 2>/dev/null | sed -n '1s|.*/\(.*\)-[^-]*\.dist-info|\1|p')
    if [ "$count" -eq 0 ]; then
        count=$(grep -Ec '^(Collecting|Processing) ' "$log" || true)
        verb=Downloading
        name=$(sed -En 's/^ *(Collecting|Download[a-z]*|Building) ([A-Za-z0-9._-]*).*/\2/p' "$log" | sed -n '$s/-[0-9].*//;$p')
    fi
    [ "$total" -ge "$count" ] && of=" of $total" || of=
    [ "$count" -gt 0 ] && echo "$verb $((count))$of: $name" || echo "$verb ${name:-the list of packages}"
}

explain() {
    if grep -Eiq 'name resolution|NameResolutionError|NewConnectionError|ConnectTimeout|dns error|error sending request|client error \(Connect\)|network is unreachable|tunnel error' "$log"; then
        fail "The package index cannot be reached. Check the network (or the index that ${installer##*/} is configured for) and try again; details: $log"
    fi
    cat "$log" >&2
    fail "The installation failed; the reason is above, and in $log."
}

# The versions of the lock need no resolving, and leave out what is never imported.
choose_packages() {
    total=0
    if [ "$target" = . ]; then
        # One line is a comment, and citebot itself is not in it.
        total=$(grep -vc 'python_full_version' requirements/install.txt)
        set -- --no-deps -r requirements/install.txt
    else
        set -- -c constraints.txt
    fi
    packages="$*"
}

with_uv() {
    installer=uv
    choose_packages
    echo "Installing citebot into $venv, once: about half a minute." >&2
    if ! suitable "$venv/bin/python"; then
        rm -rf "$venv"
        run "Creating $venv" uv venv -q --allow-existing --python "${PYTHON:->=3.11,<3.14}" "$venv"
    fi
    # shellcheck disable=SC2086
    run "" uv pip install --python "$venv/bin/python" $packages -e "$target"
}

with_pip() {
    installer=pip
    if ! suitable "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        find_python
    fi
    choose_packages
    echo "Installing citebot into $venv, once: one to two minutes (uv: half a minute)." >&2
    if [ -n "${python-}" ]; then
        rm -rf "$venv"
        run "Creating $venv" "$python" -m venv "$venv"
    fi
    # What is imported is compiled below; to compile all of it takes half a minute and 150 MB.
    # shellcheck disable=SC2086
    run "" "$venv/bin/python" -m pip install --no-compile --progress-bar off --no-input --disable-pip-version-check \
        --no-warn-conflicts --retries 1 $packages -e "$target"
}

command -v git >/dev/null 2>&1 || fail "git is missing; install it (on Debian: apt install git; on macOS: xcode-select --install)."
# Standard output belongs to the answer of `make ask`.
if command -v uv >/dev/null 2>&1; then
    with_uv >&2
else
    with_pip >&2
fi
# The first start would compile all this in silence.
run "Preparing the first start" "$venv/bin/python" -P -c 'import bot.cli.ask
from bot.cli.conversation import load_modules
load_modules()'
rm -f "$log" "$began"
echo "Installed in $seconds s." >&2
