"""The report: plain facts from a Result, rendered as one page."""

from residua.report.render import page_of, render, write_report
from residua.report.summarize import summarize

__all__ = ["page_of", "render", "summarize", "write_report"]
