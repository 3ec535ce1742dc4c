// Puts the newest <main> in place of the old one every two seconds; without it the page is still whole.
// What a user is doing stays: it waits for them, and keeps the focus and what they have scrolled to.
const live = document.getElementById("live");
const regions = () => [...document.querySelectorAll("#status .wide")];
const reached = () => [...document.querySelectorAll("#status a, #status summary, #status .wide")];

function inUse() {
  return document.activeElement.closest("form") || document.querySelector("details[open]") || !getSelection().isCollapsed;
}

function replace(fresh) {
  const focus = reached().indexOf(document.activeElement);
  const label = document.activeElement.textContent;
  const scrolled = new Map(regions().map((one) => [one.getAttribute("aria-labelledby"), one.scrollLeft]));
  document.title = fresh.title;
  document.getElementById("status").replaceWith(fresh.getElementById("status"));
  for (const one of regions()) one.scrollLeft = scrolled.get(one.getAttribute("aria-labelledby")) ?? 0;
  const all = reached();
  if (focus >= 0) (all.find((one, at) => at >= focus && one.textContent === label) ?? all[focus])?.focus({ preventScroll: true });
}

async function refresh() {
  let state = "live";
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (inUse()) state = "paused while you fill in the form, select text or read details";
    else replace(fresh);
  } catch {
    state = "the daemon does not respond; the page shows its last response";
  }
  if (live.textContent !== state) live.textContent = state;
}

setInterval(refresh, 2000);
