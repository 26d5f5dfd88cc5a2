// Checks for the programs here; a program ends with `summary`, whose line run.sh adds up.

let passed = 0
let failed = 0

/** A check holds when what was found is what was expected; of a list that must be empty the first few are shown. */
export function check(name, expected, found) {
  const [want, have] = [expected, found].map((value) => JSON.stringify(value))
  if (want === have) {
    passed += 1
    console.log(`ok      ${name}`)
    return
  }
  failed += 1
  console.log(`FAILED  ${name}`)
  if (Array.isArray(found)) console.log(`        ${found.length} found\n${found.slice(0, 5).map((line) => `        ${line}`).join('\n')}`)
  else console.log(`        expected ${want}, found ${have}`)
}

export function summary() {
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
