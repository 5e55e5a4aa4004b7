// Before anything is drawn: the theme that was chosen here, so that the page does not flash in the other one.
try {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage is closed to this page: the system's theme it is
}
