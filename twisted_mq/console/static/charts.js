// Lines of the brokers' figures, drawn as SVG. Text goes into the page as text alone.
"use strict";

const EVERY_MS = 2000;
const KEPT = 900;
const LEAST_MS = 60000;
const WIDTH = 420, HEIGHT = 200, LEFT = 44, BOTTOM = 20;
const SERIES = 6;
const CHARTS = [
  { title: "Messages in, a second", value: (one) => (one.id === 0 ? one.inRate : null) },
  { title: "Messages out, a second", value: (one) => one.outRate },
  { title: "Disk used, %", value: (one) => (one.disk === null ? null : one.disk * 100), most: 100 },
];

const charts = CHARTS.map((chart) => ({ ...chart, samples: [], parts: figure(chart.title) }));
const asked = document.getElementById("asked");
const pause = document.getElementById("pause");
const hours = document.getElementById("hours");
let paused = false;

function svg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function figure(title) {
  const holder = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: no figures yet` });
  const legend = document.createElement("ul");
  legend.className = "legend";
  holder.append(caption, picture, legend);
  document.getElementById("charts").append(holder);
  return { picture, legend };
}

function nameOf(broker) {
  return broker.id === 0 ? broker.name : `${broker.name} (slave ${broker.id})`;
}

function shown(value) {
  return value === null ? "not known" : value.toLocaleString("en", { maximumFractionDigits: 1 });
}

// The least round number that is not below the highest value.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function draw(chart) {
  const { picture, legend } = chart.parts;
  const names = [...new Set(chart.samples.flatMap((sample) => [...sample.values.keys()]))];
  const known = chart.samples.flatMap((sample) => [...sample.values.values()]).filter((value) => value !== null);
  const most = chart.most ?? roundUp(Math.max(1, ...known));
  const last = chart.samples[chart.samples.length - 1];
  const begin = Math.min(chart.samples[0].timeMs, last.timeMs - LEAST_MS);
  const x = (timeMs) => LEFT + (WIDTH - LEFT - 4) * (timeMs - begin) / (last.timeMs - begin);
  const y = (value) => 6 + (HEIGHT - BOTTOM - 6) * (1 - value / most);
  const parts = [];
  for (const part of [0, 0.5, 1]) {
    parts.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(most * part), y2: y(most * part) }));
    parts.push(svg("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end" }, shown(most * part)));
  }
  parts.push(svg("text", { x: LEFT, y: HEIGHT - 4 }, ago(last.timeMs - begin)));
  parts.push(svg("text", { x: WIDTH, y: HEIGHT - 4, "text-anchor": "end" }, "now"));
  names.forEach((name, number) => {
    const points = chart.samples.filter((sample) => (sample.values.get(name) ?? null) !== null)
      .map((sample) => `${x(sample.timeMs).toFixed(1)},${y(sample.values.get(name)).toFixed(1)}`);
    parts.push(svg("polyline", { class: `series-${number % SERIES + 1}`, points: points.join(" ") }));
  });
  picture.replaceChildren(...parts);
  picture.setAttribute("aria-label", `${chart.title}: ${names.map((name) => `${name} ${shown(last.values.get(name) ?? null)}`).join(", ") || "no broker"}`);
  legend.replaceChildren(...names.map((name, number) => {
    const entry = document.createElement("li");
    const dot = document.createElement("span");
    dot.className = `dot series-${number % SERIES + 1}`;
    const figureNow = document.createElement("b");
    figureNow.textContent = shown(last.values.get(name) ?? null);
    entry.append(dot, `${name} `, figureNow);
    return entry;
  }));
}

function ago(milliseconds) {
  const minutes = milliseconds / 60000;
  return minutes < 120 ? `${minutes.toFixed(1)} minutes ago` : `${(minutes / 60).toFixed(1)} hours ago`;
}

function keep(timeMs, brokers) {
  for (const chart of charts) {
    const values = new Map(brokers.map((one) => [nameOf(one), chart.value(one)]).filter(([, value]) => value !== null));
    chart.samples = [...chart.samples, { timeMs, values }].slice(-KEPT);
  }
}

// What the console kept before this page was opened.
async function begin() {
  for (const chart of charts) chart.samples = [];
  if (hours.value !== "0") {
    try {
      const answer = await fetch(`/api/history?hours=${hours.value}`, { headers: { accept: "application/json" } });
      if (answer.ok) for (const { timeMs, brokers } of (await answer.json()).samples) keep(timeMs, brokers);
    } catch (error) {
      asked.textContent = `no history now: ${error.message}`;
    }
    for (const chart of charts) chart.samples.sort((one, other) => one.timeMs - other.timeMs);
  }
}

async function look() {
  if (!paused && !document.hidden) {
    try {
      const answer = await fetch("/api/figures", { headers: { accept: "application/json" } });
      if (answer.status === 401) { location.assign("/login"); return; }
      if (!answer.ok) throw new Error(`answer ${answer.status}`);
      const { timeMs, brokers } = await answer.json();
      keep(timeMs, brokers);
      charts.forEach(draw);
      asked.textContent = "asks every two seconds";
    } catch (error) {
      asked.textContent = `no figures now: ${error.message}; asks again`;
    }
  }
  setTimeout(look, EVERY_MS);
}

pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Go on" : "Pause";
});
hours.addEventListener("change", begin);
begin().then(look);
