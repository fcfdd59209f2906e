import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalpipe.config import ConfigError, ForgeConfig
from evalpipe_tests.config.builders import REPOSITORY, make_workspace

CANARY = "ghp_c4n4ryc4n4ryc4n4ry"


def test_the_public_forges_are_the_defaults() -> None:
    github = ForgeConfig.model_validate({"kind": "github", "project": "team/shop"})
    assert (github.address, github.variable) == ("https://github.com", "GITHUB_TOKEN")
    gitlab = ForgeConfig.model_validate({"kind": "gitlab", "project": "group/sub/shop"})
    assert (gitlab.address, gitlab.variable) == ("https://gitlab.com", "GITLAB_TOKEN")


def test_a_forge_of_ones_own_has_its_address_and_variable() -> None:
    written = {"kind": "gitlab", "url": "https://git.example.com:8443/lab/", "project": "a/b", "token_variable": "MINE"}
    forge = ForgeConfig.model_validate(written)
    assert (forge.address, forge.variable) == ("https://git.example.com:8443/lab", "MINE")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "gitea"},
        {"project": "shop"},
        {"project": "group/sub/shop"},
        {"project": "team/.."},
        {"project": "/shop"},
        {"project": "team/shop?x=1"},
        {"kind": "gitlab", "project": "shop"},
        {"kind": "gitlab", "project": "group//shop"},
        {"url": "git.example.com"},
        {"url": "ssh://git.example.com"},
        {"url": "https://"},
        {"url": "https://git.example.com:notaport"},
        {"url": "https://git.example.com?private_token=x"},
        {"url": "https://user:secret@git.example.com"},
        {"url": "https://api.github.com"},
        {"token_variable": "my token"},
        {"token_variable": ""},
    ],
)
def test_a_wrong_forge_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ForgeConfig.model_validate({"kind": "github", "project": "team/shop", **change})


@pytest.mark.parametrize(
    "line",
    [f"token_variable: {CANARY}", f"url: https://oauth2:{CANARY}@git.example.com", f"url: https://h/?token={CANARY}"],
)
def test_a_token_pasted_into_the_file_is_not_repeated(tmp_path: Path, line: str) -> None:
    workspace = make_workspace(tmp_path)
    path = workspace.repos_dir / "shop.yaml"
    path.write_text(f"{REPOSITORY}forge:\n  kind: github\n  project: team/shop\n  {line}\n")
    with pytest.raises(ConfigError) as caught:
        workspace.load_repository("shop")
    assert "data/repos/shop.yaml:7: forge." in str(caught.value)
    assert "environment" in str(caught.value) or "must end before any ?" in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_issues_that_are_not_exported_yet_name_the_command(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    written = f"{REPOSITORY}issues: data/issues/shop.jsonl\nforge:\n  kind: github\n  project: team/shop\n"
    (workspace.repos_dir / "shop.yaml").write_text(written)
    (problem,) = workspace.check_references()
    assert problem.message.endswith("; run: evalpipe issues export shop")
