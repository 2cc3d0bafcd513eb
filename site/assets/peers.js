// What a reader compares with in one table is what the other tables of the page show, where they have it.
"use strict";
document.addEventListener("change", ({target}) => {
  if (!target.closest(".peers")) return;
  const name = label => label.textContent.trim().split(/[ ,]/)[0];   // "kro 0.9" is "kro"
  for (const label of document.querySelectorAll(".peers label"))
    if (name(label) === name(target.parentElement)) label.firstElementChild.checked = true;
});
