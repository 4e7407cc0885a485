"""Pictures to files, the same bytes for the same picture."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from covaria.errors import InputError, short
from covaria.tables.writing import make_room, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Shapes as well as colours, for those who see none and for grey paper.
MARKERS = ("o", "x", "^", "s", "D", "+", "v")
MOST_FEATURES = 40
LONGEST_NAME = 40
KINDS = (".svg", ".png", ".pdf")


def picture_name(name: object) -> str:
    """Return a name fit for a picture: not too long, and a dollar sign is no mathematics."""
    return short(str(name), LONGEST_NAME).replace("$", r"\$")


def save(axes: Axes, path: str | Path) -> Path:
    """Return the path of the picture that was written: SVG, PNG or PDF by its ending."""
    path = Path(path)
    _check_ending(path)
    with whole(path) as beside:
        _write(axes, beside, path.suffix.lower(), dpi=150)
    return path


def as_png(axes: Axes) -> bytes:
    """Return the picture as a notebook shows it."""
    written = io.BytesIO()
    _write(axes, written, ".png", dpi=100)
    return written.getvalue()


def _write(axes: Axes, target: Path | IO[bytes], kind: str, *, dpi: int) -> None:
    import matplotlib

    figure = axes.get_figure(root=True)
    assert figure is not None
    if kind != ".svg":  # who looks at an SVG brings the letters
        _lend_letters(figure)
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind, {})
    settings: Any = {"svg.hashsalt": "covaria", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # An SVG holds names as text and shows any script; a PNG has boxes for letters it lacks.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(target, format=kind[1:], dpi=dpi, metadata=dated)


def make_place(path: Path | None) -> None:
    """Raise where a picture could not be written, before anything is computed for it."""
    if path is not None:
        _check_ending(path)
        make_room(path)


def _check_ending(path: Path) -> None:
    if path.suffix.lower() not in KINDS:
        raise InputError(f"{path} must end in {', '.join(KINDS)}.")


# Fonts that have the letters DejaVu lacks, where a machine has them: their files and names.
MORE_LETTERS = {
    "NotoSans-Regular": "Noto Sans",
    "NotoSansCJK-Regular": "Noto Sans CJK JP",
    "NotoSansDevanagari-Regular": "Noto Sans Devanagari",
    "NotoSansThai-Regular": "Noto Sans Thai",
    "Arial Unicode": "Arial Unicode MS",
    "msyh": "Microsoft YaHei",
}


def _lend_letters(figure: Figure | SubFigure) -> None:
    """Give texts beyond Latin letters the fonts of this machine to fall back on."""
    from matplotlib.text import Text

    foreign = [t for t in figure.findobj(Text) if any(c > "\u024f" for c in t.get_text())]
    more = _more_fonts() if foreign else []
    for text in foreign:
        text.set_fontfamily([*text.get_fontfamily(), *more])


def _more_fonts() -> list[str]:
    """Return the names of fonts that this machine has, known to matplotlib or not yet."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {font.name for font in fontManager.ttflist}
    if not known.issuperset(MORE_LETTERS.values()):
        for path in sorted(findSystemFonts()):
            if MORE_LETTERS.get(Path(path).stem, "") not in known | {""}:
                fontManager.addfont(path)
    known = {font.name for font in fontManager.ttflist}
    return [name for name in MORE_LETTERS.values() if name in known]
