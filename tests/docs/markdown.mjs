// What the tests here see in a Markdown file: fenced blocks, directives in comments, headings and links.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const project = fileURLToPath(new URL('../..', import.meta.url))

export const read = (path) => readFileSync(join(project, path), 'utf8')

/** All Markdown files below a folder of the project, by path. */
export function pagesBelow(folder) {
  return readdirSync(join(project, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : pagesBelow(path)
    return entry.name.endsWith('.md') ? [path] : []
  }).sort()
}

/** What users read. */
export const userPages = () => ['README.md', ...pagesBelow('docs')]

/** The parts of a page in order, each with its line:
 *
 *    { kind: 'block', language, text }   a fenced block, without the indentation it has in a list
 *    { kind: 'directive', name, value }  <!-- name: value -->, on a line of its own
 *    { kind: 'heading', text }
 *    { kind: 'text', text }              any other line */
export function parts(markdown) {
  const found = []
  let block = null
  markdown.split('\n').forEach((text, index) => {
    const line = index + 1
    const fence = text.match(/^( *)```(\w*)$/)
    if (!fence && /^ *(`{3,}[^`]*|~{3,}.*)$/.test(text)) {
      throw new Error(`line ${line}: a block begins with three backticks and one word`)
    }
    if (block) {
      if (fence && fence[2] === '') block = null
      else block.text += text.slice(block.indent).trimEnd() + '\n'
    } else if (fence) {
      block = { kind: 'block', line, language: fence[2], indent: fence[1].length, text: '' }
      found.push(block)
    } else found.push({ line, ...lineOfText(text) })
  })
  return found
}

function lineOfText(text) {
  const directive = text.match(/^ *<!-- (not run|setup|results|file): (.*) -->$/)
  if (directive) return { kind: 'directive', name: directive[1], value: directive[2] }
  const heading = text.match(/^#+ (.*)$/)
  if (heading) return { kind: 'heading', text: heading[1] }
  return { kind: 'text', text }
}

/** Blocks that hold SQL and do not say so, as lines of text: nobody would run them. */
export function hiddenSql(path) {
  return parts(read(path))
    .filter(({ kind, language, text }) =>
      kind === 'block' && !['sql', 'js', 'python', 'sh'].includes(language) &&
      /^(select|insert|update|delete|create|alter|drop|begin)\s/im.test(text))
    .map(({ line }) => `${path}:${line}: a block of SQL that is not called sql`)
}

/** The anchors that GitHub gives the headings of a page. */
export function anchors(markdown) {
  const seen = new Map()
  return parts(markdown).filter(({ kind }) => kind === 'heading').map(({ text }) => {
    const anchor = text
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replace(/ /g, '-')
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    return times === 0 ? anchor : `${anchor}-${times}`
  })
}

/** Links and pictures of a page: { line, target }. A link's text may break over lines; its target may not. */
export function links(markdown) {
  return parts(markdown).flatMap(({ kind, line, text }) =>
    kind === 'text' || kind === 'heading'
      ? [...text.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]*)\)/g)].map(([, target]) => ({ line, target }))
      : [])
}

/** Links that lead nowhere, as lines of text. Those that leave the project are not looked at. */
export function brokenLinks(path) {
  return links(read(path)).flatMap(({ line, target }) => {
    if (/^[a-z]+:/.test(target)) return []
    const [file, anchor] = target.split('#')
    const linked = file === '' ? path : join(path, '..', file)
    const broken = (why) => [`${path}:${line}: ${target}: ${why}`]
    if (linked.startsWith('..')) return broken('leaves the project')
    const there = statSync(join(project, linked), { throwIfNoEntry: false })
    if (!there) return broken('no such file')
    if (anchor === undefined) return []
    return there.isFile() && anchors(read(linked)).includes(anchor) ? [] : broken('no such heading')
  })
}

/** The files of the project that a page links to. */
export const linkedFrom = (path) => links(read(path)).map(({ target }) => join(path, '..', target.replace(/#.*/, '')))
