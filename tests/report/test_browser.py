"""The page as a person meets it: in a real browser, by mouse, by keyboard, on paper."""

import numpy as np
import pandas as pd
import pytest

from covaria import assess, stability, write_report
from covaria.report import tables, write_tables
from hostile_strings import HOSTILE


@pytest.fixture(scope="module")
def files(tmp_path_factory, hostile_result):
    """Return pages by name."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(300, 12)), columns=[f"x{k}" for k in range(1, 13)])
    y = 2 * X["x3"] + X["x10"] ** 2 + rng.normal(size=300)
    methods = ["gcm", "loco", "dropout", "permutation", "lasso"]
    result = assess(X, y, learner="splines", methods=methods)
    found = stability(X, y, method=["gcm", "loco"], learner="linear")
    rates = pd.DataFrame({"method": ["gcm", "loco"], "f1": [0.9, 0.5], "se": [0.1, 0.2]})
    picture = tables.picture("F1", rates, mean="f1", error="se")
    facts = tables.tables_facts("A study", "Two.", {"Rates": rates}, pictures=[picture])
    return {
        "tables": write_tables(folder / "tables.html", facts),
        "plain": write_report(result, folder / "plain.html", stability=found),
        "stability": write_report(found, folder / "stability.html"),
        "hostile": write_report(hostile_result, folder / "hostile.html", title=HOSTILE[0]),
    }


@pytest.fixture
def opened(browser, files):
    """Return a function that opens a page; in the end it was silent and asked for nothing."""
    contexts, said, asked = [], [], []

    def open_page(name, **settings):
        context = browser.new_context(**settings)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append("a dialog opened"), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(files[name].as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:,"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == len(contexts)


def names(page):
    return page.locator("#table tbody tr:visible th").all_inner_texts()


def shows_panel(page, name):
    """Wait until one panel is shown, this one: a link's address changes after its click."""
    from playwright.sync_api import expect

    title = page.locator("details.panel:visible summary bdi")
    expect(title).to_have_text([name], timeout=20_000)


@pytest.mark.parametrize("name", ["plain", "stability", "hostile", "tables"])
@pytest.mark.parametrize("width", [390, 820, 1280])
def test_a_page_opens_in_silence_and_fits_its_width(name, width, opened):
    page = opened(name, viewport={"width": width, "height": 900})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert page.locator("h1").count() == 1


def test_a_column_sorts_up_and_down(opened):
    page = opened("plain")
    first = names(page)
    button = page.get_by_role("button", name="Feature", exact=False).first
    button.click()
    in_order = [f"x{k}" for k in range(1, 13)]
    assert names(page) == in_order  # x10 comes after x9
    assert page.locator("#table thead th").first.get_attribute("aria-sort") == "ascending"
    button.click()
    assert names(page) == in_order[::-1]
    page.locator("#table thead button").nth(2).click()
    by_gcm = [float(v) for v in page.eval_on_selector_all(
        "#table tbody tr", "rows => rows.map(row => row.cells[2].dataset.v)")]  # fmt: skip
    assert by_gcm == sorted(by_gcm)
    assert sorted(first) == sorted(in_order)


def test_any_table_sorts(opened):
    page = opened("tables")
    column = page.locator("table.sortable tbody tr td:first-child")
    assert column.all_inner_texts() == ["gcm", "loco"]
    page.get_by_role("button", name="f1").click()
    assert column.all_inner_texts() == ["loco", "gcm"]


def test_names_and_methods_filter_the_table(opened):
    page = opened("plain")
    page.get_by_label("Name holds").fill("X1")
    assert sorted(names(page)) == ["x1", "x10", "x11", "x12"]
    assert page.locator("#count").inner_text() == "4 of 12 features"
    page.get_by_label("Name holds").fill("")
    page.get_by_label("Show").select_option("any")
    mattering = names(page)
    assert {"x3", "x10"} <= set(mattering)
    page.get_by_label("Show").select_option("none")
    assert set(names(page)).isdisjoint(mattering)
    assert len(names(page)) + len(mattering) == 12


def test_a_name_in_the_table_opens_its_panel(opened):
    page = opened("plain")
    page.get_by_role("link", name="x10", exact=True).click()
    shows_panel(page, "x10")
    assert page.locator("details.panel:visible svg.scatter").is_visible()
    page.get_by_role("button", name="Next").click()
    assert page.locator("details.panel:visible summary bdi").inner_text() != "x10"
    page.get_by_role("link", name="x10", exact=True).click()  # the address names it already
    shows_panel(page, "x10")
    page.get_by_label("Feature", exact=True).select_option(label="x3")
    shows_panel(page, "x3")


def test_the_keyboard_alone_sorts_and_opens(opened):
    page = opened("plain")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#table thead button").first.focus()
    page.keyboard.press("Enter")
    assert names(page)[0] == "x1"
    page.locator("#table tbody a").first.focus()
    page.keyboard.press("Enter")
    shows_panel(page, "x1")


def test_without_scripts_everything_is_there(opened):
    page = opened("plain", java_script_enabled=False)
    assert len(names(page)) == 12
    assert page.locator("#filters").is_hidden()
    assert page.locator("details.panel").count() == 12
    page.locator("details.panel summary").nth(3).click()
    assert page.locator("details.panel svg.scatter").nth(3).is_visible()


def test_the_files_inside_can_be_saved(opened, tmp_path):
    page = opened("plain")
    for label, start in (("CSV", "feature,verdict,method"), ("JSON", "{")):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=label, exact=False).click()
        waiting.value.save_as(tmp_path / label)
        assert (tmp_path / label).read_text(encoding="utf-8").startswith(start)


def test_it_prints(opened):
    page = opened("plain")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("#filters").is_hidden()
    assert page.locator("#table thead th").first.inner_text() == "Feature"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.locator("details.panel:visible summary bdi").all_inner_texts()
    assert {"x3", "x10"} <= set(printed)
    assert len(printed) < 12
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.panel:visible").count() == 1


def test_dark_is_dark(opened):
    page = opened("plain", color_scheme="dark")
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor,"
                            " getComputedStyle(document.body).color]")  # fmt: skip
    paper, ink = (sum(map(int, c[4:-1].split(", "))) for c in colours)
    assert paper < 150 < 600 < ink


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("plain", "light"),
        ("plain", "dark"),
        ("stability", "light"),
        ("tables", "light"),
        pytest.param("hostile", "light", marks=pytest.mark.slow),
        pytest.param("hostile", "dark", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious(name, scheme, opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core")
    page = opened(name, color_scheme=scheme)
    response = axe.Axe().run(page).response
    assert len(response["passes"]) > 15  # it did look
    found = response["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_hostile_strings_run_nothing_and_are_read_as_they_are(opened):
    page = opened("hostile")
    assert page.locator("main a:not([href^='#']):not([download])").count() == 0
    assert page.title().startswith("<script>alert(1)</script>")
    shown = page.locator("#table tbody th").all_inner_texts()
    assert "<img src=x onerror=alert(1)>" in shown
    assert "\\u202egnp.exe" in shown
    for at in range(0, len(shown), 7):
        page.evaluate(f"location.hash = '#f{at}'")
    assert page.locator("details.panel:visible").count() == 1
