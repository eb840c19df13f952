// The page of gnn train and gnn predict: curves, figures of each class, confusion, confidence, doubtful nodes. apps/common/page.html has the rest.
let chosen = 0; // the run whose curves are shown
const several = report.data.several_classes_a_node, links = report.options.task === "link";
const measure = links ? "AUC" : several ? "micro F1" : "accuracy", things = links ? "link" : "node";
const test_value = links ? report.test_auc : report.test_accuracy, validation_value = links ? report.validation_auc : report.validation_accuracy;
const models = {gcn: "graph convolutional network", sage: "GraphSAGE with means", "sage-max": "GraphSAGE with maxima",
  gin: "graph isomorphism network", gat: "graph attention network"};
const predicting = report.command === "predict", judged = predicting ? report.judged : report.test;
const whose = predicting ? `${report.judged_nodes} nodes` : "test nodes";
const share = x => x === null ? "none" : number(x, 4);

// ---- charts ---------------------------------------------------------------------------------------------
const COLOURS = ["#0072b2", "#e69f00", "#009e73"]; // that colour-blind readers can tell apart (Okabe and Ito 2008)
const NAMES = ["training", "validation", "test"], POINTS = 1000;
// Lines over the epochs of a run; `keys` are fields of an epoch, null where it was not evaluated.
function curves(run, title, keys, top) {
  const svg = chart(`${title} of each epoch`), epochs = run.epochs, every = Math.ceil(epochs.length / POINTS);
  const values = epochs.flatMap(e => keys.map(k => e[k])).filter(v => v !== null);
  const high = top || Math.max(...values, 1e-9), first = epochs[0].epoch, last = epochs[epochs.length - 1].epoch;
  const x = e => LEFT + (last > first ? (e - first) / (last - first) : 0.5) * (WIDE - LEFT - 110);
  const y = v => 16 + (1 - Math.min(v / high, 1)) * (HIGH - LOW - 16);
  for (let k = 0; k <= 4; k++) axis(svg, y(high * k / 4), number(high * k / 4, 2));
  keys.forEach((key, k) => {
    const shown = epochs.filter((e, i) => e[key] !== null && (i % every === 0 || i === epochs.length - 1));
    if (!shown.length) return;
    svg.append(drawing("polyline", {points: shown.map(e => `${x(e.epoch).toFixed(1)},${y(e[key]).toFixed(1)}`).join(" "),
      fill: "none", stroke: COLOURS[k], "stroke-width": 1.8}),
      drawing("line", {x1: WIDE - 96, x2: WIDE - 80, y1: 24 + 20 * k, y2: 24 + 20 * k, stroke: COLOURS[k], "stroke-width": 3}),
      drawing("text", {x: WIDE - 74, y: 28 + 20 * k}, NAMES[k]));
  });
  if (run.best_epoch >= first) {
    const line = drawing("line", {x1: x(run.best_epoch), x2: x(run.best_epoch), y1: 16, y2: HIGH - LOW, stroke: "var(--soft)", "stroke-dasharray": "4 3"});
    line.append(drawing("title", {}, `best epoch: ${run.best_epoch}`));
    svg.append(line);
  }
  svg.append(drawing("text", {x: x(first), y: HIGH - 22, "text-anchor": "middle"}, count(first)),
    drawing("text", {x: x(last), y: HIGH - 22, "text-anchor": "middle"}, count(last)),
    drawing("text", {x: (LEFT + WIDE - 110) / 2, y: HIGH - 6, "text-anchor": "middle"}, "epoch"));
  return svg;
}
// Of test nodes by their largest probability: how many, and how many of these are right.
function confidence(bins) {
  const svg = chart("Share of right predictions by confidence"), step = (WIDE - LEFT - 8) / bins.length;
  const most = Math.max(...bins.map(b => b.nodes)), y = v => 16 + (1 - v) * (HIGH - LOW - 16);
  for (let k = 0; k <= 4; k++) axis(svg, y(k / 4), `${25 * k} %`);
  bins.forEach((b, i) => {
    const right = b.nodes ? b.right / b.nodes : 0, left = LEFT + i * step;
    const bar = drawing("rect", {x: left + 3, width: step - 6, y: y(right), height: y(0) - y(right), fill: "var(--bar)", opacity: 0.35 + 0.65 * b.nodes / most});
    bar.append(drawing("title", {}, `${plural(b.nodes, "node")}, ${count(b.right)} right, mean probability ${number(b.mean, 2)}`));
    svg.append(bar);
    if (b.nodes) svg.append(drawing("line", {x1: left + 3, x2: left + step - 3, y1: y(b.mean), y2: y(b.mean), stroke: "var(--mark2)", "stroke-width": 2}),
      drawing("text", {x: left + step / 2, y: y(Math.max(right, b.mean)) - 5, "text-anchor": "middle"}, count(b.nodes)));
    svg.append(drawing("text", {x: left + step / 2, y: HIGH - 22, "text-anchor": "middle"}, `${i / 10}–${(i + 1) / 10}`));
  });
  svg.append(drawing("text", {x: WIDE / 2, y: HIGH - 6, "text-anchor": "middle"}, "probability of the predicted class"));
  return svg;
}

// ---- sections -------------------------------------------------------------------------------------------
function inWords() {
  const o = report.options, d = report.data, test = report.test;
  const layers = plural(o.layers, "layer");
  if (links) {
    const f = report.runs[0].test_links;
    let said = `A ${models[o.model]} of ${layers} learnt from ${plural(d.training, "link")} which nodes are linked. `;
    if (!d.test) return `${said}No links are hidden from it, so nothing is known of its accuracy.`;
    said += `Of a hidden link and a pair of nodes without one it holds the link for the likelier in ${percent(test_value)} of the cases (AUC), of ${plural(f.linked, "link")} and ${plural(f.unlinked, "other pair")}.`;
    if (report.runs.length > 1) said += ` This is the mean of ${report.runs.length} runs, with a deviation of ${share(report.test_auc_deviation)}.`;
    return report.stopped ? `${said} The training was stopped before its end.` : said;
  }
  let words = `A ${models[o.model]} of ${layers} learnt from ${plural(d.training, "node")} what ${several ? "classes nodes have" : "class a node is in"}, of ${plural(d.classes, "class", "classes")}. `;
  if (!test) return `${words}There are no test nodes, so nothing is known of its accuracy.`;
  words += several ? `Micro F1 is ${share(report.test_accuracy)} on ${plural(d.test, "node")} that it has not seen.` :
    `It is right about ${percent(report.test_accuracy)} of ${plural(d.test, "node")} whose class it has not seen.`;
  if (report.runs.length > 1) words += ` These are means of ${report.runs.length} runs, with a deviation of ${share(report.test_accuracy_deviation)}; figures of classes are those of the first.`;
  if (report.stopped) words += " The training was stopped before its end.";
  return words;
}
function learning() {
  const run = report.runs[chosen], box = element("section", {}, element("h2", {}, "How it learnt"));
  if (report.runs.length > 1) {
    const choice = element("select", {"aria-label": "Run"}, ...report.runs.map((r, i) => element("option", i === chosen ? {value: i, selected: ""} : {value: i}, `seed ${r.seed}`)));
    choice.addEventListener("change", () => { chosen = Number(choice.value); show(); });
    box.append(element("p", {class: "screen"}, "Curves of ", choice));
  }
  if (run.epochs.length) box.append(
    element("figure", {}, curves(run, "Loss", ["loss", "validation_loss", "test_loss"]), element("figcaption", {}, `Loss (training: with dropout). The dashed line is the epoch whose parameters are kept, that of the ${links ? "highest validation AUC" : "lowest validation loss"}.`)),
    element("figure", {}, curves(run, measure, ["training", "validation", "test"].map(part => `${part}_${links ? "auc" : "accuracy"}`), 1), element("figcaption", {}, links ? "How often a link is held for likelier than a pair without one (AUC)." : `Share of right nodes (${measure}).`)));
  if (report.runs.length > 1) box.append(table(["seed", "best epoch", `validation ${measure}`, `test ${measure}`, links ? "test average precision" : "test macro F1", "time"],
    report.runs.map(r => [String(r.seed), count(r.best_epoch), ...(links ? [r.validation_auc, r.test_auc, r.test_links.average_precision] : [r.validation_accuracy, r.test_accuracy, r.test_macro_f1]).map(share), seconds(r.seconds)])));
  return box;
}
function ranking() {
  const f = report.runs[0].test_links, rows = [["AUC", share(f.auc)], ["average precision", share(f.average_precision)]];
  for (const k of [20, 50, 100]) if (f[`hits_at_${k}`] !== null) rows.push([`hits@${k}`, share(f[`hits_at_${k}`])]);
  return element("section", {}, element("h2", {}, "How it ranks hidden links"), table(["", "test"], rows),
    element("p", {class: "soft"}, "AUC: how often a link is held for likelier than a pair without one. Average precision: the mean share of links among the pairs that are at least as likely. Hits@k: the share of links that are likelier than the k-th of the other pairs."));
}
function classes() {
  return element("section", {}, element("h2", {}, "Each class"),
    table(["class", "precision", "recall", "F1", whose, "predicted"], judged.classes.map(c =>
      [c.name, number(c.precision), number(c.recall), number(c.f1), count(c.support), count(c.predicted)])),
    element("p", {class: "soft"}, "Precision: the share of the nodes predicted to be in the class that are in it. Recall: the share of its nodes that were found. F1: twice their product by their sum. Macro F1 is the mean over the classes, in which small classes count as much as large ones."));
}
function confusion() {
  const names = judged.classes.map(c => c.name), rows = judged.confusion, SHOWN = 30;
  if (!rows || rows.length > SHOWN) return null;
  const shaded = (n, sum) => {
    const cell = element("span", {style: `display:block;padding:.1rem .4rem;background:color-mix(in srgb, var(--bar) ${sum ? Math.round(100 * n / sum) : 0}%, transparent)`}, count(n));
    return cell;
  };
  return element("section", {}, element("h2", {}, "Which classes are mistaken for which"),
    table(["true class", ...names], rows.map((row, i) => { const sum = row.reduce((a, b) => a + b, 0); return [names[i], ...row.map(n => shaded(n, sum))]; })),
    element("p", {class: "soft"}, `Of ${whose}: a row a true class, a column a predicted one; the shade is the share of the row.`));
}
function sure() {
  const bins = judged.confidence;
  if (!bins) return null;
  const nodes = judged.nodes, gap = bins.reduce((sum, b) => sum + Math.abs(b.right - b.nodes * b.mean), 0) / nodes;
  return element("section", {}, element("h2", {}, "How far its probabilities can be trusted"),
    element("figure", {}, confidence(bins), element("figcaption", {}, `Bars: the share of right predictions among ${whose} of that probability, with their number. Lines: their mean probability. Where the bar is higher than the line the model is too modest, where it is lower too sure.`)),
    element("p", {}, `On average the two differ by ${percent(gap)} (expected calibration error).`));
}
function cite() {
  const papers = {gcn: "T. N. Kipf and M. Welling, Semi-supervised classification with graph convolutional networks, ICLR 2017.",
    sage: "W. Hamilton, R. Ying and J. Leskovec, Inductive representation learning on large graphs, NeurIPS 2017.",
    gin: "K. Xu et al., How powerful are graph neural networks?, ICLR 2019.", gat: "P. Veličković et al., Graph attention networks, ICLR 2018."};
  const sampling = {layer: "D. Zou et al., Layer-dependent importance sampling for training deep and large graph convolutional networks, NeurIPS 2019.",
    fastgcn: "J. Chen, T. Ma and C. Xiao, FastGCN, ICLR 2018.", cluster: "W.-L. Chiang et al., Cluster-GCN, KDD 2019."};
  const o = report.options;
  return [papers[o.model === "sage-max" ? "sage" : o.model], sampling[o.sampler],
    o.maxk > 0 ? "H. Peng et al., MaxK-GNN: extremely fast GPU kernel design for accelerating graph neural networks training, ASPLOS 2024." : null,
    `Computed by gnn ${report.version}.`].filter(p => p).map(p => element("p", {}, p));
}
// ---- gnn predict ----------------------------------------------------------------------------------------
function foretold() {
  const d = report.data, o = report.options, words = `A ${models[o.model]} of ${plural(o.layers, "layer")}, read from ${o.load}, said ${several ? "what classes" : "what class"} each of ${plural(d.nodes, "node")} has. `;
  if (!judged) return `${words}No classes are known to compare with.`;
  return words + (several ? `Micro F1 is ${share(judged.accuracy)} on the ${count(judged.nodes)} ${whose}.` : `It is right about ${percent(judged.accuracy)} of the ${count(judged.nodes)} ${whose}.`);
}
function found() {
  const all = report.data.nodes;
  return element("section", {}, element("h2", {}, "What was found"), table(["class", "nodes", "share"],
    report.predicted.map(c => [c.name, count(c.nodes), percent(all ? c.nodes / all : 0)])));
}
function doubtful() {
  const bins = report.nodes_by_probability, nodes = report.least_certain;
  if (!nodes || !nodes.length) return null;
  return element("section", {}, element("h2", {}, "Which nodes are in doubt"),
    table(["node", "class", "probability", "next class", "its probability"], nodes.map(n =>
      [n.node, n.class, number(n.probability, 3), n.second_class === undefined ? "none" : n.second_class, n.second_class === undefined ? "" : number(n.second_probability, 3)]), "words"),
    element("p", {class: "soft"}, `The nodes whose class has the smallest probability. All nodes by that probability: ${bins.map((n, i) => n ? `${i / 10}–${(i + 1) / 10}: ${count(n)}` : "").filter(t => t).join(", ")}.`));
}
function predicted() {
  const o = report.options, d = report.data, rows = [["folder", `${d.folder}: ${plural(d.nodes, "node")}, ${plural(d.edges, "edge")}, ${plural(d.features, "feature")}`],
    ["model", `${o.load}: ${o.model}, ${plural(o.layers, "layer")}`], ["command", ["gnn", ...report.arguments].join(" ")],
    ["computed on", `${report.device}, ${plural(report.threads, "thread")}`], ["time", seconds(report.seconds.total)],
    ["memory", `${count(report.peak_host_bytes / 1048576)} MB at most`], ["program", `gnn ${report.version}`]];
  return element("section", {}, element("h2", {}, "What was done"), table(["", ""], rows, "words"), element("h2", {}, "How to cite"), ...cite());
}

// ---- the page -------------------------------------------------------------------------------------------
function done() {
  const o = report.options, d = report.data, used = ["model", "layers", "hidden", "heads", "maxk", "dropout", "input_dropout", "normalise", "optimizer", "rate", "decay", "epochs", "patience", "sampler", "features", "seed"];
  const rows = [["folder", `${d.folder}: ${plural(d.nodes, "node")}, ${plural(d.edges, "edge")}, ${plural(d.features, "feature")}`],
    ["split", `${count(d.training)} training, ${count(d.validation)} validation, ${count(d.test)} test ${things}s`],
    ["command", ["gnn", ...report.arguments].join(" ")],
    ["options", used.filter(k => o[k] !== undefined && o[k] !== 0 && o[k] !== null).map(k => `${k.replace("_", " ")} ${o[k]}`).join(", ")],
    ["computed on", `${report.device}, ${plural(report.threads, "thread")}`],
    ["time", `${seconds(report.seconds.total)}: reading ${seconds(report.seconds.read)}, an epoch ${number(1000 * report.median_epoch_seconds, 2)} ms`],
    ["memory", `${count(report.peak_host_bytes / 1048576)} MB at most`], ["program", `gnn ${report.version}`]];
  return element("section", {}, element("h2", {}, "What was done"), table(["", ""], rows, "words"), element("h2", {}, "How to cite"), ...cite());
}
function show() {
  const name = report.data.folder.replace(/\/+$/, "").replace(/.*\//, "") || report.data.folder, d = report.data;
  document.title = `${links ? "Links" : "Classes"} of ${name}`;
  if (predicting) return page.replaceChildren(...[element("h1", {}, `Classes of the nodes of ${name}`), element("p", {class: "lead"}, foretold()),
    element("div", {class: "tiles"}, ...(judged ? [tile(share(judged.accuracy), measure), tile(share(judged.macro_f1), "macro F1")] : []),
      tile(count(d.nodes), "nodes"), tile(count(d.edges), "edges"), tile(count(d.features), "features"), tile(count(d.classes), "classes")),
    found(), ...(judged ? [classes(), confusion(), sure()] : []), doubtful(), predicted()].filter(part => part));
  page.replaceChildren(...[element("h1", {}, links ? `Links of ${name}` : `Classes of the nodes of ${name}`), element("p", {class: "lead"}, inWords()),
    element("div", {class: "tiles"}, tile(share(test_value), `test ${measure}`), links ? tile(share(report.test_average_precision), "test average precision") : tile(share(report.test_macro_f1), "test macro F1"),
      tile(share(validation_value), `validation ${measure}`), tile(count(d.nodes), "nodes"), tile(count(d.edges), "edges"),
      tile(count(d.features), "features"), ...(links ? [] : [tile(count(d.classes), "classes")]), tile(count(report.parameters), "parameters")),
    learning(), links && d.test ? ranking() : null, ...(report.test ? [classes(), confusion(), sure()] : []), done()].filter(part => part));
}
show();
