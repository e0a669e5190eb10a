// Sorting, filtering, details and the theme. Without this script the page still shows everything.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.documentElement.classList.add("js");

  // Tables: sort by any column, keep the rows that match, show the first rows until asked for all.
  for (const table of all("table[data-preview]")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const preview = Number(table.dataset.preview);
    const search = document.querySelector(`[data-filter="${table.id}"]`);
    const standing = document.querySelector(`[data-standing="${table.id}"]`);
    const status = document.querySelector(`[data-status="${table.id}"]`);
    const more = document.querySelector(`[data-more="${table.id}"]`);
    const text = new Map(original.map((row) => [row, row.textContent.toLowerCase()]));
    let open = false;

    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row) =>
        (!standing?.value || row.dataset.standingOf.split(" ").includes(standing.value)) &&
        words.every((word) => text.get(row).includes(word));
      const found = [...body.rows].filter(fits);
      const shown = new Set(open ? found : found.slice(0, preview));
      for (const row of body.rows) row.hidden = !shown.has(row);
      const total = `${original.length.toLocaleString("en")} ${status.dataset.noun}`;
      status.textContent =
        found.length === original.length ? total : `${found.length.toLocaleString("en")} of ${total}`;
      more.hidden = found.length <= preview;
      more.textContent = open ? `Show the first ${preview}` : `Show all ${found.length.toLocaleString("en")}`;
      more.setAttribute("aria-expanded", String(open));
    };

    const key = (row, column, kind) => {
      const cell = row.cells[column];
      if (kind !== "number") return cell.textContent.trim().toLowerCase();
      return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
    };
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);

    for (const button of all("button.sort", table)) {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const kind = button.dataset.kind;
        const first = kind === "number" ? "descending" : "ascending";
        const second = kind === "number" ? "ascending" : "descending";
        const now = head.getAttribute("aria-sort") === first ? second : first;
        for (const other of all("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", now);
        const sign = now === "ascending" ? 1 : -1;
        const keyed = original.map((row) => [key(row, head.cellIndex, kind), row]);
        keyed.sort(([a], [b]) => {
          const missing = Number(Number.isNaN(a)) - Number(Number.isNaN(b)); // rows without a number stay last
          return missing || (Number.isNaN(a) ? 0 : sign * compare(a, b));
        });
        body.append(...keyed.map(([, row]) => row));
        show();
      });
    }
    search.addEventListener("input", show);
    standing?.addEventListener("change", show);
    more.addEventListener("click", () => {
      open = !open;
      show();
    });
    show();
  }

  // A table that is wider than its place becomes a list of rows, each entry under the name of its
  // column, so that nothing is out of sight. Roles keep it a table for those who hear it.
  const roles = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell", TH: "rowheader" };
  for (const place of all(".scroll")) {
    const table = place.querySelector("table");
    const heads = [...table.tHead.rows[0].cells];
    for (const part of all("thead, tbody, tr, td, th", table)) part.setAttribute("role", roles[part.tagName]);
    for (const head of heads) head.setAttribute("role", "columnheader");
    table.setAttribute("role", "table");
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, i) => (cell.dataset.head = heads[i].textContent.trim()));
    }
    const fit = () => {
      place.classList.remove("stacked");
      place.classList.toggle("stacked", place.scrollWidth > place.clientWidth);
    };
    new ResizeObserver(fit).observe(place);
    fit();
  }

  // The gallery: each of its lists in the order asked for.
  const order = document.getElementById("gallery-order");
  order?.addEventListener("change", () => {
    for (const list of all("ul.cards")) {
      const key = order.value || list.dataset.listedFor;
      const cards = [...list.children];
      list.append(...cards.sort((a, b) => Number(b.dataset[key]) - Number(a.dataset[key])));
    }
  });

  // Drawings: one stop for the tab key, arrows move from dot to dot, the line below says what a dot is.
  for (const figure of all("figure.chart")) {
    const dots = all("circle.dot", figure);
    const readout = figure.querySelector(".readout");
    if (!dots.length) continue;
    const hint = readout.textContent;
    const say = (dot) => {
      readout.textContent = dot.getAttribute("aria-label");
      for (const other of dots) other.classList.toggle("chosen", other === dot);
    };
    const forget = () => {
      readout.textContent = hint;
      for (const dot of dots) dot.classList.remove("chosen");
    };
    const across = [...dots].sort((a, b) => a.cx.baseVal.value - b.cx.baseVal.value);
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    for (const dot of dots) {
      dot.addEventListener("pointerenter", () => say(dot));
      dot.addEventListener("pointerleave", forget);
      dot.addEventListener("focus", () => say(dot));
      dot.addEventListener("blur", forget);
      dot.addEventListener("keydown", (event) => {
        if (!(event.key in steps)) return;
        event.preventDefault();
        const next = across[(across.indexOf(dot) + steps[event.key] + across.length) % across.length];
        dot.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
    }
  }

  // The theme follows the system until the button is pressed.
  const theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const paint = () => {
    theme.setAttribute("aria-pressed", String(isDark()));
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    paint();
  });
  dark.addEventListener("change", paint);
  paint();

  const save = (content, type, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  document.getElementById("download").addEventListener("click", () => {
    save(document.getElementById("summary").textContent, "application/json", "hocal-report.json");
  });

  // A table as CSV: all of its rows, numbers with all their digits, columns without a head left out.
  for (const button of all("button[data-csv]")) {
    button.addEventListener("click", () => {
      const table = document.getElementById(button.dataset.csv);
      const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const columns = all("th[data-column]", table.tHead);
      const entry = (cell) => cell.dataset.value ?? cell.textContent.trim();
      const rows = [...table.tBodies[0].rows].map((row) => columns.map((head) => entry(row.cells[head.cellIndex])));
      const lines = [columns.map((head) => head.dataset.column), ...rows];
      const text = lines.map((line) => line.map(quote).join(",")).join("\r\n") + "\r\n";
      save(text, "text/csv", `${button.dataset.csv}.csv`);
    });
  }
})();
