
"use strict";
// Laying out thousands of rows takes longer than a search may: only the first matches are shown.
const SHOWN = 100;

function setUp(list) {
  const tools = list.querySelector(".tools");
  const output = tools.querySelector("output");
  const input = tools.querySelector("input");
  const root = list.querySelector("ul");
  const items = [...root.querySelectorAll("li")].map((item, order) => ({ item, order }));
  const of = new Map(items.map((each) => [each.item, each]));
  for (const each of items) {
    const row = each.item.firstElementChild;
    each.details = row.tagName === "DETAILS" ? row : null;
    each.parent = of.get(each.item.parentElement.closest("li"));
    const name = each.item.querySelector(".name").textContent.toLowerCase();
    each.text = each.parent ? `${each.parent.text}.${name}` : name;
  }
  let before = null;

  function search() {
    const wanted = input.value.trim().toLowerCase();
    if (!wanted) {
      for (const { item } of items) if (item.hidden) item.hidden = false;
      if (before) for (const { details } of items) if (details) details.open = before.has(details);
      before = null;
      output.textContent = "";
      return;
    }
    before ??= new Set(items.map(({ details }) => details).filter((details) => details?.open));
    const found = items.filter(({ text }) => text.includes(wanted));
    const shown = new Set();
    const opened = new Set();
    for (const each of found.slice(0, SHOWN)) {
      shown.add(each);
      for (let above = each.parent; above; above = above.parent) {
        shown.add(above);
        opened.add(above);
      }
    }
    for (const each of items) {
      // What is in a hidden item needs no change: each change costs a recalculation of styles.
      if (each.parent && !shown.has(each.parent)) continue;
      if (each.item.hidden === shown.has(each)) each.item.hidden = !shown.has(each);
      if (shown.has(each) && each.details && each.details.open !== opened.has(each)) {
        each.details.open = opened.has(each);
      }
    }
    const more = found.length > SHOWN ? `, the first ${SHOWN} are shown` : "";
    output.textContent = `${found.length} of ${items.length} match${more}`;
  }

  function sort(key) {
    const siblings = new Map();
    for (const each of items) {
      const parent = each.item.parentElement;
      if (!siblings.has(parent)) siblings.set(parent, []);
      siblings.get(parent).push(each);
    }
    // Out of the document, items move without a layout.
    root.remove();
    for (const [parent, rows] of siblings) {
      rows.sort((a, b) => (key ? b.item.dataset[key] - a.item.dataset[key] : 0) || a.order - b.order);
      parent.append(...rows.map(({ item }) => item));
    }
    list.append(root);
  }

  input.addEventListener("input", search);
  tools.querySelector("select").addEventListener("change", (event) => sort(event.target.value));
  for (const button of tools.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      for (const { details } of items) if (details) details.open = button.value === "open";
    });
  }
  tools.hidden = false;
}

for (const list of document.querySelectorAll(".list")) setUp(list);
