// Writes into pages what their statements give, where they show something else. Read the changes before you keep them:
// what is written is what the next test run demands.
//
//   tests/docs/run.sh show PAGE...
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from './markdown.mjs'
import { shownOf } from './masks.mjs'
import { dropRoles, played } from './page.mjs'

const count = (text) => text.trimEnd().split('\n').length

for (const [index, path] of process.argv.slice(2).entries()) {
  if (index > 0) dropRoles()
  const file = join(project, path)
  const lines = readFileSync(file, 'utf8').split('\n')
  for (const { line, sql, shown, faults, real, setup } of (await played(path)).reverse()) {
    if (faults.length === 0) continue
    if (setup || real === undefined) throw new Error(`${path}:${line}: ${faults[0]}`)
    const indent = lines[line - 1].match(/^ */)[0]
    const output = shownOf(real).split('\n')
    const comments = output.map((text) => `${indent}-- ${text}`.trimEnd())
    lines.splice(line - 1 + count(sql), shown === undefined ? 0 : count(shown), ...comments)
  }
  writeFileSync(file, lines.join('\n'))
}
