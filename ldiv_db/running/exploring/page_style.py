"""How the page of an exploration looks, and the little that it does: one variant at a time, and a button to copy."""

from __future__ import annotations

from markupsafe import Markup

#: The colours are those of charts; paper is white.
_COLOURS = "--ink:#1b1f24;--soft:#57606a;--grid:#d8dee4;--paper:#fff;--tint:#f6f8fa;--link:#0550ae"
_DARK = "--ink:#e6edf3;--soft:#9da7b3;--grid:#343b44;--paper:#14181d;--tint:#1c2128;--link:#79b8ff"

STYLE = Markup(
    f":root{{{_COLOURS};color-scheme:light dark}}@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,"
    "-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
    "main{max-width:72rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}"
    "h1{font-size:1.8rem;line-height:1.2;margin:0 0 1rem;overflow-wrap:anywhere}"
    "h2{font-size:1.25rem;margin:2.5rem 0 .75rem;overflow-wrap:anywhere}h3{font-size:1rem;margin:1.5rem 0 .5rem}"
    "p,ul{max-width:46rem}a{color:var(--link)}code,pre{font-family:ui-monospace,Menlo,Consolas,monospace}"
    ".internal{border-left:4px solid #D55E00;padding:.5rem .9rem;background:var(--tint)}"
    ".maps{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:2rem 3rem}"
    "figure{margin:0}.maps .chart{max-width:100%}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;color:var(--soft);padding-bottom:.4rem}"
    "th,td{text-align:left;padding:.45rem .9rem .45rem 0;border-bottom:1px solid var(--grid);vertical-align:top}"
    "thead th{font-weight:600;color:var(--soft)}tbody th{font-weight:400}.n{text-align:right}"
    "thead th:nth-child(n+3):not(:last-child){text-align:right}"
    ".best th,.best td{font-weight:600}"
    "article{scroll-margin-top:1rem}article:focus{outline:none}"
    ".alone article{background:var(--tint);border-radius:.5rem;padding:.25rem 1.5rem 1.5rem;margin-top:1.5rem}"
    ".alone h2{margin-top:1.25rem}.alone pre,.alone button{background:var(--paper)}"
    "dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,15rem),1fr));gap:.75rem 2rem;margin:0}"
    "dl div{min-width:0}dt{color:var(--soft);font-size:.875rem}dd{margin:0;overflow-wrap:anywhere}"
    "pre{background:var(--tint);padding:1rem;overflow-x:auto;font-size:.875rem;line-height:1.45;margin:0}"
    "button{font:inherit;color:inherit;background:var(--tint);border:1px solid var(--soft);border-radius:.3rem;"
    "padding:.25rem .8rem;margin:0 0 .5rem;cursor:pointer}"
    "a[aria-current] .point{stroke:var(--ink);stroke-width:3}tr:has(a[aria-current]){background:var(--tint)}"
    ".alone article:not([aria-current]){display:none}"
    "@media print{.scroll{overflow:visible}.alone article:not([aria-current]){display:block}button{display:none}"
    "article{break-inside:avoid}}"
)

#: Without it all variants are on the page, one below the other.
SCRIPT = Markup(
    "(function(){'use strict';"
    "var box=document.getElementById('parts'),maps=document.getElementById('maps');"
    "var all=[].slice.call(document.querySelectorAll('article'));"
    "if(!all.length)return;box.className='alone';maps.parentNode.insertBefore(box,maps.nextSibling);"
    "var first=all.filter(function(a){return a.hasAttribute('data-first')})[0]||all[0];"
    "function mark(nodes,on){[].forEach.call(nodes,function(n){"
    "if(on)n.setAttribute('aria-current','true');else n.removeAttribute('aria-current')})}"
    "function show(){var id=location.hash.slice(1),one=all.filter(function(a){return a.id===id})[0]||first;"
    "mark(document.querySelectorAll('[aria-current]'),false);mark([one],true);"
    "mark(document.querySelectorAll('a[href=\"#'+one.id+'\"]'),true);"
    "if(one.id===id){one.scrollIntoView();one.focus({preventScroll:true})}}"
    "all.forEach(function(a){var pre=a.querySelector('pre'),b=document.createElement('button');"
    "b.type='button';b.textContent='Copy the policy';"
    "b.addEventListener('click',function(){"
    "var range=document.createRange(),s=getSelection();range.selectNodeContents(pre);s.removeAllRanges();"
    "s.addRange(range);var done=function(){b.textContent='Copied'};"
    "if(navigator.clipboard)navigator.clipboard.writeText(pre.textContent).then(done,function(){});"
    "else if(document.execCommand('copy'))done()});"
    "pre.parentNode.insertBefore(b,pre)});"
    "window.addEventListener('hashchange',show);show()})()"
)
