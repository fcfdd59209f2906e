from pathlib import Path

import pytest

from evalpipe.config import ConfigError, Workspace, load_lake
from evalpipe.config.init import write_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    write_workspace(tmp_path)
    return Workspace(tmp_path)


def test_a_new_workspace_has_its_lake_on_disk(workspace: Workspace) -> None:
    assert load_lake(workspace).url is None


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/some/folder", "gs://bucket/folder"])
def test_a_bucket_is_named_by_its_url(workspace: Workspace, url: str) -> None:
    (workspace.data / "lake.yaml").write_text(f"url: {url}\n")
    assert load_lake(workspace).url == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url: https://bucket.example/lake\n", "data/lake.yaml:1: url: is no place for a lake"),
        ("url: s3:///folder\n", "write it as s3://bucket/folder or gs://bucket/folder"),
        ("url: s3://bucket/x?versionId=1\n", "is no place for a lake"),
        ("url: s3://key:secret@bucket/x\n", "holds a login; credentials come from the environment"),
        ("uri: s3://bucket\n", "did you mean 'url'?"),
    ],
)
def test_what_is_no_place_for_a_lake_is_refused_without_being_shown(
    workspace: Workspace, text: str, message: str
) -> None:
    (workspace.data / "lake.yaml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_lake(workspace)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)
