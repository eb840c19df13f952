"""Draws docs/plots/clusters.svg: some clusters of the yeast network in data/, as README.md shows them.

usage: python3 -B bench/plot_clusters.py [MCL-GPU]     by default build/bin/mcl-gpu

Each cluster is laid out by itself (springs and repulsion, the same in every run) around a place on the page. Of each
protein the four strongest links are drawn. Needs only Python.
"""
import gzip
import math
import os
import random
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "data", "4932.protein.physical.links.v12.0.txt.gz")
LEAST = 700  # score of a link
WIDTH, HEIGHT = 880, 400
# A protein of the cluster, its name on the page, the centre, the colour.
SHOWN = [("YHR165C", "spliceosome", 150, 130, "#4c72b0"), ("YER012W", "proteasome", 395, 110, "#dd8452"),
         ("YGL092W", "nuclear pore", 590, 135, "#55a868"), ("YBL045C", "respiratory chain", 300, 295, "#c44e52"),
         ("YBL099W", "ATP synthase, V-ATPase", 495, 295, "#8172b3"), ("YDR118W", "APC/C", 770, 90, "#937860"),
         ("YDR176W", "SAGA", 670, 290, "#da8bc3"), ("YDL145C", "COPI coat", 800, 255, "#64b5cd")]


def read_links():
    """{protein: {protein: score}} of the links that count."""
    links = {}
    with gzip.open(DATA, "rt") as file:
        next(file)
        for line in file:
            a, b, score = line.split()
            if int(score) >= LEAST:
                links.setdefault(a[5:], {})[b[5:]] = int(score)
    return links


def read_clusters(tool):
    text = subprocess.run([tool, DATA, "--min-score", str(LEAST), "-I", "2", "-V", "all", "-q", "x", "-o", "-"],
                          check=True, capture_output=True, text=True).stdout
    return [[name[5:] for name in line.split("\t")] for line in text.splitlines()]


def layout(nodes, links, centre):
    """Fruchterman and Reingold's forces: {node: (x, y)} within a circle whose area grows with the nodes."""
    drawn = random.Random(len(nodes))
    radius = 11 * math.sqrt(len(nodes))
    best = 1.1 * radius * math.sqrt(math.pi / len(nodes))
    at = {n: [drawn.uniform(-radius, radius), drawn.uniform(-radius, radius)] for n in nodes}
    for step in range(300):
        most = radius / 4 * (1 - step / 300)
        force = {n: [0.0, 0.0] for n in nodes}
        for i, a in enumerate(nodes):
            for b in nodes[:i]:
                dx, dy = at[a][0] - at[b][0], at[a][1] - at[b][1]
                far = math.hypot(dx, dy) + 0.01
                push = best * best / far - (far * far / best / 6 if b in links[a] else 0)
                for n, sign in (a, 1), (b, -1):
                    force[n][0] += sign * push * dx / far
                    force[n][1] += sign * push * dy / far
        for n in nodes:
            size = math.hypot(*force[n]) + 0.01
            at[n] = [c + f / size * min(size, most) for c, f in zip(at[n], force[n])]
            out = math.hypot(*at[n]) / radius
            if out > 1:
                at[n] = [c / out for c in at[n]]
    return {n: (round(centre[0] + at[n][0]), round(centre[1] + at[n][1])) for n in nodes}, radius


def edges(nodes, links, places):
    """The path of each node's four strongest links to others that have a place."""
    pairs = {tuple(sorted((a, b))) for a in nodes
             for b in sorted((b for b in links[a] if b in places), key=lambda b: (-links[a][b], b))[:4]}
    return "".join("M%d %dL%d %d" % (places[a] + places[b]) for a, b in sorted(pairs))


def main():
    tool = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "bin", "mcl-gpu")
    links, clusters = read_links(), read_clusters(tool)
    places, groups = {}, []
    for protein, name, x, y, colour in SHOWN:
        nodes = sorted(next(c for c in clusters if protein in c))
        own, radius = layout(nodes, links, (x, y))
        places.update(own)
        groups.append((nodes, own, radius, name, x, y, colour))
    group_of = {n: i for i, g in enumerate(groups) for n in g[0]}
    between = sorted({tuple(sorted((a, b))) for a in places for b in links[a]
                      if b in places and group_of[a] != group_of[b]})
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="14" text-anchor="middle">', '<rect width="100%" height="100%" fill="#fff"/>',
           '<path stroke="#bbb" stroke-width=".6" fill="none" d="' +
           "".join("M%d %dL%d %d" % (places[a] + places[b]) for a, b in between) + '"/>']
    for nodes, own, radius, name, x, y, colour in groups:
        svg.append(f'<path stroke="{colour}" stroke-width=".5" stroke-opacity=".6" fill="none" '
                   f'd="{edges(nodes, links, own)}"/>')
        svg.append(f'<g fill="{colour}" stroke="#fff" stroke-width=".5">' +
                   "".join(f'<circle cx="{own[n][0]}" cy="{own[n][1]}" r="3.5"/>' for n in nodes) + "</g>")
        svg.append(f'<text x="{x}" y="{round(y + radius + 20)}">{name} ({len(nodes)})</text>')
    with open(os.path.join(ROOT, "docs", "plots", "clusters.svg"), "w") as file:
        file.write("\n".join(svg) + "\n</svg>\n")


if __name__ == "__main__":
    main()
