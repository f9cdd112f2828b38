// Example images with predictions, and misclassified images.
const E = D.examples;
const image = (place, alt) => h('img', { src: E.images[place], alt, decoding: 'async' });

// The model whose predictions a strip shows: the selected one, or one of --examples.
function speaker(strip) {
  const mine = strip.by.indexOf(chosen().name);
  return mine >= 0 ? mine : strip.by.length ? Number(state.voice) : -1;
}

function verdict(prediction, label) {
  if (!prediction) return null;
  const confidence = `${percent(prediction[1], 0)}\u00a0%`;
  if (label === null) return [h('b', null, nameOf(prediction[0])), ` ${confidence}`];
  const correct = prediction[0] === label;
  return [h('span', { class: 'mark', role: 'img', 'aria-label': correct ? 'correct' : 'wrong' }, correct ? '✓' : '✗'), ' ',
    h('b', null, nameOf(prediction[0])), ` ${confidence}`];
}

function shot(strip, row, caption, alt) {
  const who = speaker(strip), prediction = who < 0 ? null : strip.predictions[who][row];
  const wrong = prediction && strip.label !== null && prediction[0] !== strip.label;
  return h('figure', { class: `shot${wrong ? ' wrong' : ''}` }, image(strip.images[row], alt),
    h('figcaption', null, caption && h('span', { class: 'level' }, caption), verdict(prediction, strip.label)));
}

function drawStrips() {
  const holder = byId('examples-figure');
  if (!holder || !E || !E.strips.length) return;
  const strip = E.strips[Math.min(state.strip, E.strips.length - 1)], first = D.clean ? 1 : 0;
  const what = strip.label === null ? strip.name : nameOf(strip.label), who = speaker(strip);
  const choices = E.strips.map((one, i) => h('button', { type: 'button', 'data-strip': i, 'aria-pressed': String(one === strip) },
    shot(one, 0, D.clean ? 'clean' : '', one.label === null ? one.name : nameOf(one.label))));
  const rows = D.corruptions.map((name, c) => h('div', { class: 'strip', 'data-c': c }, h('h3', null, name),
    h('div', { class: 'shots' }, Array.from({ length: levels() }, (_, i) =>
      shot(strip, first + c * levels() + i, D.severities.length ? severityName(i) : '', `${what}, ${name}, ${severityName(i)}`)))));
  const title = strip.label === null ? strip.name : `label: ${nameOf(strip.label)}`;
  const by = who < 0 ? 'no predictions' : `predictions of ${strip.by[who]} with their confidence` + (strip.label === null ? '' : '; ✓ correct, ✗ wrong');
  const voices = strip.by.length > 1 && !strip.by.includes(chosen().name) && h('p', { class: 'tools', role: 'group', 'aria-label': 'Model' },
    h('span', { class: 'faint' }, 'Predictions of'), strip.by.map((name, i) => h('button', { type: 'button', 'data-voice': i, 'aria-pressed': String(i === who) }, name)));
  holder.replaceChildren(voices || '', h('div', { class: 'choices', role: 'group', 'aria-label': 'Image' }, choices),
    h('p', { class: 'faint' }, `${title} · ${by}`), h('div', { class: `stripes${levels() > 1 ? '' : ' single'}` }, rows));
}

function mistake([, severity, place, , predicted, confidence, label]) {
  const words = `${nameOf(predicted)} (true\u00a0${nameOf(label)})`;
  const level = severity === null ? '' : `severity ${severity}, `;
  return h('figure', { class: 'shot' }, image(place, `${level}${words}`),
    h('figcaption', null, h('b', null, words), h('br'), `${level}confidence ${percent(confidence, 0)}\u00a0%`));
}

function drawMistakes() {
  const holder = byId('mistakes-figure');
  if (!holder || !E || !E.mistakes) return;
  const place = E.mistakesBy.indexOf(chosen().name);
  if (place < 0) {
    return holder.replaceChildren(h('p', { class: 'faint' },
      `This page has reached its maximum size with the images of ${E.mistakesBy.join(', ')}. Create a report with --model ${chosen().name} to see those of ${chosen().name}.`));
  }
  const found = E.mistakes[place];
  const rows = D.corruptions.map((name, c) => {
    const mine = found.filter((one) => one[0] === name);
    return h('div', { class: 'strip', 'data-c': c }, h('h3', null, name),
      mine.length ? h('div', { class: 'shots' }, mine.map(mistake)) : h('p', { class: 'faint' }, 'none'));
  });
  holder.replaceChildren(h('p', { class: 'faint' }, `Images that ${chosen().name} misclassifies`), h('div', { class: 'stripes wall' }, rows));
}
