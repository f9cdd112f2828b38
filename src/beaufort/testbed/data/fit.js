// Trends with bands, and exact intervals of accuracies, as beaufort.testbed computes them.
const clampPercent = (p) => Math.min(Math.max(p, 1e-6), 100 - 1e-6);

// The normal distribution: a Taylor series near 0 and a continued fraction in the tails; the quantile is Acklam's
// rational approximation with one step of Halley's method.
function normalBelow(z) {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI), size = Math.abs(z);
  if (size < 3.5) {
    let term = z, sum = z;
    for (let i = 1; i < 100 && Math.abs(term) > 1e-17 * Math.abs(sum); i += 1) { term *= (z * z) / (2 * i + 1); sum += term; }
    return 0.5 + sum * density;
  }
  let fraction = 0;
  for (let i = 60; i > 0; i -= 1) fraction = i / (size + fraction);
  const tail = density / (size + fraction);
  return z < 0 ? tail : 1 - tail;
}
const polynomial = (coefficients, x) => coefficients.reduce((sum, one) => sum * x + one, 0);
const TAIL = [[-7.784894002430293e-3, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783],
  [7.784695709041462e-3, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1]];
const CENTER = [[-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239],
  [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1]];
function normalQuantile(p) {
  if (!(p > 0 && p < 1)) return p === 0 ? -Infinity : p === 1 ? Infinity : NaN;
  const least = Math.min(p, 1 - p), q = least < 0.02425 ? Math.sqrt(-2 * Math.log(least)) : p - 0.5;
  let z = least < 0.02425 ? (polynomial(TAIL[0], q) / polynomial(TAIL[1], q)) * (p < 0.5 ? 1 : -1)
    : (q * polynomial(CENTER[0], q * q)) / polynomial(CENTER[1], q * q);
  const step = (normalBelow(z) - p) * Math.sqrt(2 * Math.PI) * Math.exp((z * z) / 2);
  z -= step / (1 + (z * step) / 2);
  return z;
}
const SCALES = {
  logit: { forward: (p) => Math.log(p / (100 - p)), inverse: (z) => 100 / (1 + Math.exp(-z)) },
  probit: { forward: (p) => normalQuantile(p / 100), inverse: (z) => 100 * normalBelow(z) },
  linear: { forward: (p) => p, inverse: (z) => z },
};

// Accuracies of a setting in percent, NaN where missing; means of settings are computed when first used.
const columns = new Map();
function column(k) {
  if (!columns.has(k)) {
    const setting = D.settings[k];
    const values = setting.members
      ? D.names.map((_, m) => setting.members.reduce((sum, one) => sum + column(one)[m], 0) / setting.members.length)
      : D.values[k].map((v) => (v === null ? NaN : v / 100000));
    columns.set(k, values);
  }
  return columns.get(k);
}
const imagesOf = (k, m) => {
  const setting = D.settings[k];
  if (D.images[m]) return D.images[m][k] ?? null;
  return setting.few !== undefined && D.few[setting.few].includes(m) ? setting.reduced : setting.n;
};

function leastSquares(points) {
  const n = points.length;
  if (n < 3) return null;
  let mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (const [x, y] of points) { mx += x / n; my += y / n; }
  for (const [x, y] of points) { xx += (x - mx) ** 2; xy += (x - mx) * (y - my); yy += (y - my) ** 2; }
  if (xx < 1e-12 || yy < 1e-12) return null;
  return { slope: xy / xx, intercept: my - (xy / xx) * mx, r2: xy ** 2 / (xx * yy), n, points };
}

// A trend of one line, or of two that meet at the model used to filter the images; cached with its resamples.
const trends = new Map();
function fitTrend(x, y, scale, fit = 0) {
  const key = `${x} ${y} ${scale} ${fit}`;
  if (!trends.has(key)) trends.set(key, makeTrend(x, y, scale, D.fits[fit].models));
  return trends.get(key);
}
function makeTrend(x, y, scale, models) {
  const { forward, inverse } = SCALES[scale], first = column(x), second = column(y);
  const fitted = [];
  for (const m of models) {
    const point = [forward(first[m]), forward(second[m])];
    if (Number.isFinite(point[0]) && Number.isFinite(point[1])) fitted.push([...point, first[m], m]);
  }
  const pivot = D.settings[y].clean === x ? D.settings[y].pivot ?? null : null;
  const part = (keep) => leastSquares(fitted.filter(([, , p, m]) => keep(p) && m !== D.settings[y].filter && (pivot === null || second[m] > 0)));
  const lines = pivot === null ? [part(() => true)] : [part((p) => p <= pivot), part((p) => p > pivot)];
  if (lines.some((line) => !line)) return null;
  const lineAt = (p) => lines[pivot === null || p <= pivot ? 0 : 1];
  const predict = (p) => { const line = lineAt(p); return inverse(line.slope * forward(clampPercent(p)) + line.intercept); };
  return { lines, pivot, scale, lineAt, predict };
}

// The Mersenne Twister, and numbers below n from it as NumPy's legacy generator makes them: the library's draws.
function placesBelow(n, seed) {
  const state = new Uint32Array(624), mask = 2 ** Math.ceil(Math.log2(n)) - 1;
  state[0] = seed;
  for (let i = 1; i < 624; i += 1) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let at = 624;
  const word = () => {
    if (at === 624) {
      for (let i = 0; i < 624; i += 1) {
        const y = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let y = state[at];
    at += 1;
    y ^= y >>> 11; y ^= (y << 7) & 0x9d2c5680; y ^= (y << 15) & 0xefc60000;
    return y ^ (y >>> 18);
  };
  return () => {
    let value = word() & mask;
    while (value >= n) value = word() & mask;
    return value;
  };
}

// Models of each resample, the same for all lines through equally many models.
const drawnPlaces = new Map();
function places(n, times) {
  if (!drawnPlaces.has(n)) {
    const next = placesBelow(n, D.seed);
    drawnPlaces.set(n, Uint32Array.from({ length: n * times }, next));
  }
  return drawnPlaces.get(n);
}

// Slopes and intercepts of lines through models drawn with replacement.
function resample(line, times = 1000) {
  if (line.drawn) return line.drawn;
  const n = line.points.length, all = places(n, times), drawn = [];
  const xs = Float64Array.from(line.points, (p) => p[0]), ys = Float64Array.from(line.points, (p) => p[1]);
  for (let b = 0; b < times; b += 1) {
    let sx = 0, sy = 0, xx = 0, xy = 0;
    for (let i = b * n; i < (b + 1) * n; i += 1) {
      const x = xs[all[i]], y = ys[all[i]];
      sx += x; sy += y; xx += x * x; xy += x * y;
    }
    const spread = xx - (sx * sx) / n;
    const slope = spread > 1e-9 ? (xy - (sx * sy) / n) / spread : line.slope;
    drawn.push([slope, sy / n - slope * (sx / n)]);
  }
  line.drawn = drawn;
  return drawn;
}
const ends = (values) => {
  const sorted = Float64Array.from(values).sort(), last = sorted.length - 1;
  return [sorted[Math.floor(0.025 * last)], sorted[Math.ceil(0.975 * last)]];
};
const bandAt = (line, z) => ends(resample(line).map(([slope, intercept]) => slope * z + intercept));

// Clopper and Pearson's interval, by the incomplete beta function.
function logGamma(x) {
  const c = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 1.208650973866179e-3, -5.395239384953e-6];
  const t = x + 5.5 - (x + 0.5) * Math.log(x + 5.5);
  return -t + Math.log((2.5066282746310005 * c.reduce((sum, one, i) => sum + one / (x + 1 + i), 1.000000000190015)) / x);
}
function incompleteBeta(a, b, x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  let c = 1, d = 1 / (1 - ((a + b) * x) / (a + 1)), result = d;
  for (let m = 1; m < 1500; m += 1) {
    const before = result;
    for (const term of [(m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)), (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))]) {
      d = 1 / (1 + term * d); c = 1 + term / c; result *= d * c;
    }
    if (Math.abs(result - before) < 1e-12 * Math.abs(result)) break;
  }
  return (Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) * result) / a;
}
// Student's t-distribution: a probability, and the quantile that leaves 2.5 % above it.
const studentBelow = (t, freedom) => {
  const tail = incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
};
function studentQuantile(freedom) {
  let low = 0, high = 20;
  for (let i = 0; i < 50; i += 1) {
    const middle = (low + high) / 2;
    if (studentBelow(middle, freedom) < 0.975) low = middle; else high = middle;
  }
  return high;
}
// Standard deviation of a further model from a line, at a value of the transformed x-axis.
function forecastError(line, z) {
  if (!line.scatter) {
    const mean = line.points.reduce((sum, p) => sum + p[0], 0) / line.n, freedom = line.n - 2;
    const squares = line.points.reduce((sum, p) => sum + (p[1] - line.slope * p[0] - line.intercept) ** 2, 0);
    const spread = line.points.reduce((sum, p) => sum + (p[0] - mean) ** 2, 0);
    line.scatter = { mean, freedom, spread, variance: squares / freedom, quantile: studentQuantile(freedom) };
  }
  const { mean, spread, variance } = line.scatter;
  return Math.sqrt(variance * (1 + 1 / line.n + (z - mean) ** 2 / spread));
}
const scatterAt = (line, z) => {
  const width = forecastError(line, z) * line.scatter.quantile, y = line.slope * z + line.intercept;
  return [y - width, y + width];
};
// Percentage of models like the fitted ones with a lower ρ; null if the number of images of the own model is unknown.
function percentileOf(trend, view, p) {
  const { forward } = SCALES[trend.scale], line = trend.lineAt(p.x), z = forward(clampPercent(p.x)), expected = trend.predict(p.x);
  const noise = (k) => {
    const n = imagesOf(k, p.m), reference = D.settings[k].n;
    if (D.images[p.m] && !n) return NaN;
    return n ? Math.max(0, 1 / n - (reference ? 1 / reference : 0)) : 0;
  };
  const xNoise = noise(view.x), yNoise = noise(view.y), step = 1e-3, x = Math.min(Math.max(p.x, 0.01), 99.99);
  const at = (q) => SCALES[trend.scale].inverse(line.slope * forward(q) + line.intercept);
  const steep = (at(x + step) - at(x - step)) / (2 * step), inner = Math.min(Math.max(expected, 0.01), 99.99);
  const stretch = (forward(inner + step) - forward(inner - step)) / (2 * step);
  const more = expected * (100 - expected) * yNoise + steep ** 2 * x * (100 - x) * xNoise;
  const error = Math.sqrt(forecastError(line, z) ** 2 + more * stretch ** 2);
  const half = yNoise > 0 ? 50 / imagesOf(view.y, p.m) : 0, rho = p.y - expected;
  if (Number.isNaN(error)) return null;
  if (Math.abs(rho) <= half) return 50;
  const off = forward(expected + Math.sign(rho) * (Math.abs(rho) - half)) - (line.slope * z + line.intercept);
  return Number.isFinite(off) ? 100 * studentBelow(off / error, line.scatter.freedom) : off > 0 ? 100 : 0;
}
// Newton's method, kept inside a bracket.
function betaQuantile(probability, a, b) {
  let low = 0, high = 1, x = a / (a + b);
  const front = logGamma(a + b) - logGamma(a) - logGamma(b);
  for (let i = 0; i < 60; i += 1) {
    const excess = incompleteBeta(a, b, x) - probability;
    if (excess < 0) low = x; else high = x;
    const step = excess / Math.exp(front + (a - 1) * Math.log(x) + (b - 1) * Math.log1p(-x));
    const nearer = x - step > low && x - step < high ? x - step : (low + high) / 2;
    if (Math.abs(nearer - x) < 1e-9) return nearer;
    x = nearer;
  }
  return x;
}
const intervals = new Map();
function interval(percentage, n, level = 0.995) {
  if (!n || Number.isNaN(percentage)) return null;
  const key = `${percentage} ${n}`;
  if (!intervals.has(key)) {
    const k = Math.min((percentage * n) / 100, n), tail = (1 - level) / 2;
    intervals.set(key, [k <= 0 ? 0 : 100 * betaQuantile(tail, k, n - k + 1), k >= n ? 100 : 100 * betaQuantile(1 - tail, k + 1, n - k)]);
  }
  return intervals.get(key);
}
