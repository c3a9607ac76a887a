"use strict";
// The what-if figure: the slider picks a setting, the page says what was worked out for it. No arithmetic here:
// every sentence and every point was written by narrowcast.
const bindWhatif = (whatif) => {
  const slider = document.getElementById("whatif-setting");
  if (!whatif || !slider) return;
  const series = document.getElementById("whatif-series");
  const answer = document.getElementById("whatif-answer");
  const plots = [...document.querySelectorAll("svg[data-plot=whatif]")];

  const show = () => {
    const line = series ? Number(series.value) : 0;
    const points = whatif[line];
    slider.max = String(points.length - 1);
    const at = Math.min(Number(slider.value), points.length - 1);
    answer.textContent = points[at].says;
    slider.setAttribute("aria-valuetext", points[at].setting);
    for (const plot of plots) {
      plot.querySelectorAll(".line").forEach((path, i) => path.classList.toggle("on", i === line));
      plot.querySelectorAll("g.dots").forEach((dots, i) => dots.toggleAttribute("hidden", i !== line));
      const dot = plot.querySelectorAll("g.dots")[line].children[at];
      const marker = plot.querySelector(".marker");
      marker.setAttribute("cx", dot.getAttribute("cx"));
      marker.setAttribute("cy", dot.getAttribute("cy"));
    }
  };
  slider.addEventListener("input", show);
  if (series) series.addEventListener("change", show);
  show();
};
// One's own: names are looked through as they are typed. Whatever a name holds, it is text.
const bindFind = (things) => {
  const name = document.getElementById("find-name");
  if (!things || !name) return;
  const says = document.getElementById("find-says"), results = document.getElementById("find-results");
  const most = 25;
  const show = ({ what, told }, row) => {
    const item = document.createElement("li"), head = document.createElement("strong"), list = document.createElement("dl");
    head.textContent = `${what} ${row[0]}`;
    list.className = "facts";
    told.forEach((word, i) => {
      const pair = document.createElement("div"), term = document.createElement("dt"), value = document.createElement("dd");
      term.textContent = word;
      value.textContent = row[i + 1];
      pair.append(term, value);
      list.append(pair);
    });
    item.append(head, list);
    return item;
  };
  name.addEventListener("input", () => {
    const asked = name.value.trim().toLowerCase();
    const exact = [], others = [];
    if (asked) for (const thing of things) for (const row of thing.rows) {
      const called = row[0].toLowerCase();
      if (called === asked || `${thing.what} ${called}` === asked) exact.push([thing, row]);
      else if (called.includes(asked)) others.push([thing, row]);
    }
    const found = [...exact, ...others];
    says.textContent = !asked ? "" : !found.length ? "Nothing in this plan has that in its name."
      : found.length > most ? `The first ${most} of ${found.length.toLocaleString("en")}: type more of the name.` : "";
    results.replaceChildren(...found.slice(0, most).map(([thing, row]) => show(thing, row)));
  });
};
// A channel's tree by itself.
const bindTrees = (root) => {
  const choice = root.querySelector("select[data-trees]");
  const drawing = choice && choice.closest("section").querySelector("svg.drawing");
  if (!drawing) return;
  const trees = [...drawing.querySelectorAll("[data-tree]")], usual = trees.map((tree) => tree.hasAttribute("hidden"));
  choice.addEventListener("change", () => {
    drawing.classList.toggle("one", choice.value !== "");
    trees.forEach((tree, i) => tree.toggleAttribute("hidden", choice.value === "" ? usual[i] : tree.dataset.tree !== choice.value));
  });
};
// Whom a place of the matrix stands for.
const bindHover = (names, root) => {
  const says = root.querySelector("#hover-says"), pictures = [...root.querySelectorAll("img.matrix")];
  if (!names || !says) return;
  pictures.forEach((picture, k) => {
    const pick = (list, share) => list[Math.min(list.length - 1, Math.max(0, Math.floor(share * list.length)))];
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect(), { flows, subscribers } = names[k];
      const flow = pick(flows, (event.clientX - box.left) / box.width), who = pick(subscribers, (event.clientY - box.top) / box.height);
      says.textContent = `subscriber ${who}, flow ${flow}`;
    });
    picture.addEventListener("pointerleave", () => { says.textContent = ""; });
  });
};
// All of a report's page; the console binds the same to the same parts.
const bindReport = (data, root) => {
  bindWhatif(data.whatif);
  bindFind(data.find);
  bindTrees(root);
  bindHover(data.hover, root);
};
{
  const data = document.getElementById("data"); // a report has its data in itself; a console brings it later
  if (data) bindReport(JSON.parse(data.textContent), document);
}
