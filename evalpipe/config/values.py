"""Kinds of values that the configuration files share: names, texts, sizes, limits; and a model's digest."""

import hashlib
import json
import re
import zoneinfo
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from evalpipe.config.problems import did_you_mean

SLUG_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,39}$"
SLUG_RULE = "1 to 40 of a-z, 0-9, _ and -, beginning with a letter or digit"

_MEMORY_UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
# What the Docker engine refuses to go below.
_LEAST_MEMORY = 6 * 1024**2


class ConfigModel(BaseModel):
    """A part of a configuration file: it never changes, and it knows every field that may stand in it."""

    # An input in a traceback could be a token that was pasted into the wrong field.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def wrong(message: str) -> PydanticCustomError:
    """Return an error of one value, whose text is shown to the user as it is."""
    return PydanticCustomError("evalpipe", "{message}", {"message": message})


def refuse(faults: Sequence[tuple[str, str]]) -> None:
    """Raise one error for all the `faults` of a model, pairs of field and message, if there are any."""
    if faults:
        raise PydanticCustomError("evalpipe_fields", "{faults}", {"faults": list(faults)})


def is_slug(text: str) -> bool:
    return re.fullmatch(SLUG_PATTERN, text) is not None


def _check_slug(value: str) -> str:
    if not is_slug(value):
        raise wrong(f"{value!r} is not a name; use {SLUG_RULE}")
    return value


def _check_text(value: str) -> str:
    if not value.strip():
        raise wrong("is empty; give it a value")
    if "\0" in value:
        raise wrong("holds a NUL character; remove it")
    return value


def _check_not_option(value: str) -> str:
    """Keep a value that goes to git or pip as an argument from being read there as an option."""
    if value.startswith("-"):
        raise wrong(f"{value!r} would be read as an option; it must not begin with '-'")
    if "\n" in value:
        raise wrong("must be one line")
    return value


def _check_glob(value: str) -> str:
    if value.startswith("/") or ".." in Path(value).parts:
        raise wrong(f"{value!r} leaves the repository; write it from the repository's top, as `tests/**`")
    return value


def _check_currency(value: str) -> str:
    if re.fullmatch("[A-Z]{3}", value) is None:
        raise wrong(f"{value!r} is not a currency; use three capital letters, as EUR")
    return value


def _check_time_zone(value: str) -> str:
    if value != "UTC" and value not in zoneinfo.available_timezones():
        hint = did_you_mean(value, zoneinfo.available_timezones()) or "; use a name as Europe/Berlin"
        raise wrong(f"{value!r} is no time zone{hint}")
    return value


def _check_owner(value: str) -> str:
    if re.fullmatch(r"team:[\w.-]+|[\w.+-]+@[\w-]+(\.[\w-]+)+", value) is None:
        raise wrong(f"{value!r} is no owner; use team:NAME or an e-mail address")
    return value


def parse_memory(value: Any) -> Any:
    """Return the bytes of a memory size such as `512m` or `2g` (units of 1024, as Docker has them)."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong(f"{value!r} is not a memory size; write it as 512m or 2g")
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,3})?)([bkmgt]?)", str(value).strip().lower())
    if match is None:
        raise wrong(f"{value!r} is not a memory size; write it as 512m or 2g")
    size = int(float(match[1]) * _MEMORY_UNITS[match[2]])
    if size < _LEAST_MEMORY:
        raise wrong(f"{value!r} is less than the 6m that a container needs; write it as 512m or 2g")
    return size


Text = Annotated[str, AfterValidator(_check_text)]
Argument = Annotated[Text, AfterValidator(_check_not_option)]
Slug = Annotated[str, AfterValidator(_check_slug)]
Glob = Annotated[Text, AfterValidator(_check_glob)]
Currency = Annotated[str, AfterValidator(_check_currency)]
Owner = Annotated[str, AfterValidator(_check_owner)]
Memory = Annotated[int, BeforeValidator(parse_memory)]
# Strict, so that `true` is not taken for 1.
Count = Annotated[int, Field(strict=True, ge=1)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]
TimeZone = Annotated[str, AfterValidator(_check_time_zone)]


def digest(model: BaseModel) -> str:
    """Return the hex SHA-256 of a model's canonical JSON: equal configurations share it."""
    text = json.dumps(model.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
