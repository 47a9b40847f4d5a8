"""A small disk of its own under the data folder, for as long as a shell script runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent.parent
MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$CITEBOT_HOME" || exit 99; cd "$2"; citebot() { "$0" -m bot "$@"; }\n'


def mounted(options: str, script: str, root: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a repository, with the disk mounted as the data folder; its tests need mounts."""
    home.mkdir(exist_ok=True)
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT + script, sys.executable, options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, str(root)], env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )
    assert done.returncode != 99, done.stderr
    return done
