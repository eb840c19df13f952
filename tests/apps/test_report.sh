#!/bin/bash
# Quality, reports, tables and GraphML of mcl-gpu: the same figures everywhere, those of clm info and clm dist where
# mcl's programs are installed, and a page that a real browser draws where there is one.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]   CHROMIUM  a browser that knows --headless [chromium]
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
network=$PWD/data/Hu-2007.txt.gz
browser=${CHROMIUM:-chromium}
. tests/support/cli.sh

inflations=(1.4 2 4)
ok 'three inflations at once' status 0 "$network" -I 1.4,2,4 --device cpu -o c --report r.json --table t.tsv \
    --graphml g.graphml
cp run.err log
ok 'the same as a page' status 0 "$network" -I 1.4,2,4 --device cpu -o d --report r.html -q x
ok 'clusters do not depend on reports' status 0 "$network" -I 2 --device cpu -o plain -q x
ok 'nor does their file' cmp plain c.I20

# ---- one set of figures --------------------------------------------------------------------------------------

cat >figures.py <<'END'
import collections, json, re, sys
import xml.etree.ElementTree as xml

report = json.load(open("r.json"))
page = open("r.html").read()
embedded = json.loads(re.search(r'id="report">(.*?)</script>', page, re.S).group(1))
table = [line.rstrip("\n").split("\t") for line in open("t.tsv")]
columns = {name: [row[i] for row in table[1:]] for i, name in enumerate(table[0])}


def clusters(inflation):
    name = "c.I%02d" % round(10 * inflation)
    return [line.split() for line in open(name) if line.strip()]


def check_page():
    for a, b in zip(report["runs"], embedded["runs"]):
        for key in ("quality", "sizes", "largest_clusters", "clusters", "largest", "singletons", "iterations"):
            assert a[key] == b[key], key
    assert report["comparison"] == embedded["comparison"] and report["advice"] == embedded["advice"]
    assert len(page) < 2_000_000
    assert not re.search(r'(src|href)\s*=|@import|url\(', page), "the page loads something"


def check_sizes():
    for run in report["runs"]:
        lists = sorted((len(c) for c in clusters(run["inflation"])), reverse=True)
        assert run["sizes"] == [list(i) for i in sorted(collections.Counter(lists).items(), reverse=True)]
        assert run["quality"]["median"] == sorted(lists)[(len(lists) - 1) // 2]
        for listed in run["largest_clusters"]:
            members = clusters(run["inflation"])[listed["number"] - 1]
            assert listed["members"] == members[:len(listed["members"])] or set(listed["members"]) <= set(members)
            assert listed["size"] == len(members) and 0 <= listed["density"] <= 1 and listed["hub"] in members
            weights = [edge[2] for edge in listed["edges"]]
            assert weights == sorted(weights, reverse=True) and all(set(edge[:2]) <= set(members) for edge in listed["edges"])


def check_table():
    for run in report["runs"]:
        suffix = ".I%g" % run["inflation"]
        home = {node: str(k + 1) for k, c in enumerate(clusters(run["inflation"])) for node in c}
        assert [home[node] for node in columns["node"]] == columns["cluster" + suffix]
        sizes = collections.Counter(columns["cluster" + suffix])
        assert [str(sizes[c]) for c in columns["cluster" + suffix]] == columns["size" + suffix]
        inside = sum(float(w) for w in columns["weight_inside" + suffix])
        total = sum(c["weight"] for c in run["largest_clusters"])
        if run["clusters"] == len(run["largest_clusters"]):
            assert abs(inside / total - run["quality"]["coverage"]) < 1e-6
        attractors = {c for c, a in zip(columns["cluster" + suffix], columns["attractor" + suffix]) if a == "1"}
        assert len(attractors) == run["clusters"], "a cluster without an attractor"


def check_graphml():
    space = "{http://graphml.graphdrawing.org/xmlns}"
    graph = xml.parse("g.graphml").getroot().find(space + "graph")
    nodes = [[d.text for d in node] for node in graph.iter(space + "node")]
    assert [n[0] for n in nodes] == columns["node"]
    assert [n[1] for n in nodes] == columns["cluster.I1.4"]
    edges = sum(1 for _ in graph.iter(space + "edge"))
    assert graph.get("edgedefault") == "undirected" and 0 < edges <= report["input"]["arcs"]


globals()["check_" + sys.argv[1]]()
END
for part in page sizes table graphml; do ok "figures agree: $part" python3 figures.py "$part"; done
latin() { # names in Latin-1, and what is outside UTF-8, are text in GraphML
    printf 'M\374ller\tJos\351\t1\nJos\351\tx\355\240\200\t2\n' >latin.abc
    "$tool" latin.abc --abc -q x -o latin.cls --graphml latin.graphml && python3 - <<'END'
import xml.etree.ElementTree as xml
names = [data.text for data in xml.parse("latin.graphml").iter("{http://graphml.graphdrawing.org/xmlns}data")
         if data.get("key") == "name"]
assert names == ["Müller", "José", "x\u00ed\u00a0\u0080"], names
END
}
ok 'names that are no UTF-8 in GraphML' latin
ok 'the table of a series is on stderr' grep -qE '^ +1\.4 +[0-9,]+ .*' log
ok 'with advice' grep -q '^.*Look at inflation\|stands out' log
quiet_series() { status 0 "$network" -I 2,4 --device cpu -o e -V all && [ ! -s run.err ]; }
ok 'but not under -V all' quiet_series
judged() { status 0 "$network" --device cpu -o f --quality -V all && [ "$(wc -l <run.err)" -eq 2 ]; }
ok '--quality prints that of one clustering' judged
advised() { # advised EDGES SENTENCE: of inflations 2 and 3, which give the same clusters
    printf '%b' "$1" >advised.abc
    status 0 advised.abc --abc --device cpu -I 2,3 -o adv && grep -qF "$2" run.err || { cat run.err; return 1; }
}
ok 'no advice where one cluster has all nodes' advised 'a b\nb c\na c\n' \
    'Inflation 3 puts more than half of the nodes into one cluster. Efficiency and modularity are highest at inflation 2. None of these stands out'
ok 'no advice where most nodes are alone' advised 'a b\nc c\nd d\n' \
    'Inflation 3 leaves more than a quarter of the nodes alone. Efficiency and modularity are highest at inflation 2. None of these stands out'
ok 'advice where neither is so' advised 'a b\nc d\n' 'Look at inflation 2 first'
ok 'sweep is a series' eval 'status 0 "$network" --device cpu -I sweep -o s -V all && ls s.I14 s.I20 s.I28 s.I40 s.I60'
ok 'a table may go to stdout' eval 'status 0 "$network" --device cpu -o f --table - -V all && [ "$(head -n 1 run.out)" = "node	cluster	size	weight_inside	attractor" ]'
printf '<&"\tb>\t1\n' >odd.abc
markup() {
    status 0 odd.abc -o m --graphml m.graphml --report m.html -V all && python3 - <<'END'
import json, re, xml.etree.ElementTree as xml
names = [d.text for d in xml.parse("m.graphml").getroot().iter() if d.get("key") == "name"]
assert names == ['<&"', "b>"], names
text = re.search(r'id="report">(.*?)</script>', open("m.html").read(), re.S).group(1)
assert "<" not in text and json.loads(text)["runs"][0]["largest_clusters"][0]["members"] == ['<&"', "b>"]
END
}
ok 'names that are markup' markup
ok 'numbers are names where there are none' eval 'printf "%%%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 1\n" >n.mtx && status 0 n.mtx -o n --table n.tsv --report n.html -V all && [ "$(cut -f 1 n.tsv | tr "\n" " ")" = "node 0 1 2 " ]'
: >none.abc
ok 'an empty network' status 0 none.abc --abc -o z --report z.html --table z.tsv --graphml z.graphml --quality -q x
unwritten() { ! run "$network" -o w --table missing/t.tsv && [ ! -e w ]; }
ok 'no clusters where the table cannot be written' unwritten
ok 'nothing half written' no_leftovers
cat >first_pixel.py <<'END'
import struct, sys, zlib
data, at, packed, colours = open(sys.argv[1], "rb").read(), 8, b"", None
while at < len(data):
    length, kind = struct.unpack(">I4s", data[at:at + 8])
    if kind == b"IHDR": size = struct.unpack(">II", data[at + 8:at + 16])
    if kind == b"PLTE": colours = data[at + 8:at + 8 + length]
    if kind == b"IDAT": packed += data[at + 8:at + 8 + length]
    at += 12 + length
pixels = zlib.decompress(packed) # in the corner every filter leaves a byte as it is
assert size == tuple(map(int, sys.argv[2].split("x"))) and len(set(pixels)) > int(sys.argv[3]), "an empty picture"
print("#%02x%02x%02x" % tuple(colours[3 * pixels[1]:3 * pixels[1] + 3] if colours else pixels[1:4]))
END
shown() { # shown FILE COLOUR: a small picture on the ground that the page has
    local file=$root/docs/plots/$1
    [ "$(stat -c %s "$file")" -le 60000 ] && [ "$(python3 first_pixel.py "$file" 960x1180 15)" = "$2" ] &&
        grep -qF "(plots/$1)" "$root/docs/guide.md" && grep -qF -- "--back: $2;" "$root/apps/common/page.html"
}
ok 'a picture of a page in the guide' shown report.png '#fbfbfa'
ok 'and of one in dark colours' shown report-dark.png '#14181d'

# 100,000 nodes with long names in stars of 16, which are clusters at every inflation.
awk 'BEGIN { for (i = 0; i < 6250; i++) for (k = 1; k < 16; k++)
    printf "organism_%05d_%05d\torganism_%05d_%05d\t%.6f\n", i, 0, i, k, 1 + k / 7 }' >stars.abc
small_page() { # small_page CLUSTERS NAMES NETWORK ARGUMENTS...: below 2 MB, and each run lists so many of both
    status 0 "$3" --abc --device cpu -q x -o stars --report stars.html "${@:4}" && python3 - "$1" "$2" <<'END'
import json, re, sys
page = open("stars.html").read()
runs = json.loads(re.search(r'id="report">(.*?)</script>', page, re.S).group(1))["runs"]
listed = [(len(run["largest_clusters"]), sum(len(c["members"]) for c in run["largest_clusters"])) for run in runs]
assert len(page) < 2_000_000, len(page)
assert all(clusters >= int(sys.argv[1]) and names >= int(sys.argv[2]) for clusters, names in listed), listed
END
}
ok 'a small page of 100,000 nodes with long names' small_page 500 8000 stars.abc -I 2
ok 'also with a sweep' small_page 250 4000 stars.abc -I sweep
ok 'and with ten inflations' small_page 100 1500 stars.abc -I 1.4,1.6,1.8,2,2.2,2.5,3,4,5,6
awk 'BEGIN { for (k = 1; k < 7000; k++) printf "%0200d\t%0200d\n", k < 6000 ? 0 : 6000, k }' >huge.abc
ok 'a huge cluster leaves room for the others' small_page 2 4000 huge.abc -I 2

# ---- against mcl's programs -----------------------------------------------------------------------------------

if command -v clm >/dev/null && command -v mcxload >/dev/null; then
    zcat "$network" >n.abc
    mcxload -abc n.abc -o n.mci -write-tab n.tab >/dev/null 2>&1
    "$tool" n.mci -I 1.4,2,4 --device cpu -o k --report k.json -q x >/dev/null 2>&1
    for suffix in 14 20 40; do # clm info adds loops for the first clustering of a call only
        clm info n.mci "k.I$suffix"
    done >info 2>/dev/null
    clm dist --chain k.I14 k.I20 k.I40 >dist 2>/dev/null
    cat >compare.py <<'END'
import json, re
report = json.load(open("k.json"))
info = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in open("info") if line.startswith("eff")]
dist = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in open("dist") if line.startswith("d=")]
assert len(info) == 3 and len(dist) == 2
for run, clm in zip(report["runs"], info):
    q = run["quality"]
    for ours, theirs in (("efficiency", "eff"), ("modularity", "mod"), ("mass_fraction", "mf"), ("area_fraction", "af")):
        assert abs(q[ours] - float(clm[theirs])) < 1.1e-5, (ours, q[ours], clm[theirs])
    assert run["clusters"] == int(clm["ncl"]) and run["largest"] == int(clm["max"])
for pair, clm in zip(report["comparison"], dist):
    assert pair["moved"] == [int(clm["d1"]), int(clm["d2"])], (pair, clm)
END
    ok 'figures of clm info and clm dist' python3 compare.py
    clm dist -mode vi --chain k.I14 k.I20 k.I40 >dist 2>/dev/null
    cat >information.py <<'END'
import json, re
dist = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in open("dist") if line.startswith("d=")]
assert len(dist) == 2
for pair, clm in zip(json.load(open("k.json"))["comparison"], dist):
    for ours, theirs in zip(pair["information"], (clm["d1"], clm["d2"])):
        assert abs(ours - float(theirs)) < 1.1e-3
END
    ok 'variation of information of clm dist' python3 information.py
else
    skip 'figures of clm info and clm dist: mcl is not installed'
    skip 'variation of information of clm dist: mcl is not installed'
fi

# ---- in a browser -----------------------------------------------------------------------------------------------

if command -v "$browser" >/dev/null; then
    draw() { # draw PAGE ARGUMENTS...: what the browser makes of it
        timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
            --virtual-time-budget=5000 "${@:2}" "file://$work/$1" 2>/dev/null
    }
    drawn() {
        draw r.html --dump-dom | sed '/<script/,$d' >dom && grep -q 'Which inflation?' dom && grep -q '>Cluster 1</b>' dom &&
            [ "$(grep -o '<svg' dom | wc -l)" -eq 2 ] && ! grep -q 'NaN\|undefined' dom
    }
    ok 'a browser draws the page' drawn
    pictured() { # pictured PAGE SCHEME COLOUR: a picture on that ground; no message of the console, no request
        # to the network but the browser's own
        rm -f shot.png
        timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
            --disable-background-networking --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr \
            --blink-settings=preferredColorScheme="$2" --window-size=900,1200 --virtual-time-budget=3000 \
            --screenshot="$work/shot.png" --log-net-log="$work/net.log" "file://$work/$1" 2>console >/dev/null
        grep -oE '"url":"(https?|wss?|ftp)://[^"]*"' net.log | grep -vE '://[^/]*\.(google|googleapis|gvt1)\.com/' >requests
        ! grep CONSOLE console && [ -s net.log ] && [ ! -s requests ] && [ "$(python3 first_pixel.py shot.png 900x1200 50)" = "$3" ] || { python3 first_pixel.py shot.png 900x1200 50; return 1; }
    }
    ok 'a picture of the page in dark colours, without a message' pictured r.html 0 '#14181d'
    ok 'and in light ones' pictured r.html 1 '#fbfbfa'
    spoilt() { # spoilt SCRIPT FILE PATTERN: a page with this script is noticed, by what the file says
        sed "s|</style>|</style>$1|" r.html >l.html && ! pictured l.html 1 '#fbfbfa' && [ -s "$2" ] && grep -q "$3" "$2"
    }
    cat >keys.py <<'END'
import json, os, subprocess, sys, time

page, browser, profile, width = sys.argv[1:]
to_browser, from_browser = os.pipe(), os.pipe()


def ends(): # the browser reads commands from 3 and answers through 4
    command, answer = os.dup(to_browser[0]), os.dup(from_browser[1])
    os.dup2(command, 3)
    os.dup2(answer, 4)


process = subprocess.Popen([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--user-data-dir=" + profile, "--window-size=%s,900" % width, "--remote-debugging-pipe", "about:blank"],
    preexec_fn=ends, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(to_browser[0])
os.close(from_browser[1])
state = {"sent": 0, "text": b""}


def call(method, session=None, **arguments):
    state["sent"] += 1
    message = {"id": state["sent"], "method": method, "params": arguments}
    os.write(to_browser[1], json.dumps({**message, **({"sessionId": session} if session else {})}).encode() + b"\0")
    while True:
        while b"\0" not in state["text"]:
            more = os.read(from_browser[0], 65536)
            assert more, "the browser has ended"
            state["text"] += more
        one, state["text"] = state["text"].split(b"\0", 1)
        answer = json.loads(one)
        if answer.get("id") == state["sent"]:
            assert "error" not in answer, answer
            return answer["result"]


def of(script):
    got = call("Runtime.evaluate", session, expression=script, returnByValue=True)
    assert "exceptionDetails" not in got, got
    return got["result"].get("value")


def until(script):
    for _ in range(200):
        if of(script): return
        time.sleep(0.05)
    assert False, "never so: " + script


KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Space": (" ", 32, " "), "ArrowUp": ("ArrowUp", 38, ""),
        "ArrowRight": ("ArrowRight", 39, ""), "Escape": ("Escape", 27, "")}


def press(name, shift=False):
    key, number, text = KEYS[name]
    event = {"key": key, "code": name, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
    call("Input.dispatchKeyEvent", session, type="keyDown" if text else "rawKeyDown", **event, **({"text": text} if text else {}))
    call("Input.dispatchKeyEvent", session, type="keyUp", **event)


# Everything that a mouse can use: what is in a closed <details> is out of reach for both.
CONTROLS = """window.controls = [...document.querySelectorAll("select, input, button, summary, a, [tabindex], [onclick], .scroll")]
    .filter(e => e.checkVisibility() && (e.className !== "scroll" || e.scrollWidth > e.clientWidth)), controls.length"""
FOCUSED = """(() => { const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    return {at: controls.indexOf(e), ring: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    seen: box.bottom > 0 && box.top < innerHeight && style.outlineColor !== getComputedStyle(document.body).backgroundColor}; })()"""
HELD = "document.activeElement.parentElement"


def at(pattern): # Tab until this has the focus
    of("document.activeElement.blur(), getSelection().removeAllRanges(), scrollTo(0, 0)")
    for _ in range(100):
        press("Tab")
        if of("document.activeElement.matches(%s)" % json.dumps(pattern)): return
    assert False, "Tab never comes to " + pattern


def reached():
    count = of(CONTROLS)
    assert count > 4, count
    for i in range(count):
        press("Tab")
        focus = of(FOCUSED)
        assert focus["at"] == i and focus["ring"] >= 2 and focus["seen"], (i, focus)
    press("Tab")
    assert of("document.activeElement === document.body"), "something else has the focus"
    press("Tab", shift=True)
    assert of(FOCUSED)["at"] == count - 1, "Shift and Tab do not go back"


def used():
    at("select")
    words, chosen = of("document.querySelector('.lead').textContent"), of("document.querySelector('select').selectedIndex")
    press("ArrowUp")
    until("document.querySelector('.lead').textContent !== %s" % json.dumps(words))
    assert of("document.activeElement.matches('select') && document.activeElement.selectedIndex") == chosen - 1
    for pattern in ".members", "table": # members of the first cluster; the iterations
        at("summary" if pattern == ".members" else "section > details > summary")
        for key, opened in (("Enter", True), ("Space", False), ("Space", True), ("Enter", False)):
            press(key)
            until("%s.open === %s" % (HELD, json.dumps(opened)))
            until("(n => n !== null && n.checkVisibility() === %s)(%s.querySelector('%s'))" % (json.dumps(opened), HELD, pattern))
    at("#search")
    boxes = of("document.querySelectorAll('details').length")
    name = of("report.runs[%d].largest_clusters[1].members[0]" % (chosen - 1))
    call("Input.insertText", session, text=name)
    until("[...document.querySelectorAll('details[open] mark')].some(m => m.textContent === %s)" % json.dumps(name))
    assert of("document.activeElement.id") == "search" and of("document.querySelectorAll('details').length") < boxes
    press("Escape")
    until("document.querySelectorAll('details').length === %d" % boxes)


def moved(): # a table that is wider than the page
    at(".scroll")
    press("ArrowRight")
    until("document.activeElement.scrollLeft > 0")


try:
    target = call("Target.createTarget", url=page)["targetId"]
    session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    until("document.readyState === 'complete' && document.querySelector('summary') !== null")
    reached()
    moved() if int(width) < 600 else used()
finally:
    process.kill()
    process.wait()
END
    by_keys() { timeout 120 python3 keys.py "file://$work/$1" "$browser" "$work/profile" "$2"; } # by_keys PAGE WIDTH
    ok 'Tab comes to every control, shows it, and keys use it' by_keys r.html 900
    ok 'also to a table that is wider than the page' by_keys r.html 400
    unkeyed() { # unkeyed MARKUP WORDS: a page with this is noticed
        sed "s|</style>|</style>$1|" r.html >u.html && ! by_keys u.html 900 && grep -q "$2" check.out
    }
    ok 'focus that cannot be seen is noticed' unkeyed '<style>summary { outline: none !important; }</style>' "'ring': 0"
    ok 'and a control that only a mouse reaches' unkeyed '<div onclick="show()">again</div>' "'at': "
    if command -v pdftotext >/dev/null; then
        printed() { # with the members of the clusters, and the last column of the comparison
            draw r.html --print-to-pdf="$work/r.pdf" && pdftotext -layout r.pdf printed &&
                grep -qE '^ *inflation .* coverage +moves' printed && grep -q 'Strongest edges' printed || { head -n 40 printed; return 1; }
            for name in $(head -n 3 c.I40); do grep -qw "$name" printed || { echo "no $name"; return 1; }; done
        }
        ok 'and printed whole' printed
    else skip 'the page as printed: pdftotext (poppler-utils) is not installed'; fi
    ok 'a page that loads something is noticed' spoilt '<script src="http://elsewhere.example/x.js"></script>' requests elsewhere
    ok 'and one with an error' spoilt '<script>missing()</script>' console 'CONSOLE.*missing is not defined'
    ok 'and an empty one' eval 'draw z.html --dump-dom | grep -q "0 clusters"'
else
    for what in 'the page' 'as printed' 'in dark colours' 'in light colours' 'a page that loads something' 'one with an error' 'an empty page' 'by keys'; do
        skip "$what in a browser: $browser is not installed"
    done
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
