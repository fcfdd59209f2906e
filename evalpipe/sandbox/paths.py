"""Checks of the paths that go into and come out of a box: bytes, relative, never leaving the root."""


def as_text(name: bytes) -> str:
    """A file name as text that `as_bytes` turns back into the same bytes, whatever the locale of this
    process.
    """
    return name.decode("utf-8", "surrogateescape")


def as_bytes(name: str) -> bytes:
    """The bytes of a file name."""
    return name.encode("utf-8", "surrogateescape")


def entry_path(path: bytes) -> bytes:
    """`path` itself when it is a safe relative path in its simplest form; raises ValueError otherwise."""
    parts = path.split(b"/")
    if b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        raise ValueError(f"a file of a box needs a plain relative path, not {path!r}")
    return path


def inner_path(path: str) -> bytes:
    """A caller's path below the root, as bytes; `""` and `"."` mean the root itself, which is `b""`."""
    if path in ("", "."):
        return b""
    return entry_path(as_bytes(path))


def parents(path: bytes) -> list[bytes]:
    """The directories above a relative path, outermost first: `a/b/c` gives `a`, `a/b`."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]
