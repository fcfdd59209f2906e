"""Writes a report that only its writer can have written: one line a record, each sealed with a key and its forerunners.

Part of the programs that run inside the sandbox, for Python 3.7 or newer. The key is gone from the disk before the
tested code runs, so that what that code writes into the report breaks it. `evalpipe/runners/seal.py` reads it.
"""

import hashlib
import hmac
import json
import os


class SealedReport:
    """Appends records to the file `report`; a child that a test has forked writes nothing."""

    def __init__(self, report, key):
        self._file = open(report, "ab")
        self._chain = hmac.new(bytes.fromhex(key), digestmod=hashlib.sha256)
        self._process = os.getpid()

    def write(self, record):
        """Append one record, a dictionary, at once: a run that dies shows how far it came."""
        # A test may fork, and an error in the child then runs on through all the tests that follow.
        if os.getpid() == self._process:
            line = json.dumps(record).encode("ascii") + b"\n"
            self._chain.update(line)
            self._file.write(self._chain.copy().hexdigest().encode("ascii") + b" " + line)
            self._file.flush()


def take_settings(folder):
    """The settings that lie beside the program, which are deleted: they name what must not be known to the tests."""
    path = os.path.join(folder, "settings.json")
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    os.unlink(path)
    return settings
