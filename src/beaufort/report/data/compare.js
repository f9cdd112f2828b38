// Two models side by side: differences, and what they decide.
// The data have each pair once, the later model less the earlier; the other way around signs and ends change places.
function differencesOf(first, second) {
  const found = D.pairs[`${Math.min(first, second)},${Math.max(first, second)}`];
  if (!found) return null;
  const turned = (t) => (first < second ? t : [-t[0], -t[2], -t[1]]);
  return { metrics: found.metrics.map(turned), corruptions: found.corruptions.map(turned) };
}

const points = (value) => `${value < 0 ? '−' : '+'}${fixed(Math.abs(100 * value), 1)}`;
const decidedBy = (t) => (t[1] > 0 ? 1 : t[2] < 0 ? -1 : 0);

// Which of the two is better, if that is decided.
function better(t, lower, mine, other) {
  const sign = decidedBy(t);
  if (!sign) return null;
  return (sign > 0) === lower ? mine : other; // the difference is the other less mine
}

function verdictCell(t, lower, mine, other) {
  if (t[1] === t[2]) return h('td', { 'data-v': 0 }, 'the same by definition');
  const name = better(t, lower, mine.name, other.name);
  return h('td', { class: name ? (name === mine.name ? 'for-one' : 'for-two') : 'faint', 'data-v': decidedBy(t) },
    name ? `${name} is better` : 'not decided');
}

function comparisonRow(title, c, a, b, difference, lower, mine, other) {
  const measured = h('td', { class: 'num', 'data-v': b[0] - a[0] }, difference ? [`${points(difference[0])} `,
    h('small', null, `[${points(difference[1])}, ${points(difference[2])}]`)] : points(b[0] - a[0]));
  return h('tr', { 'data-c': c }, h('th', { scope: 'row' }, title), number(a), number(b), measured,
    difference && verdictCell(difference, lower, mine, other));
}

function comparisonTable(mine, other, found) {
  const heads = ['', mine.name, other.name, 'difference, in points', found && 'decided'].filter((text) => text !== null && text !== false);
  const rows = D.metrics.map((metric, i) => comparisonRow(metric.title, null, mine.metrics[i], other.metrics[i],
    found && found.metrics[i], metric.better === 'lower', mine, other));
  D.corruptions.forEach((name, c) => rows.push(comparisonRow(`errors under ${name}`, c, mine.error[c], other.error[c],
    found && found.corruptions[c], true, mine, other)));
  return scroller('Comparison', h('table', { id: 'comparison-table' },
    h('thead', null, h('tr', null, heads.map((text, i) => h('th', { scope: 'col', class: i && i < 4 ? 'num' : null }, text)))),
    h('tbody', null, rows)));
}

// What the comparison says, in one sentence.
function comparisonSentence(mine, other, found) {
  const first = D.metrics[0];
  if (!found) {
    const apart = !mine.letters.some((letter) => other.letters.includes(letter));
    return `${first.title}: ${apart ? `${mine.name} and ${other.name} are told apart` : `which of the two is better is not decided`}. ` +
      `With more than ${D.mostCompared} models this page shows differences as measured; \`beaufort compare\` of these two decides them.`;
  }
  const name = better(found.metrics[0], first.better === 'lower', mine.name, other.name);
  const kinds = found.corruptions.map((t) => better(t, true, mine.name, other.name));
  const count = (who) => kinds.filter((one) => one === who).length;
  const open = count(null);
  const head = name ? `${first.title}: ${name} is better, by more than chance.` : `${first.title}: which of the two is better is not decided with these images.`;
  return `${head} Of ${kinds.length} kinds of damage, ${mine.name} is surely better under ${count(mine.name)}, ` +
    `${other.name} under ${count(other.name)}; ${open} ${open === 1 ? 'is' : 'are'} not decided.`;
}

function drawComparison() {
  const holder = byId('comparison-figure');
  if (!holder) return;
  const mine = chosen(), other = compared();
  if (!other) {
    return holder.replaceChildren(h('p', { class: 'faint' }, 'Choose a model under “Compare with” at the top.'));
  }
  const found = differencesOf(state.model, state.compare);
  holder.replaceChildren(h('p', { class: 'said', id: 'comparison-said' }, comparisonSentence(mine, other, found)),
    comparisonTable(mine, other, found));
}
