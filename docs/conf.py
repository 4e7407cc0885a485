"""The documentation: pages in Markdown, a gallery that is run, and the reference from the code."""

import html
import inspect
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

# Formulas are written as TeX between dollars, which GitHub shows as formulas too. Here docutils
# turns them into MathML, which browsers draw themselves: no script, no network.
from docutils import nodes  # noqa: E402
from formulas import mathml  # noqa: E402
from gallery import write_gallery, write_tables  # noqa: E402

import covaria  # noqa: E402

project = "covaria"
author = "The covaria developers"
version = release = covaria.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "examples"]
html_theme = "furo"
html_title = f"covaria {version}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_js_files = ["versions.js"]
html_css_files = ["pages.css"]
html_show_copyright = False
# Where the pages will lie; without it their previews have no picture.
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL") or os.environ.get("DOCS_URL", "")
CLAIM = "Which features really matter, for any model, with a p-value you can defend."
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_math_renderer = "mathml"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_use_rtype = False
default_role = "code"
nitpicky = False
# Quotes in our texts are often code.
smartquotes = False


LISTED = {
    "index", "start", "choose", "guarantees", "report", "cli", "api", "architecture", "references",
    "tutorial", "compared", "from_r", "from_shap", "from_permutation_importance", "from_doubleml",
    "dependencies", "reliability",
}  # fmt: skip


def with_all_pages(app, name, source):
    """Put every page that no list names into the list that ends the front page."""
    if name == "index":
        rest = sorted({page.stem for page in HERE.glob("*.md")} - LISTED)
        source[0] = source[0].replace("%REST%", "\n".join(rest))


def as_plain_text(app, what, name, obj, options, lines):
    """Show docstrings as they were written: plain text, with bars that are bars."""
    if name == "covaria.Result":  # its fields stand in a table of the page
        del lines[lines.index("") :]
    in_lines = any(re.match(r"\w+: ", line) for line in lines)  # "name: what it is", on one line
    if what in ("class", "exception") and (in_lines or "----------" not in lines):
        at = lines.index("") if "" in lines else len(lines)
        body = [f"    {line}" for line in lines[at + 1 :]]
        rest = ["", "::", "", *body] if any(line.strip() for line in body) else []
        lines[:] = [*(line.replace("|", "\\|") for line in lines[:at]), *rest, ""]
        return
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else line.replace("|", "\\|")
                for line in lines]  # fmt: skip


def as_a_sentence(app, what, name, obj, options, lines):
    """Undo what napoleon makes of a property: a colon in its sentence is no type."""
    if what == "property" and obj.__doc__:
        lines[:] = [*inspect.cleandoc(obj.__doc__).splitlines(), ""]


def with_preview(app, name, template, context, doctree):
    """Give a page the title, words and picture by which a link to it is shown elsewhere."""
    title = re.sub(r"<[^>]+>", "", context.get("title", "")) or project
    said = {"title": f"{html.unescape(title)} · {project}" if title != project else project,
            "description": CLAIM, "type": "website", "site_name": project}  # fmt: skip
    if html_baseurl:
        base = html_baseurl.rstrip("/")
        said |= {"image": f"{base}/_static/social.png", "url": f"{base}/{name}.html"}
    tags = [
        f'<meta property="og:{key}" content="{html.escape(text)}">' for key, text in said.items()
    ]
    tags += [f'<meta name="description" content="{html.escape(CLAIM)}">',
             '<meta name="twitter:card" content="summary_large_image">']  # fmt: skip
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def inline_formula(translator, node):
    """Write a formula within a line as MathML."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def displayed_formula(translator, node):
    """Write a formula of its own line as MathML."""
    translator.body.append(f'<div class="math">{mathml(node.astext(), displayed=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Run the examples and write what they say before any page is read."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("builder-inited", lambda app: write_gallery(HERE / "examples", HERE / "gallery"))
    app.connect("builder-inited", lambda app: write_tables(HERE))
    app.connect("source-read", with_all_pages)
    app.connect("html-page-context", with_preview)
    app.connect("autodoc-process-docstring", as_plain_text, priority=400)
    app.connect("autodoc-process-docstring", as_a_sentence, priority=600)
