"""How the page looks: one sheet, light and dark, and on paper."""

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#5f6b76;--rule:#d9dee3;--soft:#f4f6f8;
--accent:#0b63ce;--band:#0b63ce26;--good:#18794e;--warn:#945700;--bad:#c62a2f;--odd:#7c3fb8;
--plus:#e3f4ea;--minus:#fdeaea;--g1:#4b8bd8;--g2:#18794e;--g3:#c07a00;--g4:#9aa4ae;--g5:#7c3fb8}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7ea;--dim:#98a3ad;--rule:#30363c;
--soft:#1c2125;--accent:#66aaff;--band:#66aaff33;--good:#4cc38a;--warn:#f0b429;--bad:#ff7b7f;
--odd:#c39aff;--plus:#12301f;--minus:#3a1a1c;--g1:#3d74b8;--g2:#4cc38a;--g3:#f0b429;--g4:#6b747d;
--g5:#c39aff}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#444;--rule:#bbb;--soft:#f4f4f4;
--accent:#0b63ce;--band:#0b63ce26;--good:#18794e;--bad:#c62a2f;--plus:#e3f4ea;--minus:#fdeaea}
section,figure,tr{break-inside:avoid}pre{white-space:pre-wrap;max-height:none!important}
nav{display:none}details::details-content{content-visibility:visible;block-size:auto}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.3rem;margin:0}h2{font-size:1.1rem;margin:2.4rem 0 .4rem}
p{margin:.4rem 0;max-width:46rem}.dim,figcaption,caption{color:var(--dim)}
a{color:var(--accent)}nav{margin:1rem 0;font-size:.9rem;display:flex;flex-wrap:wrap;gap:.1rem .9rem}
.hero{display:flex;flex-wrap:wrap;align-items:baseline;gap:.2rem 1rem;margin:.6rem 0 .2rem}
.hero b{font-size:3rem;line-height:1.1;letter-spacing:-.02em}
.badge{border:1px solid;border-radius:1rem;padding:.05rem .7rem;font-size:.85rem}
.yes{color:var(--good)}.no{color:var(--warn)}.fail{color:var(--bad)}
dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(7rem,1fr));gap:.7rem 1rem;
margin:1rem 0;padding:.9rem 0;border:solid var(--rule);border-width:1px 0}
dl.facts dt{color:var(--dim);font-size:.8rem}dl.facts dd{margin:0;font-weight:600}
figure{margin:.8rem 0}figure svg{display:block;width:100%;height:auto}figcaption{font-size:.85rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;width:100%}
caption{text-align:left;font-size:.85rem;padding:.2rem 0}
th{text-align:left;color:var(--dim);font-weight:500}
th,td{padding:.22rem .8rem .22rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td svg{display:block;width:180px;height:20px}
pre,code,kbd{font:.82rem/1.45 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--soft);border-radius:6px;padding:.8rem;overflow:auto;max-height:36rem;
margin:.5rem 0;tab-size:4}
pre .a,pre .d,pre .h{display:inline-block;min-width:100%}
pre .a{background:var(--plus)}pre .d{background:var(--minus)}pre .h{color:var(--dim)}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--accent)}
.key{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.45em;
background:var(--g4)}
svg text{font:11px system-ui,"DejaVu Sans",sans-serif;fill:var(--dim)}
svg .end{text-anchor:end}svg .middle{text-anchor:middle}
svg path{fill:none}.grid{stroke:var(--rule)}.axis{stroke:var(--dim)}
.one{stroke:var(--dim);stroke-dasharray:3 3}.line{stroke:var(--accent);stroke-width:2}
svg .band{fill:var(--band)}.range{stroke:var(--accent);stroke-width:3}
.kin{stroke:var(--g4);stroke-opacity:.45}.other{fill:var(--g4)}.best{fill:var(--accent)}
.empty{fill:var(--soft);stroke:var(--rule)}.cell{fill:var(--accent)}
.winner{stroke:var(--fg);stroke-width:2}
.g0{fill:var(--accent);background:var(--accent)}.g1{fill:var(--g1);background:var(--g1)}
.g2{fill:var(--g2);background:var(--g2)}.g3{fill:var(--g3);background:var(--g3)}
.g4{fill:var(--g4);background:var(--g4)}.g5{fill:var(--g5);background:var(--g5)}
.s-passed{fill:var(--good);background:var(--good);stroke:var(--good)}
.s-cheated,.s-refused{fill:var(--odd);background:var(--odd);stroke:var(--odd)}
.s-wrong{fill:var(--bad);background:var(--bad);stroke:var(--bad)}
.s-crashed,.s-timed_out{fill:var(--warn);background:var(--warn);stroke:var(--warn)}
.s-build_failed{fill:var(--g3);background:var(--g3);stroke:var(--g3)}
.s-duplicate,.s-rejected,.s-lost{fill:var(--g4);background:var(--g4);stroke:var(--g4)}
.s-timed_out,.s-refused{opacity:.65}
rect[class^="s-"]{stroke:none}
""".strip()
