// Send the form for a new game once, also if its button is clicked twice: the second request would start a second game.
"use strict";

(() => {
  const TWICE_MS = 2000;
  let sentAt = -Infinity;
  document.querySelector(".new-game")?.addEventListener("submit", (event) => {
    if (event.timeStamp - sentAt < TWICE_MS) event.preventDefault();
    else sentAt = event.timeStamp;
  });
})();
