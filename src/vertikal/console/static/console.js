// Parts of a page that the server sends again whenever they have changed. Nothing else needs script.
const path = document.body.dataset.live;
const notice = document.getElementById("notice");
let source = null;
let over = false;

function say(words) {
  if (notice.textContent !== words) notice.textContent = words;
  notice.hidden = !words;
}

function show(regions) {
  for (const [id, html] of Object.entries(regions)) {
    const region = document.getElementById(id);
    if (!region) continue;
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    // Who reads an opened part, has scrolled in one, or stands on a link, must not lose it.
    const open = [...region.querySelectorAll("details[open]")].map((one) => one.id);
    const scrolled = region.querySelector("ol.log")?.scrollTop;
    const at = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    region.replaceChildren(fresh.content);
    for (const name of open) if (name) document.getElementById(name)?.setAttribute("open", "");
    if (scrolled) region.querySelector("ol.log").scrollTop = scrolled;
    if (at) region.querySelector(`[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
  }
}

function rest() {
  source?.close();
  source = null;
}

// Only pages that somebody sees watch: a browser opens few connections to one site.
function watch() {
  if (source || over || document.hidden) return;
  source = new EventSource(path);
  source.addEventListener("regions", (event) => {
    say("");
    show(JSON.parse(event.data));
  });
  source.addEventListener("away", (event) => say(JSON.parse(event.data).words));
  source.addEventListener("displaced", (event) => {
    rest();
    say(`This page is not live now: ${JSON.parse(event.data).words}. It goes on when you come back to it.`);
  });
  source.addEventListener("ended", () => {
    over = true;
    rest();
    say("This session has ended: `vertikal console` prints another link.");
  });
  source.addEventListener("error", () => {
    say("The console does not answer; trying again.");
    // A console that refuses says why on the page itself; otherwise the browser tries again.
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2000);
  });
}

if (path && window.EventSource) {
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : watch()));
  window.addEventListener("focus", watch);
  watch();
}
