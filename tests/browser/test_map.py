"""The risk-utility map in a real browser: a script of ours in the page says what a reader would see."""

import base64
import json
import re
import shutil
import subprocess

import pytest

from ldiv_db.policy.policy import parse_policy
from ldiv_db.recoding.loss import Loss
from ldiv_db.running.exploring.outcomes import Exploration, Outcome, Risk
from ldiv_db.running.exploring.page import page
from ldiv_db.running.exploring.variants import Variant

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]
NAMES = ("age", "a column of a very long name, ünïcode and <b>tags</b>", "zip")
#: Runs before the page's own script, and counts what goes wrong.
EARS = "<script>window.wrong=[];addEventListener('error',e=>wrong.push(String(e.message)));</script>"
#: Looks at the page as it is, then chooses a mark by a click, and another one by the keyboard.
PROBE = """<script>addEventListener('load',async()=>{
const pause=()=>new Promise(r=>setTimeout(r,50)),seen=e=>e.getClientRects().length>0;
const rgb=c=>(c.match(/[\\d.]+/g)||[]).map(Number),light=c=>{const [r,g,b]=c.slice(0,3).map(v=>{v/=255;
 return v<=.03928?v/12.92:((v+.055)/1.055)**2.4});return .2126*r+.7152*g+.0722*b};
const paper=e=>{for(;e;e=e.parentElement){const c=rgb(getComputedStyle(e).backgroundColor);
 if(c.length===3||c[3]>0)return c}
 return [255,255,255]};
const contrast=e=>{const s=getComputedStyle(e),ink=e.namespaceURI.endsWith('svg')?s.fill:s.color;
 const a=light(rgb(ink)),b=light(paper(e));
 return (Math.max(a,b)+.05)/(Math.min(a,b)+.05)};
const words='h1,h2,h3,p,li,th,td,dt,dd,pre span,button,caption,p a,td a,th a,svg text';
const texts=()=>[...document.querySelectorAll(words)].filter(
 e=>e.textContent.trim()&&seen(e));
const overlaps=()=>[...document.querySelectorAll('svg')].filter(seen).flatMap(svg=>{
 const boxes=[...svg.querySelectorAll('text')].map(t=>[t.textContent,t.getBoundingClientRect()]);
 return boxes.flatMap(([a,x],i)=>boxes.slice(i+1).filter(([b,y])=>x.left+1<y.right&&y.left+1<x.right&&x.top+2<y.bottom
  &&y.top+2<x.bottom).map(([b])=>a+' / '+b))});
const shown=()=>[...document.querySelectorAll('article')].filter(seen).map(e=>e.id),found={width:innerWidth};
found.first=shown();
const marks=[...document.querySelectorAll('.maps svg a')];
found.marks=marks.length;
marks[1].dispatchEvent(new MouseEvent('click',{bubbles:true,cancelable:true}));await pause();
found.clicked=[marks[1].getAttribute('href'),shown()];
marks[2].focus();found.focused=document.activeElement===marks[2];
found.current=[...document.querySelectorAll('.maps a[aria-current]')].map(a=>a.getAttribute('href'));
document.querySelector('article[aria-current] button').click();await pause();
found.copied=String(getSelection());
found.overlaps=overlaps();
found.least=Math.min(...texts().map(contrast));
found.wide=document.documentElement.scrollWidth;
found.requests=performance.getEntriesByType('resource').map(r=>r.name);
found.wrong=wrong;
const pre=document.createElement('pre');pre.id='probe';
pre.textContent=btoa(unescape(encodeURIComponent(JSON.stringify(found))));
document.body.append(pre)})</script>"""


def outcome(number, varied, risk, lost):
    policy = parse_policy({"source": "t", "target": "r", "quasi_identifiers": list(NAMES), "require": [{"k": 2}]})
    keys = {"require": [{"k": number}]}
    columns = dict(zip(NAMES, (lost, lost / 2, lost / 3), strict=True))
    mean = sum(columns.values()) / 3
    loss = Loss(900 // number, 900, 0, 0, number, number + 3, mean * 2700, mean, mean * 2700, mean, 900, columns, 12)
    found = Risk(risk, risk / 2, 1 / number, 1 / (number + 1))
    return Outcome(Variant(number, policy, varied, keys), "done", "", "bsgi", number, loss, found)


@pytest.fixture(scope="module")
def text():
    """The page of a dozen variants, of which one was refused."""
    outcomes = [outcome(l, {"l": l}, 1 / l, 0.1 * l) for l in range(2, 9)]  # noqa: E741
    outcomes += [outcome(20 + i, {"without": name}, 0.3, 0.6 + i / 9) for i, name in enumerate(NAMES)]
    outcomes.append(Outcome(Variant(40, outcomes[0].variant.policy, {"l": 40}), "infeasible", "too few values\nof x"))
    document = {"source": "main.people", "target": "r", "require": [{"k": 2}], "sensitive": ["disease"], "seed": 3}
    return page(Exploration("main.people", 900, NAMES, ("disease",), outcomes, True, document=document))


def opened(text, folder, width, *options, form="--dump-dom"):
    (folder / "map.html").write_text(text, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=4000"]
    command += [*options, form, (folder / "map.html").as_uri()]
    return subprocess.run(command, capture_output=True, check=True, timeout=180).stdout.decode()


def probed(text, folder, width, *options):
    """What the script in the page saw, of a page in a frame as wide as a narrow screen."""
    with_probe = text.replace("<title>", EARS + "<title>", 1).replace("</body>", PROBE + "</body>", 1)
    dom = opened(with_probe, folder, width, *options)
    return json.loads(base64.b64decode(re.search(r'<pre id="probe">([^<]*)</pre>', dom)[1]))


@pytest.mark.parametrize("width", [360, 1024, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_reader_finds_every_variant(text, tmp_path, width, scheme):
    options = [] if scheme == "light" else ["--blink-settings=preferredColorScheme=0"]
    found = probed(text, tmp_path, width, *options)
    assert found["wrong"] == [] and found["requests"] == []
    assert found["marks"] == 2 * 10 and found["first"] == ["v2"]
    href, shown = found["clicked"]
    assert shown == [href[1:]] and set(found["current"]) == {href} and found["focused"]
    assert f"k: {href[2:]}" in found["copied"] and "seed: 3" not in found["copied"]
    assert found["overlaps"] == [] and found["least"] >= 4.5
    assert found["wide"] <= max(found["width"], 360)


def test_without_scripts_all_is_there(text, tmp_path):
    dom = opened(text.replace("<script>", "<script type='text/none'>"), tmp_path, 1024)
    assert dom.count("<article") == 10 and 'class="alone"' not in dom


def test_it_prints(text, tmp_path):
    opened(text, tmp_path, 1024, f"--print-to-pdf={tmp_path / 'map.pdf'}")
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")
