// Tables: sorting, moving through cells with arrow keys, and the heat map.
const DEEP = 0.62;

function sortBy(button) {
  const head = button.closest('th'), table = head.closest('table'), column = head.cellIndex;
  const was = head.getAttribute('aria-sort');
  const next = was === 'none' ? button.dataset.first : was === 'ascending' ? 'descending' : 'ascending';
  for (const other of head.parentNode.cells) if (other.hasAttribute('aria-sort')) other.setAttribute('aria-sort', 'none');
  head.setAttribute('aria-sort', next);
  const sign = next === 'ascending' ? 1 : -1;
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent;
    return [row, text, Number(text)];
  });
  const numbers = keyed.every(([, , number]) => !Number.isNaN(number));
  const order = new Intl.Collator('en', { numeric: true });
  keyed.sort((a, b) => sign * (numbers ? a[2] - b[2] : order.compare(a[1], b[1])));
  body.append(...keyed.map(([row]) => row));
  roam(table);
}

// One cell of a heat map is focusable with the tab key; arrow keys move on from it.
function roam(table) {
  for (const cell of table.querySelectorAll('td.heat[tabindex]')) cell.removeAttribute('tabindex');
  const first = [...table.querySelectorAll('td.heat')].find((cell) => cell.offsetParent !== null);
  if (first) first.tabIndex = 0;
}
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
function move(event) {
  const cell = event.target.closest('td.heat'), step = STEPS[event.key];
  if (!cell || !step) return;
  event.preventDefault();
  const rows = [...cell.closest('tbody').rows].filter((row) => !row.hidden);
  let row = rows.indexOf(cell.parentNode), column = cell.cellIndex, next = null;
  do {
    row += step[0];
    column += step[1];
    if (!rows[row]) return;
    next = rows[row].cells[Math.min(column, rows[row].cells.length - 1)];
    if (!next || column < 1 || column >= Math.max(...rows.map((one) => one.cells.length))) return;
  } while (next.offsetParent === null || !next.classList.contains('heat') || next === cell);
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// Both are passed: computed from each other twice, a value that ends in 5 would be rounded differently.
function heatCell(error, accuracy, what, extra = {}) {
  const shown = state.measure === 'error' ? error : accuracy;
  return h('td', {
    class: `heat${error[0] >= DEEP ? ' deep' : ''}${extra.mean ? ' mean' : ''}`,
    style: `--v:${error[0]}`, colspan: extra.colspan, tabindex: '-1',
    'data-tip': `${what}\nerror ${estimate(error)}\naccuracy ${estimate(accuracy)}\n${images()}`,
  }, percent(shown[0], 0));
}

function heatTable(model, id) {
  const several = D.severities.length > 1, width = levels();
  const columns = D.severities.map(String);
  const head = h('tr', null, h('th', { scope: 'col' }, 'severity'),
    columns.map((name) => h('th', { scope: 'col' }, name)), several && h('th', { scope: 'col' }, 'mean'));
  const rows = [];
  if (model.clean) {
    rows.push(h('tr', null, h('th', { scope: 'row' }, 'clean'),
      heatCell(flip(model.clean), model.clean, 'clean images', { colspan: width + (several ? 1 : 0) })));
  }
  D.corruptions.forEach((name, c) => {
    const first = !c || D.groups[c] !== D.groups[c - 1];
    rows.push(h('tr', { 'data-c': c, class: first && 'group' },
      h('th', { scope: 'row' }, name, first && h('small', null, D.groups[c])),
      accuracies(model, c).map((t, i) => heatCell(flip(t), t, `${name}, ${severityName(i)}`)),
      several && heatCell(model.error[c], flip(model.error[c]), `${name}, mean over severities`, { mean: true })));
  });
  return h('table', { id, class: 'heat-table map' },
    h('caption', { class: 'faint', style: 'text-align:left;padding:.5rem .7rem' },
      `${model.name}: ${state.measure} in percent`), h('thead', null, head), h('tbody', null, rows));
}

// Corruptions by the severity at which half of the clean accuracy is lost.
function breakingPoints(model) {
  if (!model.breaks) return null;
  const by = new Map();
  model.breaks.forEach((severity, c) => by.set(severity, [...(by.get(severity) || []), c]));
  const entries = [...D.severities, null].filter((severity) => by.has(severity)).map((severity) => [
    h('dt', null, severity === null ? `not up to ${D.severities.at(-1)}` : `at ${severity}`),
    h('dd', null, by.get(severity).map((c, i) => h('span', { 'data-c': c }, D.corruptions[c])))]);
  return h('aside', { class: 'breaks' }, h('h3', null, 'Severity at which half of the clean accuracy is lost'),
    h('p', { class: 'faint' }, `The lowest severity at which the whole interval of the accuracy is below ${percent(model.clean[1] / 2)}\u00a0%, half of the lower end of the clean accuracy’s interval.`),
    h('dl', null, entries));
}

function drawHeatmap() {
  if (!D.severities.length || !byId('heatmap-figure')) return; // one severity: the table of all models has it all
  const model = chosen(), other = compared();
  const holders = [model, other].filter(Boolean).map((one, i) => {
    const holder = scroller(`Errors of ${one.name}`, heatTable(one, i ? 'map2' : 'map'));
    holder.classList.add('fit');
    return holder;
  });
  const buttons = ['error', 'accuracy'].map((name) =>
    h('button', { type: 'button', 'data-measure': name, 'aria-pressed': String(state.measure === name) }, name));
  const steps = Array.from({ length: 24 }, (_, i) => h('b', { class: 'heat', style: `--v:${i / 23}` }));
  byId('heatmap-figure').replaceChildren(
    h('p', { class: 'tools', role: 'group', 'aria-label': 'Measure' }, h('span', { class: 'faint' }, 'Show'), buttons),
    h('div', { class: 'beside' }, holders, other ? null : breakingPoints(model)),
    h('p', { class: 'scale', 'aria-hidden': 'true' }, '0\u00a0% error', h('i', null, steps), '100\u00a0%'));
  for (const holder of holders) roam(holder.firstChild);
}

function drawClasses() {
  const holder = byId('classes-figure'), found = chosen().classes;
  if (!holder) return;
  if (!found.length) return holder.replaceChildren();
  const rows = found.map(([label, n, corrupted, clean]) => h('tr', null,
    h('th', { scope: 'row' }, nameOf(label)),
    number(corrupted), clean ? number(clean) : h('td', null, '–'),
    clean ? h('td', { class: 'num', 'data-v': clean[0] - corrupted[0] }, percent(clean[0] - corrupted[0])) : h('td', null, '–'),
    h('td', { class: 'num', 'data-v': n }, n.toLocaleString('en'))));
  const heads = ['Class', 'Accuracy under corruption', 'Clean accuracy', 'Drop, in points', 'Images'].map((text, i) =>
    h('th', { scope: 'col', 'aria-sort': 'none', class: i ? 'num' : null }, h('button', { type: 'button', 'data-first': i > 2 ? 'descending' : 'ascending' }, text)));
  holder.replaceChildren(scroller('Classes with the lowest accuracy', h('table', { class: 'sortable', id: 'classes-table' },
      h('caption', { class: 'faint', style: 'text-align:left;padding:.5rem .7rem' }, `${chosen().name}, in percent with intervals`),
      h('thead', null, h('tr', null, heads)), h('tbody', null, rows))));
}
const number = (t) => h('td', { class: 'num', 'data-v': t[0] }, `${percent(t[0])} `, h('small', null, bracket(t)));
