// Nodes by code. A text is always a text node, whatever it holds; there is no way from here to markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: attributes by name (true: empty, false or null: absent), then children (null: none). */
export function el(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

function dressed(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * Put `fresh` in the place of `old` and carry over what the reader did there: open details, scroll, focus.
 * Nodes are known again by their data-key.
 */
export function swap(old, fresh) {
  const keyed = (root) => new Map([...root.querySelectorAll("[data-key]")].map((node) => [node.dataset.key, node]));
  const active = old.getRootNode().activeElement;
  const after = keyed(fresh);
  const places = [];
  for (const [key, node] of keyed(old)) {
    const twin = after.get(key);
    if (!twin) continue;
    if ("open" in twin) twin.open = node.open;
    if (node.scrollLeft || node.scrollTop) places.push([twin, node.scrollLeft, node.scrollTop]);
  }
  const focused = active && old.contains(active) ? active.closest("[data-key]")?.dataset.key : undefined;
  old.replaceWith(fresh);
  for (const [node, left, top] of places) node.scrollTo(left, top);
  if (focused !== undefined) after.get(focused)?.focus({ preventScroll: true });
}
