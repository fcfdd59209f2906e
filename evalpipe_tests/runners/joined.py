"""Makes the joined report of several files, as the scripts of runners do in a box."""

from __future__ import annotations

TOKEN = "0123456789abcdef"


def joined(*files: tuple[str, str | bytes], status: int = 0, end: bool = True) -> bytes:
    """The report with these files, and the last line with the exit status unless the run ended before."""
    parts = [
        f"\n{TOKEN} file {path}\n".encode() + (content.encode() if isinstance(content, str) else content)
        for path, content in files
    ]
    return b"".join(parts) + (f"\n{TOKEN} end {status}\n".encode() if end else b"")
