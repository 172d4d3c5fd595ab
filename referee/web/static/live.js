// Keep a page up to date: load it again when the server says that the league has changed, unless the reader holds it.
"use strict";

(() => {
  const main = document.getElementById("main");
  const state = document.getElementById("live-state");
  const hold = document.getElementById("hold");
  let waiting = false;

  const isHeld = () => hold.getAttribute("aria-pressed") === "true";
  const say = (text) => {
    if (state.textContent !== text) state.textContent = text;
  };
  const refresh = () => htmx.ajax("GET", location.href, { source: main, target: main, select: "#main", swap: "outerHTML" });

  document.body.addEventListener("htmx:sseOpen", () => say("Live"));
  document.body.addEventListener("htmx:sseError", () => say("Connection lost; trying again"));
  hold.addEventListener("click", () => {
    hold.setAttribute("aria-pressed", String(!isHeld()));
    hold.textContent = isHeld() ? "Resume updates" : "Hold updates";
    say(isHeld() ? "Updates are held" : "Live");
    if (!isHeld() && waiting) refresh();
    waiting = false;
  });
  hold.hidden = false;
  say("Connecting");
})();
