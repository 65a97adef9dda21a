'use strict';
// Fetches the page again every two seconds, exchanges its numbers, and draws what they were.
(() => {
  const PERIOD = 2000, FEWEST = 45, KEPT = 150, SVG = 'http://www.w3.org/2000/svg';
  const unit = (number, units, step) => {
    let index = 0;
    while (number >= 999.5 && index < units.length - 1) { number /= step; index++; }
    return (number >= 99.5 || Number.isInteger(number) ? number.toFixed(0) : number.toPrecision(3)) + units[index];
  };
  const count = number => unit(number, ['', 'k', 'M', 'G'], 1000);
  const bytes = number => unit(number, ['B', 'K', 'M', 'G', 'T'], 1024);
  const percent = number => number.toFixed(0) + '%';
  const rate = key => (now, past, seconds) => Math.max(0, now[key] - past[key]) / seconds;
  const PLOTS = [
    ['requests/s', rate('requests'), count],
    ['from memory', (now, past) => now.counted > past.counted
      ? 100 * (now.hits - past.hits) / (now.counted - past.counted) : 0, percent, 100],
    ['mean time', (now, past) => now.counted > past.counted
      ? (now.time - past.time) / (now.counted - past.counted) : 0, number => unit(number, ['ms', 's'], 1000)],
    ['bytes/s', rate('bytes'), bytes],
    ['errors/s (5xx)', rate('errors'), count],
    ['connections', now => now.connections, count],
    ['workers busy', now => now.busy, count],
    ['waiting for a worker', now => now.waiting, count],
  ].map(([name, value, write, top]) => ({ name, value, write, top, series: [] }));

  const area = document.getElementById('plots');
  for (const plot of PLOTS) {
    const figure = area.appendChild(document.createElement('figure'));
    const caption = figure.appendChild(document.createElement('figcaption'));
    caption.appendChild(document.createElement('span')).textContent = plot.name;
    plot.label = caption.appendChild(document.createElement('b'));
    const svg = figure.appendChild(document.createElementNS(SVG, 'svg'));
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', plot.name);
    plot.svg = svg;
    plot.line = svg.appendChild(document.createElementNS(SVG, 'polyline'));
  }
  area.hidden = false;

  const read = numbers => Object.fromEntries(
    Object.entries(numbers.dataset).map(([key, value]) => [key, Number(value)]));
  let past = read(document.getElementById('numbers')), paused = false;
  const state = document.getElementById('state');

  const draw = now => {
    const seconds = (now.uptime - past.uptime) / 1000;
    // Another program has taken over, or it is the same answer.
    if (now.pid !== past.pid || seconds <= 0) { past = now; return; }
    for (const plot of PLOTS) {
      const value = plot.value(now, past, seconds);
      plot.series.push(value);
      if (plot.series.length > KEPT) plot.series.shift();
      const top = plot.top || Math.max(...plot.series, 1e-9), width = Math.max(FEWEST, plot.series.length);
      const left = width - plot.series.length;
      plot.svg.setAttribute('viewBox', `0 0 ${width - 1} 100`);
      plot.label.textContent = plot.write(value);
      plot.line.setAttribute('points', plot.series
        .map((y, x) => `${left + x},${(98 - 96 * y / top).toFixed(1)}`).join(' '));
    }
    past = now;
  };

  const update = async () => {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch(location.href, { cache: 'no-store', headers: { accept: 'text/html' } });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const numbers = page.getElementById('numbers');
      if (!numbers) throw new Error('another page');
      if (paused) return;
      draw(read(numbers));
      // What the reader has opened stays open.
      const open = new Set([...document.querySelectorAll('details[open]')].map(part => part.id));
      for (const part of numbers.querySelectorAll('details')) part.open = open.has(part.id);
      document.getElementById('numbers').replaceWith(document.adoptNode(numbers));
      state.textContent = page.getElementById('state').textContent;
    } catch (error) {
      state.textContent = `no answer (${error.message}); the numbers are old`;
    }
  };
  const button = document.getElementById('pause');
  button.hidden = false;
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? 'Continue' : 'Pause';
  });
  setInterval(update, PERIOD);
})();
