// Tooltips that appear at once; without this script the browser shows them after a while.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
for (const title of document.querySelectorAll("svg title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
document.addEventListener("pointermove", (event) => {
  const shown = event.target.closest?.("[data-tip]");
  tip.hidden = !shown;
  if (!shown) return;
  tip.textContent = shown.dataset.tip;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  const below = event.clientY + 18;
  const fits = below + tip.offsetHeight <= innerHeight;
  tip.style.top = (fits ? below : event.clientY - tip.offsetHeight - 12) + "px";
});
