"""A question of evalpipe's own to a model, in every wire form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.gateway import Gateway, ProviderError, WireForm
from evalpipe.gateway.completion import _texts, complete
from evalpipe_tests.gateway.asking import FORMS, MODELS, REAL_KEY, provider
from evalpipe_tests.model_replies import Fail, Say, Use
from evalpipe_tests.model_server import Drop, ModelServer


@pytest.mark.parametrize("form", FORMS)
def test_it_gives_the_words_of_the_answer_and_counts_the_call(form: WireForm) -> None:
    with ModelServer([Say("  Noon is shown as eleven.\n")]) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        assert complete(attempt, form, MODELS[form], "Say it shortly.", "A long story.") == "Noon is shown as eleven."
        evidence = attempt.close()
    assert (evidence.succeeded, evidence.usage.input) == (1, 100)
    asked = server.seen[0].body.decode()
    assert "Say it shortly." in asked
    assert "A long story." in asked
    assert REAL_KEY in str(server.seen[0].headers)


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_without_words_is_empty(form: WireForm) -> None:
    with ModelServer([Use("tool", {})]) as server, Gateway([provider(server.url, form)]) as gateway:
        assert complete(gateway.open_attempt("a", "test"), form, MODELS[form], "i", "t") == ""


@pytest.mark.parametrize("form", FORMS)
def test_a_refusal_is_told_with_its_reason_and_without_the_key(form: WireForm) -> None:
    said = f"the key {REAL_KEY} is not good"
    with ModelServer([Fail(401, message=said)]) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        with pytest.raises(ProviderError, match=r"status 401, the key \[redacted\] is not good") as caught:
            complete(attempt, form, MODELS[form], "i", "t")
    assert REAL_KEY not in str(caught.value)


def test_a_connection_that_breaks_is_told() -> None:
    form = WireForm.OPENAI_CHAT
    with ModelServer([Drop(mid_stream=False)]) as server, Gateway([provider(server.url, form)]) as gateway:
        attempt = gateway.open_attempt("a", "test")
        with pytest.raises(ProviderError):
            complete(attempt, form, MODELS[form], "i", "t")


@given(
    st.sampled_from(list(WireForm)),
    st.dictionaries(
        st.sampled_from(["content", "output", "choices", "candidates"]),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["text", "content", "message", "parts", "thought"]), inner)
            ),
            max_leaves=8,
        ),
    ),
)
def test_no_document_stumbles_it(form: WireForm, document: dict[str, Any]) -> None:
    assert all(isinstance(text, str) for text in _texts(form, document))
