// Table of correlations between synthetic and natural robustness, and the scatter plot of one of its cells.
const C = D.correlation;
const second = C ? new Plot(byId('plot2'), byId('over2')) : null;
const pair = C ? { row: C.row, column: C.column } : null;
const shade = (r) => `color-mix(in oklab, var(--card), var(${r < 0 ? '--second' : '--accent'}) ${(Math.abs(r) * 85).toFixed(0)}%)`;

const rhos = new Map();
function rhoColumn(y) {
  if (!rhos.has(y)) {
    const x = D.settings[y].clean, trend = fitTrend(x, y, 'logit'), first = column(x), values = column(y);
    rhos.set(y, values.map((v, m) => (trend && first[m] > 0 && first[m] < 100 ? v - trend.predict(first[m]) : NaN)));
  }
  return rhos.get(y);
}

function drawPair() {
  const [a, b] = [C.rows[pair.row], C.columns[pair.column]], x = rhoColumn(a), y = rhoColumn(b);
  const points = C.models.filter((m) => !STARS.has(m) && !Number.isNaN(x[m]) && !Number.isNaN(y[m])).map((m) => ({ m, x: x[m], y: y[m], look: lookOf(m) }));
  for (const m of STARS) if (!Number.isNaN(x[m]) && !Number.isNaN(y[m])) points.push({ m, x: x[m], y: y[m], look: lookOf(m), own: true });
  second.at = null;
  second.show({ points, scale: 'linear', unit: 'points', titles: [`ρ, ${D.settings[a].title}`, `ρ, ${D.settings[b].title}`],
    before: (context, plot) => {
      context.save(); plot.clip(context); context.setLineDash([5, 4]); context.strokeStyle = ink('--faint'); context.beginPath();
      context.moveTo(plot.px(0), 0); context.lineTo(plot.px(0), plot.height);
      context.moveTo(0, plot.py(0)); context.lineTo(plot.width, plot.py(0)); context.stroke(); context.restore();
    } });
  const [r, n] = C.cells[pair.row][pair.column];
  byId('pair-text').textContent = `${D.settings[a].title} and ${D.settings[b].title}: Pearson correlation ${points2(r)}, ${n} models that are not standard.`;
}

function choosePair(row, col) {
  Object.assign(pair, { row, column: col });
  for (const button of document.querySelectorAll('#cells button')) {
    button.setAttribute('aria-pressed', String(Number(button.dataset.row) === row && Number(button.dataset.column) === col));
  }
  drawPair();
}

function redraw2() { if (C) drawPair(); }
if (C) {
  byId('cells').replaceChildren(
    h('thead', null, h('tr', null, h('th'), C.columns.map((k) => h('th', { scope: 'col' }, D.settings[k].title)))),
    h('tbody', null, C.rows.map((k, row) => h('tr', null, h('th', { scope: 'row' }, D.settings[k].title),
      C.cells[row].map((cell, col) => cell === null ? h('td', null, '–') : h('td', { style: `background:${shade(cell[0])}` },
        h('button', { type: 'button', 'data-row': row, 'data-column': col, 'data-tip': `${D.settings[k].title}\n${D.settings[C.columns[col]].title}\nr = ${points2(cell[0])}, n = ${cell[1]}` },
          points2(cell[0]))))))));
  byId('cells').addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) choosePair(Number(button.dataset.row), Number(button.dataset.column));
  });
  listen(second, (p) => `${D.names[p.m]}\n${D.looks[p.look].label}\nρ horizontal ${points2(p.x)}, vertical ${points2(p.y)} points`);
  choosePair(pair.row, pair.column);
}
