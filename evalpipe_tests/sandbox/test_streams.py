"""The bounded tail of a stream, against a plain slice of everything."""

from hypothesis import given
from hypothesis import strategies as st

from evalpipe.sandbox.streams import Tail


@given(st.lists(st.binary(max_size=20)), st.integers(0, 30))
def test_the_tail_is_the_end_of_the_stream(chunks: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.feed(chunk)
    whole = b"".join(chunks)
    assert tail.content() == whole[max(0, len(whole) - limit) :]
    assert tail.truncated == (len(whole) > limit)
