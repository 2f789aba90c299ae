// Sorts tables and reloads the content. The page works without this file.
"use strict";

const pause = 2000; // ms between two reloads after changes of jobs
const quiet = 10000; // ms until a reload without a change: task trackers change too
const states = ["waiting", "preparing", "running", "committing", "stopping"];
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

// watch reloads after changes of jobs. Only a visible page has a stream: browsers limit those of a host.
let stream = null;
let waits = null;
function soon(ms) {
  if (!waits) waits = setTimeout(async () => { waits = null; if (!document.hidden) await reload(); }, ms);
}
function watch() {
  if (document.hidden) {
    stream?.close();
    stream = null;
    return;
  }
  if (stream) return;
  soon(pause);
  const job = location.pathname.match(/^\/jobs\/(job_[0-9_]+)$/);
  stream = new EventSource("/v1/events?" + (job ? "job=" + job[1] : states.map((state) => "state=" + state).join("&")));
  stream.addEventListener("jobs", () => soon(pause));
  stream.addEventListener("end", () => { soon(0); stream.close(); });
  stream.addEventListener("problem", () => stream.close());
}

prepare();
if (!location.pathname.startsWith("/history")) {
  watch();
  document.addEventListener("visibilitychange", watch);
  setInterval(() => { if (!document.hidden) soon(0); }, quiet);
}
