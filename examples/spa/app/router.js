// Shows the view of the browser's address, and follows links without loading the page again.

let show;

/** Calls `view` with each path that is opened, and puts the element that it returns into the page. */
export function start(view) {
  let latest = 0;
  show = async () => {
    const turn = ++latest;
    const element = await view(location.pathname);
    // A slow view must not replace one that was opened after it.
    if (turn === latest) document.getElementById("view").replaceChildren(element);
  };
  addEventListener("popstate", show);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    if (!link || link.origin !== location.origin || !isPlain) return;
    event.preventDefault();
    go(link.pathname);
  });
  show();
}

/** Opens a path of the application. */
export function go(path) {
  history.pushState(null, "", path);
  show();
}
