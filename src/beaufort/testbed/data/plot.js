// A scatter plot on a canvas, with a second layer for the highlighted dots.
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
  constructor(base, over) { this.base = base; this.over = over; this.points = []; this.scale = 'linear'; }

  // Points have x, y, m (the model) and look; before and after draw below and above the dots.
  show({ points, scale, titles, unit, before, after }) {
    Object.assign(this, { points, scale, titles, unit, before, after });
    this.draw();
  }

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
    const range = (values) => {
      const finite = values.map(forward).filter(Number.isFinite), z = finite.length ? finite : [0];
      const low = Math.min(...z), high = Math.max(...z), room = 0.05 * Math.max(high - low, 1e-3);
      return [low - room, high + room];
    };
    this.xr = range(this.points.map((p) => p.x)); this.yr = range(this.points.map((p) => p.y));
    this.frame(context);
    if (this.before) this.before(context, this);
    this.dots(context);
    if (this.after) this.after(context, this);
    for (const p of this.points) if (p.own) this.star(context, p);
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
    const order = [...this.points].sort((a, b) => a.look - b.look);
    for (const p of order) if (!p.own) context.drawImage(stamps[p.look], this.px(p.x) - side / 2, this.py(p.y) - side / 2, side, side);
    context.restore();
  }

  star(context, p) {
    const [x, y] = [this.px(p.x), this.py(p.y)];
    context.save(); context.translate(x, y); context.beginPath();
    for (let i = 0; i < 10; i += 1) {
      const r = i % 2 ? 4.2 : 10, a = (Math.PI * i) / 5 - Math.PI / 2;
      context.lineTo(r * Math.cos(a), r * Math.sin(a));
    }
    context.closePath(); context.fillStyle = ink('--accent'); context.strokeStyle = ink('--card'); context.lineWidth = 2;
    context.stroke(); context.fill(); context.restore();
  }

  near(x, y, reach = 14) {
    let best = null, least = reach ** 2;
    for (const p of this.points) {
      const d = (this.px(p.x) - x) ** 2 + (this.py(p.y) - y) ** 2;
      if (d < least || (d === least && p.own)) { best = p; least = d; }
    }
    return best;
  }

  // Draw rings around search results, and the intervals of the highlighted dot.
  mark(found, at) {
    const context = this.over.getContext('2d');
    context.clearRect(0, 0, this.width, this.height);
    context.strokeStyle = ink('--ink'); context.lineWidth = 1.6;
    for (const p of found) { context.beginPath(); context.arc(this.px(p.x), this.py(p.y), 7, 0, 7); context.stroke(); }
    if (!at) return;
    for (const [low, high, across] of [[...(at.xi || []), true], [...(at.yi || []), false]]) {
      if (high === undefined || typeof high === 'boolean') continue;
      context.beginPath();
      if (across) { context.moveTo(this.px(low), this.py(at.y)); context.lineTo(this.px(high), this.py(at.y)); }
      else { context.moveTo(this.px(at.x), this.py(low)); context.lineTo(this.px(at.x), this.py(high)); }
      context.stroke();
    }
    context.beginPath(); context.arc(this.px(at.x), this.py(at.y), 6, 0, 7); context.stroke();
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
    placeTip(plot.base, at ? plot.px(at.x) : 0, at ? plot.py(at.y) : 0, text);
  };
  plot.base.addEventListener('pointermove', move);
  plot.base.addEventListener('pointerdown', move);
  plot.base.addEventListener('pointerleave', () => { plot.at = null; plot.mark(plot.found || [], null); tip.hidden = true; });
}
