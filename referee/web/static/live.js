// Keep a page up to date: load it again when the server says that the league has changed, unless the reader holds it.
// The page changes in place, so that the focus, the scroll position and open details stay.
"use strict";

(() => {
  const main = document.getElementById("main");
  const state = document.getElementById("live-state");
  const hold = document.getElementById("hold");
  const LIVE = "Live";
  const LOST = "Connection lost. Trying again.";
  const HELD = "Updates are held";
  let source = null; // the open stream
  let connection = "Connecting";
  let isHeld = false;
  let timer = 0; // for the next refresh; it runs while the page is outdated, because the server has not made it again yet

  const showState = () => {
    const text = isHeld ? HELD : connection;
    if (state.textContent !== text) state.textContent = text;
  };
  const setConnection = (text) => {
    connection = text;
    showState();
  };
  const refresh = () => {
    clearTimeout(timer);
    if (!isHeld) htmx.trigger(main, "refresh");
  };

  // What the reader opened or typed stays as it is.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, element) => !(name === "open" && element.tagName === "DETAILS");
  // `charts.js` draws a chart anew if its data has changed.
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => node.tagName !== "FORM" && !node.matches?.("figure.chart > div");

  htmx.createEventSource = (address) => {
    source = new EventSource(address);
    if (document.hidden) source.close(); // opened in the background
    return source;
  };
  document.body.addEventListener("htmx:sseOpen", () => setConnection(LIVE));
  document.body.addEventListener("htmx:sseError", () => setConnection(LOST));
  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    event.preventDefault(); // the event has nothing to show
    refresh();
  });
  main.addEventListener("htmx:afterRequest", ({ detail }) => {
    const seconds = parseFloat(detail.xhr.getResponseHeader("x-newer-in-s"));
    clearTimeout(timer);
    if (!Number.isNaN(seconds)) timer = setTimeout(refresh, 1000 * Math.max(seconds, 0.5));
  });

  // A live page has no replay, so its head has no scripts for one: when a hidden replay becomes visible, load the whole page.
  main.addEventListener("htmx:afterSwap", () => {
    if (document.getElementById("replay")) location.reload();
  });

  // A browser limits the connections to one server, so a hidden tab closes its stream. A new stream begins with an event, which
  // refreshes the page.
  document.addEventListener("visibilitychange", () => {
    const stream = document.getElementById("stream");
    if (document.hidden) {
      if (source) source.close();
      clearTimeout(timer);
    } else {
      const again = stream.cloneNode();
      stream.replaceWith(again);
      htmx.process(again);
    }
  });

  hold.addEventListener("click", () => {
    isHeld = !isHeld;
    hold.setAttribute("aria-pressed", String(isHeld));
    showState();
    refresh();
  });
  hold.hidden = false;
  showState();
})();
