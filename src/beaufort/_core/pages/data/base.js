// What every figure uses. Names come from outside: they go into the page as text, never as HTML.
const D = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const state = { model: 0, compare: -1, filter: '', measure: 'error', order: 'suite', strip: 0, voice: 0 };

const chosen = () => D.models[state.model];
const compared = () => (state.compare >= 0 && state.compare !== state.model ? D.models[state.compare] : null);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'style') element.style.cssText = value;
    else element.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// A number as Python writes it: a half goes to the even digit, where `toFixed` takes the larger. A double lies just
// between two decimals of so many digits if it is an odd multiple of this power of two.
function fixed(value, digits) {
  const text = value.toFixed(digits), multiple = value * 2 ** (digits + 1);
  const between = Number.isInteger(multiple) && multiple % 2 !== 0;
  return between && text.at(-1) % 2 ? (value - Math.sign(value) * 10 ** -digits / 4).toFixed(digits) : text;
}
// A fraction in percent; what rounds to zero has no sign.
const percent = (fraction, digits = 1) => fixed(100 * fraction, digits).replace(/^-(?=[0.]+$)/, '');
// A number without an interval holds by definition: a baseline over itself.
const bracket = (t) => (t[1] === t[2] && t[0] === t[1] ? '(by definition)' : `[${percent(t[1])}, ${percent(t[2])}]`);
const estimate = (t) => `${percent(t[0])}\u00a0% ${bracket(t)}`;
const flip = (t) => [1 - t[0], 1 - t[2], 1 - t[1]];
const images = () => `n = ${D.n.toLocaleString('en')} image${D.n === 1 ? '' : 's'}`;
const nameOf = (label) => D.classes[label] ?? `class ${label}`;

// Accuracies of one model under one corruption, from weak to strong.
const levels = () => Math.max(D.severities.length, 1);
const accuracies = (model, c) => model.accuracy.slice(c * levels(), (c + 1) * levels());
const severityName = (i) => (D.severities.length ? `severity ${D.severities[i]}` : 'published severity');

const matches = (c) => {
  const wanted = state.filter.trim().toLowerCase().split(/[\s,]+/).filter(Boolean);
  const text = `${D.corruptions[c]} ${D.groups[c]}`.toLowerCase();
  return !wanted.length || wanted.some((word) => text.includes(word));
};

// One tip for the whole page, for what is pointed at or has the focus.
const tip = byId('tip');
let tipFor = null;
function showTip(target) {
  const found = target.closest ? target.closest('[data-tip], td.heat') : null;
  if (found === tipFor) return;
  tipFor = found;
  const text = found && tipText(found);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = found.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 8);
  const above = box.top - own.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above < 8 ? Math.min(box.bottom + 8, innerHeight - own.height - 8) : above}px`;
}
function tipText(element) {
  if (element.dataset.tip !== undefined) return element.dataset.tip;
  const row = element.closest('tr[data-m]');
  if (!row) return '';
  const model = D.models[Number(row.dataset.m)];
  const column = element.cellIndex - 1 - (D.clean ? 1 : 0);
  const what = column < 0 ? 'clean' : D.corruptions[column];
  const error = column < 0 ? flip(model.clean) : model.error[column];
  return `${model.name}, ${what}\nerror ${estimate(error)}\n${images()}`;
}
document.addEventListener('pointerover', (event) => showTip(event.target));
document.addEventListener('focusin', (event) => showTip(event.target));
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') showTip(document); });
addEventListener('scroll', () => { if (tipFor) showTip(document); }, { passive: true });

// A frame that scrolls says so: what is cut off fades out, and a line below names the way.
function scroller(label, table) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, table);
}
function signScroll(box) {
  const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 2;
  const below = box.scrollHeight - box.clientHeight - box.scrollTop > 2;
  const more = [right && 'right', below && 'below'].filter(Boolean).join(' ');
  if (box.dataset.more === more) return;
  box.dataset.more = more;
  let sign = box.nextElementSibling;
  if (!sign || !sign.classList.contains('scrolls')) {
    if (!more) return;
    sign = h('p', { class: 'scrolls faint', 'aria-hidden': 'true' });
    box.after(sign);
  }
  sign.textContent = right && below ? 'Scroll for more: → ↓' : right ? 'Scroll for more: →' : below ? 'Scroll for more: ↓' : '';
  sign.hidden = !more;
}
const signScrolls = () => { for (const box of document.querySelectorAll('.scroll')) signScroll(box); };
document.addEventListener('scroll', (event) => {
  if (event.target.classList && event.target.classList.contains('scroll')) signScroll(event.target);
}, { passive: true, capture: true });
addEventListener('resize', signScrolls);
addEventListener('load', signScrolls);
