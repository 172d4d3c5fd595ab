// Send the form for a new game once, also if its button is clicked again within TWICE_MS: a second request would start
// a second game.
"use strict";

(() => {
  const TWICE_MS = 10_000;
  let sentAt = -Infinity;
  document.querySelector(".new-game")?.addEventListener("submit", (event) => {
    if (event.timeStamp - sentAt < TWICE_MS) event.preventDefault();
    else sentAt = event.timeStamp;
  });
  addEventListener("pageshow", () => (sentAt = -Infinity)); // back on this page, another game may be started
})();
