#!/bin/bash
source ./lib.sh
LIMIT=10
readonly X=1

# Does it. Well.
run() {
  helper "$1" | grep x
  local y=$(compute)
}
function _bash-it:other { run; }
