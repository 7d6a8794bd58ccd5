// What all pages share: their data, and elements. Text goes in as text, never as markup, so that
// nothing that stood in a file can do anything here.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

/** An element of the page; children are elements or text. */
function html(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of a picture in lines. */
function svg(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
