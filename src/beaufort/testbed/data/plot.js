// A scatter plot on a canvas, with a second layer for the highlighted dots; it can also be drawn as SVG.
const MARGIN = { left: 58, right: 16, top: 14, bottom: 46 };
const PERCENTS = [0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 97, 98, 99, 99.5, 99.9];
// A canvas cannot resolve light-dark(); a hidden element can.
const probe = document.body.appendChild(h('i', { hidden: '' }));
function ink(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
const colorOf = (look) => (isDark() ? D.looks[look].dark : D.looks[look].color);

function roundTicks(low, high) {
  let step = 10 ** Math.floor(Math.log10((high - low) / 4));
  step *= [1, 2, 5, 10].find((one) => (high - low) / (one * step) <= 8);
  return Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, i) => (Math.ceil(low / step) + i) * step);
}

class Plot {
  constructor(base, over) { this.base = base; this.over = over; this.points = []; this.scale = 'linear'; this.zoom = null; }

  // Points have x, y, m (the model) and look; before and after draw below and above the dots.
  show({ points, scale, titles, unit, before, after }) {
    Object.assign(this, { points, scale, titles, unit, before, after });
    this.draw();
  }

  // Show a part of the figure: ranges of both axes on their scale, or null for all models.
  focus(zoom) { this.zoom = zoom; this.draw(); }

  draw() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(canvas.clientHeight * ratio);
      canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.width = this.base.clientWidth; this.height = this.base.clientHeight;
    const context = this.base.getContext('2d');
    context.clearRect(0, 0, this.width, this.height);
    if (!this.points.length) return this.empty(context);
    const { forward } = SCALES[this.scale];
    for (const p of this.points) { p.zx = forward(p.x); p.zy = forward(p.y); }
    const range = (axis) => {
      const finite = this.points.map((p) => p[axis]).filter(Number.isFinite), z = finite.length ? finite : [0];
      const low = Math.min(...z), high = Math.max(...z), room = 0.05 * Math.max(high - low, 1e-3);
      return [low - room, high + room];
    };
    [this.xr, this.yr] = this.zoom || [range('zx'), range('zy')];
    const inside = (z, [low, high]) => (Number.isFinite(z) ? z >= low && z <= high : !this.zoom);
    for (const p of this.points) {
      p.inside = inside(p.zx, this.xr) && inside(p.zy, this.yr);
      [p.px, p.py] = [this.px(p.x), this.py(p.y)];
    }
    this.paint(context);
  }

  paint(context) {
    this.frame(context);
    if (this.before) this.before(context, this);
    this.dots(context);
    if (this.after) this.after(context, this);
    for (const p of this.points) if (p.own && p.inside) this.star(context, p);
  }

  svg() {
    const pen = new SvgPen(this.width, this.height);
    this.paint(pen);
    return pen.text();
  }

  empty(context) {
    context.fillStyle = ink('--faint'); context.font = '14px system-ui'; context.textAlign = 'center';
    context.fillText('No model has both accuracies.', this.width / 2, this.height / 2);
  }

  zx(z) { return MARGIN.left + ((z - this.xr[0]) / (this.xr[1] - this.xr[0])) * (this.width - MARGIN.left - MARGIN.right); }
  zy(z) { return this.height - MARGIN.bottom - ((z - this.yr[0]) / (this.yr[1] - this.yr[0])) * (this.height - MARGIN.top - MARGIN.bottom); }
  // 0 and 100 %, which are infinite on logit axes, are drawn at the edge.
  held(v, [low, high]) {
    const z = SCALES[this.scale].forward(v);
    return Number.isFinite(z) ? z : z < 0 ? low : high;
  }

  px(v) { return this.zx(this.held(v, this.xr)); }
  py(v) { return this.zy(this.held(v, this.yr)); }
  clip(context) {
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, this.width - MARGIN.left - MARGIN.right, this.height - MARGIN.top - MARGIN.bottom);
    context.clip();
  }

  frame(context) {
    const [right, bottom] = [this.width - MARGIN.right, this.height - MARGIN.bottom];
    const inverse = SCALES[this.scale].inverse;
    const ticks = (range) => {
      const [low, high] = range.map(inverse);
      return this.scale === 'linear' ? roundTicks(low, high) : PERCENTS.filter((p) => p >= low && p <= high);
    };
    context.lineWidth = 1; context.strokeStyle = ink('--line'); context.fillStyle = ink('--faint');
    context.font = '12px system-ui, sans-serif';
    const text = (v) => String(Number(v.toPrecision(4))).replace('-', '−');
    let last = -Infinity;
    context.textAlign = 'center';
    for (const v of ticks(this.xr)) {
      const x = this.px(v);
      if (x - last < 34) continue;
      last = x;
      context.beginPath(); context.moveTo(x, MARGIN.top); context.lineTo(x, bottom); context.stroke();
      context.fillText(text(v), x, bottom + 17);
    }
    last = Infinity;
    context.textAlign = 'right';
    for (const v of ticks(this.yr)) {
      const y = this.py(v);
      if (last - y < 22) continue;
      last = y;
      context.beginPath(); context.moveTo(MARGIN.left, y); context.lineTo(right, y); context.stroke();
      context.fillText(text(v), MARGIN.left - 7, y + 4);
    }
    context.fillStyle = ink('--ink'); context.textAlign = 'center'; context.font = '13px system-ui, sans-serif';
    context.fillText(`${this.titles[0]} (${this.unit})`, (MARGIN.left + right) / 2, this.height - 9, right - MARGIN.left);
    context.save();
    context.translate(15, (MARGIN.top + bottom) / 2); context.rotate(-Math.PI / 2);
    context.fillText(`${this.titles[1]} (${this.unit})`, 0, 0, bottom - MARGIN.top);
    context.restore();
  }

  // Each dot is a copy of one small image: one path of a thousand circles is slow to fill.
  dots(context) {
    const radius = this.points.length > 600 ? 3 : 4, ratio = this.base.width / this.width, side = 2 * radius + 2;
    context.save();
    this.clip(context);
    const stamps = D.looks.map((_, look) => {
      const stamp = document.createElement('canvas'), pen = stamp.getContext('2d');
      stamp.width = Math.ceil(side * ratio) || 1; stamp.height = stamp.width;
      pen.scale(ratio, ratio); pen.globalAlpha = 0.82; pen.fillStyle = colorOf(look);
      pen.beginPath(); pen.arc(side / 2, side / 2, radius, 0, 7); pen.fill();
      return stamp;
    });
    const order = this.points.filter((p) => p.inside && !p.own).sort((a, b) => a.look - b.look);
    for (const p of order) {
      if (context.circle) context.circle(p.px, p.py, radius, colorOf(p.look));
      else context.drawImage(stamps[p.look], p.px - side / 2, p.py - side / 2, side, side);
    }
    context.restore();
  }

  star(context, p) {
    context.save(); context.beginPath();
    for (let i = 0; i < 10; i += 1) {
      const r = i % 2 ? 5.5 : 13, a = (Math.PI * i) / 5 - Math.PI / 2;
      context.lineTo(p.px + r * Math.cos(a), p.py + r * Math.sin(a));
    }
    context.closePath(); context.fillStyle = '#ffc400'; context.strokeStyle = '#111'; context.lineWidth = 3; context.lineJoin = 'round';
    context.stroke(); context.fill();
    const left = p.px > this.width / 2, name = D.names[p.m].length > 40 ? `${D.names[p.m].slice(0, 39)}…` : D.names[p.m];
    context.font = '600 14px system-ui, sans-serif'; context.textAlign = left ? 'right' : 'left';
    context.lineWidth = 4; context.strokeStyle = ink('--card'); context.fillStyle = ink('--ink');
    const at = [name, p.px + (left ? -18 : 18), p.py + 5, Math.max(40, (left ? p.px : this.width - p.px) - 24)];
    context.strokeText(...at); context.fillText(...at);
    context.restore();
  }

  near(x, y, reach = 14) {
    let best = null, least = reach ** 2;
    for (const p of this.points) {
      const d = p.inside ? (p.px - x) ** 2 + (p.py - y) ** 2 : Infinity;
      if (d < least || (d === least && p.own)) { best = p; least = d; }
    }
    return best;
  }

  // Draw rings around search results, and the intervals of the highlighted dot.
  mark(found, at) {
    const context = this.over.getContext('2d');
    context.clearRect(0, 0, this.width, this.height);
    context.strokeStyle = ink('--ink'); context.lineWidth = 1.6;
    for (const p of found) if (p.inside) { context.beginPath(); context.arc(this.px(p.x), this.py(p.y), 7, 0, 7); context.stroke(); }
    if (!at) return;
    for (const [low, high, across] of this.unit !== '%' ? [] : [[...(at.xi || []), true], [...(at.yi || []), false]]) {
      if (high === undefined || typeof high === 'boolean') continue;
      context.beginPath();
      if (across) { context.moveTo(this.px(low), this.py(at.y)); context.lineTo(this.px(high), this.py(at.y)); }
      else { context.moveTo(this.px(at.x), this.py(low)); context.lineTo(this.px(at.x), this.py(high)); }
      context.stroke();
    }
    context.beginPath(); context.arc(this.px(at.x), this.py(at.y), 6, 0, 7); context.stroke();
  }
}

// A pen for the drawing calls of a plot that makes SVG; text is set as text, so that names are never markup.
class SvgPen {
  constructor(width, height) {
    this.root = s('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, width, height, 'font-family': 'system-ui, sans-serif' },
      s('clipPath', { id: 'frame' }), s('rect', { width, height, fill: ink('--card') }));
    this.node = this.root;
    this.kept = [];
    Object.assign(this, { fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, font: '12px sans-serif', textAlign: 'left', dash: [], path: '' });
  }

  text() { return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(this.root)}\n`; }
  save() { this.kept.push([this.node, this.fillStyle, this.strokeStyle, this.lineWidth, this.font, this.textAlign, this.dash]); }
  restore() { [this.node, this.fillStyle, this.strokeStyle, this.lineWidth, this.font, this.textAlign, this.dash] = this.kept.pop(); }
  within(attributes) { const group = s('g', attributes); this.node.append(group); this.node = group; }
  translate(x, y) { this.within({ transform: `translate(${fixed(x, 2)} ${fixed(y, 2)})` }); }
  rotate(angle) { this.within({ transform: `rotate(${fixed((180 * angle) / Math.PI, 2)})` }); }
  rect(x, y, width, height) { this.box = { x, y, width, height }; }
  clip() { this.root.firstChild.replaceChildren(s('rect', this.box)); this.within({ 'clip-path': 'url(#frame)' }); }
  setLineDash(dash) { this.dash = dash; }
  beginPath() { this.path = ''; }
  moveTo(x, y) { this.path += `M${fixed(x, 2)} ${fixed(y, 2)}`; }
  lineTo(x, y) { this.path += `${this.path ? 'L' : 'M'}${fixed(x, 2)} ${fixed(y, 2)}`; }
  closePath() { this.path += 'Z'; }
  stroke() { this.node.append(s('path', { d: this.path, fill: 'none', stroke: this.strokeStyle, 'stroke-width': this.lineWidth, 'stroke-dasharray': this.dash.join(' ') || null, 'stroke-linejoin': 'round' })); }
  fill() { this.node.append(s('path', { d: this.path, fill: this.fillStyle })); }
  circle(cx, cy, r, fill) { this.node.append(s('circle', { cx: fixed(cx, 2), cy: fixed(cy, 2), r, fill, 'fill-opacity': 0.82 })); }
  strokeText(text, x, y) { this.write(text, x, y, { fill: 'none', stroke: this.strokeStyle, 'stroke-width': this.lineWidth }); }
  fillText(text, x, y) { this.write(text, x, y, { fill: this.fillStyle }); }
  write(text, x, y, look) {
    const anchor = { left: 'start', center: 'middle', right: 'end' }[this.textAlign], size = /(\d+)px/.exec(this.font)[1];
    this.node.append(s('text', { x: fixed(x, 2), y: fixed(y, 2), 'text-anchor': anchor, 'font-size': size, 'font-weight': this.font.startsWith('600') ? 600 : null, ...look }, text));
  }
}

function placeTip(canvas, x, y, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = canvas.getBoundingClientRect(), own = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(Math.max(8, box.left + x - own.width / 2), innerWidth - own.width - 8)}px`;
  const above = box.top + y - own.height - 14;
  tip.style.top = `${above < 8 ? box.top + y + 18 : above}px`;
}

// Highlight the dot near the pointer.
function listen(plot, describe) {
  const move = (event) => {
    const box = plot.base.getBoundingClientRect(), at = plot.near(event.clientX - box.left, event.clientY - box.top);
    if (at === plot.at) return;
    plot.at = at;
    const text = at ? describe(at) : '';
    plot.mark(plot.found || [], at);
    placeTip(plot.base, at ? at.px : 0, at ? at.py : 0, text);
  };
  plot.base.addEventListener('pointermove', move);
  plot.base.addEventListener('pointerdown', move);
  plot.base.addEventListener('pointerleave', () => { plot.at = null; plot.mark(plot.found || [], null); tip.hidden = true; });
}

// Zoom into a rectangle that is drawn with the mouse, or by a factor around the center or the pointer.
function zoomable(plot, changed) {
  let start = null;
  const place = (event) => { const box = plot.base.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const value = ([x, y]) => [
    plot.xr[0] + ((x - MARGIN.left) / (plot.width - MARGIN.left - MARGIN.right)) * (plot.xr[1] - plot.xr[0]),
    plot.yr[0] + ((plot.height - MARGIN.bottom - y) / (plot.height - MARGIN.top - MARGIN.bottom)) * (plot.yr[1] - plot.yr[0])];
  const set = (zoom) => { plot.focus(zoom); changed(); };
  plot.base.addEventListener('pointerdown', (event) => { if (event.pointerType === 'mouse' && event.button === 0) start = place(event); });
  addEventListener('pointermove', (event) => {
    if (!start) return;
    const [x, y] = place(event), context = plot.over.getContext('2d');
    plot.mark(plot.found || [], null);
    context.setLineDash([4, 3]); context.strokeRect(start[0], start[1], x - start[0], y - start[1]); context.setLineDash([]);
  });
  addEventListener('pointerup', (event) => {
    if (!start) return;
    const [first, second] = [value(start), value(place(event))], [x, y] = place(event), wide = Math.abs(x - start[0]) > 12 && Math.abs(y - start[1]) > 12;
    start = null;
    if (wide) set([0, 1].map((axis) => [Math.min(first[axis], second[axis]), Math.max(first[axis], second[axis])]));
    else plot.mark(plot.found || [], null);
  });
  plot.base.addEventListener('dblclick', () => set(null));
  plot.base.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    by(event.deltaY < 0 ? 0.8 : 1.25, value(place(event)));
  }, { passive: false });
  function by(factor, around = [plot.xr, plot.yr].map(([low, high]) => (low + high) / 2)) {
    set([plot.xr, plot.yr].map((range, axis) => range.map((end) => around[axis] + (end - around[axis]) * factor)));
  }
  return { by, reset: () => set(null) };
}
