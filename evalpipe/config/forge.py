"""`forge:` in a repository's file: where its issues and pull requests are read from, for `evalpipe issues export`."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from evalpipe.config.values import ConfigModel, Text, refuse, wrong

_PUBLIC = {"github": "https://github.com", "gitlab": "https://gitlab.com"}
_TOKEN_VARIABLES = {"github": "GITHUB_TOKEN", "gitlab": "GITLAB_TOKEN"}
_PART = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")


def _check_url(value: str) -> str:
    # No message repeats a value: a token may have been pasted into it.
    try:
        parts = urlsplit(value)
        port_is_good = parts.port != 0
    except ValueError:
        raise wrong("is not a URL; write it as https://git.example.com") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good or re.search(r"\s", value):
        raise wrong("must be the forge's web address, as https://git.example.com")
    if parts.username is not None or parts.password is not None:
        raise wrong("must hold no user or password; a token is read from the environment (token_variable)")
    if parts.query or parts.fragment:
        raise wrong("must end before any ? or #; write the forge's web address, as https://git.example.com")
    return value.rstrip("/")


def _check_variable(value: str) -> str:
    if re.fullmatch(r"[A-Z_][A-Z0-9_]{0,99}", value) is None:
        raise wrong("must be the name of an environment variable (A-Z, 0-9 and _), and never the token itself")
    return value


Url = Annotated[Text, AfterValidator(_check_url)]
VariableName = Annotated[Text, AfterValidator(_check_variable)]


class ForgeConfig(ConfigModel):
    """A project on a forge. The token is never part of a configuration, only the name of its variable is."""

    kind: Literal["github", "gitlab"] = Field(description="`github` or `gitlab`; self-hosted ones too")
    url: Url | None = Field(default=None, description="the forge's web address; else the public one")
    project: Text = Field(description="the project's path, as `owner/name`; in GitLab with all its groups")
    token_variable: VariableName | None = Field(
        default=None, description="the environment variable with the token; else GITHUB_TOKEN or GITLAB_TOKEN"
    )

    @model_validator(mode="after")
    def _address_fits_the_kind(self) -> Self:
        faults = []
        parts = self.project.split("/")
        good = all(_PART.fullmatch(part) and part.strip(".") for part in parts)
        if self.kind == "github" and not (good and len(parts) == 2):
            faults.append(("project", "must be owner/name, as the address of the project ends"))
        if self.kind == "gitlab" and not (good and len(parts) >= 2):
            faults.append(("project", "must be group/name, with all groups, as the address of the project ends"))
        if self.kind == "github" and self.url is not None and urlsplit(self.url).hostname == "api.github.com":
            faults.append(("url", "is the API's own address; write https://github.com, or leave the line out"))
        refuse(faults)
        return self

    @property
    def address(self) -> str:
        """The forge's web address, without a slash at its end."""
        return self.url or _PUBLIC[self.kind]

    @property
    def variable(self) -> str:
        """The name of the environment variable that holds the token."""
        return self.token_variable or _TOKEN_VARIABLES[self.kind]
