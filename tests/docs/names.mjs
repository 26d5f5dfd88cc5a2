// What a page about the code calls by name, in backticks, and whether the code has it.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parts, project, read } from './markdown.mjs'

const files = (folder, ending) =>
  readdirSync(join(project, folder), { recursive: true })
    .filter((name) => name.endsWith(ending))
    .map((name) => ({ path: join(folder, name), text: readFileSync(join(project, folder, name), 'utf8') }))

const rust = files('src', '.rs')
const sql = files('sql', '.sql').map(({ text }) => text).join('\n')

// The files of the module `a::b`: a/b.rs, a/b/mod.rs and what is below a/b. It may be named from any module above it.
const filesOf = (module) =>
  rust.filter(({ path }) => [`/${module}.rs`, `/${module}/`].some((part) => `/${path}`.includes(part)))

const defines = (text, name) => new RegExp(`\\b(fn|struct|enum|trait|type|const|static|mod) ${name}\\b`).test(text)

/** Whether the Rust code has `a::b::c`: an item c of module a::b, a module a::b::c, or a method c of type a::b. */
function hasItem(parts) {
  const name = parts.at(-1)
  const owner = parts.slice(0, -1)
  if (filesOf(parts.join('/')).length > 0) return true
  const candidates = owner.length === 0 ? rust : filesOf(owner.join('/'))
  if (candidates.some(({ text }) => defines(text, name))) return true
  const type = owner.at(-1)
  return type !== undefined && rust.some(({ text }) =>
    new RegExp(`^impl(<.*?>)? ([^\\n]* for )?${type}\\b[^\\n]*\\{\\n(.*\\n)*?    (pub )?fn ${name}\\b`, 'm').test(text))
}

const hasPath = (path) => statSync(join(project, path), { throwIfNoEntry: false }) !== undefined

const inSql = (name) => new RegExp(`\\b${name}\\b`).test(sql)

// What stands in backticks outside of blocks, on one line: { line, name }.
const inBackticks = (path) => parts(read(path)).flatMap(({ kind, line, text }) =>
  kind === 'text' ? [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => ({ line, name })) : [])

const found = (path, names) => names.map(({ line, name }) => `${path}:${line}: ${name}`)

/** The names in backticks that the code does not have, as lines of text. Names are paths, Rust paths and single
    words; anything else in backticks is not looked up. */
export function unknownNames(path) {
  const known = ({ name }) => {
    if (/^[\w.]+\/[\w./]*$|^\w+\.(rs|sql|sh|md|mjs)$/.test(name)) return hasPath(name)
    if (/^\w+(::\w+)+$/.test(name)) return hasItem(name.split('::'))
    if (/^\w+$/.test(name)) return hasItem([name]) || inSql(name)
    return true
  }
  return found(path, inBackticks(path).filter((name) => !known(name)))
}

/** The files that a page names in backticks, by their path from the project's folder, and that are not there. NAME and
    A--B stand for others. */
export function unknownFiles(path) {
  const isFile = ({ name }) => /^(src|sql|tests|docs|benches|\.ci)\/[\w./-]+$/.test(name) && !/\bNAME\b|A--B/.test(name)
  return found(path, inBackticks(path).filter((name) => isFile(name) && !hasPath(name.name)))
}

/** The targets of `make` that a page names in backticks or in a block of shell, and that the Makefile does not have. */
export function unknownTargets(path) {
  const targets = [...read('Makefile').matchAll(/^([a-z-]+):/gm)].map(([, target]) => target)
  const shell = parts(read(path)).filter(({ language }) => language === 'sh').map(({ line, text }) => ({ line, name: text }))
  const called = [...inBackticks(path), ...shell].flatMap(({ line, name }) =>
    [...name.matchAll(/(?:^|\n)make ([a-z-]+)/g)].map(([, target]) => ({ line, name: target })))
  return found(path, called.filter(({ name }) => !targets.includes(name)))
}
