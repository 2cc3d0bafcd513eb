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

  // rank is 0 where a word is missing, and more the nearer to a heading the words stand.
  const rank = ({page, heading, text}, words) => {
    let sum = 0;
    for (const word of words) {
      const at = [heading, page, text].findIndex(part => part.toLowerCase().includes(word));
      if (at < 0) return 0;
      sum += [9, 3, 1][at];
    }
    return sum + (heading.toLowerCase() === words.join(" ") ? 9 : 0);
  };

  const excerpt = (text, words) => {
    const at = Math.min(...words.map(word => text.toLowerCase().indexOf(word)).filter(at => at >= 0), text.length);
    const from = at < 50 || at === text.length ? 0 : text.lastIndexOf(" ", at - 40) + 1;
    return (from > 0 ? "… " : "") + text.slice(from, from + 110) + (text.length > from + 110 ? " …" : "");
  };

  const line = (name, text) => {
    const element = document.createElement(name);
    element.textContent = text;
    return element;
  };

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.replaceChildren();
    if (words.length === 0 || typeof sections === "undefined") return;
    const found = sections.map(section => [rank(section, words), section]).filter(([sum]) => sum > 0)
      .sort(([a], [b]) => b - a).slice(0, 10);
    for (const [, section] of found) {
      const {page, heading, text} = section;
      const link = document.createElement("a");
      link.href = address(section.address);
      link.append(line("strong", heading), line("span", page === heading ? "" : page), line("small", excerpt(text, words)));
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    if (found.length === 0) list.append(line("li", "Nothing has all of these words."));
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
