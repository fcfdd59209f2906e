"""Opens the reports of `inside/evalpipe_seal.py`: a line that the tested code wrote is told from the program's own."""

import hashlib
import hmac
import secrets


class BrokenSeal(ValueError):
    """A line of a report was not written by the program whose report it is, or one that it wrote is missing."""


def new_key() -> str:
    """A key for one run, as hex digits."""
    return secrets.token_hex(32)


def open_sealed(report: bytes, key: str) -> list[bytes]:
    """The records of `report`, each with the seal (HMAC-SHA-256 over all lines up to it) checked and taken off.

    A last line without its end is left out: the run stopped while it was written. Raises BrokenSeal.
    """
    chain = hmac.new(bytes.fromhex(key), digestmod=hashlib.sha256)
    records: list[bytes] = []
    for number, line in enumerate(report.split(b"\n")[:-1], start=1):
        seal, _, record = line.partition(b" ")
        chain.update(record + b"\n")
        if not hmac.compare_digest(chain.copy().hexdigest().encode("ascii"), seal):
            raise BrokenSeal(f"line {number} of the report was not written by the test runner")
        records.append(record)
    return records
