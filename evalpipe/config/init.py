"""Writes a new workspace for a team's own repository: all of it, or nothing."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from evalpipe.config.problems import ConfigError, Problem

# Packaging tools leave hidden files out, so these get their dot here.
_WRITTEN_AS = {"gitattributes": ".gitattributes", "gitignore": ".gitignore"}


def write_workspace(target: Path) -> list[Path]:
    """Write the workspace template into the folder `target`, made if it is missing; return the files written.

    Raises ConfigError when one of the files is there already or cannot be written; then nothing has changed.
    """
    target = target.resolve()
    contents = {target / name: text for name, text in template_files().items()}
    _refuse_existing(target, list(contents))
    made: list[Path] = []
    try:
        for path, text in contents.items():
            _make_folders(path.parent, made)
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
    except BaseException as error:
        _take_back(made)
        if isinstance(error, OSError):
            place = error.filename or str(target)
            message = f"cannot be written: {error.strerror}; nothing was changed"
            raise ConfigError([Problem(str(place), message)]) from error
        raise
    return list(contents)


def template_files() -> dict[str, str]:
    """Return the text of each file of a new workspace by its path in it."""
    return dict(sorted(_walk(files("evalpipe.config") / "template", "")))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found.extend(_walk(entry, f"{prefix}{entry.name}/"))
        else:
            name = _WRITTEN_AS.get(entry.name, entry.name)
            found.append((prefix + name, entry.read_text(encoding="utf-8")))
    return found


def _refuse_existing(target: Path, paths: list[Path]) -> None:
    if target.exists() and not target.is_dir():
        raise ConfigError([Problem(str(target), "is no folder; name another place")])
    # A broken link counts as existing: writing through it would change a file elsewhere.
    existing = [path for path in paths if path.exists() or path.is_symlink()]
    if existing:
        message = "is there already and is not overwritten; move it away, or name an empty folder"
        raise ConfigError([Problem(str(path), message) for path in existing])


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        made.append(parent)


def _take_back(made: list[Path]) -> None:
    for path in reversed(made):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
