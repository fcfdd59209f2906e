"""Reports: what the graded results of a sweep say, as text, Markdown, JSON, plots and one HTML file."""

from evalpipe.reports.figures import category_png, comparison_png, scoreboard_png
from evalpipe.reports.html import html_report
from evalpipe.reports.markdown import category_markdown, funnel_markdown, scoreboard_markdown
from evalpipe.reports.records import AgentInfo, AgentRole, SweepResults, TaskInfo
from evalpipe.reports.summary import summary
from evalpipe.reports.text import funnel_text, scoreboard_text

__all__ = [
    "AgentInfo",
    "AgentRole",
    "SweepResults",
    "TaskInfo",
    "category_markdown",
    "category_png",
    "comparison_png",
    "funnel_markdown",
    "funnel_text",
    "html_report",
    "scoreboard_markdown",
    "scoreboard_png",
    "scoreboard_text",
    "summary",
]
