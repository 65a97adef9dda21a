// Runs in a page, so it uses nothing from outside the function.

/**
 * Returns the texts whose contrast with their background is below `least`, and how many texts
 * there are (https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio).
 */
export function badContrasts(least) {
  // A colour that is still changing would be measured on its way.
  document.head.append(Object.assign(document.createElement('style'), { textContent: '* { transition: none !important }' }));

  const parse = (colour) => {
    const [, numbers] = /^rgba?\((.*)\)$/.exec(colour) ?? [];
    if (!numbers) throw new Error(`the colour ${colour} is not rgb`);
    const [red, green, blue, alpha = 1] = numbers.split(',').map(Number);
    return { channels: [red, green, blue], alpha };
  };
  const over = (front, back) => ({
    channels: front.channels.map((channel, i) => channel * front.alpha + back.channels[i] * (1 - front.alpha)),
    alpha: 1,
  });
  const background = (element) => {
    if (!element) return { channels: [255, 255, 255], alpha: 1 };
    const own = parse(getComputedStyle(element).backgroundColor);
    return own.alpha === 1 ? own : over(own, background(element.parentElement));
  };
  const opacity = (element) => element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
  const luminance = ({ channels }) => {
    const [red, green, blue] = channels.map((channel) => {
      const part = channel / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };

  let looked = 0;
  const bad = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    // Links to sections are shown when the pointer is on a heading.
    if (!text || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    looked++;
    const back = background(element);
    const { channels, alpha } = parse(getComputedStyle(element).color);
    const ratio = contrast(over({ channels, alpha: alpha * opacity(element) }, back), back);
    if (ratio < least) bad.set(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`, text.slice(0, 40));
  }
  return { looked, bad: [...bad].map(([where, text]) => `${where}: ${text}`) };
}
