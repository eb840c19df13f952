// The page of mcl-gpu: clusters by size, inflations compared, the largest clusters. apps/common/page.html has the rest.
let chosen = report.runs.length - 1; // the run that the page is about
if (report.advised !== undefined) chosen = Math.max(0, report.runs.findIndex(r => r.inflation === report.advised));

// Clusters by size, in steps of doubling sizes.
function histogram(sizes) {
  const bins = [];
  for (const [size, clusters] of sizes) {
    const at = Math.floor(Math.log2(size));
    bins[at] = (bins[at] || 0) + clusters;
  }
  const most = Math.max(...bins.map(b => b || 0)), svg = chart("How many clusters there are of each size");
  const step = (WIDE - LEFT - 8) / bins.length;
  axis(svg, HIGH - LOW, "0");
  axis(svg, 20, count(most));
  for (let i = 0; i < bins.length; i++) {
    const clusters = bins[i] || 0, first = 2 ** i, last = 2 ** (i + 1) - 1;
    const height = clusters / most * (HIGH - LOW - 20);
    const bar = drawing("rect", {x: LEFT + i * step + 2, width: step - 4, y: HIGH - LOW - height,
      height: Math.max(height, clusters ? 1 : 0), fill: "var(--bar)"});
    bar.append(drawing("title", {}, `${plural(clusters, "cluster")} of ${first === last ? first : `${count(first)} to ${count(last)}`} nodes`));
    svg.append(bar, drawing("text", {x: LEFT + (i + .5) * step, y: HIGH - LOW + 16, "text-anchor": "middle"},
      first === last ? first : step > 70 ? `${count(first)}–${count(last)}` : count(first)));
    if (clusters) svg.append(drawing("text", {x: LEFT + (i + .5) * step, y: HIGH - LOW - height - 4, "text-anchor": "middle"}, count(clusters)));
  }
  svg.append(drawing("text", {x: WIDE / 2, y: HIGH - 6, "text-anchor": "middle"}, "nodes in the cluster"));
  return svg;
}
// Chaos of each iteration, on a scale by powers of ten.
function convergence(steps) {
  const logs = steps.map(s => Math.log10(Math.max(s.chaos, 1e-6))), svg = chart("Chaos of each iteration");
  const high = Math.ceil(Math.max(...logs, 0)), low = Math.min(-4, Math.floor(Math.min(...logs)));
  const x = i => LEFT + 12 + (steps.length > 1 ? i / (steps.length - 1) : 0) * (WIDE - LEFT - 28);
  const y = l => 16 + (high - l) / (high - low) * (HIGH - LOW - 16);
  for (let l = low; l <= high; l++) axis(svg, y(l), l === 0 ? "1" : l < -3 ? `1e${l}` : String(10 ** l));
  svg.append(drawing("polyline", {points: logs.map((l, i) => `${x(i)},${y(l)}`).join(" "), fill: "none", stroke: "var(--mark)", "stroke-width": 2}));
  steps.forEach((s, i) => {
    const dot = drawing("circle", {cx: x(i), cy: y(logs[i]), r: 3.5, fill: "var(--mark)"});
    dot.append(drawing("title", {}, `iteration ${s.number}: chaos ${number(s.chaos)}, ${count(s.nnz_after)} entries`));
    svg.append(dot);
  });
  svg.append(drawing("text", {x: LEFT + 12, y: HIGH - 20, "text-anchor": "middle"}, "1"),
             drawing("text", {x: x(steps.length - 1), y: HIGH - 20, "text-anchor": "middle"}, count(steps.length)),
             drawing("text", {x: WIDE / 2, y: HIGH - 6, "text-anchor": "middle"}, "iteration"));
  return svg;
}

// ---- sections -------------------------------------------------------------------------------------------
function inWords(run) {
  const q = run.quality, nodes = report.input.nodes;
  let words = `${plural(nodes, "node")} fell into ${plural(run.clusters, "cluster")} at inflation ${run.inflation}. `;
  if (run.clusters === 0) return words;
  words += `The largest has ${plural(run.largest, "node")} (${percent(run.largest / nodes)} of all); half of the clusters have at most ${plural(q.median, "node")}; ${plural(run.singletons, "node is", "nodes are")} alone. `;
  words += `${percent(q.coverage)} of the edge weight lies inside of clusters.`;
  if (run.converged === false) words += " The process was stopped before it had come to rest, so these clusters are provisional.";
  return words;
}
function comparison() {
  const rows = report.runs.map((r, i) => {
    const q = r.quality, c = i > 0 ? report.comparison[i - 1] : null;
    const moved = c ? c.moved[0] + c.moved[1] : 0;
    return [String(r.inflation), count(r.clusters), count(r.largest), count(q.median), count(r.singletons),
      number(q.modularity), number(q.efficiency), number(q.mass_fraction), number(q.area_fraction), number(q.coverage),
      c ? count(moved) : "–"];
  });
  return element("section", {}, element("h2", {}, "Which inflation?"),
    element("p", {}, report.advice),
    table(["inflation", "clusters", "largest", "median", "alone", "modularity", "efficiency", "mass", "area", "coverage", "moves"], rows),
    element("p", {class: "soft"}, "Higher inflation makes smaller clusters. Modularity: weight inside of clusters beyond what chance would give. Efficiency: high where clusters hold the neighbours of their nodes and little else. Mass: the part of a node's weight that stays in its cluster, on average. Area: the part of all pairs of nodes that share a cluster. Moves: nodes that change their cluster from the line above to this one (split/join distance)."));
}
function largest(run) {
  const list = element("div", {}), shown = run.largest_clusters, note = element("p", {class: "soft", "aria-live": "polite"});
  const search = element("input", {type: "search", id: "search", placeholder: "a node's name", "aria-label": "Search for a node"});
  const LISTED = 20;
  function show() {
    const wanted = search.value.trim().toLowerCase();
    const found = wanted ? shown.filter(c => c.members.some(m => String(m).toLowerCase().includes(wanted))) : shown;
    list.replaceChildren(...found.slice(0, LISTED).map((c, i) => cluster(c, wanted, wanted !== "" && i < 3)));
    const listed = shown.reduce((sum, c) => sum + c.members.length, 0);
    note.textContent = (wanted ? `${plural(found.length, "cluster")} found. ` : "") +
      (found.length > LISTED ? `The first ${LISTED} are shown. ` : "") +
      `This page holds ${plural(listed, "name")} of ${count(report.input.nodes)}, from the largest clusters on; the output file has all.`;
  }
  function cluster(c, wanted, open) {
    const names = c.members.map(String).flatMap((m, i) => {
      const hit = wanted && m.toLowerCase().includes(wanted);
      return i ? [", ", hit ? element("mark", {}, m) : m] : [hit ? element("mark", {}, m) : m];
    });
    const more = c.size - c.members.length;
    const box = element("details", open ? {open: ""} : {}, element("summary", {}, element("b", {}, `Cluster ${c.number}`),
      ` · ${plural(c.size, "node")} · density ${percent(c.density)} · around ${c.hub}`));
    box.fill = () => { if (box.childElementCount < 2) box.append(element("div", {},
      element("p", {}, `${percent(c.weight > 0 ? c.inside / c.weight : 0)} of its members' weight stays inside; ${percent(c.density)} of the pairs of members are joined. Best joined within it: ${c.hub}.`),
      element("p", {class: "members"}, ...names, more > 0 ? ` … and ${count(more)} more` : null),
      c.edges.length ? element("p", {}, "Strongest edges:") : null,
      c.edges.length ? table(["from", "to", "weight"], c.edges.map(e => [String(e[0]), String(e[1]), String(e[2])])) : null)); };
    box.addEventListener("toggle", box.fill);
    if (open) box.fill();
    return box;
  }
  search.addEventListener("input", show);
  show();
  // "toggle" comes after the page has been laid out for the printer.
  window.onbeforeprint = () => list.querySelectorAll("details").forEach(box => { box.fill(); box.open = true; });
  return element("section", {}, element("h2", {}, "The largest clusters"), element("p", {class: "screen"}, search), note, list);
}
function process(run) {
  return element("section", {}, element("h2", {}, "How the process came to rest"),
    element("p", {}, `Markov clustering lets random walkers spread over the network and, in turns, favours the ways that many take. It ends when nothing changes any more: chaos near 0. Here that took ${plural(run.iterations, "iteration")}${run.jury ? `; the cost of pruning was judged "${run.jury.word}" (${Math.round(run.jury.synopsis)} of 100)` : ""}.`),
    run.steps.length ? element("figure", {}, convergence(run.steps)) : null,
    element("details", {class: "screen"}, element("summary", {}, "The iterations"), element("div", {},
      table(["iteration", "chaos", "entries expanded", "entries kept", "time"], run.steps.map(s =>
        [String(s.number), number(s.chaos, 4), count(s.nnz_expanded), count(s.nnz_after), seconds(s.seconds)])))));
}
function hubs(run) {
  const words = run.overlap_nodes > 0 ? `${plural(run.overlap_nodes, "node belongs", "nodes belong")} to several clusters by the process; the option for overlap says "${report.options.overlap}".` : "No node belongs to several clusters.";
  return element("section", {}, element("h2", {}, "Hubs and overlap"),
    element("p", {}, "Nodes with many neighbours draw clusters together and make the work long. These have the most:"),
    table(["node", "neighbours", "weight"], report.hubs.map(h => [String(h[0]), count(h[1]), number(h[2])])), element("p", {}, words));
}
function done(run) {
  const o = report.options, i = report.input;
  const rows = [["input", `${i.file}, read as ${i.format}: ${plural(i.lines, "line")}, ${plural(i.nodes, "node")}, ${plural(i.arcs, "arc")}`],
    ["output", run.output], ["command", ["mcl-gpu", ...report.arguments].join(" ")],
    ["pruning", `-P ${o.prune_number} -S ${o.select} -R ${o.recover} -pct ${o.recover_percent}`],
    ["transforms", [o.value_transform, o.graph_transform].filter(t => t).join("; ") || "none"],
    ["computed on", `${run.device}, ${plural(report.threads, "thread")}`],
    ["time", `${seconds(report.seconds.total)}: reading ${seconds(report.seconds.read)}, start ${seconds(report.seconds.start)}, the process ${seconds(run.seconds.iterate)}`],
    ["memory", `${count(report.peak_host_bytes / 1048576)} MB at most`], ["program", `mcl-gpu ${report.version}`]];
  return element("section", {}, element("h2", {}, "What was done"), table(["", ""], rows, "words"),
    element("h2", {}, "How to cite"),
    element("p", {}, "Stijn van Dongen, Graph Clustering by Flow Simulation, PhD thesis, University of Utrecht, 2000. Stijn van Dongen, Graph clustering via a discrete uncoupling process, SIAM Journal on Matrix Analysis and Applications 30-1, 121–141, 2008."),
    element("p", {}, `The clusters were computed by mcl-gpu ${report.version}, which gives the results of mcl 22-282.`));
}
function show() {
  const run = report.runs[chosen], q = run.quality, name = report.input.file === "-" ? "standard input" : report.input.file.replace(/.*\//, "");
  document.title = `Clusters of ${name}`;
  const choice = element("select", {"aria-label": "Inflation"}, ...report.runs.map((r, i) =>
    element("option", i === chosen ? {value: i, selected: ""} : {value: i}, `inflation ${r.inflation}`)));
  choice.addEventListener("change", () => { chosen = Number(choice.value); show(); page.querySelector("select").focus(); });
  page.replaceChildren(...[
    element("h1", {}, `Clusters of ${name}`),
    report.runs.length > 1 ? element("p", {class: "screen"}, "Shown: ", choice) : null,
    element("p", {class: "lead"}, inWords(run)),
    element("div", {class: "tiles"}, tile(count(report.input.nodes), "nodes"), tile(count(run.clusters), "clusters"),
      tile(count(run.largest), "in the largest"), tile(count(q.median), "median size"), tile(count(run.singletons), "alone"),
      tile(number(q.modularity), "modularity"), tile(number(q.efficiency), "efficiency"), tile(percent(q.coverage), "weight inside")),
    report.runs.length > 1 ? comparison() : null,
    element("h2", {}, "Sizes"),
    run.sizes.length ? element("figure", {}, histogram(run.sizes), element("figcaption", {}, "Clusters by size; each step doubles the size.")) : null,
    largest(run), process(run), hubs(run), done(run)].filter(part => part));
}
show();
