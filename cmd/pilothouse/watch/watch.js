// The page of `pilothouse watch --web`. What comes from lanes is inserted as text only.
"use strict";

const $ = (id) => document.getElementById(id);
const kept = 1 << 20; // characters of a transcript on the page; the oldest blocks go first

let view = null; // the last that came
let viewed = 0; // when, in milliseconds of this page
let rows = []; // {key, run, round, lane, element}
let selected = "";
let shown = null; // what the pane shows: {key, offset, blocks, size, pulse, busy, again, …}
let awaited = null; // what the question is about: {call, lane}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = plain(text);
  return element;
}

// plain makes control characters visible, and takes away those that would turn the
// direction of what follows around.
function plain(text) {
  return text.replace(/\r\n/g, "\n")
    .replace(/[\0-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\x7f/g, "\u2421")
    .replace(/[\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

// --- words

function elapsed(ms) {
  if (!ms) return "";
  const s = ms / 1000;
  if (s < 60) return s.toFixed(1) + "s";
  const whole = Math.round(s), h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60;
  return (h ? h + "h" : "") + m + "m" + (whole % 60) + "s";
}

function tokens(u) {
  const n = u.input + u.output + u.cacheRead + u.cacheWrite;
  if (n >= 1e6) return (n / 1e6).toFixed(1) + "M";
  return n >= 1000 ? (n / 1000).toFixed(1) + "k" : String(n);
}

function cost(dollars) {
  if (!dollars) return "";
  return dollars < 0.01 ? "<$0.01" : "$" + dollars.toFixed(2);
}

const marks = { queued: "·", running: "●", complete: "✓", failed: "✗", cancelled: "⊘", lost: "?" };
const laneName = (lane) => [lane.laneId, lane.refId].filter(Boolean).join(" ");
const roundName = (round) => [round.role || round.tool, round.roundId].filter(Boolean).join(" ");
const runName = (run) => run.runId || "no run";

function doing(lane) {
  let text = lane.status;
  if (lane.status === "running") text = lane.warning || lane.phase;
  else if (lane.status === "failed" && lane.error) text = "failed: " + lane.error.class;
  else if (lane.phase === "reused") text = "complete, reused";
  return lane.attempt > 1 ? text + " (attempt " + lane.attempt + ")" : text;
}

function roundStatus(round) {
  if (round.state === "running") return "running";
  if (round.state === "lost") return "lost";
  if (round.problem) return "failed";
  const bad = round.lanes.findLast((lane) => lane.status !== "complete");
  return bad ? bad.status : "complete";
}

// --- the list

function rowsOf(v) {
  const wanted = $("filter").value.toLowerCase();
  const has = (...words) => words.filter(Boolean).join("\n").toLowerCase().includes(wanted);
  const all = [];
  for (const run of v.runs) {
    const runKey = JSON.stringify([run.workdir, run.runId]);
    const whole = has(run.runId, run.workdir);
    const below = [];
    for (const round of run.rounds) {
      const key = runKey + round.call;
      const every = whole || has(round.role, round.roundId, round.session);
      const lanes = round.lanes.filter((lane) => every || has(laneName(lane), lane.lens, lane.status, lane.phase));
      if (!every && !lanes.length) continue;
      below.push({ key, run, round });
      for (const lane of lanes) below.push({ key: key + "/" + lane.laneId, run, round, lane });
    }
    if (whole || below.length) all.push({ key: runKey, run }, ...below);
  }
  return all;
}

function fill(row) {
  const { run, round, lane, element } = row;
  const parts = [];
  if (lane) {
    const numbers = make("span", "numbers");
    numbers.append(make("span", "", elapsed(now(lane))), make("span", "more", tokens(lane.usage)), make("span", "more", cost(lane.usage.cost)));
    parts.push(make("span", "mark", marks[lane.status]), make("span", "", laneName(lane)), make("span", "doing", doing(lane)), numbers);
    element.title = plain(laneName(lane) + ": " + doing(lane)); // where there is no room for it
    element.className = "row lane " + lane.status + (lane.warning ? " warned" : "");
  } else if (round) {
    const ended = round.lanes.filter((l) => l.status !== "running" && l.status !== "queued").length;
    const count = round.lanes.length ? ended + "/" + round.lanes.length + " ended" : round.state === "running" ? "preparing" : "";
    const status = roundStatus(round);
    parts.push(make("span", "mark", marks[status]), make("span", "", roundName(round)), make("span", "numbers", round.problem ? "did not succeed" : count));
    element.className = "row round " + status;
  } else {
    parts.push(make("span", "", runName(run)), make("span", "place", run.workdir));
    element.className = "row run";
  }
  const text = parts.map((p) => p.textContent).join("\t") + element.className;
  if (row.drawn !== text) {
    element.replaceChildren(...parts);
    row.drawn = text;
  }
}

// now is how long a lane has worked, counted on since the view came.
function now(lane) {
  return lane.elapsedMs + (lane.status === "running" && view.daemon.connected ? performance.now() - viewed : 0);
}

function drawList() {
  const known = new Map(rows.map((row) => [row.key, row]));
  rows = rowsOf(view).map((row) => {
    const old = known.get(row.key);
    row.element = old ? old.element : make("div");
    row.drawn = old && old.drawn;
    if (!old) {
      row.element.id = "row-" + nextID++;
      row.element.setAttribute("role", "treeitem");
      row.element.addEventListener("click", () => select(row.key));
    }
    row.element.setAttribute("aria-level", row.lane ? 3 : row.round ? 2 : 1);
    fill(row);
    return row;
  });
  const list = $("list"), elements = rows.map((row) => row.element);
  if (!rows.length) elements.push(make("p", "empty", $("filter").value ? "Nothing matches the filter." : "Nothing is at work. Rounds appear here when they start."));
  if (elements.length !== list.children.length || elements.some((e, i) => e !== list.children[i])) list.replaceChildren(...elements);
  if (!selected) selected = rows.find((row) => row.lane)?.key || ""; // a lane says the most
  for (const row of rows) row.element.setAttribute("aria-selected", row.key === selected);
  const row = current();
  if (row) list.setAttribute("aria-activedescendant", row.element.id);
  else list.removeAttribute("aria-activedescendant");
}

let nextID = 0;
const current = () => rows.find((row) => row.key === selected);

function select(key) {
  selected = key;
  draw();
  const row = current();
  if (row) row.element.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const at = rows.findIndex((row) => row.key === selected);
  const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (row) select(row.key);
}

// --- the pane

function drawPane() {
  const row = current(), pane = $("pane");
  $("cancel").hidden = !(row && row.round && row.round.state === "running" && view.daemon.connected);
  $("followbox").hidden = !(row && row.lane);
  if (!shown || shown.key !== (row && row.key)) {
    shown = { key: row && row.key, offset: 0, blocks: new Map(), size: 0 };
    pane.replaceChildren();
    $("follow").checked = true;
  }
  if (!row) {
    $("title").textContent = "Nothing is selected";
    return;
  }
  if (!row.lane) {
    $("title").textContent = plain(row.round ? roundName(row.round) : runName(row.run));
    drawFacts(row);
    return;
  }
  const lane = row.lane;
  $("title").textContent = plain([laneName(lane), lane.model, lane.turns ? lane.turns + (lane.turns === 1 ? " turn" : " turns") : ""].filter(Boolean).join(" · "));
  const pulse = [lane.status, lane.elapsedMs, lane.turns, view.daemon.connected].join();
  if (!shown.busy && (shown.again || pulse !== shown.pulse)) {
    shown.pulse = pulse;
    read(row, shown);
  }
  drawNote(lane);
}

const states = { running: "at work", finished: "ended", delivered: "ended, its result was taken", lost: "lost: the daemon ended in the middle of it" };

function drawFacts({ run, round }) {
  const facts = [["run", runName(run)], ["workspace", run.workdir]];
  if (round) {
    facts.unshift(["state", states[round.state]]);
    facts.push(["round", round.roundId], ["role", round.role], ["model", round.model], ["started", new Date(round.created).toLocaleString()],
      ["session", round.session], ["call", round.call], ["problem", round.problem]);
    for (const lane of round.lanes) if (lane.error) facts.push([laneName(lane), lane.error.class + ": " + lane.error.message]);
  }
  const text = JSON.stringify(facts);
  if (shown.facts === text) return;
  shown.facts = text;
  const list = make("dl");
  for (const [name, value] of facts) if (value) list.append(make("dt", "", name), make("dd", "", value));
  $("pane").replaceChildren(list);
}

function drawNote(lane) {
  let text = "", kind = "note";
  if (lane.error) [text, kind] = [lane.error.class + ": " + lane.error.message, "problem"];
  else if (shown.problem) text = shown.problem;
  else if (shown.blocks.size) text = "";
  else if (lane.status === "queued") text = "This lane waits for its turn.";
  else if (lane.phase === "reused") text = "The answer of an earlier call was reused; this call has no transcript of it.";
  else if (lane.status === "running") text = "Nothing was said yet.";
  text = plain(text);
  if (!shown.note) shown.note = make("div");
  if (shown.note.textContent !== text) shown.note.textContent = text;
  shown.note.className = kind;
  shown.note.hidden = !text;
  if (shown.note !== $("pane").lastChild) $("pane").append(shown.note);
}

// read takes in what the transcript of a lane has from the last offset on. One read is
// at work at a time; what comes for a lane that is not shown any more is dropped.
async function read(row, into) {
  into.busy = true;
  into.again = false;
  const query = new URLSearchParams({ call: row.round.call, lane: row.lane.laneId, from: into.offset });
  try {
    const response = await fetch("transcript?" + query);
    if (!response.ok) throw new Error(await response.text());
    into.problem = "";
    const reader = response.body.getReader();
    let rest = new Uint8Array();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || into !== shown) {
        if (!done) reader.cancel();
        break;
      }
      const bytes = new Uint8Array(rest.length + value.length);
      bytes.set(rest);
      bytes.set(value, rest.length);
      const end = bytes.lastIndexOf(10) + 1; // whole lines only; the offset counts bytes
      if (end) take(new TextDecoder().decode(bytes.subarray(0, end)), into);
      into.offset += end;
      rest = bytes.slice(end);
    }
  } catch (error) {
    into.problem = error.message.trim();
    into.again = true;
  } finally {
    into.busy = false;
  }
}

function take(lines, into) {
  const pane = $("pane");
  for (const line of lines.split("\n")) {
    if (!line) continue;
    let entry;
    try {
      entry = JSON.parse(line);
    } catch {
      continue; // it is a cache: what is damaged is left out
    }
    const key = [entry.attempt, entry.turn, entry.key, entry.type].join("/");
    let block = into.blocks.get(key);
    if (!block) {
      block = { size: 0, element: make("div", entry.type) };
      if (entry.tool) block.element.dataset.tool = plain(entry.tool);
      into.blocks.set(key, block);
      pane.insertBefore(block.element, into.note && into.note.parentNode === pane ? into.note : null);
    }
    if (entry.isError) block.element.classList.add("error");
    if (entry.text) block.element.append(document.createTextNode(plain(entry.text)));
    block.size += (entry.text || "").length;
    into.size += (entry.text || "").length;
  }
  while (into.size > kept && into.blocks.size > 1) {
    const [key, oldest] = into.blocks.entries().next().value;
    into.blocks.delete(key);
    into.size -= oldest.size;
    oldest.element.remove();
  }
  keepUp();
}

// keepUp brings the end of the transcript into sight while that is wanted.
function keepUp() {
  const pane = $("pane");
  if ($("follow").checked && current()?.lane) pane.scrollTop = pane.scrollHeight;
}

// --- the whole

function draw() {
  if (!view) return;
  const t = view.totals, parts = [t.running + " running", t.queued + " queued", t.done + " done"];
  if (t.failed) parts.push(t.failed + " failed");
  parts.push(tokens(t.usage) + " tok");
  if (t.usage.cost) parts.push(cost(t.usage.cost));
  const text = parts.join(" · ");
  if ($("totals").textContent !== text) $("totals").textContent = text;
  $("daemon").textContent = "daemon " + view.daemon.version + ", process " + view.daemon.pid;
  alarm(view.daemon.connected ? "" : view.daemon.note);
  drawList();
  drawPane();
}

function alarm(text) {
  const box = $("alarm");
  box.hidden = !text;
  if (box.textContent !== text) box.textContent = text;
}

function ask() {
  const row = current();
  if ($("cancel").hidden || !row || $("question").open) return;
  const open = row.lane && (row.lane.status === "running" || row.lane.status === "queued");
  awaited = { call: row.round.call, lane: open ? row.lane.laneId : "" };
  $("ask").textContent = open ? "Cancel " + laneName(row.lane) + ", or all of " + roundName(row.round) + "?" : "Cancel " + roundName(row.round) + "?";
  $("one").hidden = !open;
  $("question").returnValue = "no";
  $("question").showModal();
}

$("question").addEventListener("close", async () => {
  const answer = $("question").returnValue;
  if (answer !== "lane" && answer !== "round") return;
  const order = answer === "lane" ? awaited : { call: awaited.call };
  try {
    const response = await fetch("cancel", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) });
    if (!response.ok) throw new Error(await response.text());
  } catch (error) {
    alarm(error.message.trim());
  }
});
$("cancel").addEventListener("click", ask);
$("filter").addEventListener("input", draw);
// Only a person's scrolling ends the following: a pane that is made smaller scrolls too.
let size = "";
$("pane").addEventListener("scroll", () => {
  const pane = $("pane"), was = size;
  size = [pane.clientWidth, pane.clientHeight, pane.scrollHeight].join();
  if (was !== size) keepUp();
  else if (current()?.lane) $("follow").checked = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 8;
});
new ResizeObserver(keepUp).observe($("pane"));
$("follow").addEventListener("change", keepUp);

$("list").addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor($("list").clientHeight / 26) - 1);
  const steps = { ArrowUp: -1, k: -1, ArrowDown: 1, j: 1, PageUp: -page, PageDown: page, Home: -rows.length, g: -rows.length, End: rows.length, G: rows.length };
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in steps)) return;
  event.preventDefault();
  step(steps[event.key]);
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("question").open) return;
  if (event.target === $("filter")) {
    if (event.key === "Escape") $("filter").value = "", draw();
    if (event.key === "Escape" || event.key === "Enter") $("list").focus();
    return;
  }
  switch (event.key) {
    case "/":
      event.preventDefault();
      $("filter").focus();
      break;
    case "c":
      ask();
      break;
    case "f":
      $("follow").click();
      break;
    case "Enter":
      if (event.target === $("list")) $("pane").focus();
  }
});

const source = new EventSource("events");
source.addEventListener("view", (event) => {
  view = JSON.parse(event.data);
  viewed = performance.now();
  draw();
});
source.addEventListener("error", () => alarm("`pilothouse watch --web` has ended; start it again and open the address that it prints."));
setInterval(() => { if (view) for (const row of rows) if (row.lane && row.lane.status === "running") fill(row); }, 500);
$("list").focus();
