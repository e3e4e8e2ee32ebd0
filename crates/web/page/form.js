// The form: fields come from the engine's own catalogue, so that every key that there is can be set, with the
// meaning and the default that `weft list` prints.

import { FAILURES, USUAL } from "weft/scenario";
import { element } from "weft/look";

/** Keys that are seen at once; the others are one click away. */
const SHOWN = {
  fabric: [
    "leaves",
    "spines",
    "hosts_per_leaf",
    "k",
    "oversubscription",
    "rails",
    "groups",
    "routers",
    "global_ports",
    "sizes",
    "link",
    "uplink",
    "delay",
  ],
  workload: ["algorithm", "size", "senders", "count", "channels", "skew", "tokens"],
};
/** Schemes of an N have it as a choice. */
const COUNTS = [2, 4, 8, 16];
const MOST_SCHEMES = 4;
const FABRICS = ["leaf-spine", "fat-tree", "rail-only", "dragonfly", "dragonfly+", "torus"];

/** Puts the fields of `scenario` into `place`; it is changed as they are, and `changed()` is called. */
export function show_form(place, scenario, choices, changed) {
  const again = () => {
    const restore = remembered(place);
    show_form(place, scenario, choices, changed);
    restore();
    changed();
  };
  place.replaceChildren(
    fabric_fields(scenario, choices, changed, again),
    workload_fields(scenario, choices, changed, again),
    scheme_fields(scenario, choices, changed, again),
    failure_fields(scenario, changed, again),
  );
}

/** What puts the focus back where it is now once the form is new, and opens what is open. */
function remembered(place) {
  const parts = () => [...place.querySelectorAll("fieldset")];
  const stops = (part) => [...part.querySelectorAll("input, select, button:not([hidden]), summary")];
  const opened = parts().map((part) => part.querySelector("details")?.open);
  const number = parts().findIndex((part) => part.contains(document.activeElement));
  const at = number < 0 ? -1 : stops(parts()[number]).indexOf(document.activeElement);
  return () => {
    for (const [part, open] of parts().map((part, at) => [part, opened[at]]))
      if (open && part.querySelector("details")) part.querySelector("details").open = true;
    if (at >= 0) (stops(parts()[number])[at] ?? stops(parts()[number]).at(-1)).focus();
  };
}

/** Lists of the catalogue by what they choose. */
export function choices_of({ topologies, workloads, schemes }) {
  const of = (list, key) => list.filter((one) => one.key === key);
  return {
    fabrics: of(topologies, "fabric.topology").filter(({ name }) => FABRICS.includes(name)),
    workloads: ["collective", "pattern", "model"].flatMap((kind) =>
      of(workloads, `workload.${kind}`).map((one) => ({ ...one, kind })),
    ),
    algorithms: of(workloads, "workload.algorithm"),
    schemes: schemes.flatMap(spellings),
  };
}

/** A scheme with each N; where in the network something has to be new for it. */
function spellings(scheme) {
  const names = scheme.name.endsWith("-N")
    ? COUNTS.map((count) => scheme.name.replace(/N$/, count))
    : [scheme.name];
  return names.map((name) => ({ name, summary: scheme.summary }));
}

function fabric_fields({ fabric }, { fabrics }, changed, again) {
  const chosen = fabrics.find(({ name }) => name === fabric.name) ?? fabrics[0];
  const select = picker(fabrics, fabric.name, (name) => {
    const kept = ["link", "delay", "uplink"].filter((key) => key in fabric.keys);
    fabric.keys = Object.fromEntries(kept.map((key) => [key, fabric.keys[key]]));
    Object.assign(fabric, { name });
    require(fabric, fabrics.find((one) => one.name === name));
    again();
  });
  select.ariaLabel = "Fabric";
  return group("Fabric", chosen.summary, select, options(fabric, "fabric", chosen.options, changed));
}

function workload_fields({ workload }, { workloads, algorithms }, changed, again) {
  const full = ({ kind, name }) => `${kind}:${name}`;
  const known = workloads.find((one) => full(one) === full(workload));
  // A link may name what there is not: another job in its place would pass for what is run.
  const chosen = known ?? { summary: "not known", options: [] };
  const labels = { collective: "collectives", pattern: "patterns", model: "training iterations" };
  const select = element("select", {
    ariaLabel: "Job",
    onchange: () => {
      const next = workloads.find((one) => full(one) === select.value);
      const size = workload.keys.size;
      Object.assign(workload, { kind: next.kind, name: next.name, keys: size ? { size } : {} });
      if (!next.options.some(({ key }) => key === "workload.size")) delete workload.keys.size;
      require(workload, next);
      again();
    },
  });
  for (const [kind, label] of Object.entries(labels)) {
    const those = workloads.filter((one) => one.kind === kind);
    select.append(element("optgroup", { label }, ...those.map((one) => choice(full(one), one.name))));
  }
  if (!known) select.append(choice(full(workload), workload.name));
  select.value = full(workload);
  const algorithm = algorithms.find(({ name }) => name === (workload.keys.algorithm ?? usual(chosen)));
  const all = [...chosen.options, ...(algorithm?.options ?? [])];
  const change_algorithm = (key) => (key === "algorithm" ? again() : changed());
  return group("Job", chosen.summary, select, options(workload, "workload", all, change_algorithm));
}

const usual = ({ options }) => options.find(({ key }) => key === "workload.algorithm")?.default;

function scheme_fields(scenario, { schemes }, changed, again) {
  const selects = scenario.schemes.map((name, at) => {
    const select = picker(schemes, name, (name) => {
      scenario.schemes[at] = name;
      again();
    });
    select.ariaLabel = `Scheme ${at + 1}`;
    const summary = schemes.find((one) => one.name === name)?.summary ?? "";
    const drop = element("button", {
      type: "button",
      textContent: "✕",
      title: `without ${name}`,
      ariaLabel: `without ${name}`,
      hidden: scenario.schemes.length === 1,
      onclick: () => {
        scenario.schemes.splice(at, 1);
        again();
      },
    });
    return element("div", { className: "scheme", title: summary }, select, drop);
  });
  const add = element("button", {
    type: "button",
    textContent: "+ scheme",
    hidden: scenario.schemes.length >= MOST_SCHEMES,
    onclick: () => {
      scenario.schemes.push(schemes.find(({ name }) => !scenario.schemes.includes(name)).name);
      again();
    },
  });
  const seed = field("seed", scenario.seed, "1", "draws hashes, traffic and failures", (value) => {
    scenario.seed = value || "1";
    changed();
  });
  return group("Schemes", "", ...selects, add, seed);
}

function failure_fields({ failure }, changed, again) {
  const kinds = Object.entries(FAILURES).map(([name, { words }]) => ({ name, words }));
  const select = element("select", {
    ariaLabel: "Failure",
    onchange: () => {
      Object.assign(failure, { name: select.value, keys: { ...FAILURES[select.value].keys } });
      again();
    },
  });
  select.append(...kinds.map(({ name, words }) => choice(name, words)));
  select.value = failure.name;
  const fields = Object.entries(failure.keys)
    .filter(([key]) => key !== "kind")
    .map(([key, value]) =>
      field(key, value, "", MEANINGS[key] ?? "", (text) => {
        failure.keys[key] = text;
        changed();
      }),
    );
  return group("What fails", "", select, element("div", { className: "fields" }, ...fields));
}

const MEANINGS = {
  lost: "the share of the bandwidth that is lost",
  tier: "leaf-up: links above leaves; pod-up: above pods; or whole switches: spines, cores",
  count: "how many, of each leaf or pod",
  groups: "numbers of the leaves or pods; all: each",
  start: "when it begins",
  detect: "routing learns of it after this time",
  every: "mean time from one burst of losses to the next",
  length: "mean length of a burst",
};

/** Gives required keys a value. */
function require(chosen, { options }) {
  for (const { key, default: usual } of options) {
    const own = key.slice(key.indexOf(".") + 1);
    if (usual === "required") chosen.keys[own] ??= USUAL[own] ?? "";
  }
}

/** Fields of the keys of a section: some at once, the others below. */
function options(chosen, section, all, changed) {
  // There are no files in a page.
  const made = all.filter(({ key }) => !key.endsWith("_file")).map((option) => {
    const own = option.key.slice(option.key.indexOf(".") + 1);
    const set = (value) => {
      if (value === "") delete chosen.keys[own];
      else chosen.keys[own] = value;
      changed(own);
    };
    const value = chosen.keys[own] ?? "";
    return [own, field(own, value, option.default, option.meaning, set, option.words), value];
  });
  const at_once = ([own, , value]) => SHOWN[section].includes(own) || value !== "";
  const [first, rest] = [made.filter(at_once), made.filter((one) => !at_once(one))];
  const fields = (list) => element("div", { className: "fields" }, ...list.map(([, made]) => made));
  const more = element("details", {}, element("summary", { textContent: "more keys" }), fields(rest));
  return element("div", {}, fields(first), rest.length ? more : null);
}

/** One key: a list of words where there are some. */
function field(name, value, usual, meaning, set, words = []) {
  const common = { value, title: `${meaning}${usual && usual !== "required" ? ` (default: ${usual})` : ""}` };
  const input = words.length
    ? element("select", { onchange: () => set(input.value) })
    : element("input", { placeholder: shown(usual, meaning), spellcheck: false });
  if (words.length)
    input.append(
      choice("", `${usual}`),
      ...words.filter((one) => one !== usual).map((one) => choice(one, one)),
    );
  else input.onchange = () => set(input.value.trim());
  Object.assign(input, common);
  if (words.length) input.value = value === usual ? "" : value;
  return element("label", { title: common.title }, element("span", { textContent: words_of(name) }), input);
}

/** What a key is if nobody says: of some, what another one is. */
function shown(usual, meaning) {
  const as_other = /\bas \w+ unless/.exec(meaning)?.[0].replace(" unless", "");
  return usual === "required" ? "" : (as_other ?? usual);
}

const words_of = (key) => key.replaceAll("_", " ").replace("hosts per leaf", "GPUs per leaf");

function picker(list, value, set) {
  const select = element("select", { onchange: () => set(select.value) });
  select.append(...list.map(({ name, summary }) => choice(name, name, summary)));
  if (!list.some(({ name }) => name === value)) select.append(choice(value, value));
  select.value = value;
  return select;
}

const choice = (value, textContent, title = "") => element("option", { value, textContent, title });

function group(name, summary, ...fields) {
  const words = summary ? element("p", { className: "hint", textContent: summary }) : null;
  const [first, ...rest] = fields;
  return element("fieldset", {}, element("legend", { textContent: name }), first, words, ...rest);
}
