// Puts the newest <main> in place of the old one every two seconds; without it the page is still whole.
const live = document.getElementById("live");

async function refresh() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement?.getAttribute("aria-labelledby");
    if (getSelection().isCollapsed && !document.querySelector("details[open]")) {
      document.title = fresh.title;
      document.getElementById("status").replaceWith(fresh.getElementById("status"));
      if (focused) document.querySelector(`[aria-labelledby="${focused}"]`)?.focus({ preventScroll: true });
    }
    if (live.textContent !== "live") live.textContent = "live";
  } catch {
    live.textContent = "the daemon does not respond; the page shows its last response";
  }
}

setInterval(refresh, 2000);
