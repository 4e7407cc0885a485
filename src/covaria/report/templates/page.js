"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));

  // Tables: sort by a column's button.
  const text = (row, at) => row.cells[at].textContent.trim();
  const number = (row, at) => {
    const value = row.cells[at].dataset.v;
    return value === undefined ? Infinity : Number(value);
  };
  const sortable = (table) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const heads = all("thead th", table);
    const sort = (at) => {
      const head = heads[at];
      const up = head.getAttribute("aria-sort") !== "ascending";
      const order = head.dataset.sort === "number"
        ? (a, b) => number(a, at) - number(b, at) || 0
        : (a, b) => text(a, at).localeCompare(text(b, at), undefined, { numeric: true });
      const sorted = rows.slice().sort(order);
      if (!up) sorted.reverse();
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...sorted);
    };
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      const note = head.querySelector("small");
      button.append(...Array.from(head.childNodes).filter((node) => node !== note));
      head.prepend(button);
      button.addEventListener("click", () => sort(at));
    });
    return rows;
  };
  all("table.sortable").filter((table) => table.id !== "table").forEach(sortable);

  // The table of verdicts: filter by name and by who selects.
  const table = one("#table");
  if (table) {
    const rows = sortable(table);
    const find = one("#find"), which = one("#which"), count = one("#count");
    const filter = () => {
      const wanted = find.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row) => {
        const by = row.dataset.m.split(" ").filter(Boolean);
        const kind = which.value;
        const matters = row.dataset.matters === "1";
        const fits = kind === "" || (kind === "any" && matters) ||
          (kind === "none" && !matters) || by.includes(kind);
        row.hidden = !(fits && text(row, 0).toLowerCase().includes(wanted));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = `${shown} of ${rows.length} features`;
    };
    find.addEventListener("input", filter);
    which.addEventListener("change", filter);
    one("#filters").addEventListener("submit", (event) => event.preventDefault());
    one("#filters").hidden = false;
    filter();
  }

  // The panels: one at a time, chosen from a list, or by its name in the table.
  const panels = all(".panel");
  if (panels.length) {
    const choose = one("#feature"), back = one("#previous"), on = one("#next");
    panels.forEach((panel, at) => {
      const name = panel.querySelector("summary bdi").textContent;
      choose.add(new Option(name, String(at)));
    });
    const show = (at) => {
      panels.forEach((panel, k) => { panel.hidden = k !== at; panel.open = k === at; });
      choose.value = String(at);
      back.disabled = at === 0;
      on.disabled = at === panels.length - 1;
    };
    const follow = () => {
      const found = /^#f(\d+)$/.exec(location.hash);
      if (!found || !panels[Number(found[1])]) return;
      show(Number(found[1]));
      const inside = one(location.hash);
      inside.focus({ preventScroll: true });
      one("#features").scrollIntoView();
    };
    choose.addEventListener("change", () => show(Number(choose.value)));
    back.addEventListener("click", () => show(Number(choose.value) - 1));
    on.addEventListener("click", () => show(Number(choose.value) + 1));
    one("#one-feature").addEventListener("submit", (event) => event.preventDefault());
    one("#one-feature").hidden = false;
    show(0);
    follow();
    addEventListener("hashchange", follow);
    // A click on the panel that the address already names moves there again.
    document.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[href^='#f']") : null;
      if (link && link.getAttribute("href") === location.hash) follow();
    });
    // On paper there is no list to choose from: print the features that matter, if not too many.
    const closed = () => all("details.figure:not([open])");
    let opened = [];
    addEventListener("beforeprint", () => {
      const shown = panels.filter((panel) => panel.dataset.matters).slice(0, 20);
      panels.forEach((panel) => { panel.open = false; panel.hidden = !shown.includes(panel); });
      shown.forEach((panel) => { panel.open = true; });
      opened = closed();
      opened.forEach((figure) => { figure.open = true; });
    });
    addEventListener("afterprint", () => {
      opened.forEach((figure) => { figure.open = false; });
      show(Number(choose.value));
    });
  }

  all("[data-copy]").forEach((button) => {
    button.hidden = !(navigator.clipboard && navigator.clipboard.writeText);
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(one("#" + button.dataset.copy).textContent).then(
        () => { button.textContent = "Copied"; },
        () => { button.textContent = "Select the text to copy it"; },
      );
    });
  });
})();
