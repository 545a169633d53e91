// An open page asks from time to time whether its table was published anew, and says so.

const EVERY = 5 * 60 * 1000;

async function ask() {
  const notice = document.getElementById("outdated");
  if (!notice || !notice.hidden || document.hidden) return;
  const response = await fetch(notice.dataset.now, { cache: "no-cache" }).catch(() => null);
  if (!response?.ok) return;
  const { version } = await response.json();
  if (notice.isConnected) notice.hidden = version === notice.dataset.version;
}

export function watchVersion() {
  setInterval(ask, EVERY);
  document.addEventListener("visibilitychange", ask);
  addEventListener("pageshow", ask);
}
