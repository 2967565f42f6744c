// Parts of a page that the server sends again whenever they have changed. Nothing else needs script.
const path = document.body.dataset.live;
const notice = document.getElementById("notice");

function say(words) {
  notice.textContent = words;
  notice.hidden = !words;
}

function show(regions) {
  for (const [id, html] of Object.entries(regions)) {
    const region = document.getElementById(id);
    if (!region) continue;
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    // Who reads an opened part, or stands on a link, must not lose it.
    const open = [...region.querySelectorAll("details[open]")].map((one) => one.id);
    const at = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    region.replaceChildren(fresh.content);
    for (const name of open) if (name) document.getElementById(name)?.setAttribute("open", "");
    if (at) region.querySelector(`[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
  }
}

if (path && window.EventSource) {
  const source = new EventSource(path);
  source.addEventListener("regions", (event) => {
    say("");
    show(JSON.parse(event.data));
  });
  source.addEventListener("away", (event) => say(JSON.parse(event.data).words));
  source.addEventListener("ended", () => {
    source.close();
    say("This session has ended: `vertikal console` prints another link.");
  });
  source.addEventListener("error", () => say("The console does not answer; trying again."));
}
