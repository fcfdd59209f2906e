"""What a box offers to the stress pass: a way to move its clock, locales, time zones. Found out inside, by a script."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

HOSTNAME = "elsewhere"
"""The hostname of the box that is looked at, and of those that are to have another one."""

# The paths of Debian, Fedora, Alpine and of `make install`; MT is the build for programs with threads.
_FAKETIME_FOLDERS = ("/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
_FAKETIME_FILES = ("libfaketimeMT.so.1", "libfaketime.so.1")
_A_MONTH_S = 30 * 24 * 3600
ZONE = "Pacific/Chatham"
"""Far from UTC and not by whole hours, with summer time, on the other side of the date line from most of America."""


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """`faketime` is the library that moves the clock in this box; None where there is none that works."""

    faketime: str | None = None
    locales: tuple[str, ...] = ()
    has_zones: bool = False
    has_own_name: bool = False


def facts_command() -> tuple[str, ...]:
    """The command that looks at a box, which is to have the hostname HOSTNAME; `read_facts` reads what it prints."""
    libraries = " ".join(f"{folder}/{file}" for file in _FAKETIME_FILES for folder in _FAKETIME_FOLDERS)
    script = f"""
        echo "name $(uname -n)"
        [ -e /usr/share/zoneinfo/{ZONE} ] && echo zones
        for library in {libraries}; do
            [ -f "$library" ] || continue
            now=$(date +%s)
            moved=$(LD_PRELOAD=$library FAKETIME=+35d date +%s)
            [ $((moved - now)) -gt {_A_MONTH_S} ] && echo "faketime $library" && break
        done
        locale -a | while read -r name; do echo "locale $name"; done
        exit 0
    """
    return ("/bin/sh", "-c", script)


def read_facts(output: bytes) -> BoxFacts:
    """The facts that the command of `facts_command` printed."""
    lines = [line.partition(" ") for line in output.decode("utf-8", "replace").splitlines()]
    found: dict[str, list[str]] = {}
    for kind, _, value in lines:
        found.setdefault(kind, []).append(value)
    return BoxFacts(
        faketime=next(iter(found.get("faketime", [])), None),
        locales=tuple(found.get("locale", [])),
        has_zones="zones" in found,
        has_own_name=HOSTNAME in found.get("name", []),
    )


def other_locale(locales: Sequence[str]) -> str:
    """Of the locales of a box the one that differs most from C.UTF-8: another language, else the bare C locale.

    Turkish first, for its dotted i, then those that write a comma in numbers.
    """
    encoded = [name for name in locales if re.search(r"utf-?8$", name, re.IGNORECASE)]
    for names in (encoded, locales):
        foreign = [name for name in names if not re.match(r"C\b|POSIX|en_", name)]
        if foreign:
            return min(foreign, key=lambda name: ("tr_TR de_DE fr_FR".find(name[:5]) % 100, name))
    return "C"
