// What callers were told: the answers to reports, kept outside the database.

const keyOf = ({ run_id, step_slug, task_index }) => `${run_id} ${step_slug} ${task_index}`
const ENDED = ['completed', 'failed', 'skipped', 'cancelled']

export class Ledger {
  #answers = new Map()
  /** Tasks of which two callers were told different ends. */
  contradictions = []

  #runs = new Set()
  #claims = new Map()

  /** Keeps a run whose start was answered. */
  recordRun(run) {
    this.#runs.add(run)
  }

  /** Keeps that tasks were handed out. */
  recordClaims(tasks) {
    for (const task of tasks) {
      const key = keyOf(task)
      this.#claims.set(key, (this.#claims.get(key) ?? 0) + 1)
    }
  }

  /** Keeps an answered task row that has ended. */
  record(row) {
    if (!ENDED.includes(row.status)) return
    const key = keyOf(row)
    const told = JSON.stringify([row.status, row.output])
    const before = this.#answers.get(key)
    if (before === undefined) this.#answers.set(key, told)
    else if (before !== told) this.contradictions.push(`${key}: ${before}, then ${told}`)
  }

  get tasks() {
    return this.#answers.size
  }

  get runs() {
    return this.#runs.size
  }

  /** Runs that callers were told of and that are not there; those that were deleted on purpose are in load.gone_runs. */
  async lostRuns(sql) {
    const rows = await sql`select run_id from pgflow.runs union select run_id from load.gone_runs`
    const stored = new Set(rows.map(({ run_id }) => run_id))
    return [...this.#runs].filter((run) => !stored.has(run))
  }

  /** Tasks whose rows do not say what callers were told, and those that were handed out more often than they were
      attempted; those that were deleted on purpose are in load.gone. */
  async lostTasks(sql) {
    const rows = await sql`
      select run_id, step_slug, task_index, status, output, attempts_count from pgflow.step_tasks
      union all
      select run_id, step_slug, task_index, status, output, attempts_count from load.gone`
    const stored = new Map(rows.map((row) => [keyOf(row), row]))
    const told = ([key, end]) => {
      const row = stored.get(key)
      return row && JSON.stringify([row.status, row.output]) === end ? [] : [`${key}: told ${end}, stored ${JSON.stringify(row)}`]
    }
    const handedOut = ([key, times]) =>
      times > (stored.get(key)?.attempts_count ?? 0) ? [`${key}: handed out ${times} times, stored ${JSON.stringify(stored.get(key))}`] : []
    return [[...this.#answers].flatMap(told), [...this.#claims].flatMap(handedOut)]
  }
}
