"""TeX as MathML, which browsers draw themselves; for the docs."""

from __future__ import annotations

from xml.etree import ElementTree

from docutils.utils.math.latex2mathml import tex2mathml

SPACE = "http://www.w3.org/1998/Math/MathML"
ACCENTS = set("ˆˉ˜^¯~")
ElementTree.register_namespace("", SPACE)


def mathml(tex: str, *, displayed: bool = False) -> str:
    """Return a formula as MathML, with indices of hatted letters beside them, not below."""
    root = ElementTree.fromstring(tex2mathml(tex).replace("&ApplyFunction;", "\u2061"))
    for node in root.iter(f"{{{SPACE}}}munderover"):
        base, below, above = node
        if (above.text or "").strip() in ACCENTS:
            _index_beside(node, base, below, above)
    if displayed:
        root.set("display", "block")
    return ElementTree.tostring(root, encoding="unicode")


def _index_beside(
    node: ElementTree.Element,
    base: ElementTree.Element,
    below: ElementTree.Element,
    above: ElementTree.Element,
) -> None:
    """Make of a letter between an index and an accent an accented letter with an index."""
    accented = ElementTree.Element(f"{{{SPACE}}}mover", accent="true")
    accented.extend([base, above])
    node.tag = f"{{{SPACE}}}msub"
    node[:] = [accented, below]
