// Runs the SQL of a page from top to bottom through psql, in a fresh database, and compares what it shows.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { masked } from './masks.mjs'
import { parts, project, read } from './markdown.mjs'
import { psql, query, withDatabase } from './psql.mjs'
import { statements } from './statements.mjs'

/** What a page asks for: { steps, skipped }. A step is a statement, or a setup file that psql runs.
 *
 *    <!-- setup: PATH -->     runs a file of the project here; its output is not shown
 *    <!-- not run: REASON --> leaves out the next block
 *    <!-- results: shown -->  from here on, every statement that prints something shows it */
export function planOf(path) {
  const steps = []
  const skipped = []
  let reason = null
  let showsAll = false
  for (const part of parts(read(path))) {
    if (part.kind === 'directive' && part.name === 'setup') {
      if (!existsSync(join(project, part.value))) throw new Error(`${path}:${part.line}: no such file: ${part.value}`)
      steps.push({ line: part.line, sql: `\\i ${part.value}\n`, setup: true })
    } else if (part.kind === 'directive' && part.name === 'not run') reason = part.value
    else if (part.kind === 'directive' && part.name === 'results') showsAll = true
    else if (part.kind === 'block') {
      if (reason) skipped.push(`${path}:${part.line}: ${reason}`)
      else if (part.language === 'sql') {
        steps.push(...statements(part.text, part.line + 1).map((statement) => ({ ...statement, showsAll })))
      }
      reason = null
    }
  }
  if (reason) throw new Error(`${path}: nothing follows "not run: ${reason}"`)
  return { steps, skipped }
}

/** Runs a page; returns its steps with what is wrong with each, as `faults`, and what it gave, as `real`. */
export async function played(path) {
  const { steps } = planOf(path)
  const database = `docs_${path.toLowerCase().replace(/\W/g, '_')}`
  const found = await withDatabase(database, () => outputs(database, steps))
  return found.map((output, index) => ({
    ...steps[index],
    faults: faults(steps[index], output),
    real: output && output.errors + output.results,
  }))
}

/** Drops the roles that pages made. They belong to the whole server: pages with roles run one after the other. */
export function dropRoles() {
  query('postgres', "select format('drop role %I', rolname) from pg_roles where oid >= 16384 \\gexec")
}

/** Runs a page; returns what is wrong with it, as lines of text. */
export const faultsOf = async (path) =>
  (await played(path)).flatMap(({ line, faults }) => faults.map((fault) => `${path}:${line}: ${fault}`))

function faults({ sql, shown, setup, showsAll }, output) {
  if (output === undefined) return [`psql ended before: ${sql}`]
  const { errors, results } = output
  if (setup) return /ERROR: /.test(errors) ? [errors] : []
  const real = errors + results
  if (shown !== undefined) {
    return masked(shown) === masked(real) ? [] : [`${sql}-- is shown as\n${shown}\n-- and gives\n${real}`]
  }
  if (/^(ERROR|FATAL|WARNING): /m.test(errors)) return [`${sql}-- does not show\n${errors}`]
  const nothing = ['', '--'] // a row without columns
  return showsAll && !nothing.includes(real.trim()) ? [`${sql}-- shows nothing, and gives\n${real}`] : []
}

// psql reads all steps at once. Before each one it prints a mark to both of its outputs: what is between two marks is
// the output of one step. Notices and errors come first, as on a terminal.
function outputs(database, steps) {
  const mark = (index) => `\\echo @@${index}@@\n\\warn @@${index}@@\n`
  const input = steps.map(({ sql }, index) => mark(index) + sql).join('') + mark(steps.length)
  const { stdout, stderr } = psql(database, ['--pset', 'footer=off', '--pset', 'pager=off'], input)
  const between = (text, index) => {
    const [, rest] = text.split(`@@${index}@@\n`)
    const [part, end] = rest?.split(`@@${index + 1}@@\n`) ?? []
    return end === undefined ? undefined : part
  }
  return steps.map((_, index) => {
    const [errors, results] = [between(stderr, index), between(stdout, index)]
    return errors === undefined || results === undefined ? undefined : { errors, results }
  })
}
