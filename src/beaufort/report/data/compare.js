// Two models on the same images: differences, and which of them are significant.
// The data have each pair once, the later model minus the earlier; these are `first` minus `second`.
function differencesOf(first, second) {
  const found = D.pairs[`${Math.min(first, second)},${Math.max(first, second)}`];
  if (!found) return null;
  const turned = (t) => (first < second ? [-t[0], -t[2], -t[1]] : t);
  return { metrics: found.metrics.map(turned), corruptions: found.corruptions.map(turned) };
}

const significant = (t) => t[1] > 0 || t[2] < 0;

// A difference in words: its size, its direction, and its interval with the sign of the words.
const relation = (value) => (value < 0 ? 'lower' : 'higher');
const size = (value) => fixed(Math.abs(100 * value), 1);
function ends(t) {
  const [low, high] = t[0] < 0 ? [-t[2], -t[1]] : [t[1], t[2]];
  return `[${percent(low)}, ${percent(high)}]`;
}

// The better one of two models, if the difference is significant.
function better(t, lower, mine, other) {
  if (!significant(t)) return null;
  return (t[0] < 0) === lower ? mine : other;
}

function verdictCell(t, lower, mine, other) {
  if (t[1] === t[2]) return h('td', null, 'the same by definition');
  const name = better(t, lower, mine.name, other.name);
  return h('td', { class: name ? (name === mine.name ? 'for-one' : 'for-two') : 'faint' },
    name ? `${name} is better` : 'not significant');
}

function comparisonRow(title, c, a, b, difference, lower, mine, other) {
  const value = difference ? difference[0] : a[0] - b[0];
  const measured = h('td', { class: 'num', 'data-v': value }, `${size(value)} ${relation(value)} `,
    difference && h('small', null, ends(difference)));
  return h('tr', { 'data-c': c }, h('th', { scope: 'row' }, title), number(a), number(b), measured,
    difference && verdictCell(difference, lower, mine, other));
}

function comparisonTable(mine, other, found) {
  const heads = ['', mine.name, other.name, `${mine.name} compared with ${other.name}, points`, found && 'significance']
    .filter((text) => text !== null && text !== false);
  const rows = D.metrics.map((metric, i) => comparisonRow(metric.title, null, mine.metrics[i], other.metrics[i],
    found && found.metrics[i], metric.better === 'lower', mine, other));
  D.corruptions.forEach((name, c) => rows.push(comparisonRow(`error under ${name}`, c, mine.error[c], other.error[c],
    found && found.corruptions[c], true, mine, other)));
  return scroller('Comparison', h('table', { id: 'comparison-table' },
    h('thead', null, h('tr', null, heads.map((text, i) => h('th', { scope: 'col', class: i && i < 4 ? 'num' : null }, text)))),
    h('tbody', null, rows)));
}

// The comparison in two sentences.
function comparisonSentence(mine, other, found) {
  const first = D.metrics[0], title = /^[A-Z][a-z]/.test(first.title) ? first.title[0].toLowerCase() + first.title.slice(1) : first.title;
  const value = found ? found.metrics[0][0] : mine.metrics[0][0] - other.metrics[0][0];
  const head = `${mine.name} has ${size(value)} points ${relation(value)} ${title} than ${other.name}`;
  if (!found) {
    const apart = !mine.letters.some((letter) => other.letters.includes(letter));
    return `${head}; the difference is ${apart ? '' : 'not '}significant. With more than ${D.mostCompared} models, this page ` +
      'shows no intervals of differences; `beaufort compare` prints them.';
  }
  const name = better(found.metrics[0], first.better === 'lower', mine.name, other.name);
  const counts = found.corruptions.map((t) => better(t, true, mine.name, other.name));
  const count = (who) => counts.filter((one) => one === who).length;
  const same = found.metrics[0][1] === found.metrics[0][2];
  return `${same ? `Both have the same ${title} by definition` : `${head} ${ends(found.metrics[0])}: ${name ? `${name} is better` : 'not significant'}`}. ` +
    `Under ${counts.length} corruptions, ${mine.name} has significantly lower error ${count(mine.name)} times and ` +
    `${other.name} ${count(other.name)} times; ${count(null)} differences are not significant.`;
}

function drawComparison() {
  const holder = byId('comparison-figure');
  if (!holder) return;
  const mine = chosen(), other = compared();
  if (!other) {
    return holder.replaceChildren(h('p', { class: 'faint' }, 'Choose a model under “Compare with” at the top of the page.'));
  }
  const found = differencesOf(state.model, state.compare);
  holder.replaceChildren(h('p', { class: 'statement', id: 'comparison-sentence' }, comparisonSentence(mine, other, found)),
    comparisonTable(mine, other, found));
}
