// Draw the charts of a page: every <figure class="chart"> has a specification of Vega-Lite as JSON, and an empty <div>.
// The interpreter of Vega evaluates expressions, because the Content-Security-Policy forbids `eval`.
"use strict";

(() => {
  /** The specification that is drawn in each <div>, as text. */
  const drawn = new WeakMap();
  /** The promise of what Vega has drawn in each <div>. */
  const views = new WeakMap();

  /** Return the configuration of Vega with the colours of the style sheet. */
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = { labelColor: colour("--soft"), titleColor: colour("--text") };
    const lines = { gridColor: colour("--line"), domainColor: colour("--line"), tickColor: colour("--line") };
    const font = getComputedStyle(document.body).fontFamily;
    return {
      background: "transparent",
      font,
      axis: { ...text, ...lines, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
      view: { stroke: null },
      mark: { color: colour("--accent") },
      rule: { color: colour("--accent") },
    };
  }

  function draw(figure, config) {
    const text = figure.querySelector("script").textContent;
    const place = figure.querySelector("div");
    if (drawn.get(place) === text && place.firstChild) {
      return;
    }
    drawn.set(place, text);
    place.style.minHeight = `${place.offsetHeight}px`; // so that the page does not jump while the chart is drawn anew
    views.get(place)?.then((view) => view?.finalize()); // otherwise the window keeps the old chart for ever
    const view = vegaEmbed(place, JSON.parse(text), {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      ast: true,
      expr: vegaInterpreter.expressionInterpreter,
      defaultStyle: false,
      tooltip: false,
      config,
    }).catch((error) => console.error(error));
    views.set(place, view);
  }

  function drawAll() {
    const config = readColours();
    for (const figure of document.querySelectorAll("figure.chart")) {
      draw(figure, config);
    }
  }

  function redrawAll() {
    for (const place of document.querySelectorAll("figure.chart > div")) {
      drawn.delete(place);
    }
    drawAll();
  }

  drawAll();
  document.addEventListener("htmx:afterSettle", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
})();
