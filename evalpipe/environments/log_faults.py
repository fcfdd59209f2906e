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
    r"|\b(50[0-4]|429|40[137])[ (]+"
    r"(Internal Server|Bad Gateway|Service Unavail|Gateway Time|Too Many Req|Proxy Auth|Unauth|Forbidden|\w+ Error:)"
    r"|([Ss]tatus( code)?:? |returned error: |\) ?, got |too many )(5\d\d|429|40[137])\b"
    r"|\bE(40[137]|429|5\d\d)$|ERR_PNPM_FETCH_(40[137]|429|5\d\d)"
    r"|Authentication failed for|could not read Username|Invalid authentication|require a credential-provider"
    r"|CERTIFICATE_VERIFY_FAILED|UNABLE_TO_(VERIFY|GET)|SELF_SIGNED_CERT|UnknownIssuer|x509: certificate|PKIX path"
    r"|server certificate verification failed|SSL certificate problem",
    re.MULTILINE,
)
# What pip says of a package that an index does not have, and of an index that lets nobody in, all the same.
_PIP_SAW_NOTHING = re.compile(r"satisfies the requirement ([A-Za-z0-9][A-Za-z0-9._-]*)[^\n]*\(from versions: none\)")


def failed_status(log: str) -> BuildStatus:
    """The status of a build that failed with this log: `failed`, unless the network or the disk was the reason."""
    if "no space left on device" in log.lower():
        return BuildStatus.DISK_FULL
    return BuildStatus.UNREACHABLE if _UNREACHABLE.search(log) else BuildStatus.FAILED


def why_pip_saw_nothing(log: str) -> str | None:
    """A script that lets pip say what the index answered, where it saw no release of a package; else None."""
    found = _PIP_SAW_NOTHING.search(log)
    if found is None:
        return None
    options = "-vv --no-deps --no-input --no-cache-dir --retries 0 --timeout 15 --disable-pip-version-check"
    return f"python3 -m pip download {options} -d /tmp {found[1]} 2>&1 | grep -F 'Could not fetch URL' || true"


def was_not_released_yet(log: str) -> bool:
    """Whether a later day might help. A tool that found no release for another reason says the same."""
    return _UNRELEASED.search(log) is not None
