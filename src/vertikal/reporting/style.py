"""The stylesheet and the script that a report carries inside itself.

`chart_css` alone is enough to show the charts on another page. The script is a
convenience only: it turns tooltips into ones that appear at once, and lets tables be
sorted by a click; without it nothing is hidden.
"""

from __future__ import annotations

from typing import Final

from vertikal.reporting.palette import SERIES_COLOURS, variables_css

__all__ = ["SCRIPT", "chart_css", "page_css"]

_FONT: Final = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'

_CHARTS: Final = """
.vk-svg{display:block;max-width:100%;height:auto;overflow:visible;font-size:12px;
font-family:FONT;fill:var(--vk-ink);font-variant-numeric:tabular-nums;print-color-adjust:exact;
-webkit-print-color-adjust:exact}
.vk-svg .title{font-size:15px;font-weight:600}
.vk-svg .legend,.vk-svg .row{fill:var(--vk-ink)}
.vk-svg .tick,.vk-svg .axis-name,.vk-svg .none,.vk-svg .role{fill:var(--vk-muted)}
.vk-svg .none{font-size:13px;font-style:italic}
.vk-svg .grid{stroke:var(--vk-line);fill:none}
.vk-svg .axis{stroke:var(--vk-strong-line);fill:none}
.vk-svg .diagonal{stroke:var(--vk-strong-line);stroke-dasharray:2 4;fill:none}
.vk-svg .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;
stroke-linecap:round}
.vk-svg .dash{stroke-dasharray:7 5}
.vk-svg .dots{stroke-dasharray:1 5}
.vk-svg .dot{fill:currentColor;stroke:var(--vk-surface);stroke-width:1}
.vk-svg .spot{fill:currentColor;stroke:var(--vk-surface);stroke-width:2;opacity:0}
.vk-svg .dot:hover,.vk-svg .spot:hover{opacity:1;stroke-width:1;r:6px}
.vk-svg .bar{fill:currentColor}
.vk-svg .value{font-weight:600}
.vk-svg .inside{font-size:11px}
.vk-svg .box{fill:var(--vk-surface);stroke:var(--vk-strong-line);stroke-width:1.2}
.vk-svg .labels .box{fill:var(--vk-highlight);stroke:var(--vk-accent);stroke-width:2}
.vk-svg .labels .role{fill:var(--vk-accent);font-weight:600}
.vk-svg .name{font-size:13.5px;font-weight:600}
.vk-svg .role,.vk-svg .what,.vk-svg .size,.vk-svg .count{font-size:11px}
.vk-svg .size,.vk-svg .count{font-weight:600}
.vk-svg .masked{color:var(--vk-masked)}
.vk-svg .open{color:var(--vk-open)}
.vk-svg .arrow{fill:none;stroke:currentColor;stroke-width:1.8}
.vk-svg .masked .arrow{stroke-dasharray:6 4}
.vk-svg g:hover>.arrow{stroke-width:3}
.vk-svg .hit{fill:none;stroke:transparent;stroke-width:14}
.vk-svg .head,.vk-svg .lock{fill:currentColor}
.vk-svg .shackle{fill:none;stroke:currentColor;stroke-width:1.5}
.vk-svg .card{fill:var(--vk-surface)}
.vk-svg .badge{fill:var(--vk-surface);stroke:currentColor;stroke-width:1.5}
.vk-svg .size,.vk-svg .count{fill:currentColor}
"""

_PAGE: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--vk-page);color:var(--vk-ink);font:16px/1.6 FONT;
-webkit-text-size-adjust:100%}
main{max-width:1140px;margin:40px auto;padding:56px 64px 40px;background:var(--vk-surface);
border:1px solid var(--vk-line);border-radius:14px}
header{padding-bottom:24px;border-bottom:1px solid var(--vk-line);margin-bottom:32px}
h1{font-size:34px;line-height:1.2;letter-spacing:-.015em;margin:0;overflow-wrap:anywhere}
.subtitle{color:var(--vk-muted);font-size:18px;margin:10px 0 0;max-width:none;text-wrap:balance}
h2{font-size:23px;line-height:1.3;letter-spacing:-.01em;margin:0 0 16px;break-after:avoid}
section+section,.lead+section{margin-top:56px}
p{max-width:72ch;margin:0 0 16px;overflow-wrap:anywhere}
nav{margin:28px 0 44px;padding:18px 22px;background:var(--vk-page);border-radius:10px}
nav b{font-size:13px;color:var(--vk-muted);font-weight:600}
nav ol{margin:6px 0 0;padding:0 0 0 20px;columns:2;column-gap:40px}
nav li{break-inside:avoid}
a{color:var(--vk-accent);text-decoration:none}a:hover{text-decoration:underline}
.facts{display:flex;flex-wrap:wrap;gap:14px;margin:0 0 28px;padding:0}
.facts div{flex:1 1 150px;padding:16px 20px;border:1px solid var(--vk-line);border-radius:10px;
break-inside:avoid}
.facts dt{color:var(--vk-muted);font-size:14px;line-height:1.4}
.facts dd{margin:4px 0 0;font-size:25px;line-height:1.25;font-weight:600;letter-spacing:-.01em;
font-variant-numeric:tabular-nums;white-space:nowrap}
.figures{display:flex;flex-wrap:wrap;gap:36px 40px;margin:24px 0 32px;align-items:flex-start}
figure{margin:0;min-width:0;max-width:100%;break-inside:avoid}
figcaption,caption{color:var(--vk-muted);font-size:14px;line-height:1.5;text-align:left}
figcaption{margin-top:12px;max-width:72ch}
.table{overflow-x:auto;margin:20px 0 32px}
table{border-collapse:collapse;width:100%;font-size:15px;line-height:1.45;
font-variant-numeric:tabular-nums}
caption{caption-side:bottom;padding-top:12px}
th{font-size:13.5px;font-weight:600;color:var(--vk-muted);text-align:left;vertical-align:bottom;
border-bottom:1.5px solid var(--vk-strong-line)}
th,td{padding:10px 14px}
td{border-bottom:1px solid var(--vk-line);vertical-align:top}
.r{text-align:right}td.r{white-space:nowrap}
tr.best td{background:var(--vk-highlight);font-weight:600}
th span{cursor:pointer}
th span:hover,th span:focus-visible{color:var(--vk-accent);text-decoration:underline}
th[aria-sort=ascending] span:after{content:" ↑"}
th[aria-sort=descending] span:after{content:" ↓"}
footer{margin-top:56px;padding-top:20px;border-top:1px solid var(--vk-line);font-size:13.5px;
color:var(--vk-muted)}
footer span{display:inline-block;margin-right:22px}
#tip{position:fixed;z-index:9;pointer-events:none;max-width:340px;padding:7px 11px;font-size:13px;
line-height:1.45;white-space:pre-line;border-radius:7px;background:var(--vk-ink);
color:var(--vk-surface);font-variant-numeric:tabular-nums}
@media(max-width:760px){main{margin:0;padding:28px 20px;border:0;border-radius:0}
nav ol{columns:1}h1{font-size:27px}.wide{overflow-x:auto}.wide svg{min-width:620px}}
@media print{@page{margin:16mm}body{font-size:10.5pt;background:none}
main{margin:0;padding:0;border:0;max-width:none}.table{overflow:visible}
table{font-size:9.5pt}thead{display:table-header-group}tr{break-inside:avoid}
h1{font-size:24pt}.subtitle{font-size:12.5pt}h2{font-size:16pt}
.facts dd{font-size:15pt}.facts div{padding:10px 14px;flex-basis:110px}.figures{gap:24px 20px}
.half{width:calc(50% - 10px)!important}figcaption,caption{font-size:9pt}th,td{padding:7px 8px}
section+section{margin-top:32px}#tip{display:none}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""

SCRIPT: Final = """(function(){
var tip=document.createElement("div");tip.id="tip";tip.hidden=true;document.body.append(tip);
document.querySelectorAll("svg title").forEach(function(t){
t.parentNode.setAttribute("data-tip",t.textContent);t.remove()});
document.addEventListener("pointermove",function(e){
var g=e.target.closest&&e.target.closest("[data-tip]");tip.hidden=!g;if(!g)return;
tip.textContent=g.getAttribute("data-tip");
tip.style.left=Math.max(4,Math.min(e.clientX+14,innerWidth-tip.offsetWidth-8))+"px";
var y=e.clientY+18;if(y+tip.offsetHeight>innerHeight)y=e.clientY-tip.offsetHeight-12;
tip.style.top=y+"px"});
document.querySelectorAll("th[data-sort]").forEach(function(th){
var b=document.createElement("span");b.append.apply(b,th.childNodes);th.append(b);
b.tabIndex=0;b.setAttribute("role","button");
b.onkeydown=function(e){if(e.key=="Enter"||e.key==" "){e.preventDefault();b.click()}};
b.onclick=function(){var up=th.getAttribute("aria-sort")!="ascending",i=th.cellIndex,
body=th.closest("table").tBodies[0],rows=Array.from(body.rows);
function key(r){var c=r.cells[i],v=c.getAttribute("data-v");
return v===null?c.textContent:v===""?-Infinity:+v}
rows.sort(function(p,q){var a=key(p),c=key(q);
var d=typeof a=="number"?(a<c?-1:a>c?1:0):a.localeCompare(c);return up?d:-d});
th.parentNode.querySelectorAll("th").forEach(function(o){o.removeAttribute("aria-sort")});
th.setAttribute("aria-sort",up?"ascending":"descending");
body.append.apply(body,rows)}})})();"""


def chart_css() -> str:
    """Colours and the rules of charts, for any page that embeds one."""
    series = "".join(
        f".vk-svg .c{i}{{color:var(--vk-{i})}}.vk-svg .c{i} .inside{{fill:var(--vk-on-{i})}}"
        for i in range(1, SERIES_COLOURS + 1)
    )
    return variables_css() + series + _CHARTS.replace("FONT", _FONT)


def page_css() -> str:
    """Everything that a report needs."""
    return chart_css() + _PAGE.replace("FONT", _FONT)
