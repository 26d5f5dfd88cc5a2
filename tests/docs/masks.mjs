// What a page may show otherwise than the next run gives it: the one list.
const masks = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/g, 'UUID'], // random; written ones are not
  [/\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d(:?\d\d)?)?/g, 'TIME'],
  [/(?<=\bpgmq +\| )\d+(\.\d+)+/g, 'VERSION'], // PGMQ's: the tests run on several
  [/\b\d\d:\d\d:\d\d(\.\d+)\b/g, 'DURATION'], // whole seconds are somebody's choice, and compared
]

/** Output without the line of verbose errors that names a file and line of the source: pages leave it out. */
export const shownOf = (text) => text.replace(/^LOCATION: .*\n?/gm, '').trimEnd()

/** Output with its variable parts masked. Columns are as wide as what is in them, so where something was masked,
    spaces and dashes of any number count as one. */
export function masked(output) {
  const text = shownOf(output)
  const result = masks.reduce((masking, [pattern, name]) => masking.replace(pattern, name), text)
  return (result === text ? text : result.replace(/ +/g, ' ').replace(/-{2,}/g, '-'))
    .split('\n').map((line) => line.trimEnd()).join('\n')
}
