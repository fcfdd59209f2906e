from hypothesis import given
from hypothesis import strategies as st

from evalpipe.tasks import terse_draft


def test_titles_lose_what_only_their_tracker_needs() -> None:
    drafts = {
        "Midnight is shown wrongly\n\nSteps: …": "Midnight is shown wrongly.\n",
        "fix(parser)!: crash on empty input (#123)": "Crash on empty input.\n",
        "[Bug] Wrong total?": "Wrong total?\n",
        "BUG: DataFrame loses its index, fixes #12": "DataFrame loses its index.\n",
        "# Wrong colour of links (org/repo#9)": "Wrong colour of links.\n",
        "Docs say otherwise https://example.org/x": "Docs say otherwise.\n",
        "Fixed width columns overlap": "Fixed width columns overlap.\n",
        "Crash": "",
        "": "",
        "\n \n": "",
        "feat: #12": "",
        "word " * 100: "",
    }
    assert {text: terse_draft(text) for text in drafts} == drafts


@given(st.text())
def test_any_text_gives_one_sentence_or_none(text: str) -> None:
    draft = terse_draft(text)
    assert draft == "" or (draft.endswith("\n") and len(draft.splitlines()) == 1)
