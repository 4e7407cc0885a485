"""The report: plain facts from a Result, rendered as one page."""

from residua.report.render import page_of, render, write_report, write_tables
from residua.report.summarize import summarize
from residua.report.tables import tables_facts

__all__ = ["page_of", "render", "summarize", "tables_facts", "write_report", "write_tables"]
