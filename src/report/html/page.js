// Makes the figures with data-chart live: Chart.js in the place of the SVG, with tooltips; a drag
// over it zooms in, as do the buttons, a double click shows all again. Without this the page is
// complete.
"use strict";
(() => {
  const colours = 9;
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  /// Some five round numbers; on a logarithmic axis 1, 2 and 5 x powers of ten, or these alone.
  const round_ticks = (least, most, log) => {
    const powers = (factors) => {
      const found = [];
      for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); ++power)
        for (const factor of factors) found.push(factor * 10 ** power);
      return found.filter((value) => value >= least && value <= most);
    };
    if (log) {
      const all = powers([1, 2, 5]);
      if (all.length > 8) return powers([1]);
      if (all.length > 2) return all;
    }
    const power = 10 ** Math.floor(Math.log10((most - least) / 5));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power * 5 >= most - least);
    const found = [];
    for (let k = Math.ceil(least / step); k * step <= most; ++k) found.push(k * step);
    return found;
  };

  const axis = (data) => ({
    type: data.log ? "logarithmic" : "linear",
    min: data.least,
    max: data.most,
    title: { display: true, text: data.name },
    ticks: { maxRotation: 0, callback: (value) => String(Number(value.toPrecision(5))) },
    afterBuildTicks: (scale) => {
      scale.ticks = round_ticks(scale.min, scale.max, data.log).map((value) => ({ value }));
    },
  });

  const dataset = (series, number) => {
    const guide = series.form === "guide";
    const dots = series.form === "dots";
    return {
      label: series.name,
      data: series.points.map(([x, y]) => ({ x, y })),
      names: series.labels,
      colour: guide ? "--soft" : "--c" + (number % colours),
      showLine: !dots,
      stepped: series.form === "stairs" ? "before" : false,
      borderWidth: guide ? 1 : 2,
      borderDash: guide ? [5, 4] : [],
      pointRadius: dots ? 2.5 : 0,
      pointHitRadius: guide ? 0 : 6,
      animation: false,
    };
  };

  const datasets = (all) => {
    let number = 0;
    return all.map((series) => dataset(series, series.form === "guide" ? 0 : number++));
  };

  const tooltip = (item) => {
    const name = item.dataset.names ? item.dataset.names[item.dataIndex] : "";
    const at = [item.parsed.x, item.parsed.y].map((value) => Number(value.toPrecision(4)));
    return item.dataset.label + (name ? ": " + name : "") + " (" + at.join(", ") + ")";
  };

  /// Names beside the dots, where they have room.
  const names = {
    id: "names",
    afterDatasetsDraw: (chart) => {
      const { ctx, chartArea } = chart;
      const taken = [];
      const meets = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && Math.abs(a.y - b.y) < 12;
      ctx.save();
      ctx.fillStyle = style("--ink");
      ctx.textBaseline = "middle";
      chart.data.datasets.forEach((one, d) => {
        const dots = one.names ? chart.getDatasetMeta(d).data : [];
        for (const dot of dots) taken.push({ x: dot.x - 4, y: dot.y, w: 8 });
        dots.forEach((dot, i) => {
          const box = { x: dot.x + 6, y: dot.y, w: ctx.measureText(one.names[i]).width };
          const inside = dot.x >= chartArea.left && box.x + box.w <= chartArea.right &&
            dot.y >= chartArea.top && dot.y <= chartArea.bottom;
          if (!inside || taken.some((other) => meets(box, other))) return;
          ctx.fillText(one.names[i], box.x, box.y);
          taken.push(box);
        });
      });
      ctx.restore();
    },
  };

  const paint = (chart) => {
    for (const one of chart.data.datasets) {
      one.borderColor = style(one.colour);
      one.backgroundColor = style(one.colour);
    }
    for (const scale of Object.values(chart.options.scales)) {
      scale.grid = { color: style("--grid") };
      scale.ticks.color = style("--ink");
      scale.title.color = style("--soft");
    }
    chart.update("none");
  };

  const show = (chart, ranges) => {
    for (const id of ["x", "y"]) {
      chart.options.scales[id].min = ranges[id][0];
      chart.options.scales[id].max = ranges[id][1];
    }
    chart.update("none");
  };

  /// `factor` of what each axis shows, about its middle.
  const scaled = (chart, factor) => {
    const ranges = {};
    for (const id of ["x", "y"]) {
      const scale = chart.scales[id];
      const log = scale.type === "logarithmic";
      const [to, from] = log ? [Math.log, Math.exp] : [Number, Number];
      const middle = (to(scale.min) + to(scale.max)) / 2;
      const half = ((to(scale.max) - to(scale.min)) / 2) * factor;
      ranges[id] = [from(middle - half), from(middle + half)];
    }
    return ranges;
  };

  const drag_to_zoom = (chart, plot) => {
    const box = document.createElement("div");
    box.className = "selection";
    box.hidden = true;
    plot.append(box);
    let start = null;
    const place = (event) => {
      const area = plot.getBoundingClientRect();
      return { x: event.clientX - area.left, y: event.clientY - area.top };
    };
    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      start = place(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (!start) return;
      const now = place(event);
      box.hidden = false;
      box.style.left = Math.min(start.x, now.x) + "px";
      box.style.top = Math.min(start.y, now.y) + "px";
      box.style.width = Math.abs(start.x - now.x) + "px";
      box.style.height = Math.abs(start.y - now.y) + "px";
    });
    const end = (event) => {
      const first = start;
      start = null;
      box.hidden = true;
      if (!first || event.type !== "pointerup") return;
      const last = place(event);
      if (Math.abs(last.x - first.x) < 6 || Math.abs(last.y - first.y) < 6) return;
      const ranges = {};
      for (const id of ["x", "y"]) {
        const ends = [first[id], last[id]].map((pixel) => chart.scales[id].getValueForPixel(pixel));
        ranges[id] = ends.sort((a, b) => a - b);
      }
      show(chart, ranges);
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
  };

  const button = (text, name, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", name);
    made.title = name;
    made.addEventListener("click", act);
    return made;
  };

  const make_live = (figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const title = figure.querySelector("figcaption").textContent;
    const plot = document.createElement("div");
    plot.className = "plot";
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", title + "; the data stand in the table below");
    plot.append(canvas);
    figure.querySelector("svg").after(plot);
    figure.classList.add("live");
    const chart = new Chart(canvas, {
      type: "scatter",
      data: { datasets: datasets(data.series) },
      plugins: data.shows_labels ? [names] : [],
      options: {
        animation: false,
        maintainAspectRatio: false,
        scales: { x: axis(data.x), y: axis(data.y) },
        plugins: {
          legend: { display: false },
          tooltip: { callbacks: { label: tooltip }, animation: still ? false : undefined },
        },
      },
    });
    const all = { x: [data.x.least, data.x.most], y: [data.y.least, data.y.most] };
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.append(
      button("+", "Zoom in: " + title, () => show(chart, scaled(chart, 0.6))),
      button("\u2212", "Zoom out: " + title, () => show(chart, scaled(chart, 1 / 0.6))),
      button("All", "Show all: " + title, () => show(chart, all)),
    );
    plot.after(tools);
    drag_to_zoom(chart, plot);
    plot.addEventListener("dblclick", () => show(chart, all));
    paint(chart);
    return chart;
  };

  const charts = [...document.querySelectorAll("figure[data-chart]")].map(make_live);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(paint));
})();
