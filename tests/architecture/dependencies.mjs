// Prints a line for each crate that does not come from crates.io, has no checksum in Cargo.lock, or is under a licence that
// deny.toml does not allow. Fails when Cargo.lock does not match Cargo.toml.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const REGISTRY = 'registry+https://github.com/rust-lang/crates.io-index'
const [, list] = readFileSync(new URL('deny.toml', import.meta.url), 'utf8').match(/^allow = \[(.*?)^\]/ms)
const allowed = new Set([...list.matchAll(/"(.+?)"/g)].map(([, licence]) => licence))

/** Whether an SPDX expression can be met with the allowed licences. Old manifests write `/` for OR. */
function isAllowed(expression) {
  const tokens = expression.replaceAll('/', ' OR ').match(/[()]|[^\s()]+( WITH [^\s()]+)?/g)
  const licence = () => {
    const token = tokens.shift()
    if (token !== '(') return allowed.has(token)
    const inner = either()
    tokens.shift() // the closing parenthesis
    return inner
  }
  const chain = (word, part, combine) => {
    let met = part()
    while (tokens[0] === word) {
      tokens.shift()
      met = combine(met, part())
    }
    return met
  }
  const all = () => chain('AND', licence, (a, b) => a && b)
  const either = () => chain('OR', all, (a, b) => a || b)
  return either()
}

const pgmq = readdirSync('tests/harness/pgmq').map((version) => `tests/harness/pgmq/${version}`)
for (const folder of ['.', ...pgmq]) {
  const lock = readFileSync(`${folder}/Cargo.lock`, 'utf8')
  const pinned = new Set([...lock.matchAll(/^name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = /gm)].map(([, n, v]) => `${n} ${v}`))
  const metadata = execFileSync(
    'cargo', ['metadata', '--quiet', '--locked', '--format-version', '1', '--manifest-path', `${folder}/Cargo.toml`],
    { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] })
  for (const { name, version, license, source } of JSON.parse(metadata).packages) {
    if (source === null) continue // our own
    if (source !== REGISTRY) console.log(`${name} ${version}: from ${source}`)
    if (!pinned.has(`${name} ${version}`)) console.log(`${name} ${version}: no checksum in ${folder}/Cargo.lock`)
    if (!license || !isAllowed(license)) console.log(`${name} ${version}: licence ${license}`)
  }
}
