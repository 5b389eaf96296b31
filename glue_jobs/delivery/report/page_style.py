"""How the report looks. Colours are Okabe and Ito's, which differ for every kind of colour vision; text has 4.5:1 or more."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{--edge:clamp(1rem,4vw,2.5rem);--paper:#fff;--card:#f5f7f9;--ink:#1b1f24;--soft:#57606a;--rule:#d5dae0;--blue:#0072b2;--red:#c04a00;--grey:#737b84;
--good:#00694d;--warn:#8a5200;--wait:#0b5c94}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1e2329;--ink:#e9ecef;--soft:#aab3bd;--rule:#3a424b;
--blue:#56b4e9;--red:#f08a4b;--grey:#8b949e;--good:#4cc9a0;--warn:#f0b24b;--wait:#7cc4f2}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;padding:1.5rem var(--edge) 3rem;max-width:76rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1{margin:0;font-size:clamp(1.6rem,5vw,2.3rem);line-height:1.2}
h2{margin:0 0 .75rem;font-size:1.3rem;line-height:1.3}
h3{margin:0;font-size:1rem}
p,ul,dl{margin:0 0 .75rem}
ul{max-width:60rem;padding-left:1.25rem}
li{margin:.2rem 0}
section{margin-top:2.5rem}
section h3:not(:first-child){margin-top:1.5rem}
code{font:.875em/1.4 ui-monospace,SFMono-Regular,Consolas,"Liberation Mono",monospace}
a{color:var(--wait)}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--wait);outline-offset:2px}
.soft,.aside,figcaption p,caption,.when{color:var(--soft)}
.window{margin:.35rem 0 .75rem;font-size:1.1rem}
.prose{max-width:46rem}
.status{display:flex;gap:.6rem;max-width:46rem;margin:1rem 0 0;padding:.75rem 1rem;background:var(--card);
border-left:.4rem solid var(--wait)}
.status b{white-space:nowrap;color:var(--wait)}
.status.complete{border-color:var(--good)}.status.complete b,.passed{color:var(--good)}
.status.late{border-color:var(--warn)}.status.late b,.failed{color:var(--warn)}
.passed,.failed{font-weight:600;white-space:nowrap}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:1.25rem 0 0;padding:0;list-style:none}
nav li{margin:0}
nav a{display:inline-block;padding:.25rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));gap:1rem;margin:0}
.cards div{padding:.85rem 1rem;background:var(--card);border-radius:.4rem}
.cards dt{color:var(--soft)}
.cards dd{margin:0}
.cards .big{font-size:1.7rem;font-weight:600;line-height:1.25;font-variant-numeric:tabular-nums}
.when{font-size:.9rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:2rem 2.5rem}
figure{margin:0;min-width:0}
figcaption{margin-bottom:.6rem}
figcaption p{margin:0}
svg{display:block;overflow:visible}
svg text{fill:var(--ink);font-size:13px}
svg.y4{width:calc(100% - 2.5rem);margin-left:2.5rem}
svg.y8{width:calc(100% - 4.25rem);margin-left:4.25rem}
svg.y14{width:calc(100% - 6.5rem);margin-left:6.5rem}
svg .value{text-anchor:end;font-variant-numeric:tabular-nums}
svg text.none{font-style:italic}
svg .tick{fill:var(--soft);font-size:12px}
.bar{fill:var(--blue)}.bar.minus{fill:var(--red)}.bar.other,.bar.none{fill:var(--grey)}
.axis{stroke:var(--soft);stroke-width:1}.grid{stroke:var(--rule);stroke-width:1}
.line,.dots{fill:none;stroke:var(--blue);stroke-width:2;stroke-linejoin:round}
.dots{stroke-width:7;stroke-linecap:round}
details{margin-top:.75rem}
summary{padding:.25rem 0;cursor:pointer;color:var(--wait)}
.scroll{overflow-x:auto;margin-bottom:.75rem;
background:linear-gradient(to left,var(--paper) 50%,transparent) right/3rem 100% no-repeat local,
linear-gradient(to left,var(--rule),transparent) right/.9rem 100% no-repeat scroll}
table{min-width:min(100%,26rem);border-collapse:collapse;font-size:.9rem;line-height:1.4}
caption{padding:0 0 .4rem;text-align:left}
caption span{display:inline-block;position:sticky;left:0;max-width:min(60rem,calc(99vw - 2*var(--edge)))}
th,td{padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top;unicode-bidi:plaintext;
overflow-wrap:break-word}
thead th{border-bottom:2px solid var(--soft);vertical-align:bottom}
tbody th{font-weight:400}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
#first td,#first th{padding-right:1rem;white-space:pre}
#dictionary th,#dictionary td{min-width:6rem}
#dictionary code{overflow-wrap:anywhere}
#dictionary td:nth-child(2),#results tbody th{min-width:12rem}
#dictionary td:nth-child(4){min-width:0}
#dictionary b{display:block;font-weight:600}
#files td:last-child{min-width:17rem}
.facts{display:grid;grid-template-columns:minmax(8rem,max-content) minmax(0,1fr);gap:.3rem 1.5rem}
.facts dt{color:var(--soft)}.facts dd{margin:0}
.paper{display:none}
@media (max-width:30rem){svg .middle{display:none}.facts{display:block}.facts dd{margin-bottom:.5rem}.status{display:block}}
@media (forced-colors:active){.bar,svg text{fill:CanvasText}.line,.dots,.axis{stroke:CanvasText}}
@media print{@page{margin:14mm}
body{padding:0 3px;max-width:none;font-size:10pt}
nav,details{display:none}
.paper{display:block}
section{margin-top:1.6rem}
h2,h3,figcaption{break-after:avoid}
figure,tr,.cards div,.status{break-inside:avoid}
.charts{grid-template-columns:1fr 1fr;gap:1.2rem 1.6rem}
.cards{grid-template-columns:repeat(auto-fit,minmax(10rem,1fr))}
.cards div{border:1px solid var(--rule)}
.cards .big{font-size:1.05rem}
.scroll{overflow:visible;background:none}
table{font-size:8pt;width:100%}
#first td,#first th{white-space:normal;overflow-wrap:anywhere}
#first tr>:nth-child(n+9){display:none}
th,td{padding:.25rem .6rem .25rem 0}
#dictionary th:first-child{min-width:7.5rem}
#dictionary td,#dictionary td:nth-child(2),#results tbody th,#files td:last-child{min-width:0;overflow-wrap:anywhere}
}
"""
