"""The report: plain facts from a Result, rendered as one page."""

from covaria.report.rendering import page_of, render, write_report, write_tables
from covaria.report.summaries import summarize
from covaria.report.tables import tables_facts

__all__ = ["page_of", "render", "summarize", "tables_facts", "write_report", "write_tables"]
