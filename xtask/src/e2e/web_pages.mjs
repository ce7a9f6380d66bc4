// Measures how much of real web pages survives in Markdown, compared with turndown.
// Arguments: a folder of pages, the folder of node packages, and the program helve with its arguments.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const [pages, modules, helve, ...helveArguments] = process.argv.slice(2);
const require = createRequire(path.join(modules, "package.json"));
const { JSDOM, VirtualConsole } = require("jsdom");
const TurndownService = require("turndown");

const DROPPED = "script, style, template, noscript, svg, canvas, iframe, title, video, audio, nav, [role=navigation], [role=search], dialog:not([open])";
const PERMALINK = "a.headerlink, a.anchor, a.permalink, a.header-anchor";
const LINE_NUMBERS = ".linenos, .linenodiv, .lineno, .gutter";

// Letters and digits only, so that punctuation of Markdown does not matter.
const bare = (text) => text.normalize("NFKC").toLowerCase().replace(/\\u\{[0-9a-f]+\}/g, "").replace(/[^\p{L}\p{N}]+/gu, "");

function isHidden(element) {
  const style = (element.getAttribute("style") ?? "").toLowerCase().replace(/\s/g, "");
  const classes = element.getAttribute("class") ?? "";
  return element.hasAttribute("hidden")
    || /display:none|visibility:hidden|opacity:0(?![.]\d*[5-9])|font-size:0(?!\.)|(?:left|top|text-indent|margin-left):-\d{3,}/.test(style)
    || /(^|\s)(sr-only|visually-hidden|screen-reader-text)(\s|$)/.test(classes);
}

// The texts below an element, by their letters.
function textNodes(element) {
  const walker = element.ownerDocument.createTreeWalker(element, 4);
  const texts = [];
  while (walker.nextNode()) texts.push(bare(walker.currentNode.data));
  return texts.filter((text) => text);
}

// What a reader of the page sees.
function expected(document, url) {
  const hidden = [...document.body.querySelectorAll("*")].filter(isHidden);
  const sheets = [...document.querySelectorAll("style")].map((it) => it.textContent.replace(/\/\*[^]*?\*\//g, ""));
  for (const [, selectors] of sheets.join("").matchAll(/([^{}]+)\{[^{}]*(?:display\s*:\s*none|visibility\s*:\s*hidden)[^{}]*\}/g)) {
    const simple = selectors.split(",").map((it) => it.trim()).filter((it) => /^[.#][\w-]+$/.test(it));
    for (const selector of simple) hidden.push(...document.body.querySelectorAll(selector));
  }
  for (const element of [...hidden, ...document.body.querySelectorAll(DROPPED)]) element.remove();
  for (const element of document.querySelectorAll(`${PERMALINK}, ${LINE_NUMBERS}`)) element.remove();
  const texts = (selector) => [...document.querySelectorAll(selector)].map((it) => it.textContent).filter((it) => bare(it));
  const blocks = [...document.querySelectorAll("pre")].filter((pre) => bare(pre.textContent));
  const language = (pre) => {
    for (let element of [pre.querySelector("code"), pre, pre.parentElement, pre.parentElement?.parentElement]) {
      const found = /(?:^|\s)(?:language-|lang-|highlight-)([\w+#-]+)/.exec(element?.getAttribute("class") ?? "");
      if (found && !/^(default|none|text|plain|source)/.test(found[1])) return found[1].toLowerCase();
    }
  };
  const links = [...document.querySelectorAll("a[href]")].filter((a) => bare(a.textContent) && !a.closest("pre") && /^https?:/.test(a.href) && !a.getAttribute("href").startsWith("#"));
  return {
    text: textNodes(document.body),
    headings: texts("h1, h2, h3, h4, h5, h6"),
    lines: blocks.flatMap((pre) => pre.textContent.split("\n")).filter((line) => bare(line)),
    languages: blocks.filter(language).map((pre) => ({ language: language(pre), first: pre.textContent.split("\n").find((line) => bare(line)).trim() })),
    cells: texts("td, th").filter((text) => text.length < 2000),
    links: [...new Set(links.map((a) => a.href.split("#")[0]))],
  };
}

// Returns how many of the expected things are in the Markdown: [found, all] for each measure.
function survived(page, markdown) {
  const lines = markdown.split("\n");
  const headings = new Set(lines.filter((line) => /^[>\s-]*#{1,6} /.test(line)).map((line) => bare(line.replace(/!\[[^\]]*\]\([^)]*\)/g, "").replace(/\]\([^)]*\)/g, ""))));
  // Pages may contain text that looks like Markdown, so it is also looked for as it is.
  const withoutTargets = lines.map((line) => (/^[>\s]*\|/.test(line) ? line.replace(/<br>/g, "") : line)).join("\n").replace(/\]\([^)]*\)/g, "");
  const allText = `${bare(withoutTargets)} ${bare(markdown)}`;
  const code = new Set();
  const fences = [];
  let fence = null;
  for (const line of lines) {
    const start = /^[>\s]*((?:[-*+]|\d+\.|:)?\s*)(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence === null && start) { fence = { mark: start[2], language: start[3].trim().toLowerCase(), first: null }; fences.push(fence); continue; }
    if (fence !== null && line.trim().replace(/^[>\s]*/, "") === fence.mark) { fence = null; continue; }
    if (fence !== null) { code.add(bare(line)); if (fence.first === null && bare(line)) fence.first = bare(line); }
  }
  const targets = new Set([...markdown.matchAll(/\]\(<?([^)\s>]+)/g)].map((it) => decodeURI(safe(it[1])).split("#")[0].replace(/\/$/, "")));
  const share = (items, test) => [items.filter(test).length, items.length];
  return {
    text: [letters(page.text.filter((text) => allText.includes(text))), letters(page.text)],
    headings: share(page.headings, (text) => headings.has(bare(text))),
    "code lines": share(page.lines, (line) => code.has(bare(line))),
    languages: share(page.languages, ({ language, first }) => fences.some((it) => it.first === bare(first) && it.language === language)),
    "table cells": share(page.cells, (text) => allText.includes(bare(text))),
    links: share(page.links, (href) => targets.has(decodeURI(safe(href)).replace(/\/$/, ""))),
  };
}

const decode = (bytes) => { try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { return new TextDecoder("windows-1252").decode(bytes); } };
const letters = (texts) => texts.reduce((sum, text) => sum + text.length, 0);
const safe = (text) => { try { decodeURI(text); return text.replace(/%28/g, "(").replace(/%29/g, ")"); } catch { return text.replace(/%/g, "%25"); } };

function turndown(html, url) {
  const dom = new JSDOM(html, { url, virtualConsole: new VirtualConsole() });
  const service = new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced", hr: "---", bulletListMarker: "-" });
  service.remove(["script", "style", "meta", "link"]);
  for (const a of dom.window.document.querySelectorAll("a[href]")) a.setAttribute("href", a.href);
  return service.turndown(dom.window.document.documentElement.outerHTML);
}

// Fetches a page with helve and returns the whole text.
function fetchPage(url) {
  return new Promise((resolve, reject) => {
    execFile(helve, [...helveArguments, `url=${url}`], { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error) return reject(new Error(`${url}: ${stderr}${stdout}`));
      const saved = /\(The whole text is saved in (.*)\.\)/.exec(stdout);
      resolve(saved ? fs.readFileSync(saved[1], "utf8") : stdout);
    });
  });
}

const files = fs.readdirSync(pages, { recursive: true }).filter((file) => /\.html?$/.test(file)).sort();
const server = createServer((request, response) => {
  response.setHeader("content-type", "text/html");
  response.end(fs.readFileSync(path.join(pages, decodeURIComponent(new URL(request.url, "http://x").pathname))));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${server.address().port}/`;
const totals = {};
const misses = [];
for (const file of files) {
  const html = decode(fs.readFileSync(path.join(pages, file)));
  const url = base + file.split(path.sep).map(encodeURIComponent).join("/");
  const ours = await fetchPage(url);
  const page = expected(new JSDOM(html, { url, virtualConsole: new VirtualConsole() }).window.document, url);
  const both = { helve: survived(page, ours), turndown: survived(page, turndown(html, url)) };
  for (const [name, measures] of Object.entries(both)) {
    for (const [measure, [found, all]] of Object.entries(measures)) {
      const total = ((totals[measure] ??= {})[name] ??= [0, 0]);
      total[0] += found; total[1] += all;
      if (name === "helve" && found < all) misses.push(`${file}: ${measure} ${found} of ${all}`);
    }
  }
}
server.close();
console.log(JSON.stringify({ pages: files.length, totals, misses }));
