"""Looks whether the object store of a workspace does what is asked of it; the doctor tells what was found."""

from collections.abc import Iterator

from evalpipe.config import ConfigError, Workspace, load_lake
from evalpipe.config.doctor import Finding
from evalpipe.lake import Lake, StoreError, StoreFault

_REMEDIES = {
    StoreFault.PACKAGE_MISSING: "install it where evalpipe is installed",
    StoreFault.NO_BUCKET: "make the bucket, or correct `url` in data/lake.yaml",
    StoreFault.DENIED: "give these credentials the right to list the bucket and to read, write and delete its objects",
    StoreFault.DAMAGED: "let no proxy or lifecycle rule change objects of the lake",
    StoreFault.UNREACHABLE: "check the network, and the endpoint in the environment (AWS_ENDPOINT_URL for S3)",
    StoreFault.NOT_EXCLUSIVE: "use a store with conditional writes, as S3 and its servers of 2024 and later",
}


def look_at_store(workspace: Workspace) -> Iterator[Finding]:
    """What the store of the lake does, or does not; nothing for a lake that is in data/lake alone.

    It puts an object there, and removes it again.
    """
    try:
        url = load_lake(workspace).url
    except ConfigError as error:
        for problem in error.problems:
            yield Finding("lake", False, str(problem), f"mend {problem.file}")
        return
    if url is None:
        return
    folder = Lake(workspace.lake_dir, url).folder
    try:
        folder.check()
    except StoreError as error:
        yield Finding("lake", False, str(error), _REMEDIES[error.fault])
        return
    yield Finding("lake", True, f"{url} can be read and written; {len(folder.waiting())} files wait for it")
