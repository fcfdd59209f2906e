"""The environment in which tests run small suites by processes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def bare_pytest(folder: Path) -> str:
    """Make, in `folder`, the Python of this test run with pytest and without plugins, which take most of its time."""
    program = folder / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o755)
    return str(folder)
