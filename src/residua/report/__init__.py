"""The report: plain facts from a Result, rendered as one page."""

from residua.report.render import render, write_report
from residua.report.summarize import summarize

__all__ = ["render", "summarize", "write_report"]
