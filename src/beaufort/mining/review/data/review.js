// Keyboard shortcuts; every key activates a button or choice of the page.
htmx.config.allowEval = false;
htmx.config.includeIndicatorStyles = false;
htmx.config.historyEnabled = false;
document.documentElement.classList.remove('plain');

const byId = (id) => document.getElementById(id);
const questions = () => [...document.querySelectorAll('#vote fieldset')];
const answer = (fieldset) => fieldset.querySelector('input:checked');
const open = () => questions().find((fieldset) => !answer(fieldset));

function mark() {
  const current = open();
  for (const fieldset of questions()) fieldset.classList.toggle('current', fieldset === current);
}
function submitIfComplete() {
  mark();
  if (questions().length && !open()) byId('vote').requestSubmit(byId('save'));
}
function choose(value) {
  const current = open();
  if (!current) return submitIfComplete();
  current.querySelector(`input[value=${value}]`).checked = true;
  submitIfComplete();
}
function back() {
  const last = questions().filter(answer).pop();
  if (last) answer(last).checked = false;
  mark();
}
function zoom() {
  const image = byId('image');
  if (image) image.classList.toggle('zoomed');
}
function help() {
  const box = byId('help');
  if (box) box.open = !box.open;
}
const press = (id) => { const button = byId(id); if (button) button.click(); };
const KEYS = {
  y: () => choose('yes'), n: () => choose('no'), Backspace: back, ArrowLeft: back, s: () => press('skip'), u: () => press('undo'),
  c: () => { const box = byId('comment'); if (box) box.focus(); }, z: zoom, '?': help,
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches('textarea')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
document.addEventListener('change', (event) => { if (event.target.matches('#vote input[type=radio]')) submitIfComplete(); });
document.addEventListener('click', (event) => { if (event.target.closest('#zoom')) zoom(); });

// A vote is saved when the next card appears; until then, errors are shown on the page.
function showProblem(text) {
  const box = byId('problem');
  if (!box) return;
  box.textContent = text;
  box.hidden = false;
}
document.addEventListener('htmx:sendError', () => showProblem('Not saved: no response from the server. Press Save to try again.'));
document.addEventListener('htmx:responseError', (event) => {
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, 'text/html');
  const message = page.getElementById('rejected');
  showProblem(message ? message.textContent : 'Not saved: the server rejected the vote. Reload the page.');
});
// An image that cannot be displayed can only be skipped.
function withoutImage() {
  for (const fieldset of questions()) fieldset.remove();
  if (byId('save')) byId('save').remove();
  showProblem('The image cannot be displayed. Skip it, and contact the person who sent you the link.');
}
document.addEventListener('error', (event) => { if (event.target.matches('#image img')) withoutImage(); }, true);
const first = document.querySelector('#image img');
if (first && first.complete && !first.naturalWidth) withoutImage();
document.addEventListener('htmx:afterSwap', mark);
mark();
