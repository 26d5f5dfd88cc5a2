// What callers were told: the answers to reports, kept outside the database.

const ENDED = ['completed', 'failed', 'skipped', 'cancelled']

export class Ledger {
  #answers = new Map()
  /** Tasks of which two callers were told different ends. */
  contradictions = []

  #runs = new Set()

  /** Keeps a run whose start was answered. */
  recordRun(run) {
    this.#runs.add(run)
  }

  /** Keeps an answered task row that has ended. */
  record(row) {
    if (!ENDED.includes(row.status)) return
    const key = `${row.run_id} ${row.step_slug} ${row.task_index}`
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

  /** Tasks whose rows do not say what callers were told; those that were deleted on purpose are in load.gone. */
  async lostTasks(sql) {
    const rows = await sql`
      select run_id, step_slug, task_index, status, output from pgflow.step_tasks
      union all
      select run_id, step_slug, task_index, status, output from load.gone`
    const stored = new Map(rows.map((row) =>
      [`${row.run_id} ${row.step_slug} ${row.task_index}`, JSON.stringify([row.status, row.output])]))
    return [...this.#answers].filter(([key, told]) => stored.get(key) !== told)
      .map(([key, told]) => `${key}: told ${told}, stored ${stored.get(key)}`)
  }
}
