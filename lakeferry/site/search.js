// Looks for words in headings and titles. Nothing is asked of anybody: the list came with the page.
const field = document.getElementById("search");
const found = document.getElementById("found");
const root = document.currentScript.dataset.root;
const MOST = 12;

function matches(words, [heading, title]) {
  const text = `${heading} ${title}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function entry([heading, title, place]) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = root + place;
  link.textContent = heading;
  item.append(link);
  if (title !== heading) {
    const page = document.createElement("small");
    page.textContent = title;
    link.append(page);
  }
  return item;
}

function look() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const best = words.length ? INDEX.filter((one) => matches(words, one)).slice(0, MOST) : [];
  found.replaceChildren(...best.map(entry));
  if (words.length && !best.length) found.append(Object.assign(document.createElement("li"), { textContent: "Nothing found." }));
  found.hidden = !words.length;
}

field.hidden = false;
field.addEventListener("input", look);
field.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { field.value = ""; look(); }
  if (event.key === "Enter") found.querySelector("a")?.click();
});
// Wide screens show the list of pages at once.
const pages = document.getElementById("pages");
if (matchMedia("(min-width: 62rem)").matches) pages.open = true;
pages.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
window.scrollTo(0, location.hash ? window.scrollY : 0);
