// Public pages come from memory and are the same for everybody. What differs, the visitor's name, the sign-out form
// and the author's links to private neighbours, is asked for here; a visitor who never signed in asks nothing.
(() => {
  'use strict';

  const bar = document.getElementById('session');
  const neighbours = document.getElementById('neighbours');

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function showSession({ user, csrf_token }) {
    bar.replaceChildren(
      element('span', { className: 'who' }, 'signed in as ', element('strong', {}, user)),
      element('form', { method: 'post', action: '/signout' },
        element('input', { type: 'hidden', name: 'csrf_token', value: csrf_token }),
        element('button', { className: 'quiet' }, 'Sign out')),
    );
  }

  function showNeighbours({ older, newer }) {
    const link = (id, rel, className, text) =>
      id === null ? element('span') : element('a', { rel, className, href: `/memo/${id}` }, text);
    neighbours.replaceChildren(
      link(older, 'prev', 'older', '← older'),
      element('span', { className: 'where' }, 'by you'),
      link(newer, 'next', 'newer', 'newer →'),
    );
  }

  async function ask() {
    const query = neighbours ? `?memo=${neighbours.dataset.memo}` : '';
    const response = await fetch(bar.dataset.ask + query, { credentials: 'same-origin' });
    if (!response.ok) return;
    const session = await response.json();
    if (session.user) showSession(session);
    if (session.neighbours) showNeighbours(session.neighbours);
  }

  if (bar.dataset.ask && document.cookie.includes('memo_signed_in=1')) ask().catch(() => {});
})();
