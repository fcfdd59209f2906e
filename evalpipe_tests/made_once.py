"""What is dear to set up is made once in a test session, by whichever of its processes comes first."""

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Made = TypeVar("Made")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """What `make` returns when it is given the empty folder `name`; every process of the session gets an equal one.

    It is carried by pickle. Tests do not change the folder: they work on copies.
    """
    base = factory.getbasetemp()
    # Each process of pytest-xdist has a folder of its own in that of the session.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, kept = shared / name, shared / f"{name}.pickle"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            kept.write_bytes(pickle.dumps(make(folder)))
        made: Made = pickle.loads(kept.read_bytes())
        return made
