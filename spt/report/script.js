// The table of questions: filtered, sorted and shown in windows of rows, from the block of JSON before this script.
// Foreign text only ever enters the page as textContent. Without scripts the section says where the answers are.
const WINDOW = matchMedia("(max-width: 44rem)").matches ? 50 : 200; // rows; a phone shows each as a card
const RESULTS = ["✗ wrong", "≈ partly", "✓ right"];
const { runs, questions, answers } = JSON.parse(document.getElementById("answers").textContent);
const form = document.querySelector(".filters");
const pages = document.querySelector(".pages");
const position = pages.querySelector("[role=status]");
const box = document.querySelector(".answers");
const body = box.querySelector("tbody");
const heads = [...box.querySelectorAll("thead th")];

const rows = answers.map(([run, number, result, prediction, logprob, rightBy]) => {
  const [id, direction, relation, prompt, targets] = questions[number];
  return { run, number, result, prediction, logprob, rightBy, id, direction, relation, prompt, targets, text: null };
});
const KEYS = {
  "result": (row) => row.result,
  "run": (row) => row.run,
  "asked": (row) => `${row.direction}\n${row.relation}\n${row.id}`,
  "prompt": (row) => row.prompt,
  "target": (row) => row.targets.join("\n"),
  "prediction": (row) => row.prediction,
  "log-prob.": (row) => row.logprob,
};
let order = { column: null, descending: false };
let found = rows;
let first = 0;

const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const paragraph = (text) => Object.assign(element("div", text), { dir: "auto" });
const clip = (text) => {
  const made = element("div", undefined, "clip");
  made.append(paragraph(text));
  return made;
};
const target = (row) => {
  const made = clip(row.targets[0] ?? "");
  if (row.targets.length > 1) {
    const others = element("details");
    others.append(element("summary", `or ${row.targets.length - 1} more`), ...row.targets.slice(1).map(paragraph));
    made.append(others);
  }
  return made;
};
const result = (row) => {
  const made = element("div", RESULTS[row.result], `result ${RESULTS[row.result].slice(2)}`);
  if (row.result === 1 && row.rightBy) made.append(element("div", row.rightBy, "ci"));
  return made;
};
const asked = (row) => {
  const made = element("div", row.direction);
  for (const text of [row.relation, row.id]) if (text) made.append(element("br"), element("bdi", text, "ci"));
  return made;
};
const CELLS = {
  "result": result,
  "run": (row) => element("bdi", runs[row.run]),
  "asked": asked,
  "prompt": (row) => clip(row.prompt),
  "target": target,
  "prediction": (row) => clip(row.prediction),
  "log-prob.": (row) => element("span", row.logprob === null ? "-" : row.logprob.toFixed(2)),
};

const show = () => {
  const shown = found.slice(first, first + WINDOW).map((row) => {
    const made = element("tr", undefined, RESULTS[row.result].slice(2));
    for (const head of heads) {
      const cell = element("td");
      cell.dataset.label = head.textContent;
      cell.append(CELLS[head.textContent](row));
      made.append(cell);
    }
    return made;
  });
  body.replaceChildren(...shown);
  box.scrollTop = 0;
  const number = (value) => value.toLocaleString("en");
  position.textContent = found.length
    ? `Rows ${number(first + 1)}–${number(first + shown.length)} of ${number(found.length)}`
    : "No question matches.";
  if (found.length < rows.length && found.length) position.textContent += ` that match, out of ${number(rows.length)}`;
  pages.querySelector("[name=previous]").disabled = first === 0;
  pages.querySelector("[name=next]").disabled = first + WINDOW >= found.length;
};

const text = (row) =>
  (row.text ??= [row.id, row.relation, row.prompt, ...row.targets, row.prediction].join("\n").toLowerCase());
const update = () => {
  const wanted = Object.fromEntries(new FormData(form));
  const words = wanted.text.toLowerCase();
  found = rows.filter(
    (row) =>
      (!wanted.run || row.run === Number(wanted.run)) &&
      (!wanted.direction || row.direction === wanted.direction) &&
      (!wanted.relation || row.relation === wanted.relation) &&
      (!wanted.result || row.result === Number(wanted.result)) &&
      (!words || text(row).includes(words)),
  );
  const { column, descending } = order;
  if (column) {
    const collator = new Intl.Collator(undefined, { numeric: true });
    const compare = (a, b) => (typeof a === "number" ? a - b : collator.compare(a, b));
    const keyed = found.map((row) => [KEYS[column](row), row]);
    // What has no value stands last in either order; equal rows keep the order of the file.
    keyed.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : compare(a, b) * (descending ? -1 : 1)));
    found = keyed.map(([, row]) => row);
  } else {
    found.sort((a, b) => a.number - b.number || a.run - b.run); // the answers of all runs to one question together
  }
  first = 0;
  show();
};

const fill = (name, options) => {
  const select = form.elements[name];
  for (const [value, label] of options) select.append(Object.assign(element("option", label), { value }));
  select.closest("label").hidden ||= options.length === 0;
};
fill("run", runs.map((name, number) => [number, name]));
fill("relation", [...new Set(rows.map((row) => row.relation))].filter(Boolean).sort().map((name) => [name, name]));
for (const head of heads) {
  head.firstChild.addEventListener("click", () => {
    const column = head.textContent;
    order = { column, descending: order.column === column && !order.descending };
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    update();
  });
}
for (const [name, step] of [["previous", -WINDOW], ["next", WINDOW]]) {
  pages.querySelector(`[name=${name}]`).addEventListener("click", () => {
    first += step;
    show();
  });
}
let waiting;
form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(update, 120); // not at every key
});
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = pages.hidden = box.hidden = false;
update();
