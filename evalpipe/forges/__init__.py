"""Forges: reads the texts of issues and pull requests from GitHub and GitLab into a file, once.

Mining reads that file; nothing else of evalpipe talks to a forge.
"""

from evalpipe.forges.errors import (
    AccessDenied,
    AnswerInvalid,
    ForgeError,
    ForgeUnreachable,
    OutputTaken,
    ProjectMissing,
    RateLimited,
    RedirectRefused,
    TokenInvalid,
    TokenRefused,
)
from evalpipe.forges.export import Exported, export
from evalpipe.forges.github import GitHubForge
from evalpipe.forges.gitlab import GitLabForge
from evalpipe.forges.outcome import Place
from evalpipe.forges.patience import Patience, Say
from evalpipe.forges.records import Forge
from evalpipe.forges.token import Token, token_from

__all__ = [
    "AccessDenied",
    "AnswerInvalid",
    "Exported",
    "Forge",
    "ForgeError",
    "ForgeUnreachable",
    "GitHubForge",
    "GitLabForge",
    "OutputTaken",
    "Patience",
    "Place",
    "ProjectMissing",
    "RateLimited",
    "RedirectRefused",
    "Say",
    "Token",
    "TokenInvalid",
    "TokenRefused",
    "export",
    "token_from",
]
