// Severity curves, and bars of errors.
const W = 180, H = 120, LEFT = 20, RIGHT = 8, TOP = 8, BOTTOM = 16;
// Position of a severity on the axis; clean images are 0.
const xAt = (i) => {
  const levels = ticks(), first = levels[0], last = levels.at(-1);
  return LEFT + ((levels[i] - first) * (W - LEFT - RIGHT)) / Math.max(last - first, 1);
};
const yAt = (fraction) => TOP + (1 - fraction) * (H - TOP - BOTTOM);
const pathOf = (points) => 'M' + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L');

// Points of a curve: clean images first, if the suite has them.
const curveOf = (model, row) => (D.clean ? [model.clean, ...row] : row);
const ticks = () => (D.clean ? [0, ...D.severities] : D.severities);

function legend(entries) {
  const icons = {
    one: [s('path', { class: 'one', d: 'M0 5H30' }), s('circle', { class: 'point1', cx: 15, cy: 5, r: 4 })],
    two: [s('path', { class: 'two', d: 'M0 5H30' }), s('path', { class: 'point2', d: 'M15 0L20 5L15 10L10 5Z' })],
    ghost: s('path', { class: 'ghost', d: 'M0 5H30' }), dotted: s('path', { class: 'dotted', d: 'M0 5H30' }),
  };
  return h('div', { class: 'legend' }, entries.filter(Boolean).map(([kind, text]) =>
    h('span', null, s('svg', { viewBox: '0 0 30 10', 'aria-hidden': 'true' }, icons[kind]), text)));
}

function panel(title, c, rowOf, baseline) {
  const model = chosen(), other = compared(), mine = curveOf(model, rowOf(model)), count = mine.length;
  const at = (row) => row.map((t, i) => [xAt(i), yAt(t[0])]);
  const others = D.models.filter((one) => one !== model && one !== other);
  const band = [...mine.map((t, i) => [xAt(i), yAt(t[2])]),
    ...mine.map((t, i) => [xAt(i), yAt(t[1])]).reverse()];
  const second = other && curveOf(other, rowOf(other));
  const names = ticks().map((level) => (level === 0 ? 'clean' : `severity ${level}`));
  const text = `${title}${second ? `, then ${other.name}` : ''}\n` + mine.map((t, i) => `${names[i]}: ${estimate(t)}` +
    (second ? `  |  ${estimate(second[i])}` : '')).join('\n') + `\n${images()}`;
  const svg = s('svg', { viewBox: `0 0 ${W} ${H}`, 'aria-hidden': 'true' },
    [0, 0.5, 1].map((y) => [s('path', { class: 'grid', d: `M${LEFT} ${yAt(y)}H${W - RIGHT}` }),
      s('text', { x: LEFT - 4, y: yAt(y) + 3, 'text-anchor': 'end' }, percent(y, 0))]),
    ticks().map((level, i) => s('text', { x: xAt(i), y: H - 3, 'text-anchor': 'middle' }, String(level))),
    others.length && s('path', { class: 'ghost', d: others.map((one) => pathOf(at(curveOf(one, rowOf(one))))).join('') }),
    baseline && s('path', { class: 'dotted', d: pathOf(baseline.map((e, i) => [xAt(i + (D.clean ? 1 : 0)), yAt(1 - e)])) }),
    s('path', { class: 'area1', d: `${pathOf(band)}Z` }),
    second && [s('path', { class: 'two', d: pathOf(at(second)) }),
      at(second).map(([x, y]) => s('path', { class: 'point2', d: `M${x} ${y - 3.4}L${x + 3.4} ${y}L${x} ${y + 3.4}L${x - 3.4} ${y}Z` }))],
    s('path', { class: 'one', d: pathOf(at(mine)) }),
    at(mine).map(([x, y]) => s('circle', { class: 'point1', cx: x, cy: y, r: 2.6 })));
  const last = mine[count - 1];
  return h('figure', { class: `panel${c === null ? ' mean' : ''}`, 'data-c': c, 'data-tip': text, tabindex: '0', role: 'img', 'aria-label': text },
    h('figcaption', null, title, h('span', null, `${percent(last[0], 0)} % at ${D.severities.at(-1)}`)), svg);
}

function drawCurves() {
  const holder = byId('curves-figure');
  if (!holder) return;
  const other = compared(), rows = D.baselineErrors;
  const meanRow = rows.length ? D.severities.map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length) : null;
  const panels = [panel('mean of all', null, (model) => model.curve, meanRow)];
  D.corruptions.forEach((name, c) => panels.push(panel(name, c, (model) => accuracies(model, c), rows[c])));
  holder.replaceChildren(legend([['one', chosen().name], other && ['two', other.name],
    D.models.length > (other ? 2 : 1) && ['ghost', 'other models'], rows.length && ['dotted', D.baseline]]), ...panels);
}

function bar(title, c, mine, second, top, base) {
  const width = (value) => `${(100 * value) / top}%`;
  const text = `${title}\n${estimate(mine)}` + (second ? `\n${compared().name}: ${estimate(second)}` : '') + `\n${images()}`;
  return h('div', { class: `bar${c === null ? ' total' : ''}`, 'data-c': c, 'data-tip': text, tabindex: '0', role: 'listitem', 'aria-label': text },
    h('span', null, title),
    h('span', { class: 'track', 'aria-hidden': 'true' },
      h('i', { class: `fill${base && mine[0] > 1 ? ' over' : ''}`, style: `width:${width(mine[0])}` }),
      base && h('i', { class: 'at', style: `left:${width(1)}` }),
      h('i', { class: 'range', style: `left:${width(mine[1])};width:${width(mine[2] - mine[1])}` }),
      second && h('i', { class: 'other', style: `left:${width(second[0])}` })),
    h('span', { class: 'value' }, `${percent(mine[0])} `, h('small', null, bracket(mine))));
}

// Round numbers up to the end of the scale, and 1 if there is a baseline.
function axisMarks(top, base) {
  const step = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100].find((one) => top / one <= 5) || top;
  const round = Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
  if (!base) return round;
  return [...round.filter((v) => v === 0 ? top < 4 : Math.abs(v - 1) > 0.16 * top), 1].sort((a, b) => a - b);
}

function drawBars() {
  if (!byId('bars-figure')) return;
  const model = chosen(), other = compared(), base = model.ce.length > 0;
  const rowsOf = (one) => (base ? one.ce : one.error);
  const all = D.models.flatMap((one) => rowsOf(one).map((t) => t[2]));
  const top = base ? Math.max(1.1, ...all) * 1.02 : 1;
  const order = D.corruptions.map((_, c) => c);
  if (state.order === 'worst') order.sort((a, b) => rowsOf(model)[b][0] - rowsOf(model)[a][0]);
  const rows = order.map((c) => bar(D.corruptions[c], c, rowsOf(model)[c], other && rowsOf(other)[c], top, base));
  const mce = D.metrics.findIndex((one) => one.name === 'mce');
  if (base && mce >= 0) rows.push(bar('mean (mCE)', null, model.metrics[mce], other && other.metrics[mce], top, base));
  const entries = [['one', model.name], other && ['two', other.name]];
  const marks = axisMarks(top, base).map((v) => h('i', { style: `left:${(100 * v) / top}%;transform:translateX(-${(100 * v) / top}%)` },
    base && v === 1 ? `${D.baseline} 100 %` : `${percent(v, 0)}${v ? ' %' : ''}`));
  const axis = h('div', { class: 'bar axis', 'aria-hidden': 'true' }, h('span'), h('span', { class: 'track' }, marks), h('span'));
  byId('bars-figure').replaceChildren(D.models.length > 1 ? legend(entries) : '', axis, h('div', { class: 'bars', role: 'list' }, rows));
}
