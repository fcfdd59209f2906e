"""The files that carry an agent's calls out of its container: an adapter picks one that its program's image can run."""

from importlib import resources

PYTHON_FORWARDER, NODE_FORWARDER = "forward.py", "forward.mjs"


def forwarder(name: str) -> bytes:
    """The script of that name, to be put into a container. Its head says how it is started."""
    return resources.files("evalpipe.gateway").joinpath("inside", name).read_bytes()
