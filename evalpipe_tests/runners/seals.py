"""Seals reports as the programs inside a sandbox do, written down a second time."""

import hashlib
import hmac


def sealed(report: bytes, key: str) -> bytes:
    """`report` with each of its lines sealed with `key`; a last line without its end gets one."""
    lines, so_far = [], b""
    for line in report.rstrip(b"\n").split(b"\n"):
        so_far += line + b"\n"
        lines.append(hmac.new(bytes.fromhex(key), so_far, hashlib.sha256).hexdigest().encode() + b" " + line + b"\n")
    return b"".join(lines)
