"""A report that comes at the end of what a run prints: to ask an engine for a file of a box costs it 0.08 s.

The script of a run prints it when the command has ended, between two lines with a token. A program that was left behind
may print into it, or it may be too long for what is kept of an output: then it is not whole, and the file is read.
"""

import secrets
import shlex
from typing import NamedTuple

_MOST_BYTES = 256 * 1024


class PrintedReport(NamedTuple):
    """A report, and the output without it."""

    report: bytes
    output: bytes


class ReportOnOutput:
    """One run's way to hand out the regular file `path`, an absolute path in its box."""

    def __init__(self, path: str) -> None:
        self._path, self._token = path, secrets.token_hex(16)

    @property
    def script(self) -> str:
        """The end of a shell script: runs the command in its arguments, and prints the report, if there is one."""
        return f"""\
"$@"
status=$?
report={shlex.quote(self._path)}
if [ -f "$report" ] && [ ! -L "$report" ] && size=$(wc -c <"$report") && [ "$size" -le {_MOST_BYTES} ]; then
    printf '\\n{self._token} %d\\n' "$size"
    cat "$report"
    echo {self._token}
fi
exit "$status"
"""

    def found_in(self, output: bytes) -> PrintedReport | None:
        """The report that the script printed; None where it printed none, or not all of it in one piece."""
        before, mark, after = output.rpartition(f"\n{self._token} ".encode())
        size, _, rest = after.partition(b"\n")
        if not mark or not size.isdigit():
            return None
        report, end = rest[: int(size)], f"{self._token}\n".encode()
        if not rest[len(report) :].startswith(end):
            return None
        return PrintedReport(report, before + rest[len(report) + len(end) :])
