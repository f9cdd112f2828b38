// Controls of the page, and the figure and table that depend on them.
const main = new Plot(byId('plot'), byId('over'));
const view = { show: 'accuracy', x: D.x, y: D.y, scale: D.scale, fit: 0, bars: false, hidden: new Set(), search: '', order: 'high', trend: null, rows: [] };
const points2 = (v, digits = 2) => `${v < 0 ? '−' : '+'}${fixed(Math.abs(v), digits)}`;
const within = (t) => (t ? ` [${fixed(t[0], 2)}, ${fixed(t[1], 2)}]` : '');
const lookOf = (m) => D.look[m];
const STARS = new Set(D.stars);
const lower = D.names.map((name) => name.toLowerCase());
const bases = new Map(D.pairs);

function options(select, chosenOne) {
  const groups = new Map();
  D.settings.forEach((one, k) => { if (!groups.has(one.kind)) groups.set(one.kind, []); groups.get(one.kind).push(k); });
  select.replaceChildren(...[...groups].map(([kind, list]) => h('optgroup', { label: kind },
    list.map((k) => h('option', { value: k }, D.settings[k].title)))));
  select.value = String(chosenOne);
}

// The shown models: accuracies, or ρ and τ of models with a base model.
function models() {
  const first = column(view.x), second = column(view.y), found = [];
  D.names.forEach((name, m) => {
    if (Number.isNaN(first[m]) || Number.isNaN(second[m]) || view.hidden.has(lookOf(m))) return;
    const p = { m, x: first[m], y: second[m], clean: first[m], shifted: second[m], look: lookOf(m), own: STARS.has(m) };
    if (view.show === 'tau') {
      [p.x, p.y] = [rhoOf(p), tauOf(p)];
      if (Number.isNaN(p.x) || Number.isNaN(p.y)) return;
    }
    found.push(p);
  });
  return found;
}

function withIntervals(p) {
  if (p.xi === undefined) { p.xi = interval(p.clean, imagesOf(view.x, p.m)); p.yi = interval(p.shifted, imagesOf(view.y, p.m)); }
  return p;
}

const rhoOf = (p) => (view.trend && p.clean > 0 && p.clean < 100 ? p.shifted - view.trend.predict(p.clean) : NaN);
const tauOf = (p) => (bases.has(p.m) ? p.shifted - column(view.y)[bases.get(p.m)] : NaN);
const percentileOfModel = (p) => (Number.isNaN(rhoOf(p)) ? null : percentileOf(view.trend, view, { ...p, x: p.clean, y: p.shifted }));
const placeOf = (p) => {
  const percentile = percentileOfModel(p);
  if (percentile === null) return '';
  const where = percentile > 97.5 ? 'above' : percentile < 2.5 ? 'below' : 'within';
  return `${fixed(Math.min(Math.max(percentile, 0.1), 99.9), 1)}, ${where}`;
};

function describe(p) {
  withIntervals(p);
  const rho = rhoOf(p), tau = tauOf(p), n = imagesOf(view.y, p.m), origin = D.origins[p.m] && D.origins[p.m][view.y];
  return `${D.names[p.m]}\n${D.looks[p.look].label}\n${D.settings[view.x].title}: ${fixed(p.clean, 2)} %${within(p.xi)}\n` +
    `${D.settings[view.y].title}: ${fixed(p.shifted, 2)} %${within(p.yi)}` + (n ? `, n = ${n.toLocaleString('en')}` : ', n unknown') +
    (Number.isNaN(rho) ? '' : `\nρ = ${points2(rho)} points`) + (Number.isNaN(tau) ? '' : `\nτ = ${points2(tau)} points over ${D.names[bases.get(p.m)]}`) +
    (placeOf(p) ? `\npercentile among fitted models: ${placeOf(p)}` : '') + (origin ? `\n${origin}` : '');
}

// Ranges of the transformed x-axis in which each line of the trend holds.
function spans(trend, plot) {
  if (!trend || view.show !== 'accuracy') return [];
  const pivot = trend.pivot === null ? null : SCALES[view.scale].forward(trend.pivot);
  const ranges = pivot === null ? [plot.xr] : [[plot.xr[0], Math.min(pivot, plot.xr[1])], [Math.max(pivot, plot.xr[0]), plot.xr[1]]];
  return trend.lines.map((line, i) => [line, ...ranges[i]]).filter(([, start, end]) => start < end);
}

function drawBand(context, plot) {
  context.save();
  plot.clip(context);
  if (view.show === 'tau') {
    context.setLineDash([5, 4]); context.strokeStyle = ink('--faint'); context.lineWidth = 1.2;
    for (const [x0, y0, x1, y1] of [[plot.px(0), 0, plot.px(0), plot.height], [0, plot.py(0), plot.width, plot.py(0)]]) {
      context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke();
    }
    return context.restore();
  }
  const low = Math.max(plot.xr[0], plot.yr[0]), high = Math.min(plot.xr[1], plot.yr[1]);
  context.setLineDash([5, 4]); context.strokeStyle = ink('--faint'); context.lineWidth = 1.2;
  context.beginPath(); context.moveTo(plot.zx(low), plot.zy(low)); context.lineTo(plot.zx(high), plot.zy(high)); context.stroke();
  for (const [line, start, end] of spans(view.trend, plot)) {
    const zs = Array.from({ length: 41 }, (_, j) => start + ((end - start) * j) / 40), band = zs.map((z) => bandAt(line, z));
    context.beginPath();
    zs.forEach((z, j) => context.lineTo(plot.zx(z), plot.zy(band[j][0])));
    zs.map((z, j) => [z, band[j][1]]).reverse().forEach(([z, y]) => context.lineTo(plot.zx(z), plot.zy(y)));
    context.fillStyle = '#cc222233'; context.fill();
    const ranges = zs.map((z) => scatterAt(line, z));
    context.setLineDash([2, 3]); context.strokeStyle = isDark() ? '#ff6b5e' : '#c22'; context.lineWidth = 1;
    for (const end of [0, 1]) {
      context.beginPath();
      zs.forEach((z, j) => context.lineTo(plot.zx(z), plot.zy(ranges[j][end])));
      context.stroke();
    }
  }
  context.setLineDash([]);
  if (view.bars) drawBars(context, plot);
  context.restore();
}

// The intervals of all accuracies; those that are not known yet are computed in slices, so that the page stays alive.
function drawBars(context, plot) {
  const end = performance.now() + 40;
  let waiting = false;
  const paths = new Map();
  for (const p of plot.points) {
    if (!p.inside) continue;
    if (p.xi === undefined && performance.now() > end) { waiting = true; continue; }
    withIntervals(p);
    if (!paths.has(p.look)) paths.set(p.look, []);
    if (p.xi) paths.get(p.look).push([plot.px(p.xi[0]), p.py, plot.px(p.xi[1]), p.py]);
    if (p.yi) paths.get(p.look).push([p.px, plot.py(p.yi[0]), p.px, plot.py(p.yi[1])]);
  }
  context.globalAlpha = 0.5; context.lineWidth = 1;
  for (const [look, all] of paths) {
    context.beginPath(); context.strokeStyle = colorOf(look);
    for (const [x0, y0, x1, y1] of all) { context.moveTo(x0, y0); context.lineTo(x1, y1); }
    context.stroke();
  }
  context.globalAlpha = 1;
  if (waiting && context instanceof CanvasRenderingContext2D) requestAnimationFrame(() => { if (view.bars) { plot.draw(); plot.mark(plot.found || [], null); } });
}

function drawLine(context, plot) {
  context.save();
  plot.clip(context);
  context.strokeStyle = isDark() ? '#ff6b5e' : '#c22'; context.lineWidth = 2;
  for (const [line, start, end] of spans(view.trend, plot)) {
    context.beginPath();
    context.moveTo(plot.zx(start), plot.zy(line.slope * start + line.intercept));
    context.lineTo(plot.zx(end), plot.zy(line.slope * end + line.intercept));
    context.stroke();
  }
  context.restore();
}

function fitText() {
  const trend = view.trend, names = `${D.settings[view.x].title} → ${D.settings[view.y].title}`;
  if (view.x === view.y) return `${names}: choose two different settings for a trend.`;
  if (!trend) return `${names}: no trend; too few models with different accuracies.`;
  const one = (line) => {
    const drawn = resample(line), [a, b] = ends(drawn.map((d) => d[0]));
    return `slope ${fixed(line.slope, 3)} [${fixed(a, 3)}, ${fixed(b, 3)}], intercept ${fixed(line.intercept, 3)}, r² ${fixed(line.r2, 2)}, n ${line.n}`;
  };
  const where = trend.pivot === null ? one(trend.lines[0])
    : `up to ${fixed(trend.pivot, 2)} %: ${one(trend.lines[0])}; above: ${one(trend.lines[1])}`;
  const fewest = Math.min(...trend.lines.map((line) => line.n));
  const few = fewest < D.tooFew ? ` Bootstrap intervals are too narrow for a line through ${fewest} models.` : '';
  const shown = view.show === 'tau' ? ' A useful intervention lies above and to the right of 0: ρ is the distance from the trend, τ the gain over the base model.' : ' Dotted lines contain 95 % of further models like the fitted ones.';
  return `${names}. Trend on ${view.scale} axes, fitted on ${D.fits[view.fit].rule}: ${where.replaceAll('-', '−')}.${shown}${few}`;
}

function draw() {
  view.trend = view.x === view.y ? null : fitTrend(view.x, view.y, view.scale, view.fit);
  view.rows = models();
  const titles = [D.settings[view.x].title, D.settings[view.y].title], tau = view.show === 'tau';
  main.show({ points: view.rows, scale: tau ? 'linear' : view.scale, unit: tau ? 'points' : '%', before: drawBand, after: drawLine,
    titles: tau ? [`ρ, ${titles[1]}`, `τ, ${titles[1]}`] : titles });
  byId('fit-text').textContent = fitText();
  main.at = null;
  search();
}

function search() {
  const wanted = view.search.trim().toLowerCase();
  main.found = wanted ? view.rows.filter((p) => lower[p.m].includes(wanted)) : [];
  const exact = main.found.length === 1 ? main.found[0] : null;
  main.mark(main.found, exact && withIntervals(exact));
  byId('found').textContent = !wanted ? '' : exact ? describe(exact).replaceAll('\n', '; ')
    : main.found.length ? `${main.found.length} of ${view.rows.length} models` : `no match for “${wanted}” in ${view.rows.length} models`;
  drawTable();
  remember();
}

const LONGEST = 60;
function drawTable() {
  const wanted = new Set(main.found.map((p) => p.m)), sign = view.order === 'high' ? -1 : 1;
  const all = view.rows.map((p) => [p, rhoOf(p)]), pinned = all.filter(([p]) => p.own);
  const rows = all.filter(([p, rho]) => !p.own && !Number.isNaN(rho) && (!view.search.trim() || wanted.has(p.m)));
  rows.sort((a, b) => sign * (a[1] - b[1]));
  byId('shown').textContent = rows.length > LONGEST ? `${LONGEST} of ${rows.length}; search to see more` : `${rows.length}`;
  const cell = (value, t) => h('td', { class: 'num' }, fixed(value, 2), h('small', null, within(t)));
  const signed = (value) => h('td', { class: 'num' }, Number.isNaN(value) ? '' : points2(value));
  const tau = bases.size > 0;
  document.querySelector('#table thead').replaceChildren(h('tr', null, h('th', null, 'Model'), h('th', { class: 'num' }, 'ρ'), tau && h('th', { class: 'num' }, 'τ'),
    h('th', { class: 'num' }, 'Percentile'), h('th', { class: 'num' }, D.settings[view.x].title), h('th', { class: 'num' }, D.settings[view.y].title), h('th', null, 'Type')));
  document.querySelector('#table tbody').replaceChildren(...[...pinned, ...rows.slice(0, LONGEST)].map(([p, rho]) => {
    withIntervals(p);
    return h('tr', { class: p.own ? 'chosen' : wanted.has(p.m) ? 'hit' : null }, h('th', { scope: 'row' }, p.own && h('span', { class: 'star', 'aria-hidden': 'true' }, '★ '), D.names[p.m]),
      signed(rho), tau && signed(tauOf(p)), h('td', { class: 'num' }, placeOf(p)), cell(p.clean, p.xi), cell(p.shifted, p.yi), h('td', null, D.looks[p.look].label));
  }));
}

function drawTypes() {
  byId('types').replaceChildren(...D.looks.map((look, i) => h('button', { type: 'button', 'data-look': i,
    'aria-pressed': String(!view.hidden.has(i)) }, h('i', { style: `background:${colorOf(i)}` }), `${look.label} `, h('small', null, look.count))));
}

// The address keeps the view: settings by name, everything that differs from the first view.
function remember() {
  const parts = new URLSearchParams(), setting = (k) => D.settings[k].name;
  if (view.show !== 'accuracy') parts.set('show', view.show);
  parts.set('x', setting(view.x)); parts.set('y', setting(view.y));
  if (view.scale !== D.scale) parts.set('axes', view.scale);
  if (view.fit) parts.set('fit', D.fits[view.fit].label);
  if (view.bars) parts.set('bars', '1');
  if (view.hidden.size) parts.set('hidden', [...view.hidden].map((look) => D.looks[look].label).join('|'));
  if (view.search.trim()) parts.set('search', view.search.trim());
  if (main.zoom) parts.set('zoom', main.zoom.flat().map((z) => Number(z.toPrecision(12))).join(','));
  try { history.replaceState(null, '', `#${parts}`); } catch { /* a page without an address, as in a frame */ }
}
function recall() {
  if (!location.hash.includes('=')) return;
  const parts = new URLSearchParams(location.hash.slice(1)), find = (list, key, name) => list.findIndex((one) => one[key] === name);
  const take = (name, apply) => { if (parts.has(name)) apply(parts.get(name)); };
  for (const axis of ['x', 'y']) take(axis, (text) => { const k = find(D.settings, 'name', text); if (k >= 0) view[axis] = k; });
  take('show', (text) => { if (text === 'tau' && bases.size) view.show = text; });
  take('axes', (text) => { if (SCALES[text]) view.scale = text; });
  take('fit', (text) => { view.fit = Math.max(0, find(D.fits, 'label', text)); });
  take('bars', () => { view.bars = true; });
  take('search', (text) => { view.search = text; });
  take('hidden', (text) => { view.hidden = new Set(text.split('|').map((label) => find(D.looks, 'label', label)).filter((look) => look >= 0)); });
  take('zoom', (text) => { const z = text.split(',').map(Number); if (z.length === 4 && z.every(Number.isFinite) && z[0] < z[1] && z[2] < z[3]) main.zoom = [[z[0], z[1]], [z[2], z[3]]]; });
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type })), link = h('a', { href: url, download: name });
  document.body.append(link); link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
// The shown models as CSV; a name that a spreadsheet would take for a formula gets an apostrophe.
function asCsv() {
  const quote = (value) => { const text = value === null || Number.isNaN(value) ? '' : String(value); return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  const header = ['model', 'type', 'x', 'x_low', 'x_high', 'x_n', 'y', 'y_low', 'y_high', 'y_n', 'rho', 'tau', 'percentile', 'x_setting', 'y_setting', 'fit_on', 'axes'];
  const rows = view.rows.filter((p) => p.inside).map((p) => {
    withIntervals(p);
    const part = (value, ends, k) => [value, ends ? ends[0] : null, ends ? ends[1] : null, imagesOf(k, p.m) ?? null];
    return [safe(D.names[p.m]), D.looks[p.look].label, ...part(p.clean, p.xi, view.x), ...part(p.shifted, p.yi, view.y), rhoOf(p), tauOf(p), percentileOfModel(p),
      D.settings[view.x].name, D.settings[view.y].name, D.fits[view.fit].rule, view.scale];
  });
  return [header, ...rows].map((row) => row.map(quote).join(',')).join('\n') + '\n';
}

function showControls() {
  const values = { x: view.x, y: view.y, scale: view.scale, fit: view.fit, show: view.show, search: view.search };
  for (const [id, value] of Object.entries(values)) if (byId(id)) byId(id).value = String(value);
  byId('bars').checked = view.bars;
}
options(byId('x'), view.x);
options(byId('y'), view.y);
byId('fit').replaceChildren(...D.fits.map((one, i) => h('option', { value: i }, `${one.label} (${one.models.length})`)));
if (!bases.size) byId('show').closest('label').remove();
recall();
showControls();

const change = (id, apply) => { if (byId(id)) byId(id).addEventListener('change', (event) => { apply(event.target); main.zoom = null; draw(); }); };
change('x', (target) => { view.x = Number(target.value); });
change('y', (target) => {
  view.y = Number(target.value);
  const clean = D.settings[view.y].clean;
  if (clean !== undefined && clean !== null) { view.x = clean; byId('x').value = String(clean); }
});
change('scale', (target) => { view.scale = target.value; });
change('fit', (target) => { view.fit = Number(target.value); });
change('show', (target) => { view.show = target.value; });
byId('bars').addEventListener('change', (event) => { view.bars = event.target.checked; main.draw(); remember(); });
byId('search').addEventListener('input', (event) => { view.search = event.target.value; search(); });
const zooming = zoomable(main, () => { main.mark(main.found || [], null); remember(); });
const buttons = {
  'zoom-in': () => zooming.by(0.7), 'zoom-out': () => zooming.by(1 / 0.7), 'zoom-all': () => zooming.reset(),
  csv: () => save(`${D.settings[view.y].name}.csv`, 'text/csv', asCsv()), svg: () => save(`${D.settings[view.y].name}.svg`, 'image/svg+xml', main.svg()),
};
document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  if (button.dataset.look !== undefined) {
    const look = Number(button.dataset.look);
    if (!view.hidden.delete(look)) view.hidden.add(look);
    drawTypes(); draw();
    document.querySelector(`[data-look="${look}"]`).focus();
  } else if (button.dataset.order) {
    view.order = button.dataset.order;
    for (const other of document.querySelectorAll('[data-order]')) other.setAttribute('aria-pressed', String(other === button));
    drawTable();
  } else if (button.dataset.do) buttons[button.dataset.do]();
});
addEventListener('hashchange', () => { if (location.hash.includes('=')) { main.zoom = null; view.hidden = new Set(); recall(); showControls(); drawTypes(); draw(); } });
listen(main, describe);

function redraw() { drawTypes(); main.draw(); main.mark(main.found || [], null); if (typeof redraw2 === 'function') redraw2(); }
byId('theme').addEventListener('click', redraw);
dark.addEventListener('change', redraw);
addEventListener('resize', redraw);
root.classList.remove('plain');
drawTypes();
draw();
