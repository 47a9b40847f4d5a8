// What htmx does not: streams that carry whole parts of the page, the keyboard, and where the focus goes.
"use strict";
(() => {
  const RETRY = 2000; // milliseconds after which a stream that was refused is asked for again
  const READ = 6; // paragraphs that are kept for a screen reader
  const announcer = () => document.getElementById("announcer");
  let opener = null; // the link that the panel was opened with

  function announce(root) {
    const said = root.querySelector("[data-announce]");
    if (said && announcer().textContent !== said.textContent) announcer().textContent = said.textContent;
  }

  // A screen reader is told each paragraph once, when it is whole: whatever is read out word by word is not heard.
  function readOut(turn) {
    const prose = turn.querySelector(".prose");
    if (!prose) return;
    const whole = prose.children.length - (prose.hasAttribute("aria-busy") ? 1 : 0);
    const reader = document.getElementById("reader");
    for (let at = Number(turn.dataset.read || 0); at < whole; at += 1) {
      const said = document.createElement("p");
      const drawing = prose.children[at].querySelector("svg");
      said.textContent = drawing ? drawing.getAttribute("aria-label") : prose.children[at].textContent;
      reader.append(said);
      turn.dataset.read = at + 1;
    }
    while (reader.children.length > READ) reader.firstElementChild.remove();
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
    const first = turn.querySelector("[data-first], .after a.button"); // the first citation, else the trace
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
      readOut(turn);
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

  function copyAnswer(event) {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const say = (outcome) => {
      button.textContent = outcome;
      announcer().textContent = outcome;
    };
    navigator.clipboard.writeText(button.dataset.copy).then(() => say("Copied"), () => say("Not copied"));
  }

  // Escape leads back from the panel to what it was opened with.
  function leaveOnEscape(event) {
    if (event.key !== "Escape" || event.isComposing) return;
    const panel = document.getElementById("panel");
    if (!panel || !panel.contains(event.target)) return;
    const turn = panel.querySelector(".back");
    const back = opener && opener.isConnected ? opener : turn && document.querySelector(`${turn.hash} .question`);
    if (back) back.focus();
  }

  // A click in the page chooses what the panel shows; from then on it does not change by itself.
  function choosePanel(event) {
    const link = event.target.closest("a[hx-target='#panel']");
    if (!link) return;
    const panel = document.getElementById("panel");
    delete panel.dataset.follows;
    if (!panel.contains(link)) opener = link;
  }

  function showMiddle(root) {
    const drawing = root.querySelector(".drawing");
    if (drawing) drawing.scrollLeft = (drawing.scrollWidth - drawing.clientWidth) / 2;
  }

  // The citation whose code is shown is marked in the answer, too.
  function markShown() {
    const shown = document.querySelector("#panel .marks [aria-current]");
    const href = shown && shown.getAttribute("href");
    document.querySelectorAll(".turn a[hx-target='#panel']").forEach((link) => {
      if (link.getAttribute("href") === href) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }

  function moveFocus(event) {
    const { target, requestConfig } = event.detail;
    if (target && target.id === "panel" && requestConfig && requestConfig.triggeringEvent) {
      const heading = target.querySelector("[data-focus]");
      target.scrollTop = 0;
      if (heading) heading.focus({ preventScroll: true });
      if (getComputedStyle(target).position === "static") target.scrollIntoView({ block: "start" }); // below the answer
    }
    if (target && target.id === "panel") {
      showMiddle(target);
      markShown();
    }
    connectAll();
  }

  function afterAsking(event) {
    const { elt, successful, xhr } = event.detail;
    if (!successful || !elt.matches("form[action='/ask']") || xhr.getResponseHeader("HX-Retarget")) return;
    const box = document.getElementById("question");
    box.value = "";
    box.placeholder = "Ask a follow-up";
    box.focus();
    document.getElementById("composer-problem").textContent = "";
    const turns = document.querySelectorAll(".turn");
    turns[turns.length - 1].scrollIntoView({ block: "start" });
  }

  function focusOnSlash(event) {
    const box = document.getElementById("question");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !box) return;
    if (event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    box.focus();
  }

  // A page that is opened anew begins with its last question, beside which is its code.
  function showLast() {
    const turns = document.querySelectorAll(".turn");
    if (turns.length > 1 && !location.hash) turns[turns.length - 1].scrollIntoView({ block: "start" });
  }

  document.addEventListener("keydown", askOnEnter);
  document.addEventListener("keydown", focusOnSlash);
  document.addEventListener("keydown", leaveOnEscape);
  document.addEventListener("click", choosePanel);
  document.addEventListener("click", copyAnswer);
  document.addEventListener("htmx:afterSwap", moveFocus);
  document.addEventListener("htmx:oobAfterSwap", (event) => showMiddle(event.detail.target));
  document.addEventListener("htmx:afterRequest", afterAsking);
  document.addEventListener("DOMContentLoaded", () => {
    history.scrollRestoration = "manual";
    document.documentElement.classList.toggle("copies", Boolean(navigator.clipboard));
    showMiddle(document);
    showLast();
    markShown();
    connectAll();
  });
})();
