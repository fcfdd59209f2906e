"""What is told of a build: the end of its log, without colours and secrets, and whether a later day might help."""

from __future__ import annotations

import pytest

from evalpipe.environments import BuildSettings
from evalpipe.environments.build import SETTLED, BuildStatus, log_end
from evalpipe.environments.log_faults import failed_status, was_not_released_yet, why_pip_saw_nothing


def test_log_ends_with_its_last_forty_lines() -> None:
    output = "".join(f"line {number}\n" for number in range(100)).encode()
    lines = log_end(output, BuildSettings(), last="step 1 of 1 failed").splitlines()
    assert (len(lines), lines[0], lines[-2:]) == (40, "line 61", ["line 99", "step 1 of 1 failed"])


def test_log_has_no_colours_no_progress_and_no_broken_text() -> None:
    output = b"\x1b[1;31mred\x1b[0m\r\n10%\r 50%\r100% done\n\xff\n\n\n"
    assert log_end(output, BuildSettings()) == "red\n100% done\n�"


def test_log_shows_no_secret_whole_or_in_part() -> None:
    settings = BuildSettings(secrets=("tok", "token-1"))
    output = b"GET https://user:token-1@proxy/simple tok\n"
    assert log_end(output, settings, last="failed with token-1") == (
        "GET https://user:***@proxy/simple ***\nfailed with ***"
    )


@pytest.mark.parametrize(
    "log",
    [
        "  x No solution found when resolving dependencies:\n  only shop<2 is available",
        "ERROR: Could not find a version that satisfies the requirement shop>=2 (from versions: 1.0)",
        "npm error code ETARGET\nnpm error notarget No matching version found for shop@^2.0.0",
        " ERR_PNPM_NO_MATCHING_VERSION  No matching version found for shop@^2.0.0",
        "error: no matching package named `shop` found\nlocation searched: crates.io index",
        'error: failed to select a version for the requirement `shop = "^2"`',
    ],
)
def test_what_had_no_release_yet_is_tried_later(log: str) -> None:
    assert was_not_released_yet(log)


@pytest.mark.parametrize("log", ["", "error: command 'gcc' failed: No such file or directory", "Killed"])
def test_other_failures_are_not_tried_later(log: str) -> None:
    assert not was_not_released_yet(log)


@pytest.mark.parametrize(
    "log",
    [
        "error: Request failed after 3 retries\n  Caused by: error sending request for url (https://pypi.org/simple/a/)",
        "WARNING: Retrying after 'NewConnectionError'\nERROR: No matching distribution found for a",
        "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo",
        "npm error code ECONNREFUSED",
        "  [6] Could not resolve hostname (Could not resolve host: github.com); class=Net (12)",
        'go: a@v1.0.0: Get "https://proxy.golang.org/a": dial tcp: lookup proxy.golang.org: no such host',
        "[ERROR] Could not transfer artifact a:b:1 from central: repo.maven.apache.org: UnknownHostException",
        "E: Failed to fetch http://deb.debian.org/a  Temporary failure resolving 'deb.debian.org'",
        "curl: (60) SSL certificate problem: unable to get local issuer certificate",
        "npm error code UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
        "npm error 503 Service Unavailable - GET https://registry.npmjs.org/a",
        # What each tool says of a mirror that refuses the login.
        "Could not fetch URL http://m/simple/a/: 401 Client Error: Unauthorized for url: http://m/simple/a/ - skipping",
        "Could not fetch URL http://m/a/: 403 Client Error: Forbidden for url: http://m/a/ - skipping",
        "Could not fetch URL http://m/a/: (Caused by ResponseError('too many 500 error responses'))",
        "error: No solution found when resolving\nhint: An index (http://m) returned a 403 Forbidden error.",
        "hint: An index URL (http://m) could not be queried: (401 Unauthorized)",
        "  cause: HTTP status server error (500 Internal Server Error) for url (http://m/a/)",
        "npm error code E401\nnpm error Incorrect or missing password.",
        "npm error code E403\nnpm error 403 403 Forbidden - GET http://m/a",
        " ERR_PNPM_FETCH_403  GET http://m/a: Forbidden - 403",
        'error An unexpected error occurred: "http://m/a: Request failed \\"401 Unauthorized\\"".',
        "YN0035: The remote server failed: Response Code: 403 (Forbidden)",
        "YN0041: Invalid authentication (as an anonymous user)",
        "go: a@v1.0.0: reading http://m/a/@v/v1.0.0.mod: 403 Forbidden",
        "  failed to get successful HTTP response from `http://m/config.json` (127.0.0.1), got 403",
        "  authenticated registries require a credential-provider to be configured",
        "[ERROR] authorization failed for http://m/a.pom, status: 403 Forbidden -> [Help 1]",
        "[ERROR] transfer failed for http://m/a.pom, status: 429 -> [Help 1]",
        "> Could not GET 'http://m/a.pom'. Received status code 401 from server: Unauthorized",
        "fatal: Authentication failed for 'http://m/x.git/'",
        "fatal: unable to access 'http://m/x.git/': The requested URL returned error: 403",
        "fatal: could not read Username for 'http://m': terminal prompts disabled",
        "curl: (22) The requested URL returned error: 401",
        "E: Failed to fetch http://m/dists/x  403  Forbidden [IP: 127.0.0.1 80]",
        "ERROR: Cannot connect to proxy: Tunnel connection failed: 407 Proxy Authentication Required",
    ],
)
def test_registry_that_does_not_answer_is_the_reason(log: str) -> None:
    assert failed_status(log) is BuildStatus.UNREACHABLE
    assert BuildStatus.UNREACHABLE not in SETTLED


@pytest.mark.parametrize(
    ("log", "name"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement a.b-c_1==4.7 (from versions: none)",
            "a.b-c_1",
        ),
        ("satisfies the requirement shop>=1; python_version > '3' (from versions: none)", "shop"),
        ("satisfies the requirement shop>=2 (from versions: 1.0)", None),
        ("satisfies the requirement $(x) (from versions: none)", None),
        ("", None),
    ],
)
def test_pip_is_asked_again_when_it_saw_no_release_at_all(log: str, name: str | None) -> None:
    question = why_pip_saw_nothing(log)
    assert (question is None) == (name is None)
    assert name is None or f" {name} 2>&1" in str(question)


@pytest.mark.parametrize(
    ("log", "status"),
    [
        ("OSError: [Errno 28] No space left on device", BuildStatus.DISK_FULL),
        ("error: command 'gcc' failed", BuildStatus.FAILED),
        ("npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/a", BuildStatus.FAILED),
        ("", BuildStatus.FAILED),
        ("Could not fetch URL http://m/a/: 404 Client Error: Not Found for url: http://m/a/", BuildStatus.FAILED),
        ("collected 403 items\nError: 401 tests failed\nlib.c:401 error", BuildStatus.FAILED),
    ],
)
def test_other_reasons_are_told_apart(log: str, status: BuildStatus) -> None:
    assert failed_status(log) is status
