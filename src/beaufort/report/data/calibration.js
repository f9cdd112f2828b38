// Calibration by severity.
const GROUP = (name) => (name === 'clean' ? 'clean' : name === 'corrupted' ? 'corrupted' : `severity ${name}`);
const tone = (name, i) => (name === 'clean' ? 0 : name === 'corrupted' ? 4 : Math.min(5, Number(name) || i));

function frame(title, note, svg, label) {
  return h('figure', { class: 'panel', role: 'group', 'aria-label': label },
    h('figcaption', null, title, h('span', null, note)), svg);
}
const side = { w: 300, h: 270, l: 34, r: 14, t: 12, b: 34 };
const px = (v) => side.l + v * (side.w - side.l - side.r);
const py = (v) => side.t + (1 - v) * (side.h - side.t - side.b);

function axes(xs, ys, xTitle, yTitle) {
  return [
    ys.map(([at, text]) => [s('path', { class: 'grid', d: `M${side.l} ${py(at)}H${side.w - side.r}` }),
      s('text', { x: side.l - 6, y: py(at) + 4, 'text-anchor': 'end' }, text)]),
    xs.map(([at, text]) => s('text', { x: px(at), y: side.h - side.b + 15, 'text-anchor': 'middle' }, text)),
    s('text', { x: px(0.5), y: side.h - 4, 'text-anchor': 'middle' }, xTitle),
    s('text', { x: 11, y: py(0.5), 'text-anchor': 'middle', transform: `rotate(-90 11 ${py(0.5)})` }, yTitle),
  ];
}
const FIFTHS = [0, 0.5, 1].map((v) => [v, percent(v, 0)]);

function reliability(groups) {
  const lines = groups.map(([name, one], i) => {
    const most = Math.max(...one.counts), points = [];
    one.counts.forEach((count, bin) => { if (count) points.push([one.binConfidence[bin], one.binAccuracy[bin], count]); });
    const k = tone(name, i);
    return [s('path', { class: `line${k}`, d: pathOf(points.map(([x, y]) => [px(x), py(y)])) }),
      points.map(([x, y, count]) => s('circle', { class: `spot${k}`, cx: px(x), cy: py(y), r: 1.2 + 4 * Math.sqrt(count / most),
        'data-tip': `${GROUP(name)}\nconfidence ${percent(x)} %, accuracy ${percent(y)}\u00a0%\n${count.toLocaleString('en')} predictions` }))];
  });
  const svg = s('svg', { viewBox: `0 0 ${side.w} ${side.h}`, 'aria-hidden': 'true' },
    axes(FIFTHS, FIFTHS, 'confidence, %', 'accuracy, %'),
    s('path', { class: 'dotted', d: `M${px(0)} ${py(0)}L${px(1)} ${py(1)}` }), lines);
  return frame('Reliability', 'below the line: overconfident', svg, 'Reliability diagram; the table below has its numbers');
}

function overSeverity(groups, series, top, yTitle) {
  const at = groups.map(([name]) => (name === 'clean' ? 0 : Number(name) || 1)); // true to severity
  const span = at.at(-1) - at[0];
  const x = (i) => (span ? 0.04 + (0.92 * (at[i] - at[0])) / span : 0.5);
  const xs = groups.map(([name], i) => [x(i), name === 'corrupted' ? 'corrupted' : name]);
  const ys = [0, 0.5, 1].map((v) => [v, percent(v * top, top < 0.1 ? 1 : 0)]);
  return s('svg', { viewBox: `0 0 ${side.w} ${side.h}`, 'aria-hidden': 'true' },
    axes(xs, ys, groups.some(([name]) => name === '1') ? 'severity' : '', yTitle), series(x, (v) => py(v / top)));
}

function eceChart(groups) {
  const most = Math.max(...groups.map(([, one]) => one.ece[2]));
  const top = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8].find((one) => one >= most * 1.05) || 1;
  const svg = overSeverity(groups, (x, y) => [
    s('path', { class: 'one', d: pathOf(groups.map(([, one], i) => [px(x(i)), y(one.ece[0])])) }),
    groups.map(([name, one], i) => {
      const at = px(x(i));
      return [s('path', { class: 'whisker', d: `M${at} ${y(one.ece[1])}V${y(one.ece[2])}M${at - 4} ${y(one.ece[1])}h8M${at - 4} ${y(one.ece[2])}h8` }),
        s('circle', { class: 'point1', cx: at, cy: y(one.ece[0]), r: 4.5, 'data-tip': `${GROUP(name)}\nECE ${estimate(one.ece)}\nuncorrected ${percent(one.raw)}\u00a0%; expected for a calibrated model ${percent(one.floor)}\u00a0%\n${images()}` })];
    })], top, 'ECE, %');
  return frame('Calibration error', 'lower is better', svg, 'Calibration error by severity; the table below has its numbers');
}

function gapChart(groups) {
  const svg = overSeverity(groups, (x, y) => {
    const sure = groups.map(([, one], i) => [px(x(i)), y(one.confidence[0])]);
    const right = groups.map(([, one], i) => [px(x(i)), y(one.accuracy[0])]);
    return [s('path', { class: 'area1', d: `${pathOf([...sure, ...[...right].reverse()])}Z` }),
      s('path', { class: 'two', d: pathOf(sure) }), s('path', { class: 'one', d: pathOf(right) }),
      sure.map(([cx, cy], i) => s('path', { class: 'point2', d: `M${cx} ${cy - 5}L${cx + 5} ${cy}L${cx} ${cy + 5}L${cx - 5} ${cy}Z`,
        'data-tip': `${GROUP(groups[i][0])}\nmean confidence ${estimate(groups[i][1].confidence)}\n${images()}` })),
      right.map(([cx, cy], i) => s('circle', { class: 'point1', cx, cy, r: 4.5,
        'data-tip': `${GROUP(groups[i][0])}\naccuracy ${estimate(groups[i][1].accuracy)}\n${images()}` }))];
  }, 1, '%');
  return frame('Confidence gap', '◆ confidence ● accuracy', svg, 'Confidence and accuracy by severity; the table below has its numbers');
}

function calibrationTable(groups) {
  const cell = (text) => h('td', { class: 'num' }, text);
  const nats = (t, digits) => (t ? h('td', { class: 'num' }, `${fixed(t[0], digits)} `, h('small', null, `[${fixed(t[1], digits)}, ${fixed(t[2], digits)}]`)) : cell('∞'));
  const heads = ['', 'ECE, %', 'uncorrected ECE, %', 'expected if calibrated, %', 'confidence, %', 'accuracy, %', 'NLL', 'Brier', 'entropy, nats'];
  return scroller('Calibration', h('table', null, h('caption', { class: 'faint', style: 'text-align:left;padding:.5rem .7rem' },
      `${chosen().name}; ${images()}, ${D.bins} bins of equal width`),
    h('thead', null, h('tr', null, heads.map((text) => h('th', { scope: 'col', class: text ? 'num' : null }, text)))),
    h('tbody', null, groups.map(([name, one]) => h('tr', null, h('th', { scope: 'row' }, GROUP(name)),
      number(one.ece), cell(percent(one.raw)), cell(percent(one.floor)), number(one.confidence), number(one.accuracy),
      nats(one.nll, 2), nats(one.brier, 3), nats(one.entropy, 2))))));
}

function drawCalibration() {
  if (!byId('calibration-figure')) return;
  const groups = Object.entries(chosen().calibration).sort(([a], [b]) => (a === 'clean' ? -1 : b === 'clean' ? 1 : Number(a) - Number(b)));
  const keys = h('div', { class: 'legend' }, groups.map(([name], i) => h('span', null,
    s('svg', { viewBox: '0 0 30 10', 'aria-hidden': 'true' }, s('path', { class: `line${tone(name, i)}`, d: 'M0 5H30' }),
      s('circle', { class: `spot${tone(name, i)}`, cx: 15, cy: 5, r: 3.5 })), GROUP(name))));
  byId('calibration-figure').replaceChildren(keys,
    h('div', { class: 'three' }, reliability(groups), eceChart(groups), gapChart(groups)), calibrationTable(groups));
}
