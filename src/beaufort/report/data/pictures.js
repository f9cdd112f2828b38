// Example pictures with answers, and mistakes.
const E = D.examples;
const picture = (place, alt) => h('img', { src: E.pictures[place], alt, decoding: 'async' });

// Whose answers a strip shows: those of the chosen model, or of one of those that were asked.
function speaker(strip) {
  const mine = strip.by.indexOf(chosen().name);
  return mine >= 0 ? mine : strip.by.length ? Number(state.voice) : -1;
}

function verdict(answer, truth) {
  if (!answer) return null;
  const sure = `${percent(answer[1], 0)}\u00a0%`;
  if (truth === null) return [h('b', null, nameOf(answer[0])), ` ${sure}`];
  const right = answer[0] === truth;
  return [h('span', { class: 'mark', role: 'img', 'aria-label': right ? 'right' : 'wrong' }, right ? '✓' : '✗'), ' ',
    h('b', null, nameOf(answer[0])), ` ${sure}`];
}

function shot(strip, row, caption, alt) {
  const who = speaker(strip), answer = who < 0 ? null : strip.answers[who][row];
  const wrong = answer && strip.truth !== null && answer[0] !== strip.truth;
  return h('figure', { class: `shot${wrong ? ' wrong' : ''}` }, picture(strip.pictures[row], alt),
    h('figcaption', null, caption && h('span', { class: 'level' }, caption), verdict(answer, strip.truth)));
}

function drawStrips() {
  const holder = byId('examples-figure');
  if (!holder || !E || !E.strips.length) return;
  const strip = E.strips[Math.min(state.strip, E.strips.length - 1)], first = D.clean ? 1 : 0;
  const what = strip.truth === null ? strip.name : nameOf(strip.truth), who = speaker(strip);
  const choices = E.strips.map((one, i) => h('button', { type: 'button', 'data-strip': i, 'aria-pressed': String(one === strip) },
    shot(one, 0, D.clean ? 'clean' : '', one.truth === null ? one.name : nameOf(one.truth))));
  const rows = D.corruptions.map((name, c) => h('div', { class: 'strip', 'data-c': c }, h('h3', null, name),
    h('div', { class: 'shots' }, Array.from({ length: levels() }, (_, i) =>
      shot(strip, first + c * levels() + i, D.severities.length ? severityName(i) : '', `${what}, ${name}, ${severityName(i)}`)))));
  const truth = strip.truth === null ? strip.name : `true class: ${nameOf(strip.truth)}`;
  const by = who < 0 ? 'no answers' : `answers of ${strip.by[who]}` + (strip.truth === null ? '' : '; ✓ right, ✗ wrong') + ', and how sure it was';
  const voices = strip.by.length > 1 && !strip.by.includes(chosen().name) && h('p', { class: 'tools', role: 'group', 'aria-label': 'Whose answers' },
    h('span', { class: 'faint' }, 'Answers of'), strip.by.map((name, i) => h('button', { type: 'button', 'data-voice': i, 'aria-pressed': String(i === who) }, name)));
  holder.replaceChildren(voices || '', h('div', { class: 'choices', role: 'group', 'aria-label': 'Which picture' }, choices),
    h('p', { class: 'faint' }, `${truth} · ${by}`), h('div', { class: `stripes${levels() > 1 ? '' : ' single'}` }, rows));
}

function mistake([, severity, place, clean, label, sure, truth]) {
  const words = clean === null ? `${nameOf(label)} (true\u00a0${nameOf(truth)})` : `${nameOf(clean)} → ${nameOf(label)} (true\u00a0${nameOf(truth)})`;
  const level = severity === null ? '' : `severity ${severity}, `;
  return h('figure', { class: 'shot' }, picture(place, `${level}${words}`),
    h('figcaption', null, h('b', null, words), h('br'), `${level}${percent(sure, 0)}\u00a0% sure`));
}

function drawMistakes() {
  const holder = byId('mistakes-figure');
  if (!holder || !E || !E.mistakes) return;
  const place = E.mistakesBy.indexOf(chosen().name);
  if (place < 0) {
    return holder.replaceChildren(h('p', { class: 'faint' },
      `The pictures of ${E.mistakesBy.join(', ')} fill this page; a report of ${chosen().name} alone (--model) shows its mistakes.`));
  }
  const found = E.mistakes[place];
  const rows = D.corruptions.map((name, c) => {
    const mine = found.filter((one) => one[0] === name);
    return h('div', { class: 'strip', 'data-c': c }, h('h3', null, name),
      mine.length ? h('div', { class: 'shots' }, mine.map(mistake)) : h('p', { class: 'faint' }, 'none'));
  });
  holder.replaceChildren(h('p', { class: 'faint' }, `Mistakes of ${chosen().name}`), h('div', { class: 'stripes wall' }, rows));
}
