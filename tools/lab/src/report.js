// n and p focus the next and the previous figure, t opens and closes its table; a printed page has all tables.
const figures = [...document.querySelectorAll("figure")];
const tables = () => [...document.querySelectorAll("details")];
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const at = figures.indexOf(document.activeElement);
  const next = { n: at + 1, p: Math.max(at, 1) - 1 }[event.key];
  if (next !== undefined) figures[Math.min(next, figures.length - 1)]?.focus();
  const table = document.activeElement.closest("section")?.querySelector("details");
  if (event.key === "t" && table) table.open = !table.open;
});
let closed = [];
addEventListener("beforeprint", () => {
  closed = tables().filter((table) => !table.open);
  closed.forEach((table) => (table.open = true));
});
addEventListener("afterprint", () => closed.forEach((table) => (table.open = false)));
