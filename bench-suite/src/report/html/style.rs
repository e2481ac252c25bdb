//! Floor 3, bench-suite. Owns the looks of the page, light and dark. Touches nothing else.

/// The style sheet. Fonts are those that the reader's system has.
pub(super) const SHEET: &str = "
:root { color-scheme: light dark; --ink: #22272e; --pale: #59636e; --page: #f6f7f9; --card: #ffffff; --line: #d5dae0;
  --good: #0a6b3d; --bad: #b3261e; --link: #0b57a4; --warn: #fff3d6; --warn-ink: #5c4300; --stripe: #f2f4f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ec; --pale: #a4adb8; --page: #14171b; --card: #1d2127;
  --line: #3a424c; --good: #6fd39b; --bad: #ff9a92; --link: #82b8f2; --warn: #3d3010; --warn-ink: #f5dfa6;
  --stripe: #232830; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }
header, nav, main, footer { max-width: 1160px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 28px; }
h1 { font-size: 1.9rem; margin: 0; }
h2 { font-size: 1.4rem; margin: 2.2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.2rem; margin: 2.4rem 0 .4rem; }
h4 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
a { color: var(--link); }
nav h2 { margin-top: 1.2rem; font-size: 1.05rem; border: 0; }
nav ol { margin: 0; padding-left: 1.4rem; }
nav ol ol { display: flex; flex-wrap: wrap; gap: 0 1.2rem; list-style: none; padding-left: 0; }
code, pre { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: .86rem; }
pre { overflow: auto; max-height: 32rem; padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; }
.banner { background: var(--warn); color: var(--warn-ink); border-radius: 6px; padding: .7rem 1rem; font-weight: 600; }
.failed { color: var(--bad); font-weight: 600; border-left: 4px solid var(--bad); padding-left: .8rem; }
.note { color: var(--pale); font-size: .93rem; }
ul.note { padding-left: 1.2rem; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; background: var(--card); border: 1px solid var(--line); font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .75rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; }
tbody th { font-weight: 500; }
thead th { color: var(--pale); font-weight: 600; white-space: normal; vertical-align: bottom; }
tbody tr:nth-child(even) { background: var(--stripe); }
table.wide { font-size: .84rem; }
table.wide th, table.wide td { padding: .26rem .5rem; }
table.pairs td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
table.pairs th { color: var(--pale); vertical-align: top; }
.theirs { border-left: 4px solid var(--pale); padding-left: .9rem; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0 1.4rem; padding: 10px; background: #ffffff; border: 1px solid var(--line); border-radius: 6px; }
figure svg { display: block; width: 100%; max-width: 980px; height: auto; margin: 0 auto; }
figcaption { color: #55606b; font-size: .9rem; padding: .3rem .6rem 0; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--link); }
footer { color: var(--pale); font-size: .9rem; padding-bottom: 2.5rem; margin-top: 2rem; }
@media print { details > * { display: block; } pre { max-height: none; } }
";
