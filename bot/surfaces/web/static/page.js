// What htmx does not: streams that carry whole parts of the page, the keyboard, and where the focus goes.
"use strict";
(() => {
  const RETRY = 2000; // milliseconds after which a stream that was refused is asked for again
  const announcer = () => document.getElementById("announcer");

  function announce(root) {
    const said = root.querySelector("[data-announce]");
    if (said && announcer().textContent !== said.textContent) announcer().textContent = said.textContent;
  }

  // Each event is the whole of a part, so nothing is lost or doubled when a stream begins anew.
  function replacePart(target, markup) {
    if (target) htmx.swap(target, markup, { swapStyle: "innerHTML" });
  }

  function showCourse(turn, markup) {
    const shown = document.getElementById("course");
    if (shown && shown.dataset.turn === turn.id.slice("turn-".length)) {
      const drawing = shown.querySelector(".drawing");
      const left = drawing ? drawing.scrollLeft : 0;
      replacePart(shown, markup);
      const renewed = shown.querySelector(".drawing");
      if (renewed) renewed.scrollLeft = left;
    }
  }

  function finish(turn) {
    const running = turn.querySelector("[data-while-running]");
    if (running) {
      const hadFocus = running.contains(document.activeElement);
      running.remove();
      if (hadFocus) turn.querySelector(".question").focus();
    }
    const first = turn.querySelector("[data-first]");
    const panel = document.getElementById("panel");
    if (first && panel.dataset.follows === turn.id && !panel.contains(document.activeElement)) {
      htmx.ajax("GET", first.getAttribute("href"), { target: "#panel" });
    }
  }

  function connect(turn) {
    const address = turn.dataset.stream;
    delete turn.dataset.stream;
    const panel = document.getElementById("panel");
    const source = new EventSource(address);
    panel.dataset.follows = turn.id;
    source.addEventListener("turn", (event) => {
      replacePart(turn.querySelector("[data-part=turn]"), event.data);
      announce(turn);
    });
    source.addEventListener("course", (event) => showCourse(turn, event.data));
    source.addEventListener("done", () => {
      source.close();
      finish(turn);
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED || !turn.isConnected) return; // else the browser connects again
      setTimeout(() => {
        turn.dataset.stream = address;
        connectAll();
      }, RETRY);
    });
    addEventListener("pagehide", () => source.close(), { once: true });
  }

  function connectAll() {
    document.querySelectorAll("[data-stream]").forEach(connect);
  }

  function askOnEnter(event) {
    const box = event.target;
    if (box.id !== "question" || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (box.value.trim()) box.form.requestSubmit();
  }

  // A click in the page chooses what the panel shows; from then on it does not change by itself.
  function choosePanel(event) {
    if (event.target.closest("a[hx-target='#panel']")) delete document.getElementById("panel").dataset.follows;
  }

  function moveFocus(event) {
    const { target, requestConfig } = event.detail;
    if (target && target.id === "panel" && requestConfig && requestConfig.triggeringEvent) {
      const heading = target.querySelector("[data-focus]");
      target.scrollTop = 0;
      if (heading) heading.focus({ preventScroll: target.scrollHeight > target.clientHeight });
    }
    connectAll();
  }

  function afterAsking(event) {
    const { elt, successful, xhr } = event.detail;
    if (!successful || !elt.matches("form[action='/ask']") || xhr.getResponseHeader("HX-Retarget")) return;
    const box = document.getElementById("question");
    box.value = "";
    box.focus();
    document.getElementById("composer-problem").textContent = "";
    const turns = document.querySelectorAll(".turn");
    turns[turns.length - 1].scrollIntoView({ block: "start" });
  }

  document.addEventListener("keydown", askOnEnter);
  document.addEventListener("click", choosePanel);
  document.addEventListener("htmx:afterSwap", moveFocus);
  document.addEventListener("htmx:afterRequest", afterAsking);
  document.addEventListener("DOMContentLoaded", connectAll);
})();
