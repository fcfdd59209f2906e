"""Takes containers and volumes of boxes away, whoever else does so at the same time."""

import logging
import time
from collections.abc import Callable

from evalpipe.sandbox.engine import Engine, engine_faults
from evalpipe.sandbox.errors import Interrupted, SandboxError

_log = logging.getLogger(__name__)

_END_S = 30.0


def remove_container(engine: Engine, container: str, *, ask_first: bool = True) -> bool:
    """Remove a container and its volume, running or not; false, and logged unless it is gone, when that
    fails.

    `ask_first` is false where the engine has just answered: one that hangs is noticed sooner by asking for little.
    """
    try:
        if ask_first:
            engine.require_alive()
        with engine_faults(f"remove the container {container}"):
            engine.api.remove_container(container, force=True, v=True)
    except Interrupted:
        return False
    except SandboxError as error:
        if "already in progress" in str(error):
            _await_removal(engine, container)
        else:
            _log.warning("%s; the next clean-up tries again", error)
        return False
    return True


def _await_removal(engine: Engine, container: str) -> None:
    """Wait until somebody else's removal is done; before that, the engine still counts the volume as used."""
    end = time.monotonic() + _END_S
    try:
        while time.monotonic() < end:
            with engine_faults(f"see {container} removed"):
                engine.api.inspect_container(container)
            time.sleep(0.02)
    except Interrupted:
        return
    except SandboxError as error:
        _log.warning("%s", error)
        return
    _log.warning("the engine still removes %s after %.0f s", container, _END_S)


def remove_volumes(engine: Engine, labels: list[str], wanted: Callable[[dict[str, str]], bool]) -> None:
    """Remove the volumes that no container uses, carry all these labels (`key=value`), and are wanted."""
    try:
        engine.require_alive()
        with engine_faults("remove the volumes of boxes"):
            found = engine.api.volumes(filters={"label": labels, "dangling": True})["Volumes"] or []
            for volume in found:
                if wanted(volume["Labels"]):
                    engine.api.remove_volume(volume["Name"])
    except SandboxError as error:
        _log.warning("%s; the next clean-up tries again", error)
