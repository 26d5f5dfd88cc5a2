// A picture of a run for a terminal. A step here is { slug, status, deps, total, done, retries, seconds }: `total` tasks
// of which `done` have completed, `seconds` since it started or from start to end; both null as long as they are not
// known.

const width = 36 // of a box; must be even, like the gap
const gap = 4
const colours = { completed: 32, started: 33, failed: 31 } // green, yellow, red

/** What a step has done so far, such as "7/13 tasks, 1 retry". */
export function tasks({ total, done, retries }) {
  if (total === null) return ''
  const again = retries === 0 ? '' : retries === 1 ? ', 1 retry' : `, ${retries} retries`
  return `${done}/${total} task${total === 1 ? '' : 's'}${again}`
}

// How long a step has taken so far.
const time = ({ seconds }) => (seconds === null ? '' : `${seconds.toFixed(2)} s`)

/** The run as lines of boxes, a row for each level: steps without dependencies, steps that depend on those, and so
    on. Lines join each row with the next, which shows this flow's dependencies; pgflow.run_graph has those of any. */
export function drawing(steps, coloured) {
  const rows = levels(steps)
  const whole = Math.max(...rows.map(widthOf))
  const centres = rows.map((row) =>
    row.map((_, i) => (whole - widthOf(row)) / 2 + i * (width + gap) + width / 2))
  return rows.flatMap((row, level) => {
    const boxes = row.map((step) => box(step, level > 0, level < rows.length - 1))
    const margin = ' '.repeat((whole - widthOf(row)) / 2)
    const lines = boxes[0].map((_, line) => margin + boxes
      .map((box, i) => (coloured ? paint(box[line], row[i].status) : box[line]))
      .join(' '.repeat(gap)))
    const bend = level > 0 && row.length + rows[level - 1].length > 2
    return bend ? [joint(centres[level - 1], centres[level]), ...lines] : lines
  })
}

function levels(steps) {
  const bySlug = new Map(steps.map((step) => [step.slug, step]))
  const level = ({ deps }) => Math.max(0, ...deps.map((dep) => 1 + level(bySlug.get(dep))))
  const rows = []
  for (const step of steps) (rows[level(step)] ??= []).push(step)
  return rows
}

const widthOf = (row) => row.length * width + (row.length - 1) * gap

function box(step, above, below) {
  const line = (left, right) => `│ ${left.padEnd(width - 4 - right.length)}${right} │`
  const edge = (left, middle, right) => left + '─'.repeat(width / 2 - 1) + middle + '─'.repeat(width / 2 - 2) + right
  return [
    edge('┌', above ? '┴' : '─', '┐'),
    line(step.slug, step.status),
    line(tasks(step), time(step)),
    edge('└', below ? '┬' : '─', '┘'),
  ]
}

// The line between two rows that leads from the centres of one to those of the other.
function joint(from, to) {
  const [first, last] = [Math.min(...from, ...to), Math.max(...from, ...to)]
  let text = ' '.repeat(first)
  for (let x = first; x <= last; x++) {
    const up = from.includes(x)
    const down = to.includes(x)
    if (x === first) text += up && down ? '├' : up ? '└' : '┌'
    else if (x === last) text += up && down ? '┤' : up ? '┘' : '┐'
    else text += up && down ? '┼' : up ? '┴' : down ? '┬' : '─'
  }
  return text
}

const paint = (text, status) => `\x1b[${colours[status] ?? 2}m${text}\x1b[0m` // 2: faint
