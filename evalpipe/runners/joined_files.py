"""One report file out of the several that a test tool leaves: how they are joined in the box, and how it is read.

Each file comes after a line with a token of the run and its path, and a last such line has the tool's exit status:
without it, the run ended before its end. What tests printed is left out of JUnit XML, where it can be hundreds of
megabytes; the tools write it as CDATA in which the closing mark cannot occur.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

_JOIN = r"""
FNR == 1 { path = FILENAME; gsub(/\n/, "?", path); printf "\n%s file %s\n", token, path; output = "" }
{
    line = $0
    kept = ""
    while (1) {
        if (output == "") {
            if (!match(line, /<system-(out|err)><!\[CDATA\[/)) { kept = kept line; break }
            kept = kept substr(line, 1, RSTART - 1)
            output = substr(line, RSTART + 8, 3)
            line = substr(line, RSTART + RLENGTH)
        } else {
            end = index(line, "]]></system-" output ">")
            if (!end) break
            line = substr(line, end + 16)
            output = ""
        }
    }
    if (output == "" || kept != "") print kept
}
"""


@dataclass(frozen=True, slots=True)
class JoinedFiles:
    """The files of a report in the order in which they were joined, and the exit status of the tool."""

    files: Sequence[tuple[str, bytes]]
    exit_status: int


class NotJoined(ValueError):
    """A report ends before its last line, or has none of the lines that it must have."""


def join_command(token: str, *find_arguments: str) -> str:
    """A shell command that writes the files which `find . find_arguments -type f` names to its standard output.

    It needs only find and awk. `token` must be one that the tests do not know.
    """
    find = shlex.join(("find", ".", *find_arguments, "-type", "f"))
    return f"{find} -exec env LC_ALL=C awk -v token={token} {shlex.quote(_JOIN)} {{}} +"


def end_command(token: str, exit_status: str = "$?") -> str:
    """A shell command that ends the report with the exit status that the shell word `exit_status` stands for."""
    return f'printf "\\n%s end %d\\n" {token} "{exit_status}"'


def read_joined(report: bytes, token: str) -> JoinedFiles:
    """The files that `join_command` joined. Raises NotJoined."""
    first, *parts = (b"\n" + report).split(b"\n" + token.encode() + b" ")
    if first.strip() or not parts:
        raise NotJoined("the report does not begin as it should")
    files: list[tuple[str, bytes]] = []
    for part in parts[:-1]:
        head, _, content = part.partition(b"\n")
        kind, _, path = head.partition(b" ")
        if kind != b"file":
            raise NotJoined("the report goes on after its end")
        files.append((path.decode("utf-8", "backslashreplace"), content))
    words = parts[-1].split()
    if len(words) != 2 or words[0] != b"end" or not words[1].isdigit():
        raise NotJoined("the test run ended before its report was complete")
    return JoinedFiles(files, int(words[1][:9]))
