// The demo workspace: messages as they come, the composer with its suggestions, and files.
"use strict";
(() => {
  const MAX_BYTES = 340000; // of all files of a message together
  const MAX_FILES = 5; // of a message
  const RETRY = 2000; // milliseconds after which a stream that was refused is asked for again
  const NEAR = 80; // pixels from the end, within which a list follows what comes
  const live = () => document.getElementById("live");
  const notice = () => document.getElementById("notice");

  function isNearEnd(list) {
    return list.scrollHeight - list.scrollTop - list.clientHeight < NEAR;
  }

  function showEnd(root) {
    root.querySelectorAll(".messages").forEach((list) => {
      list.scrollTop = list.scrollHeight;
      atEnd.add(list);
      resized.observe(list);
    });
  }

  // A list that shows its end still does so when a thread opens beside it, the box below it grows, or a picture comes.
  const atEnd = new WeakSet();
  const keepEnd = ({ target }) => {
    const list = target.closest && target.closest(".messages");
    if (list && atEnd.has(list)) list.scrollTop = list.scrollHeight;
  };
  const resized = new ResizeObserver((entries) => entries.forEach(keepEnd));
  function noteEnd({ target }) {
    if (!target.matches || !target.matches(".messages")) return;
    if (isNearEnd(target)) atEnd.add(target);
    else atEnd.delete(target);
  }

  // A message is replaced as a whole; what has the focus in it has it afterwards, and nobody's edit is lost.
  function replaceMessage(there, message) {
    if (there.querySelector(".change[open]") && there.contains(document.activeElement)) return;
    const active = there.contains(document.activeElement) ? document.activeElement : null;
    const key = active && active.dataset.key;
    const link = active && active.getAttribute("href");
    for (const name of there.getAttributeNames()) if (!message.hasAttribute(name)) there.removeAttribute(name);
    for (const name of message.getAttributeNames()) there.setAttribute(name, message.getAttribute(name));
    htmx.swap(there, message.innerHTML, { swapStyle: "innerHTML" });
    const again = [...there.querySelectorAll("a, button, summary")].find(
      (each) => (key && each.dataset.key === key) || (link && each.getAttribute("href") === link));
    if (again) again.focus({ preventScroll: true });
  }

  function takeMessage(markup) {
    const holder = document.createElement("template");
    holder.innerHTML = markup;
    const message = holder.content.querySelector("article");
    const there = document.querySelectorAll(`[data-message="${message.dataset.message}"]`);
    const list = document.querySelector(`[data-list="${message.dataset.place}"]`);
    const follows = [...document.querySelectorAll(".messages")].filter(isNearEnd);
    const wasFinished = there.length && there[0].hasAttribute("data-finished");
    if (message.hasAttribute("data-gone")) there.forEach((each) => each.remove());
    else if (there.length) there.forEach((each) => replaceMessage(each, message));
    else if (list) {
      const welcome = list.querySelector(".welcome");
      if (welcome) welcome.remove();
      list.append(message);
      htmx.process(message);
      if (message.dataset.place.endsWith(":0")) follows.push(list);
    } else markUnread(message.dataset.place.split(":")[0]);
    follows.forEach((each) => { each.scrollTop = each.scrollHeight; });
    if (list && message.hasAttribute("data-finished") && !wasFinished) announce("citebot answered.");
  }

  function announce(text) {
    document.getElementById("announcer").textContent = text;
  }

  function markUnread(channel) {
    const room = document.querySelector(`[data-room="${channel}"]:not([aria-current])`);
    if (room) room.classList.add("unread");
  }

  function follow(address) {
    const source = new EventSource(address);
    source.addEventListener("message", (event) => {
      live().dataset.seen = event.lastEventId;
      takeMessage(event.data);
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return; // else the browser connects again
      const seen = live().dataset.seen;
      setTimeout(() => follow(seen ? address.replace(/after=.*/, `after=${seen}`) : address), RETRY);
    });
    addEventListener("pagehide", () => source.close(), { once: true });
  }

  // What may be meant by the word at the cursor: people after an @, commands at the beginning.
  function findSuggestions(box) {
    const before = box.value.slice(0, box.selectionStart);
    const name = /(^|\s)@(\w*)$/.exec(before);
    const command = /^\/\w*$/.exec(before);
    const all = name ? live().dataset.names.split(" ").map((each) => `@${each}`)
      : command && !Number(box.form.dataset.thread) ? live().dataset.commands.split(" ") : [];
    const begun = (name ? `@${name[2]}` : before).toLowerCase();
    return { begun, fitting: all.filter((each) => each.toLowerCase().startsWith(begun) && each.toLowerCase() !== begun) };
  }

  const listOf = (box) => document.getElementById(box.getAttribute("aria-controls"));

  function choose(box, option) {
    listOf(box).querySelectorAll("li").forEach((each) => each.setAttribute("aria-selected", String(each === option)));
    box.setAttribute("aria-activedescendant", option.id);
  }

  function suggest(box) {
    const list = listOf(box);
    const { fitting } = findSuggestions(box);
    list.replaceChildren(...fitting.map((text, number) => {
      const option = document.createElement("li");
      Object.assign(option, { id: `${list.id}-${number}`, textContent: text });
      option.setAttribute("role", "option");
      return option;
    }));
    list.hidden = !fitting.length;
    if (fitting.length) choose(box, list.firstElementChild);
    else box.removeAttribute("aria-activedescendant");
  }

  function complete(box, text) {
    const { begun } = findSuggestions(box);
    const at = box.selectionStart;
    box.setRangeText(`${text} `, at - begun.length, at, "end");
    suggest(box);
  }

  function pressKey(event) {
    const box = event.target;
    if (!box.matches(".write textarea") || event.isComposing) return;
    const list = listOf(box);
    const chosen = list.querySelector("[aria-selected=true]");
    if (!list.hidden && ["ArrowDown", "ArrowUp", "Tab", "Enter", "Escape"].includes(event.key)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (event.key === "Escape") list.hidden = true;
      else if (event.key.startsWith("Arrow")) {
        const options = [...list.children];
        const step = event.key === "ArrowDown" ? 1 : options.length - 1;
        choose(box, options[(options.indexOf(chosen) + step) % options.length]);
      } else complete(box, chosen.textContent);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      event.stopImmediatePropagation();
      box.form.requestSubmit();
    }
  }

  // Files go with the form as text, so that every form of the page is guarded in one way.
  async function attach(event) {
    const input = event.target;
    if (!input.matches(".attach input")) return;
    const form = input.form;
    form.querySelectorAll("[data-carried]").forEach((each) => each.remove());
    const files = [...input.files];
    if (files.length > MAX_FILES || files.reduce((sum, file) => sum + file.size, 0) > MAX_BYTES) {
      notice().textContent = `Up to ${MAX_FILES} files of ${MAX_BYTES / 1000} kB together can be attached here.`;
      input.value = "";
      return;
    }
    for (const [number, file] of files.entries()) {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const data = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
      for (const [name, value] of [["name", file.name], ["type", file.type], ["data", data]]) {
        const field = Object.assign(document.createElement("input"), { type: "hidden", name: `${name}${number}`, value });
        field.dataset.carried = "";
        form.append(field);
      }
    }
    form.querySelector(".attached").textContent = files.map((file) => file.name).join(", ");
  }

  function afterSending(event) {
    const { elt, successful } = event.detail;
    if (!successful || !elt.matches(".write") || notice().textContent) return;
    elt.querySelectorAll("[data-carried]").forEach((each) => each.remove());
    elt.querySelector(".attached").textContent = "";
    elt.querySelector("input[type=file]").value = "";
    const box = elt.querySelector("textarea");
    box.value = "";
    suggest(box);
    box.focus();
    showEnd(elt.closest(".column"));
  }

  function closePanel(event) {
    const link = event.target.closest("[data-shut=panel]");
    if (!link) return;
    event.preventDefault();
    document.getElementById("panel").replaceChildren();
    const shown = document.querySelector("a[hx-target='#panel'][aria-current]");
    if (shown) shown.focus();
    markShown("");
  }

  function markShown(address) {
    document.querySelectorAll(".message a[hx-target='#panel']").forEach((link) => {
      if (link.getAttribute("href") === address) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }

  function afterSwap(event) {
    const { target, requestConfig, pathInfo } = event.detail;
    if (!target) return;
    if (target.id === "thread") {
      showEnd(target);
      const box = target.querySelector("textarea");
      if (box && requestConfig) box.focus({ preventScroll: true });
    }
    if (target.id === "panel" && pathInfo) markShown(pathInfo.requestPath);
  }

  function beforeSending(event) {
    const { elt, requestConfig } = event.detail;
    if (requestConfig && requestConfig.verb === "post") notice().textContent = "";
    closeChange(elt.closest(".change")); // so that the message is replaced by what it becomes
  }

  function closeChange(change) {
    if (!change) return;
    change.firstElementChild.focus();
    change.open = false;
  }

  function beginChange({ target }) {
    const box = target.open && target.matches(".change") && target.querySelector("textarea");
    if (!box) return;
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }

  document.addEventListener("keydown", pressKey, true);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeChange(event.target.closest(".change[open]"));
  });
  document.addEventListener("toggle", beginChange, true);
  document.addEventListener("scroll", noteEnd, true);
  document.addEventListener("load", keepEnd, true);
  document.addEventListener("input", (event) => {
    if (event.target.matches(".write textarea")) suggest(event.target);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.matches(".write textarea")) listOf(event.target).hidden = true;
  });
  document.addEventListener("mousedown", (event) => {
    const option = event.target.closest(".complete li");
    if (!option) return;
    event.preventDefault(); // the focus stays in the box
    complete(option.closest(".complete").querySelector("textarea"), option.textContent);
  });
  document.addEventListener("change", attach);
  document.addEventListener("click", closePanel);
  document.addEventListener("htmx:beforeRequest", beforeSending);
  document.addEventListener("htmx:afterRequest", afterSending);
  document.addEventListener("htmx:afterSwap", afterSwap);
  document.addEventListener("DOMContentLoaded", () => {
    showEnd(document);
    follow(live().dataset.follow);
  });
})();
