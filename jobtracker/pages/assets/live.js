// Sorts tables and reloads the content. The page works without this file.
"use strict";

const pause = 2000; // ms between two reloads
let sorted = {}; // by the place of a table: {column, down}
let tag = null;

function value(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const number = Number(text);
  return text !== "" && !Number.isNaN(number) ? number : text;
}

function compare(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

function sort(table, column, down) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [value(row, column), row]);
  rows.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
  body.append(...rows.map(([, row]) => row));
  Array.from(table.tHead.rows[0].cells, (head, i) => {
    if (i === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

function prepare() {
  document.querySelectorAll("table.sortable").forEach((table, place) => {
    Array.from(table.tHead.rows[0].cells, (head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => {
        const last = sorted[place];
        const down = last && last.column === column ? !last.down : head.classList.contains("number");
        sorted[place] = { column, down };
        sort(table, column, down);
      });
      head.replaceChildren(button);
    });
    if (sorted[place]) sort(table, sorted[place].column, sorted[place].down);
  });
}

// busy: the user types or selects; a reload would disturb.
function busy() {
  const at = document.activeElement;
  return (at && at.closest("form")) || !document.getSelection().isCollapsed;
}

// reload replaces the content by a newer one, if there is one, and keeps the focus on the same control.
async function reload() {
  const live = document.getElementById("live");
  try {
    const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
    if (answer.status !== 304 && !busy()) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const controls = Array.from(document.querySelectorAll("main a, main button"));
      const place = controls.indexOf(document.activeElement);
      document.getElementById("content").replaceChildren(...page.getElementById("content").childNodes);
      tag = answer.headers.get("ETag");
      prepare();
      if (place >= 0) document.querySelectorAll("main a, main button")[place]?.focus({ preventScroll: true });
    }
    live.textContent = "";
  } catch (error) {
    live.textContent = "No connection; trying again";
  }
}

prepare();
setInterval(() => { if (!document.hidden) reload(); }, pause);
