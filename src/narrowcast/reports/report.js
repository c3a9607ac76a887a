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
{
  const data = document.getElementById("data"); // a report has its data in itself; a console brings it later
  if (data) bindWhatif(JSON.parse(data.textContent).whatif);
}
