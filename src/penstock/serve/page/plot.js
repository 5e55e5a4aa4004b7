// Plots over time, by uPlot, in the colours of the page.

import uPlot from "./vendor/uplot.js";
import { html, useEffect, useRef, useState } from "./ui.js";

/** What a custom property of the page is right now: a canvas knows no variables. */
export function colour(name, element = document.body) {
  const probe = element.appendChild(document.createElement("i"));
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Axes as all plots have them: time, and values in words. */
export function axes(format, more = {}) {
  const [line, text] = [colour("line"), colour("dim")];
  const font = "11px system-ui, sans-serif";
  return [
    { stroke: text, font, grid: { show: false }, ticks: { stroke: line, width: 1, size: 4 }, space: 74, size: 30, values: moments },
    { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: 66, values: (plot, splits) => splits.map((value) => format(value)), ...more },
  ];
}

/** 14:03:20 where seconds matter, 14:03, or 18 Nov. */
function moments(plot, splits, axis, space, step) {
  return splits.map((seconds) => {
    const at = new Date(seconds * 1000);
    if (step >= 86_400 || (at.getHours() === 0 && at.getMinutes() === 0)) return at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    return at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}) });
  });
}

/** `options()` is asked again with every theme. `label` says in words what it shows. */
export function Plot({ options, data, height = 180, label }) {
  const place = useRef();
  const [theme, again] = useState(0);
  useEffect(() => {
    const change = () => again((value) => value + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", change);
    addEventListener("theme", change);
    return () => {
      dark.removeEventListener("change", change);
      removeEventListener("theme", change);
    };
  }, []);
  useEffect(() => {
    const width = () => Math.max(200, place.current.clientWidth);
    const plot = new uPlot({ width: width(), height, legend: { show: false }, cursor: { y: false, drag: { x: true, y: false } }, ...options() }, data, place.current);
    const watch = new ResizeObserver(() => plot.setSize({ width: width(), height }));
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [data, theme]);
  return html`<div class="plot" ref=${place} role="img" aria-label=${label} />`;
}
