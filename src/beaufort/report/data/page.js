// The selection, and drawing what depends on it.
function drawHead() {
  if (!byId('sentence')) return;
  const model = chosen(), main = model.metrics[0], gauge = byId('gauge'), top = Number(gauge.dataset.top);
  byId('sentence').textContent = model.sentence;
  byId('value').textContent = `${percent(main[0])}\u00a0%`;
  byId('bounds').textContent = bracket(main);
  byId('meaning').textContent = model.meaning;
  byId('standing').textContent = model.standing;
  gauge.classList.add('moving');
  const band = gauge.querySelector('.band');
  band.style.left = `${(100 * main[1]) / top}%`;
  band.style.width = `${(100 * (main[2] - main[1])) / top}%`;
  gauge.querySelector('.dot').style.left = `${(100 * main[0]) / top}%`;
  byId('tiles').replaceChildren(...model.tiles.map(([title, value, note]) =>
    h('div', { class: 'tile' }, h('dt', null, title), h('dd', null, `${value} `, h('small', null, note)))));
}

function markRows() {
  for (const row of document.querySelectorAll('tr[data-m]')) {
    row.classList.toggle('chosen', D.models.length > 1 && Number(row.dataset.m) === state.model);
    row.classList.toggle('compared', Number(row.dataset.m) === state.compare && state.compare !== state.model);
  }
}

const columnStyle = document.head.appendChild(document.createElement('style'));
function applyFilter() {
  const visible = D.corruptions.map((_, c) => matches(c));
  for (const element of document.querySelectorAll('main [data-c]')) {
    element.hidden = !visible[Number(element.dataset.c)];
  }
  const first = 2 + (D.clean ? 1 : 0);
  const hidden = visible.map((yes, c) => (yes ? '' : `#all-table tr > :nth-child(${c + first})`)).filter(Boolean);
  columnStyle.textContent = hidden.length ? `${hidden.join(',')}{display:none}` : '';
  for (const table of document.querySelectorAll('.heat-table')) roam(table);
  const note = byId('filter-count'), count = visible.filter(Boolean).length;
  if (note) note.textContent = count ? '' : `no match for “${state.filter.trim()}”`;
  signScrolls();
}

function filterModels(text) {
  const wanted = text.trim().toLowerCase();
  const visible = D.models.map((model) => model.name.toLowerCase().includes(wanted));
  for (const row of document.querySelectorAll('tr[data-m]')) row.hidden = !visible[Number(row.dataset.m)];
  const count = visible.filter(Boolean).length;
  const note = byId('model-count');
  note.textContent = !wanted ? '' : count ? `${count} of ${D.models.length}` : `no match for “${text.trim()}”`;
  note.classList.toggle('none', Boolean(wanted) && !count);
  signScrolls();
}

// The address contains the selection by name, so that a link shows the same.
const KEPT = { measure: 'error', order: 'suite', filter: '' };
function keepState() {
  const words = new URLSearchParams();
  if (state.model) words.set('model', chosen().name);
  if (compared()) words.set('compare', compared().name);
  else if (D.start) words.set('compare', ''); // nothing, in place of the preselected model
  for (const [key, usual] of Object.entries(KEPT)) if (state[key] !== usual) words.set(key, state[key]);
  const text = words.toString();
  try {
    history.replaceState(null, '', `${location.pathname}${text ? `?${text}` : ''}${location.hash}`);
  } catch { /* a frame without its own address */ }
}
function takeState() {
  Object.assign(state, D.start);
  const words = new URLSearchParams(location.search);
  const place = (name) => D.models.findIndex((model) => model.name === name);
  if (place(words.get('model')) >= 0) state.model = place(words.get('model'));
  if (words.has('compare')) state.compare = place(words.get('compare'));
  if (['error', 'accuracy'].includes(words.get('measure'))) state.measure = words.get('measure');
  if (['suite', 'worst'].includes(words.get('order'))) state.order = words.get('order');
  state.filter = words.get('filter') || '';
}
// Let the controls show the selection.
function showState() {
  if (byId('filter')) byId('filter').value = state.filter;
  if (byId('model')) [byId('model').value, byId('compare').value] = [String(state.model), String(state.compare)];
  for (const button of document.querySelectorAll('[data-order]')) button.setAttribute('aria-pressed', String(button.dataset.order === state.order));
}

function drawModel() {
  drawComparison();
  drawHeatmap();
  drawCurves();
  drawBars();
  drawCalibration();
  drawStrips();
  drawMistakes();
  drawClasses();
  markRows();
  applyFilter();
}

function choose(place) {
  if (D.models.length === 2 && state.compare === place) state.compare = state.model;
  state.model = place;
  showState();
  drawHead();
  drawModel();
  keepState();
}

function press(button, key, draw) {
  state[key] = button.dataset[key];
  draw();
  applyFilter();
  keepState();
  const again = document.querySelector(`[data-${key}="${button.dataset[key]}"]`);
  for (const other of document.querySelectorAll(`[data-${key}]`)) other.setAttribute('aria-pressed', String(other === again));
  again.focus();
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  if (button.dataset.pick) choose(Number(button.dataset.pick));
  else if (button.dataset.first) sortBy(button);
  else if (button.dataset.measure) press(button, 'measure', drawHeatmap);
  else if (button.dataset.order) press(button, 'order', drawBars);
  else if (button.dataset.voice) press(button, 'voice', drawStrips);
  else if (button.dataset.strip) press(button, 'strip', drawStrips);
});
document.addEventListener('keydown', move);
if (byId('filter')) {
  byId('filter').addEventListener('input', (event) => { state.filter = event.target.value; applyFilter(); keepState(); });
}
if (byId('model')) {
  byId('model').addEventListener('change', (event) => choose(Number(event.target.value)));
  byId('compare').addEventListener('change', (event) => { state.compare = Number(event.target.value); drawModel(); keepState(); });
}
if (byId('model-filter')) byId('model-filter').addEventListener('input', (event) => filterModels(event.target.value));

root.classList.remove('plain');
if (E && E.images.length && E.images[0].startsWith('data:image/png')) document.body.classList.add('pixelated');
takeState();
showState();
if (state.model) drawHead();
drawModel();
