// Elements made by calls. Whatever is shown becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes, listeners (`onclick`) and children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts other children into an element. Whoever had the focus in it keeps it, if it has the same `data-key` again. */
export function put(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const fresh = document.createDocumentFragment();
  add(fresh, children);
  element.replaceChildren(fresh);
  if (focused) {
    for (const candidate of element.querySelectorAll("[data-key]")) {
      if (candidate.dataset.key === focused) return candidate.focus({ preventScroll: true });
    }
  }
}

/** A function that waits until it has not been called for a while. */
export function calm(milliseconds, action) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), milliseconds);
  };
}
