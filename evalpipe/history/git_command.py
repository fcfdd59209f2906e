"""The one way in which this package starts git: hardened, in bytes, free of the user's settings.

GitPython's `Git.execute` does the process work. Its object layer is not used: it decodes paths and reads the
user's configuration.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, NamedTuple, cast

import git

from evalpipe.history.errors import GitFailed, HistoryError, ObjectMissing

# Both object formats know their empty tree without storing it.
EMPTY_TREE: Final = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    # Attributes decide how a diff looks; the user's file is read even when the user's configuration is not.
    "core.attributesFile=/dev/null",
    f"attr.tree={EMPTY_TREE['sha1']}",
    "core.quotePath=true",
    "core.autocrlf=false",
    "core.fsync=committed",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.git.allow=always",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    # A team's clone may belong to another user; it is only read, with hooks and filters off.
    "safe.directory=*",
    # A server that went silent is an error after a minute, not a run that hangs.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)

_ENVIRONMENT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    # Whole buffers, not one write for each commit: their reader would wake up for each.
    "GIT_FLUSH": "0",
    "TZ": "UTC",
}

# What a team needs to reach its server; every other GIT_* variable is dropped.
_TRANSPORT_VARIABLES: Final = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_PROXY_SSL_CAINFO",
    }
)

# As much as an ordinary user may have.
_PIPE_BYTES: Final = 1 << 20

# Every way in which git 2.39 to 2.50 says that an object is not there, or cannot be read, with its id.
_OBJECT_GONE: Final = re.compile(
    r"(?i)(?:unable to (?:read|find)|could(?: not|n't) (?:read|fetch|find)|failed to (?:read|traverse)|missing|bad"
    r"|loose|packed|object file)\b[^\n]*?\b([0-9a-f]{64}|[0-9a-f]{40})\b"
)

_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def missing_object(complaint: str) -> str | None:
    """The id of the object that git complains about not having."""
    found = _OBJECT_GONE.search(complaint)
    return None if found is None else found[1]


def incomplete(place: str, oid: str) -> ObjectMissing:
    """The error for a repository that lacks an object; `place` is its folder or URL."""
    return ObjectMissing(
        f"{place} lacks the object {oid}: it is a partial clone, or was damaged. Run `git fetch --refetch --no-filter` "
        "in it (git 2.36 or newer), or replace it by a full clone, made without --filter and --depth"
    )


class GitResult(NamedTuple):
    """What one finished git process left: exit status, standard output, and its complaints as text."""

    status: int
    stdout: bytes
    stderr: str


def without_credentials(text: str) -> str:
    """The text with `user:password@` taken out of every URL, fit for messages and logs."""
    return _USER_INFO.sub("", text)


class GitCommand:
    """Runs git on one git directory (or on none, for commands that need no repository)."""

    def __init__(self, git_dir: Path | None, environment: Mapping[str, str] | None = None) -> None:
        self.git_dir = git_dir
        self.environment = dict(environment or {})
        # Git looks at the folder that it is started in: for a repository around it, and for attributes.
        self._git = git.cmd.Git(os.sep if git_dir is None else str(git_dir))

    def with_environment(self, **variables: str) -> GitCommand:
        """The same git directory with further environment variables."""
        return GitCommand(self.git_dir, self.environment | variables)

    def attempt(self, *arguments: str, stdin: bytes = b"", pass_fds: Sequence[int] = ()) -> GitResult:
        """Run to the end and return whatever came of it."""
        with _as_file(stdin) as istream:
            outcome = self._git.execute(
                self._command(arguments),
                istream=istream,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env=self._variables(),
                pass_fds=tuple(pass_fds),
            )
        status, stdout, stderr = outcome
        return GitResult(status, stdout, without_credentials(stderr))

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run to the end and return standard output; raises ObjectMissing, or GitFailed with git's message."""
        result = self.attempt(*arguments, stdin=stdin)
        if result.status != 0:
            raise self._failure(arguments[0], result.stderr)
        return result.stdout

    @contextmanager
    def stream(self, *arguments: str, stdin: bytes = b"") -> Iterator[IO[bytes]]:
        """Start git and hand out its standard output as it comes.

        Only for commands that say little on standard error, which is read at the end. A reader that stops
        early ends the process; raises ObjectMissing or GitFailed when git failed before that.
        """
        with _as_file(stdin) as istream:
            started = self._git.execute(
                self._command(arguments),
                istream=istream,
                as_process=True,
                env=self._variables(),
            )
            with cast("subprocess.Popen[bytes]", cast(Any, started).proc) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                _widen(process.stdout)
                output = io.BufferedReader(cast("io.BufferedReader", process.stdout).raw, _PIPE_BYTES)
                stopped_early = True
                try:
                    yield output
                    stopped_early = output.read(1) != b""
                finally:
                    if stopped_early:
                        process.kill()
                    complaints = process.stderr.read().decode("utf-8", "replace").strip()
        if not stopped_early and process.returncode != 0:
            raise self._failure(arguments[0], without_credentials(complaints))

    def _failure(self, subcommand: str, complaint: str) -> HistoryError:
        oid = missing_object(complaint)
        if oid is not None:
            return incomplete(str(self.git_dir), oid)
        return GitFailed(f"git {subcommand} failed in {self.git_dir}: {complaint.strip()}")

    def _variables(self) -> dict[str, str]:
        variables = _ENVIRONMENT | self.environment
        if not {"GIT_SSH", "GIT_SSH_COMMAND"} & os.environ.keys():
            # ssh asks on the terminal by itself, whatever git was told.
            variables["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes -o ConnectTimeout=60"
        return variables

    def _command(self, arguments: Sequence[str]) -> list[str]:
        wanted = _TRANSPORT_VARIABLES | _ENVIRONMENT.keys() | self.environment.keys()
        unwanted = [name for name in os.environ if name.startswith("GIT_") and name not in wanted]
        # `env -u` is the only way to take a variable away: GitPython can only add to the environment.
        without = ["env", *(part for name in unwanted for part in ("-u", name))] if unwanted else []
        repository = ["--no-pager"] if self.git_dir is None else ["--no-pager", f"--git-dir={self.git_dir}"]
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        return [*without, "git", *repository, *settings, *arguments]


def _widen(pipe: IO[bytes]) -> None:
    """Let git run ahead of its reader by more than the usual 64 KiB, where the system can (Linux)."""
    with suppress(AttributeError, OSError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


@contextmanager
def _as_file(data: bytes) -> Iterator[BinaryIO | None]:
    """Standard input as a file: git reads it at its own pace while we read its output, no thread needed."""
    if not data:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield cast(BinaryIO, file)
