// Reloads the content after changes, sorts tables, and follows logs. The pages work without this file.
"use strict";

const pause = 2000; // ms between two reloads after changes of jobs, at least
const quiet = 10000; // ms until a reload without a change, at least: task trackers change too
const longest = 30000; // ms between two reloads, at most
let sorted = {}; // by the label of a table: {column, down}
let tag = null;

// Tables.

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
      if (head.querySelector("a, button")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
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
  for (const time of document.querySelectorAll("main time[datetime]")) time.title = new Date(time.dateTime).toLocaleString();
  for (const log of document.querySelectorAll("pre[data-log]")) if (!log.dataset.began) follow(log);
}

// Reloads.

// merge makes the children of an element those of another one, and keeps what is the same: so the focus, a
// selection, places of scrolling and open details stay.
function merge(now, next) {
  if (now.isEqualNode(next)) return;
  if (now.dataset && "keep" in now.dataset) return; // the script has filled it
  for (const { name, value } of Array.from(next.attributes)) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  for (const { name } of Array.from(now.attributes)) if (!next.hasAttribute(name) && !(name === "open" || name === "title")) now.removeAttribute(name);
  const before = Array.from(now.childNodes);
  Array.from(next.childNodes).forEach((child, i) => {
    const old = before[i];
    if (!old) now.append(child);
    else if (old.nodeName !== child.nodeName || old.id !== child.id) old.replaceWith(child);
    else if (old.nodeType === Node.ELEMENT_NODE) merge(old, child);
    else if (old.data !== child.data) old.data = child.data;
  });
  for (const old of before.slice(next.childNodes.length)) if (old.parentNode === now) old.remove();
}

// busy: the user fills in a form or selects; a reload would disturb.
function busy() {
  const at = document.activeElement;
  return (at && at.closest("form") && !at.closest("table")) || document.querySelector("main input[type=radio]:checked") || !document.getSelection().isCollapsed;
}

function say(state, text) {
  const live = document.getElementById("live");
  live.dataset.state = state;
  if (live.textContent !== text) live.textContent = text;
}

let wait = pause; // the server asks for longer ones while pages cost it much
let last = performance.now();
let changed = -Infinity; // the last change of a job

// reload loads the page again. Pages that are half a pause old will do for regular reloads, so that windows share them.
async function reload(age) {
  last = performance.now();
  const began = last;
  try {
    const answer = await fetch(location.href, { headers: { "Cache-Control": "max-age=" + age, ...(tag && { "If-None-Match": tag }) }, cache: "no-store" });
    if (answer.status >= 500 && !answer.headers.get("ETag")) throw new Error(answer.statusText);
    wait = Math.min(longest, Math.max(pause, Number(answer.headers.get("Reload-After")) || 0));
    if (changed > began - 1000 * (Number(answer.headers.get("Age")) || 0)) soon(wait); // the page may be older than that change
    if (answer.status !== 304 && !busy()) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const place of ["content", "shown"]) {
        const next = page.getElementById(place);
        if (next) merge(document.getElementById(place), next);
      }
      document.title = page.title;
      tag = answer.headers.get("ETag");
      prepare();
    }
    say("live", "Live");
  } catch (error) {
    say("lost", "No connection, trying again");
    wait = pause;
  }
}

// watch reloads after changes of jobs. Only a visible page has a stream: browsers limit those of a host.
let stream = null;
let waiting = null;
function soon(ms, age = 0) {
  if (!waiting) waiting = setTimeout(async () => { waiting = null; if (!document.hidden) await reload(age); watch(); }, ms);
}
const half = () => Math.floor(wait / 2000); // of a pause, in seconds
function close() {
  stream?.close();
  stream = null;
}
function watch() {
  const events = document.body.dataset.events;
  if (document.hidden || !events) return close();
  if (stream && stream.readyState !== EventSource.CLOSED) return;
  stream = new EventSource("/v1/events?" + events);
  stream.addEventListener("jobs", () => { changed = performance.now(); soon(wait, half()); });
  stream.addEventListener("end", () => { close(); delete document.body.dataset.events; soon(0); });
  stream.addEventListener("problem", () => { close(); soon(wait); }); // such as another leader
  stream.addEventListener("error", () => { if (stream?.readyState === EventSource.CLOSED) { close(); soon(wait); } });
}

// Logs.

// follow shows the end of a log and, if it is asked for, what the attempt writes from then on.
async function follow(log) {
  log.dataset.began = "yes";
  const status = document.getElementById("logstatus");
  const box = document.getElementById("follow");
  const whole = "follow" in log.dataset;
  box?.closest("[hidden]")?.removeAttribute("hidden");
  const decoder = new TextDecoder();
  let from = null; // what the attempt had written at the last look
  for (;;) {
    let done = !whole;
    try {
      const answer = await fetch(log.dataset.log + (from === null ? "?tail=" + log.dataset.tail : "?from=" + from), { cache: "no-store" });
      const bytes = await answer.arrayBuffer();
      if (!answer.ok) {
        const text = new TextDecoder().decode(bytes);
        throw new Error(answer.headers.get("Content-Type") === "application/problem+json" ? JSON.parse(text).detail : text);
      }
      const end = answer.headers.get("Log-End");
      if (from === null && Number(end) > bytes.byteLength) log.append("… earlier lines are not shown\n");
      if (bytes.byteLength > 0) log.append(decoder.decode(bytes, { stream: true }));
      const ended = answer.headers.get("Log-Ended") === "true";
      done ||= ended || end === null;
      from = Number(end);
      log.hidden = log.textContent === "";
      if (status) status.textContent = ended ? (log.hidden ? "The attempt has ended, and has written nothing." : "The attempt has ended.") : log.hidden ? "The attempt runs, and has written nothing yet." : "The attempt runs.";
    } catch (error) {
      if (status) status.textContent = error.message;
    }
    if (log.dataset.title) log.ariaLabel = log.dataset.title;
    if (box?.checked) log.scrollTop = log.scrollHeight;
    if (done) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    while (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

prepare();
if (document.body.dataset.events) {
  say("live", "Live");
  watch();
  document.addEventListener("visibilitychange", () => { watch(); soon(0); });
  setInterval(() => { if (!document.hidden && document.body.dataset.events && performance.now() - last >= Math.max(quiet, wait)) soon(0, half()); }, 1000);
}
