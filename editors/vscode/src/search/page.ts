// The page of a panel, before its script fills it.

/** Nothing external is loaded: the content policy allows only this script and these styles. */
function policy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

export function page(name: string, script: string, style: string, nonce: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(nonce)}">
<title>Search ${escaped(name)}</title>
<style nonce="${nonce}">${style}</style>
</head>
<body>
<main>
<h1><code id="name">${escaped(name)}</code></h1>
<p><strong id="headline"></strong></p>
<p id="numbers"></p>
<p id="environment"></p>
<div role="toolbar" aria-label="Search">
<button id="stop" disabled>Stop</button>
<button id="resume" disabled>Go On</button>
<button id="apply" disabled>Apply</button>
</div>
<section aria-labelledby="curve-title">
<h2 id="curve-title">Best speedup over time</h2>
<svg id="curve" role="img"></svg>
</section>
<section aria-labelledby="tree-title">
<h2 id="tree-title">What was tried</h2>
<p id="tree-help">Arrow keys lead from candidate to candidate, Enter or a click shows one.</p>
<div class="scroll"><svg id="tree" role="tree" aria-labelledby="tree-title" aria-describedby="tree-help"></svg></div>
</section>
<section id="detail" aria-labelledby="detail-title" hidden>
<h2 id="detail-title" tabindex="-1"></h2>
<div id="detail-body"></div>
</section>
<section id="confirmed" aria-labelledby="confirmed-title" hidden>
<h2 id="confirmed-title">Measured again</h2>
<ul id="confirmations"></ul>
</section>
<section id="change" aria-labelledby="change-title" hidden>
<h2 id="change-title">The change</h2>
<p id="change-words"></p>
<pre id="change-diff" tabindex="0"></pre>
</section>
<div id="report"></div>
<div id="spoken" role="status" aria-live="polite"></div>
</main>
<script nonce="${nonce}">${script}</script>
</body>
</html>`;
}
