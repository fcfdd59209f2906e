"""JUnit XML of every dialect: outcomes, exact names, and files that no tool should have written."""

from __future__ import annotations

import tracemalloc
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners.junit_xml import DamagedXml, JUnitCase, read_junit_xml
from evalpipe.runners.report import TestOutcome


def suite(body: str) -> bytes:
    return f'<testsuite name="s">{body}</testsuite>'.encode()


def only(body: str) -> JUnitCase:
    (case,) = read_junit_xml(suite(body)).cases
    return case


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("", TestOutcome.PASSED),
        ("<failure/>", TestOutcome.FAILED),
        ("<error/>", TestOutcome.ERROR),
        ("<skipped/>", TestOutcome.SKIPPED),
        ('<skipped type="pytest.xfail"/>', TestOutcome.XFAILED),
        ("<skipped/><failure/>", TestOutcome.FAILED),
        ("<error/><failure/>", TestOutcome.FAILED),
        ("<failure/><skipped/>", TestOutcome.FAILED),
        # It failed, and passed when it was run again.
        ("<flakyFailure/><flakyFailure/>", TestOutcome.FAILED),
        ("<rerunError/>", TestOutcome.FAILED),
        (
            "<system-out>FAILED &lt;failure/&gt;</system-out><properties><property name='a'/></properties>",
            TestOutcome.PASSED,
        ),
        ("<system-out><![CDATA[<failure/></testcase>]]></system-out>", TestOutcome.PASSED),
    ],
)
def test_the_worst_element_decides(body: str, outcome: TestOutcome) -> None:
    assert only(f'<testcase name="t" classname="c">{body}</testcase>').outcome is outcome


@pytest.mark.parametrize(
    ("attributes", "outcome"),
    [
        ('status="run" result="completed"', TestOutcome.PASSED),
        ('status="passed"', TestOutcome.PASSED),
        ('status="notrun" result="suppressed"', TestOutcome.SKIPPED),  # GoogleTest
        ('status="run" result="skipped"', TestOutcome.SKIPPED),
        ('status="fail"', TestOutcome.FAILED),  # CTest
        ('status="Failed"', TestOutcome.FAILED),
    ],
)
def test_attributes_tell_what_elements_do_not(attributes: str, outcome: TestOutcome) -> None:
    assert only(f'<testcase name="t" {attributes}/>').outcome is outcome


def test_names_and_places_are_kept_to_the_character() -> None:
    text = """<testsuites name="all"><testsuite name="outer" file="a b.py"><testsuite name=" in &quot;ner&quot; ">
      <testcase classname="p.C$N" name=" x[ &quot;a&quot; ] it's &lt;&amp;&gt; &#10;é " time="1,234.5"/>
      <testcase name="second" file="other.py" time="oops"/></testsuite>
      <testcase name="third" time="-1"/></testsuite></testsuites>"""
    first, second, third = read_junit_xml(text.encode()).cases
    assert (first.suites, first.classname, first.file) == (("outer", ' in "ner" '), "p.C$N", "a b.py")
    assert first.name == ' x[ "a" ] it\'s <&> \né '
    assert first.seconds == 1234.5
    assert (second.file, second.seconds, second.classname) == ("other.py", 0, "")
    assert (third.suites, third.seconds) == (("outer",), 0)


def test_the_message_is_that_of_what_decides() -> None:
    case = only(
        '<testcase name="t"><error message="late" type="E2">after</error>'
        '<failure message="why" type="java.lang.E">why\n\tat X</failure><failure>again</failure></testcase>'
    )
    assert (case.kind, case.message) == ("java.lang.E", "why\n\tat X")
    assert only('<testcase name="t"><failure message="a">b</failure></testcase>').message == "a\nb"
    assert only('<testcase name="t"><failure message="a"/></testcase>').message == "a"
    assert only('<testcase name="t"><failure>a<![CDATA[<b>]]>c</failure></testcase>').message == "a<b>c"


def test_a_failure_of_a_suite_is_told_beside_its_cases() -> None:
    report = read_junit_xml(suite('<error message="no database"/><testcase name="t"/>'))
    assert report.suite_failures == {("s",): "no database"}
    assert [case.outcome for case in report.cases] == [TestOutcome.PASSED]


def test_what_xml_cannot_hold_becomes_visible() -> None:
    raw = b'<testcase name="a\x1b[31m\x00\xff\xfe&#27;&#x0;&#xD800;&#65;"><failure>\x07</failure></testcase>'
    (case,) = read_junit_xml(b"<testsuite>" + raw + b"</testsuite>").cases
    assert case.name == r"a\x1b[31m\x00\xff\xfe\x1b\x00\ud800A"
    assert case.message == r"\x07"
    "".join((case.name, case.message)).encode()


@pytest.mark.parametrize(
    "content",
    [
        '<?xml version="1.0" encoding="ISO-8859-1"?><testsuite><testcase name="é"/></testsuite>'.encode("latin-1"),
        b"\xff\xfe"
        + '<?xml version="1.0" encoding="UTF-16"?><testsuite><testcase name="é"/></testsuite>'.encode("utf-16-le"),
        b"\xef\xbb\xbf" + '<testsuite><testcase name="é"/></testsuite>'.encode(),
        '<?xml version="1.0" encoding="x-nowhere"?><testsuite><testcase name="é"/></testsuite>'.encode(),
        '<?xml version="1.0" encoding="zip"?><testsuite><testcase name="é"/></testsuite>'.encode(),
    ],
    ids=["latin-1", "utf-16", "mark", "unknown", "no text"],
)
def test_encodings(content: bytes) -> None:
    assert [case.name for case in read_junit_xml(content).cases] == ["é"]


ENTITIES = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"not XML",
        ENTITIES.encode(),
        b'<!DOCTYPE testsuite SYSTEM "file:///etc/passwd"><testsuite/>',
        b'<testsuite><testcase name="&nbsp;"/></testsuite>',
        b'<testsuite><testcase name="t"/>',
        b'<testsuite><testcase name="t"/></testsuite><testsuite/>',
        b'<testsuite><testcase name="t"></testsuite>',
        b'<testsuite><testcase name="t" name="t"/></testsuite>',
        b'<testsuite><testcase name="t"><testcase name="u"/></testcase></testsuite>',
        b"<html><testsuite/></html>",
        b'<testcase name="t"/>',
        b"<testsuite>" * 200 + b"</testsuite>" * 200,
        b"<testsuite>" * 3_000_000,
        b'<?xml version="1.0" encoding="idna"?><testsuite name="\xff"/>',
    ],
)
def test_what_is_no_whole_junit_xml_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedXml):
        read_junit_xml(content)


def test_every_cut_is_damaged() -> None:
    whole = suite('<testcase name="a"/><testcase name="b"><failure>x</failure></testcase>')
    for length in range(len(whole)):
        with pytest.raises(DamagedXml):
            read_junit_xml(whole[:length])


def test_a_large_file_takes_little_memory_and_short_messages() -> None:
    body = b"x" * 20_000_000
    content = b'<testsuite><testcase name="t"><failure message="first">begin' + body + b"end</failure></testcase>"
    content += b"<system-out>" + body + b"</system-out></testsuite>"
    tracemalloc.start()
    (case,) = read_junit_xml(content).cases
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert case.message.startswith("first\nbegin")
    assert case.message.endswith("end")
    assert len(case.message) < 5000
    assert peak < 6 * len(content)


@pytest.mark.slow
def test_more_cases_than_any_suite_has_are_damage() -> None:
    with pytest.raises(DamagedXml, match="more than"):
        read_junit_xml(b"<testsuite>" + b"<testcase/>" * 600_000 + b"</testsuite>")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_comes_back(classname: str, name: str) -> None:
    # The three that XML turns into blanks unless they are written as references; quoteattr does that.
    case = only(f"<testcase classname={quoteattr(classname)} name={quoteattr(name)}/>")
    allowed = all(c in "\t\n\r" or " " <= c not in "\ufffe\uffff" for c in classname + name)
    if allowed:
        assert (case.classname, case.name) == (classname, name)
    f"{case.classname}{case.name}".encode()


@given(st.binary() | st.text("<>/testsuicaflr&#;x01![]CDATA\"'= \x00\x1b").map(lambda text: suite(text)))
def test_no_content_raises_anything_else(content: bytes) -> None:
    try:
        report = read_junit_xml(content)
    except DamagedXml:
        return
    for case in report.cases:
        f"{case}".encode()
