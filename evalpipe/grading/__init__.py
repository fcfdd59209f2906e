"""Grading: the overlay, the run, the verdict."""

from evalpipe.grading.grade import GRADER_VERSION, Grading, grade, limits_of, verdict_key
from evalpipe.grading.verdict import ExpectedIn, Judgement, UnmetTest, Verdict, judge_report

__all__ = [
    "GRADER_VERSION",
    "ExpectedIn",
    "Grading",
    "Judgement",
    "UnmetTest",
    "Verdict",
    "grade",
    "judge_report",
    "limits_of",
    "verdict_key",
]
