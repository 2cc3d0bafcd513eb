// The search: a field that is there only where scripts run. What is searched is loaded when the field is first used, as a
// script, because a page that is opened from a disk may load nothing else.
"use strict";
(() => {
  const search = document.currentScript;
  const address = path => new URL(path, search.src).href;
  const form = document.getElementById("search");
  const [field, list] = [form.querySelector("input"), form.querySelector("ul")];
  form.hidden = false;

  const load = () => {
    if (load.begun) return;
    load.begun = true;
    const more = document.createElement("script");
    more.src = address("sections.js");
    more.onload = show;
    document.head.append(more);
  };

  // line is an element with a text, in which the words that are searched for are marked.
  const line = (name, text) => {
    const element = document.createElement(name);
    for (const [part, found] of ranking.marked(text, field.value)) {
      const mark = document.createElement("mark");
      mark.textContent = part;
      element.append(found ? mark : part);
    }
    return element;
  };

  function show() {
    list.replaceChildren();
    if (field.value.trim() === "" || typeof sections === "undefined") return;
    const found = ranking.find(sections, field.value).slice(0, 10);
    for (const {page, heading, text, address: to} of found) {
      const link = document.createElement("a");
      link.href = address(to);
      link.append(line("strong", heading), line("span", page === heading ? "" : page),
        line("small", ranking.excerpt(text, field.value)));
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    if (found.length === 0) {
      const item = document.createElement("li");
      item.textContent = "No section has all of these words.";
      list.append(item);
    }
  }

  field.addEventListener("focus", load);
  field.addEventListener("input", show);
  list.addEventListener("click", () => list.replaceChildren());
  form.addEventListener("submit", event => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  document.addEventListener("click", event => form.contains(event.target) || list.replaceChildren());
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      list.replaceChildren();
      field.blur();
    } else if (event.key === "/" && document.activeElement === document.body) {
      event.preventDefault();
      field.focus();
    }
  });
})();
