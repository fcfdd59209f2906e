"""The object store that a lake can have behind it, through fsspec: `s3://bucket/folder` or `gs://bucket/folder`.

An object is put and read whole: a put is atomic by itself, so nothing is renamed and a reader never sees a half one.
Where the store is and who may use it comes from the environment variables of its provider.
"""

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import fsspec  # type: ignore[import-untyped]

EXTRAS = {"s3": "s3", "gs": "gcs"}
"""Schemes of URLs, and the extra of evalpipe that brings the package for each."""

_AT_ONCE = 64
_S3 = {
    # Else an object's size is asked for before each read of it.
    "max_concurrency": 1,
    "config_kwargs": {
        "connect_timeout": 5,
        "read_timeout": 60,
        "retries": {"mode": "standard", "total_max_attempts": 3},
    },
}


class StoreFault(StrEnum):
    """Why an object store did not do what was asked."""

    PACKAGE_MISSING = "package_missing"
    NO_BUCKET = "no_bucket"
    DENIED = "denied"
    DAMAGED = "damaged"
    UNREACHABLE = "unreachable"
    NOT_EXCLUSIVE = "not_exclusive"


class StoreError(Exception):
    """The store did not do it. The text says to which store that happened, and what to do."""

    def __init__(self, fault: StoreFault, text: str) -> None:
        super().__init__(text)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What the store says of an object: `etag` changes with its content; `size` in bytes; `modified` in UTC."""

    etag: str
    size: int
    modified: dt.datetime


class ObjectStore:
    """The objects below a URL, by their path from there. Safe to share between threads, and after a fork."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self._scheme = parts.scheme
        self._bucket = parts.netloc
        self._root = f"{parts.netloc}{parts.path}".rstrip("/")
        self._opened: tuple[int, Any] | None = None

    def below(self, folder: str) -> dict[str, StoredObject]:
        """Every object below `folder` (empty: all), one request for a thousand. Raises StoreError."""
        with self._telling():
            try:
                found = self._files.find(self._name(folder), detail=True)
            except FileNotFoundError as error:
                raise self._no_bucket() from error
        # An object that appeared while it looked makes s3fs tell of its folder.
        objects = {name: info for name, info in found.items() if info["type"] == "file"}
        return {name.removeprefix(f"{self._root}/"): _stored(info) for name, info in objects.items()}

    def folders(self, folder: str) -> list[str]:
        """The names right in `folder` below which there are objects. Raises StoreError."""
        with self._telling():
            try:
                found = self._files.ls(self._name(folder), detail=True)
            except FileNotFoundError:
                return []
        return [str(one["name"]).rpartition("/")[2] for one in found if one["type"] == "directory"]

    def state(self, key: str) -> StoredObject | None:
        """What the store has under `key`. Raises StoreError."""
        with self._telling():
            try:
                return _stored(self._files.info(self._name(key)))
            except FileNotFoundError:
                return None

    def read(self, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The objects that are there, many requests at once, some in memory at a time. Raises StoreError."""
        wanted = list(keys)
        for start in range(0, len(wanted), _AT_ONCE):
            names = {self._name(key): key for key in wanted[start : start + _AT_ONCE]}
            with self._telling():
                found = self._files.cat(list(names), on_error="return")
            for name, data in found.items():
                if isinstance(data, bytes):
                    yield names[name], data
                elif not isinstance(data, FileNotFoundError):
                    with self._telling(names[name]):
                        raise data

    def put(self, key: str, data: bytes) -> str:
        """Make `data` the object under `key`; returns its etag. Raises StoreError."""
        with self._telling():
            try:
                answer = self._files.pipe_file(self._name(key), data)
                # S3 answers with it, unless the object went up in parts.
                told = answer.get("ETag") if isinstance(answer, Mapping) else None
                return told or _stored(self._files.info(self._name(key))).etag
            except FileNotFoundError as error:
                raise self._no_bucket() from error

    def put_new(self, key: str, data: bytes) -> bool:
        """The same where there is nothing under `key` yet; returns whether it was so. Raises StoreError."""
        with self._telling():
            try:
                self._files.pipe_file(self._name(key), data, mode="create")
            except FileExistsError:
                return False
            except FileNotFoundError as error:
                raise self._no_bucket() from error
        return True

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone are no error. Raises StoreError."""
        for key in keys:
            with self._telling():
                try:
                    self._files.rm_file(self._name(key))
                except FileNotFoundError:
                    continue

    def _name(self, key: str) -> str:
        return f"{self._root}/{key}".rstrip("/")

    @property
    def _files(self) -> Any:
        # A file system of fsspec has a thread of its own, which a fork does not take along.
        if self._opened is None or self._opened[0] != os.getpid():
            options: dict[str, Any] = _S3 if self._scheme == "s3" else {}
            try:
                files = fsspec.filesystem(self._scheme, use_listings_cache=False, skip_instance_cache=True, **options)
            except ImportError as error:
                extra = EXTRAS[self._scheme]
                text = f"{self.url} needs a package that is not here: pip install 'evalpipe[{extra}]'"
                raise StoreError(StoreFault.PACKAGE_MISSING, text) from error
            self._opened = (os.getpid(), files)
        return self._opened[1]

    def _no_bucket(self) -> StoreError:
        text = f"{self.url}: there is no bucket {self._bucket}: make it, or correct `url` in data/lake.yaml"
        return StoreError(StoreFault.NO_BUCKET, text)

    @contextmanager
    def _telling(self, key: str = "") -> Iterator[None]:
        """Turn what the file systems raise into StoreError; an absent object stays FileNotFoundError."""
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:
            raise self._told(error, key) from error

    def _told(self, error: Exception, key: str) -> Exception:
        """An error of the file system's as StoreError; what is none of the store stays as it is."""
        if isinstance(error, StoreError):
            return error
        known = _errors(self._scheme)
        line = " ".join((str(error) or type(error).__name__).split())[:300]
        if isinstance(error, known.denied):
            text = f"{self.url}: access denied ({line}): check the credentials in the environment"
            return StoreError(StoreFault.DENIED, text)
        if isinstance(error, known.damaged):
            text = f"{self.url}/{key} was changed after it was written: restore it from a backup"
            return StoreError(StoreFault.DAMAGED, text)
        if isinstance(error, known.others):
            return StoreError(StoreFault.UNREACHABLE, f"{self.url} cannot be reached ({line}): try again once it can")
        return error


class _Errors(NamedTuple):
    """What the file systems of a scheme raise, beside what Python has for absent and existing files."""

    denied: tuple[type[Exception], ...]
    damaged: tuple[type[Exception], ...]
    others: tuple[type[Exception], ...]


def _errors(scheme: str) -> _Errors:
    # Imported here, for only one of the packages has to be there, and aiohttp takes its time.
    import aiohttp

    # RuntimeError: of a session that is closed, or a thread that there is no room for.
    ended = (OSError, EOFError, RuntimeError, aiohttp.ClientError)
    if scheme == "s3":
        from botocore import exceptions as s3  # type: ignore[import-untyped]

        return _Errors(
            (PermissionError, s3.NoCredentialsError, s3.PartialCredentialsError),
            (s3.FlexibleChecksumError,),
            # ValueError: of an endpoint or a region that is none.
            (*ended, ValueError, s3.BotoCoreError, s3.ClientError),
        )
    from gcsfs import retry as gs  # type: ignore[import-untyped]
    from google.auth.exceptions import GoogleAuthError

    return _Errors((PermissionError, GoogleAuthError), (gs.ChecksumError,), (*ended, gs.HttpError))


def _stored(info: Mapping[str, Any]) -> StoredObject:
    modified = info.get("LastModified") or info.get("mtime") or info.get("updated")
    if isinstance(modified, str):
        modified = dt.datetime.fromisoformat(modified)
    assert isinstance(modified, dt.datetime)
    # Some stores tell parts of a second in a listing and none of one object.
    modified = modified.replace(microsecond=0)
    return StoredObject(str(info.get("ETag") or info["etag"]), int(info["size"]), modified.astimezone(dt.UTC))
