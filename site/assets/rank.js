// What the search finds, and in which order; it knows nothing of the page that shows it.
"use strict";
const ranking = (() => {
  const wordsOf = query => query.toLowerCase().split(/\s+/).filter(Boolean);
  const literal = word => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

  // score is 0 where a word is missing. A word counts by the best place that it stands in: the page's title, a heading, the
  // text; the beginning of a word counts twice as much as another part of it, and in a text it counts how often it stands there.
  // The first section of a page is its title.
  const score = ({page, heading, text}, words) => {
    let sum = 0;
    for (const word of words) {
      let best = 0;
      for (const [part, weight] of [[page === heading ? page : "", 100], [heading, 30], [page, 5], [text, 1]]) {
        const at = part.toLowerCase().indexOf(word);
        if (at < 0) continue;
        const begins = new RegExp("(^|[^a-z0-9])" + literal(word), "i").test(part);
        best = Math.max(best, begins ? 2 * weight : weight);
      }
      if (best === 0) return 0;
      sum += best + Math.min(text.toLowerCase().split(word).length - 1, 8) / 2;
    }
    return sum + (heading.toLowerCase() === words.join(" ") ? 300 : 0);
  };

  // find returns the sections that have all words, the best first; of equals, the one that stands first.
  const find = (sections, query) => {
    const words = wordsOf(query);
    if (words.length === 0) return [];
    return sections.map(section => [score(section, words), section]).filter(([sum]) => sum > 0)
      .sort(([a], [b]) => b - a).map(([, section]) => section);
  };

  // marked cuts a text into [text, whether it is one of the words].
  const marked = (text, query) => {
    const words = wordsOf(query).sort((a, b) => b.length - a.length).map(literal);
    if (words.length === 0) return [[text, false]];
    return text.split(new RegExp("(" + words.join("|") + ")", "i")).map((part, i) => [part, i % 2 === 1]).filter(([part]) => part);
  };

  // excerpt is the part of a text around the first of the words.
  const excerpt = (text, query) => {
    const at = Math.min(...wordsOf(query).map(word => text.toLowerCase().indexOf(word)).filter(at => at >= 0), text.length);
    const from = at < 50 || at === text.length ? 0 : text.lastIndexOf(" ", at - 40) + 1;
    return (from > 0 ? "… " : "") + text.slice(from, from + 110) + (text.length > from + 110 ? " …" : "");
  };

  return {find, marked, excerpt};
})();
