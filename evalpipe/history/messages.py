"""What commit messages say: a title, what was merged, reverted, picked or released.

Pure text in, values out. Each form is one that a forge or git itself writes; free prose is left to `links`. A cheap
look at the text goes before each pattern, because a long history has many messages and few hits.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_REMOTE: Final = r"(?:refs/remotes/)?(?:origin|upstream)/"
_MERGED_BRANCH: Final = (
    re.compile(
        rf"Merge (?:remote(?:-tracking)? )?branch(?:es)? '(?:{_REMOTE})?(?P<name>[^']+)'"
        r"(?: of (?P<place>\S+))?(?: into '?(?P<target>[^\s']+))?"
    ),
    re.compile(rf"Merge commit '{_REMOTE}(?P<name>[^']+)'(?P<place>)?(?: into '?(?P<target>[^\s']+))?"),
    re.compile(r"Merge tag '(?P<name>[^']+)'(?: of (?P<place>\S+))?(?: into '?(?P<target>[^\s']+))?"),
    re.compile(r"Merged? (?:in )?branch (?P<name>[^\s']+)(?P<place>)? into '?(?P<target>[^\s']+)"),
)

_BOILERPLATE: Final = re.compile(
    r"(?:Merge(?:d)? (?:pull request|branch|branches|remote(?:-tracking)? branch|commit|in|tag)\b|Merge #\d"
    r"|(?:Auto|Rollup) merge of #)"
)
# Several reviewed changes at once: bors' and homu's, and Gerrit's.
_BATCH: Final = re.compile(r"Merge (?:#\d+(?:,? #\d+)+\s*\Z|changes (?:I[0-9a-f]{4,40},|from topics? ))")
_TITLE_AFTER_FORM: Final = re.compile(r"(?:(?:Merged PR \d+|Pull request #\d+|Merge PR #\d+): )+")
_NUMBER_AT_END: Final = re.compile(r"\((?:#|GH-|(?:[\w.][\w./-]*)?!)\d+\)\s*\Z")
# Gitea's and Forgejo's, and Gerrit's.
_TITLE_IN_MERGE: Final = re.compile(r"Merge (?:pull request '(.*)' \([#!]\d+\) from |\"(.*)\"(?: into \S+)?\Z)")
# bors puts number, reviewer and author around it.
_TITLE_OF_BORS: Final = re.compile(r"\A\d+: (.*) r=\S+ a=\S+\Z")
# What git lists when a merge had to be finished by hand.
_CONFLICTS: Final = re.compile(r"(?m)^(?:# )?Conflicts:[ \t\r]*\n(?:#?[ \t].*(?:\n|\Z))*")

# Above the subjects that git and Bitbucket list: the branch or commit that they are of.
_LISTED_SIDE: Final = re.compile(r"(?m)^\* (?:(?:commit|branch|tag) )?\S+:[ \t\r]*(?:\n|\Z)")

_TRAILER_BEGINNINGS: Final = frozenset("csratdmpCSRATDMP(")
_TRAILER: Final = re.compile(
    r"(?i)(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|change-id|reviewed-on|see merge request"
    r"|differential revision|approved-by|related work items|merge-request|part-of|pr-url|cc"
    r"|\(cherry picked from commit|automatic merge from submit-queue)\b"
)

_REVERTED_COMMIT: Final = re.compile(r"(?m)^\W*This reverts (?:merge )?commits?:?\s+\W*([0-9a-f]{7,64})\b")
_REVERTED_NUMBER: Final = re.compile(
    r"(?m)^(?:This )?[Rr]everts (?:merge request |pull request )?(?:[\w.-]+/[\w./-]+)?([#!])(\d+)\b"
    r"|^Original Phabricator Diff: (D)(\d+)\b"
)
# In the title that was taken back, and not in one that this took back in its turn.
_REVERTED_IN_TITLE: Final = re.compile(r'(?i)(?:[\w./-]+: )?revert(?:ed|s)?[: ]\W*".*\(([#!])(\d+)\)"(?!")')
_REVERT_TITLE: Final = re.compile(
    r"""(?ix) (?:[\w./-]+:\ )?  # the part of the product that Go's titles begin with
    (?: (?:revert|reapply|back(?:ed)?[ -]?out|roll(?:ed)?[ -]?back)(?:ed|s|\ of)?[: ]\W*" | revert:
      | (?:revert(?:ed|ing|s)?|back(?:ed|ing)?[ -]?out|(?:automated\ (?:g4\ )?)?roll(?:ed|ing)?[ -]?back)\s
        (?:of\s)? (?:(?:commit|changeset|changelist|diff|revision)\s)?
        (?: D(?P<diff>\d{3,}) | (?P<commit>(?=[a-f]*\d)[0-9a-f]{7,64}) | \d+\s(?:commits|changesets) )\b
    )"""
)
# A squash lists the messages of its commits, one of which may have reverted another.
_LISTED_COMMIT: Final = re.compile(r"(?m)^\* (?![0-9a-f]{7,64}\b)\S")
# Said by `git cherry-pick -x`; and by people and review tools where something lands again.
_PICKED: Final = re.compile(
    r"\((?:cherry picked|cherry-picked) from commit ([0-9a-f]{7,64})\)"
    r"|^(?:This (?:is a )?)?[Rr]e-?(?:lands?|appl(?:y|ies)|commits?)(?: of)? (?:commit )?([0-9a-f]{7,64})\b",
    re.MULTILINE,
)
_SUBTREE: Final = re.compile(r"(?m)^git-subtree-dir: (\S.*?)[ \t]*$")

_VERSION: Final = r"v?\d+\.\d+(?:\.\d+)*(?:[-.+]?(?:alpha|beta|rc|dev|post|pre|a|b|snapshot)[-.]?\d*)?"
# Whose version it is, when the title says so; `Bump the Go version` is about a tool.
_WHOSE: Final = (
    r"(?:(?:new|next|major|minor|patch|dev(?:elopment)?|release|package|project|crate|gem|library|module|assembly)\s+)?"
)
_TAIL: Final = rf"""(?:(?:\s*(?:->|=>|→|:)\s*|\s+)(?:(?:to|from|for)\s+)?(?:the\s+)?(?:next\s+)?
    (?:["'`]?{_VERSION}["'`]?|v?\d+(?::\d+)+|(?:alpha|beta|rc|pre)\d*|release|dev(?:elopment)?(?:\s+(?:version|cycle|iteration))?))*
    (?:\s*(?:,|and|\+)\s*(?:update\s+)?(?:the\s+)?(?:changelog|changes|history|release\s+notes))?\.?"""
# Lerna's, changesets', and cargo-release's, which name no version.
_BARE_RELEASE: Final = re.compile(
    r"(?i)(?:(?:chore|build|ci)(?:\([\w/.-]*\))?!?:\s*(?:release[sd]?|publish)|publish|version packages(?: \([\w-]+\))?"
    r"|releasing: releasing \d+ package\(s\))\Z"
)
_RELEASE: Final = re.compile(
    rf"""(?ix) \A [-*\s]*(?::\w+:\s*|[^\x00-\x7f]+\s*)?  # an emoji
    (?:\[[\w-]*release[\w-]*\]\s*|\(cargo-release\)\s*|(?:chore|build|ci|release|misc|bump)(?:\([\w/.-]*\))?!?:\s*)?
    (?: (?:cut|publish|tag|prepar(?:e|ing|ation)|start|finish|make|new)?\s*(?:for|of|the)?\s*(?:the\s)?
        (?:new\s)?releas(?:e|ing)(?:\s(?:of|for|version))?\s+(?:[\w-]+\s+)?{_VERSION}\b.*
      | {_VERSION}(?:\s+(?:\w+\s+)?release!?(?:\s*\([^()]*\))?)?
      | open(?:ed|ing)?\s+up\s+for\s+{_VERSION}
      | this\s+is\s+(?:version\s+)?{_VERSION}\.?
      | bump(?:ed|s)?\s+to\s+dev(?:elopment)?\s+version
      | (?:update\s+(?:the\s+)?changelog\s+and\s+)?
        (?:bump|updat|set|increas|increment|chang)(?:e?[sd]|e|ed|ing)?\s+(?:the\s+)?{_WHOSE}
        (?:versions?(?:\s+(?:number|string))?|prerelease){_TAIL}
      | (?:remove|drop)d?\s+(?:the\s+)?prerelease{_TAIL}
      | (?:post-?release\s+)?version\s+(?:bump|{_VERSION}{_TAIL})
      | (?:cut|tag|publish)(?:ting|ging|ged)?\s+(?:version\s+)?{_VERSION}
      | (?:begin|start)\s+{_VERSION}\s+development
      | bump(?:ed|s)?\s+(?:to\s+)?{_VERSION}(?:\s*[-,;.(→].*|\s+(?:for|release|to)\b.*)?
      | prepar(?:e|ing)\s+(?:for\s+)?(?:the\s+)?(?:next\s+)?release(?:\s+(?:[\w.]+-)*{_VERSION}.*)?
      | prepar(?:e|ing)\s+for\s+(?:the\s+)?next\s+development\s+(?:iteration|cycle|version)
      | prepar(?:e|ing)\s+(?:for\s+)?{_VERSION}(?:\s+release)?
      | (?:back\s+to|begin|start(?:\s+of)?)\s+(?:the\s+)?(?:next\s+)?development(?:\s+(?:of|on|for)?\s*{_VERSION})?
    ) (?:\s*\[(?:skip\ ci|ci\ skip)\])? \Z"""
)


# What bots call their updates: pre-commit.ci's; Dependabot's and Renovate's, with or without a conventional prefix.
_UPDATE: Final = re.compile(
    r"""(?ix) (?::\w+:\s*|[^\x00-\x7f]+\s*)? (?: \[pre-commit\.ci\]\ pre-commit\ autoupdate
    | (?:\w+(?:\([\w/.,\ -]*\))?!?:\s*)?
      (?: bump\ (?:the\ [\w./@-]+\ group\b.* | \S+\ from\ \S+\ to\ \S+(?:\ in\ \S+)?)
        | (?: update\ (?:dependency|module|rust\ crate|helm\ release|terraform)\ \S+\ to\ v?\d\S*
            | update\ \S+\ (?:action|monorepo|packages|docker\ tag|orb|digest)\ to\ (?:v?\d|[0-9a-f]{7})\S*
            | update\ all\ non-major\ dependencies | pin\ dependenc(?:y\ \S+\ to\ v?\d\S*|ies) | lock\ file\ maintenance
          )(?:\ \((?:major|minor|patch)\))?(?:\ \[security\])?
      )
    ) \Z"""
)
_CHANGELOG_TITLE: Final = re.compile(
    r"(?i)(?:(?:add|update|fix|write)(?:ed|d|s)?\s+(?:the\s+|a\s+)?)?(?:change[ -]?log|changes|release notes)"
    r"(?:\s+(?:entry|entries))?(?:\s+(?:for|of)\b.*)?\.?\Z"
)
# Names of branches and tags that a release is made from.
_RELEASE_LINE: Final = re.compile(
    r"(?i)(?:[\w.-]+/)?(?:(?:release|releases|maint|maintenance|support|stable)[/-])?v?\d+(?:\.(?:\d+|x))+"
    r"(?:[-_.]?(?:maintenance|maint|stable|x|dev))?\Z|(?:[\w.-]+/)?(?:stable|release|maint|maintenance)\Z"
)


class MergedBranch(NamedTuple):
    """What git's or a forge's merge subject says: the branch without a usual remote's name, where from, and into what.

    `place` is the address of another repository, `target` the branch that took it in; None where nothing is said.
    """

    name: str
    place: str | None
    target: str | None

    @property
    def is_checked_out_fork(self) -> bool:
        """Whether it was merged into a branch named after the fork's owner, as forges tell reviewers to do."""
        owner = re.search(r"[:/]([^/:]+)/[^/]+\Z", self.place or "")
        return owner is not None and re.match(re.escape(owner[1]) + "[-/_]", self.target or "") is not None


def is_changelog_title(title: str) -> bool:
    """Whether a title says that only the changelog was written."""
    return _CHANGELOG_TITLE.match(title) is not None


def is_release_line(name: str) -> bool:
    """Whether a branch or tag is called as one that a release is made from (`8.1.x`, `4.x-maintenance`, `stable`)."""
    return _RELEASE_LINE.match(name) is not None


def is_update_title(title: str) -> bool:
    """Whether a title is a bot's for newer versions of dependencies or tools."""
    lowered = title.lower()
    if not ("bump" in lowered or "update" in lowered or "dependenc" in lowered or "lock file" in lowered):
        return False
    return _UPDATE.match(title) is not None


def is_boilerplate(subject: str) -> bool:
    """Whether a subject is a merge's that git or a forge wrote, so that it says nothing of the change."""
    return _BOILERPLATE.match(subject) is not None


def subject_of(message: str) -> str:
    """The first line."""
    return message.lstrip("\n").partition("\n")[0].strip()


def title_of(message: str) -> str:
    """What the change is called: the pull request's title where the message has it, otherwise the subject."""
    subject = subject_of(message)
    if subject.startswith(("Merge", "Auto merge", "Rollup merge")):
        inside = _TITLE_IN_MERGE.match(subject)
        if inside:
            return inside[1] or inside[2] or ""
        if is_boilerplate(subject):
            below = _LISTED_SIDE.sub("", message.lstrip("\n").partition("\n")[2])
            own_words = (line.strip() for line in _written_lines(below))
            return _bare(next(filter(None, own_words), subject))
    return _bare(subject)


def description_of(message: str) -> str:
    """The message without what forges and git put around it; empty when nothing else is in it."""
    subject, _, rest = message.strip("\n").partition("\n")
    text = _LISTED_SIDE.sub("", rest) if is_boilerplate(subject) else f"{_bare(subject)}\n{rest}"
    return "\n".join(_written_lines(text)).strip()


def _written_lines(text: str) -> list[str]:
    """The lines of a message's body that somebody wrote, as they were before a bot took them over."""
    if "Conflicts:" in text:
        text = _CONFLICTS.sub("", text)
    lines = [line.rstrip() for line in text.split("\n") if not _is_trailer(line)]
    if " r=" in text:
        lines = [_TITLE_OF_BORS.sub(r"\1", line) for line in lines]
    return lines


def _is_trailer(line: str) -> bool:
    return line[:1] in _TRAILER_BEGINNINGS and _TRAILER.match(line) is not None


def _bare(title: str) -> str:
    """A title without the number that a forge put before or behind it."""
    if title.startswith(("Merged PR ", "Pull request ", "Merge PR ")):
        title = _TITLE_AFTER_FORM.sub("", title, count=1)
    number = _number_at_end(title)
    return title if number is None else title[: number.start()].rstrip()


def _number_at_end(title: str) -> re.Match[str] | None:
    """The `(#12)` or `(!12)` behind a title."""
    return _NUMBER_AT_END.match(title, title.rfind("(")) if title.rstrip().endswith(")") else None


def merged_branch(message: str) -> MergedBranch | None:
    """The branch that the subject of a merge names."""
    subject = subject_of(message)
    for pattern in _MERGED_BRANCH:
        found = pattern.match(subject)
        if found:
            return MergedBranch(found["name"], found["place"] or None, found["target"])
    return None


def is_batch(message: str) -> bool:
    """Whether a merge says that it brought several reviewed changes."""
    return _BATCH.match(subject_of(message)) is not None


def may_revert(message: str) -> bool:
    """Whether a closer look for what a message reverts is worth it; nearly all have none of the words."""
    lowered = message.lower()
    return "revert" in lowered or "back" in lowered or "original phab" in lowered


def reverted_commits(message: str) -> list[str]:
    """The (possibly shortened) ids after git's own "This reverts commit", and the one that a title names."""
    found = _REVERTED_COMMIT.findall(_without_listed(message)) if "This reverts" in message else []
    title = _REVERT_TITLE.match(subject_of(message)) if "evert" in message or "ack" in message else None
    return [*found, title["commit"]] if title is not None and title["commit"] else found


def reverted_number(message: str) -> tuple[str, int] | None:
    """The pull request that is taken back: its sign (`#`, `!`, `D`) and its number.

    A forge's "Reverts owner/repo#N" names it, or the title that the revert's own title quotes.
    """
    subject = subject_of(message)
    title = _REVERT_TITLE.match(subject) if subject[:1] in "rRbB" or ": " in subject else None
    if title is not None and title["diff"]:
        return "D", int(title["diff"])
    found = None
    if "everts" in message or "Original Phabricator" in message:
        found = _REVERTED_NUMBER.search(_without_listed(message))
    if found is not None:
        return found[1] or found[3], int(found[2] or found[4])
    quoted = _REVERTED_IN_TITLE.match(subject) if title is not None else None
    return None if quoted is None else (quoted[1], int(quoted[2]))


def _without_listed(message: str) -> str:
    """The message up to the list of the squashed commits."""
    listed = _LISTED_COMMIT.search(message) if _number_at_end(subject_of(message)) else None
    return message if listed is None else message[: listed.start()]


def is_revert_title(title: str) -> bool:
    """Whether a title is one that git or a forge gives to a revert or to the revert of a revert."""
    lowered = title.lower()
    return ("revert" in lowered or "back" in lowered or "reapply" in lowered) and _REVERT_TITLE.match(title) is not None


def picked_commits(message: str) -> list[str]:
    """The (possibly shortened) ids of the commits that this one was picked from or lands again, the original first."""
    return [one or other for one, other in _PICKED.findall(message)] if may_pick(message) else []


def may_pick(message: str) -> bool:
    """Whether a closer look for what a message was picked from is worth it; nearly all have none of the words."""
    if "cherry" in message or "eland" in message or "e-land" in message:
        return True
    return "eappl" in message or "ecommit" in message


def subtree_folder(message: str) -> bytes | None:
    """The folder in which `git subtree` keeps another project's files, as its commits say."""
    found = _SUBTREE.search(message)
    return None if found is None else found[1].strip("/").encode()


def has_long_subject(message: str) -> bool:
    """Whether the first paragraph has further lines, as where a list of what was done stands for a subject."""
    lines = message.lstrip("\n").split("\n", 2)
    return len(lines) > 1 and bool(lines[1].strip())


def is_release_title(title: str) -> bool:
    """Whether a title says nothing but that a version was released or bumped."""
    lowered = title.lower()
    if not (
        "." in title or "releas" in lowered or "publish" in lowered or "version" in lowered or "development" in lowered
    ):
        return False
    return _RELEASE.match(title) is not None or _BARE_RELEASE.match(title) is not None
