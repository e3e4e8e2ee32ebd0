// The table: a row a scheme, what is best in each column marked.

import { bytes, count, digits, element, time } from "weft/look";

const times = (factor) => `${digits(factor)} ×`;
/** Columns: of the row, a heading, how a number is written, what it means, and whether less is better. */
const COLUMNS = [
  ["cct_s", "completion", time, "until the last receiver has its last byte", "less"],
  ["slowdown", "slowdown", times, "completion time / bound: no scheme can be below 1", "less"],
  ["busbw_gb_s", "bus bandwidth", (value) => `${digits(value)} GB/s`, "as nccl-tests define it", "more"],
  ["fct_p99_s", "flow, 99 %", time, "99 % of flows took no longer than this", "less"],
  ["peak_queue_bytes", "peak queue", bytes, "of any port at any time", "less"],
  ["max_qps", "queue pairs", count, "the most that a NIC had active at once", "less"],
  ["losses", "lost", count, "packets that found no room, or that failing links lost", "less"],
  ["retransmits", "sent again", count, "data packets", "less"],
  ["pauses", "pauses", count, "PFC: how often a port was held back", "less"],
  [
    "uplink_spread_pct",
    "uplinks apart",
    (value) => `${digits(value)} %`,
    "the most used less the least used uplink of a leaf",
    "less",
  ],
  ["switch_changes", "asks of switches", String, "beyond hashing", null],
];

/** The table of runs; a run is `{label, row}`, or `{label, refusal}` if there is no result; `swatch`
 * gives the mark of one, if it has one. */
export function table(runs, swatch) {
  const there = runs.filter(({ row }) => row).map(({ row }) => columns(row));
  const used = COLUMNS.filter(([name]) => name !== "busbw_gb_s" || there.some((row) => row[name] > 0));
  const head = used.map(([, heading, , meaning]) =>
    element("th", { scope: "col", title: meaning, textContent: heading }),
  );
  const rows = runs.map((run) => {
    const { label, row, refusal } = run;
    const name = element("th", { scope: "row" }, swatch(run), label);
    const instead = { className: "refusal", colSpan: used.length, textContent: refusal };
    if (!row) return element("tr", {}, name, element("td", instead));
    const own = columns(row);
    return element("tr", {}, name, ...used.map((column) => cell(column, own, there)));
  });
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col", textContent: "scheme" }), ...head)),
    element("tbody", {}, ...rows),
  );
}

function columns(row) {
  // By rates of flows neither is known.
  return { ...row, losses: row.drops === null ? null : row.drops + row.wire_drops };
}

function cell([name, , words, , better], row, all) {
  const value = row[name];
  const values = all.map((other) => other[name]).filter((one) => one !== null);
  const best = better === "less" ? Math.min(...values) : Math.max(...values);
  const stands_out = better && value === best && values.some((other) => other !== best);
  const shown = element("td", { textContent: value === null ? "–" : words(value) });
  if (name === "switch_changes") shown.title = value;
  if (stands_out) Object.assign(shown, { className: "best", title: "the best of these" });
  return shown;
}
