"""Tells from the output of a build that failed why it did, as far as what comes of it differs.

The words are those of the tools: uv, pip, npm, pnpm, Yarn, Cargo, Go, Maven, Gradle, git, curl, apt.
"""

import re

from evalpipe.environments.build import BuildStatus

_UNRELEASED = re.compile(
    r"No solution found when resolving"
    r"|Could not find a version that satisfies the requirement"
    r"|No matching distribution found"
    r"|ETARGET|No matching version found for|ERR_PNPM_NO_MATCHING_VERSION"
    r"|Couldn't find any versions for|No candidates found"
    r"|no matching package named|failed to select a version for"
)
_UNREACHABLE = re.compile(
    r"[Cc]ould not resolve (host|proxy)|[Tt]emporary failure (in name resolution|resolving)"
    r"|[Nn]ame or service not known|dns error|no such host|UnknownHostException"
    r"|E(AI_AGAIN|NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT)\b|ERR_SOCKET_TIMEOUT"
    r"|[Cc]onnection (refused|reset by peer|timed out)|[Cc]onnect(ion)? timed out|NewConnectionError|ProxyError"
    r"|error sending request for url|i/o timeout|TLS handshake timeout|[Nn]etwork is unreachable"
    # What a proxy or a mirror says is mended by whoever keeps it, or in data/network.yaml.
    r"|\b(502 Bad Gateway|503 Service Unavailable|504 Gateway Time-?out|429 Too Many Requests)"
    r"|\b407 Proxy Authentication|\b401 Unauthorized"
    r"|CERTIFICATE_VERIFY_FAILED|UNABLE_TO_(VERIFY|GET)|SELF_SIGNED_CERT|UnknownIssuer|x509: certificate|PKIX path"
    r"|server certificate verification failed|SSL certificate problem"
)


def failed_status(log: str) -> BuildStatus:
    """The status of a build that failed with this log: `failed`, unless the network or the disk was the reason."""
    if "no space left on device" in log.lower():
        return BuildStatus.DISK_FULL
    return BuildStatus.UNREACHABLE if _UNREACHABLE.search(log) else BuildStatus.FAILED


def was_not_released_yet(log: str) -> bool:
    """Whether a later day might help. A tool that found no release for another reason says the same."""
    return _UNRELEASED.search(log) is not None
