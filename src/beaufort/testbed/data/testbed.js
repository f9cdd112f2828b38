// Controls of the page, and the figure and table that depend on them.
const main = new Plot(byId('plot'), byId('over'));
const view = { x: D.x, y: D.y, scale: D.scale, hidden: new Set(), search: '', order: 'high', trend: null, rows: [] };
const points2 = (v, digits = 2) => `${v < 0 ? '−' : '+'}${fixed(Math.abs(v), digits)}`;
const within = (t) => (t ? ` [${fixed(t[0], 2)}, ${fixed(t[1], 2)}]` : '');
const lookOf = (m) => D.look[m];
const STARS = new Set(D.stars);

function options(select, chosenOne) {
  const groups = new Map();
  D.settings.forEach((one, k) => { if (!groups.has(one.kind)) groups.set(one.kind, []); groups.get(one.kind).push(k); });
  select.replaceChildren(...[...groups].map(([kind, list]) => h('optgroup', { label: kind },
    list.map((k) => h('option', { value: k }, D.settings[k].title)))));
  select.value = String(chosenOne);
}

function models() {
  const first = column(view.x), second = column(view.y), found = [];
  D.names.forEach((name, m) => {
    if (Number.isNaN(first[m]) || Number.isNaN(second[m]) || view.hidden.has(lookOf(m))) return;
    found.push({ m, x: first[m], y: second[m], look: lookOf(m), own: STARS.has(m) });
  });
  return found;
}

function withIntervals(p) {
  if (p.xi === undefined) { p.xi = interval(p.x, imagesOf(view.x, p.m)); p.yi = interval(p.y, imagesOf(view.y, p.m)); }
  return p;
}

const placeOf = (p) => {
  const percentile = Number.isNaN(rhoOf(p)) ? null : percentileOf(view.trend, view, p);
  if (percentile === null) return '';
  const where = percentile > 97.5 ? 'above' : percentile < 2.5 ? 'below' : 'within';
  return `${fixed(Math.min(Math.max(percentile, 0.1), 99.9), 1)}, ${where}`;
};
const rhoOf = (p) => (view.trend && p.x > 0 && p.x < 100 ? p.y - view.trend.predict(p.x) : NaN);

function describe(p) {
  withIntervals(p);
  const rho = rhoOf(p);
  return `${D.names[p.m]}\n${D.looks[p.look].label}\n${D.settings[view.x].title}: ${fixed(p.x, 2)} %${within(p.xi)}\n` +
    `${D.settings[view.y].title}: ${fixed(p.y, 2)} %${within(p.yi)}` + (Number.isNaN(rho) ? '' : `\nρ = ${points2(rho)} points`) + (placeOf(p) ? `\npercentile among fitted models: ${placeOf(p)}` : '');
}

// Ranges of the transformed x-axis in which each line of the trend holds.
function spans(trend, plot) {
  if (!trend) return [];
  const pivot = trend.pivot === null ? null : SCALES[view.scale].forward(trend.pivot);
  const ranges = pivot === null ? [plot.xr] : [[plot.xr[0], Math.min(pivot, plot.xr[1])], [Math.max(pivot, plot.xr[0]), plot.xr[1]]];
  return trend.lines.map((line, i) => [line, ...ranges[i]]).filter(([, start, end]) => start < end);
}

function drawBand(context, plot) {
  context.save();
  plot.clip(context);
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
  context.restore();
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
  return `${names}. Trend on ${view.scale} axes, fitted on ${D.fitRule}: ${where.replaceAll('-', '−')}. Dotted lines contain 95 % of further models like the fitted ones.${few}`;
}

function draw() {
  view.trend = view.x === view.y ? null : fitTrend(view.x, view.y, view.scale);
  view.rows = models();
  main.show({ points: view.rows, scale: view.scale, unit: '%', before: drawBand, after: drawLine,
    titles: [D.settings[view.x].title, D.settings[view.y].title] });
  byId('fit-text').textContent = fitText();
  main.at = null;
  search();
}

function search() {
  const wanted = view.search.trim().toLowerCase();
  main.found = wanted ? view.rows.filter((p) => D.names[p.m].toLowerCase().includes(wanted)) : [];
  const exact = main.found.length === 1 ? main.found[0] : null;
  main.mark(main.found, exact && withIntervals(exact));
  byId('found').textContent = !wanted ? '' : exact ? describe(exact).replaceAll('\n', '; ')
    : main.found.length ? `${main.found.length} of ${view.rows.length} models` : `no match for “${wanted}” in ${view.rows.length} models`;
  drawTable();
}

const LONGEST = 60;
function drawTable() {
  const wanted = new Set(main.found.map((p) => p.m)), sign = view.order === 'high' ? -1 : 1;
  const rows = view.rows.map((p) => [p, rhoOf(p)]).filter(([p, rho]) => !Number.isNaN(rho) && (!view.search.trim() || wanted.has(p.m)));
  rows.sort((a, b) => sign * (a[1] - b[1]));
  byId('shown').textContent = rows.length > LONGEST ? `${LONGEST} of ${rows.length}; search to see more` : `${rows.length}`;
  const cell = (value, t) => h('td', { class: 'num' }, fixed(value, 2), h('small', null, within(t)));
  document.querySelector('#table thead').replaceChildren(h('tr', null, h('th', null, 'Model'), h('th', { class: 'num' }, 'ρ'), h('th', { class: 'num' }, 'Percentile'),
    h('th', { class: 'num' }, D.settings[view.x].title), h('th', { class: 'num' }, D.settings[view.y].title), h('th', null, 'Type')));
  document.querySelector('#table tbody').replaceChildren(...rows.slice(0, LONGEST).map(([p, rho]) => {
    withIntervals(p);
    return h('tr', { class: p.own ? 'chosen' : wanted.has(p.m) ? 'hit' : null }, h('th', { scope: 'row' }, D.names[p.m]),
      h('td', { class: 'num' }, points2(rho)), h('td', { class: 'num' }, placeOf(p)), cell(p.x, p.xi), cell(p.y, p.yi), h('td', null, D.looks[p.look].label));
  }));
}

function drawTypes() {
  byId('types').replaceChildren(...D.looks.map((look, i) => h('button', { type: 'button', 'data-look': i,
    'aria-pressed': String(!view.hidden.has(i)) }, h('i', { style: `background:${colorOf(i)}` }), `${look.label} `, h('small', null, look.count))));
}

options(byId('x'), view.x);
options(byId('y'), view.y);
byId('scale').value = view.scale;
byId('x').addEventListener('change', (event) => { view.x = Number(event.target.value); draw(); });
byId('y').addEventListener('change', (event) => {
  view.y = Number(event.target.value);
  const clean = D.settings[view.y].clean;
  if (clean !== undefined && clean !== null) { view.x = clean; byId('x').value = String(clean); }
  draw();
});
byId('scale').addEventListener('change', (event) => { view.scale = event.target.value; draw(); });
byId('search').addEventListener('input', (event) => { view.search = event.target.value; search(); });
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
  }
});
listen(main, describe);

function redraw() { drawTypes(); main.draw(); main.mark(main.found || [], null); if (typeof redraw2 === 'function') redraw2(); }
byId('theme').addEventListener('click', redraw);
dark.addEventListener('change', redraw);
addEventListener('resize', redraw);
root.classList.remove('plain');
drawTypes();
draw();
