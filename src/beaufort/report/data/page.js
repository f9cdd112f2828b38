// What is chosen, and what that changes.
function drawHead() {
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
}

function filterModels(text) {
  const wanted = text.trim().toLowerCase();
  const visible = D.models.map((model) => model.name.toLowerCase().includes(wanted));
  for (const row of document.querySelectorAll('tr[data-m]')) row.hidden = !visible[Number(row.dataset.m)];
  const count = visible.filter(Boolean).length;
  byId('model-count').textContent = wanted ? `${count} of ${D.models.length}` : '';
}

function drawModel() {
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
  state.model = place;
  byId('model').value = String(place);
  drawHead();
  drawModel();
}

function press(button, key, draw) {
  state[key] = button.dataset[key];
  draw();
  applyFilter();
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
byId('filter').addEventListener('input', (event) => { state.filter = event.target.value; applyFilter(); });
if (D.models.length > 1) {
  byId('model').addEventListener('change', (event) => choose(Number(event.target.value)));
  byId('compare').addEventListener('change', (event) => { state.compare = Number(event.target.value); drawModel(); });
  byId('model-filter').addEventListener('input', (event) => filterModels(event.target.value));
}

root.classList.remove('plain');
if (E && E.pictures.length && E.pictures[0].startsWith('data:image/png')) document.body.classList.add('pixelated');
drawModel();
