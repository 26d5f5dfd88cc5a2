// Plays a case of pair_case.mjs on a copy of its flow, and tells what came of it. Copies have different names and run
// ids, which what is told does not show.

export class Copy {
  #flow
  #steps

  constructor(name, steps) {
    this.#flow = name
    this.#steps = steps
  }

  #run = (number) => `md5('${this.#flow} ${number}')::uuid`
  #task = ({ run, step, index }) => `${this.#run(run)}, '${step}', ${index}`
  get #routed() {
    return `${this.#flow}_routed`
  }

  async define(sql) {
    const steps = this.#steps.map(({ slug, deps, type, condition, forbids, unmet, exhausted, routed }) => `
      select from pgflow.add_step('${this.#flow}', '${slug}', '{${deps}}', step_type => '${type}',
        when_unmet => '${unmet}', when_exhausted => '${exhausted}'
        ${condition ? `, ${forbids ? 'forbidden' : 'required'}_input_pattern => '${JSON.stringify(condition)}'` : ''});
      ${routed ? `update pgflow.steps set queue_name = '${this.#routed}'
                  where flow_slug = '${this.#flow}' and step_slug = '${slug}';` : ''}`)
    await sql.unsafe(`
      select from pgmq.create('${this.#routed}');
      select from pgflow.create_flow('${this.#flow}', max_attempts => 2, base_delay => 3600);
      ${steps.join('')}`).simple()
  }

  /** An operation as one statement. Its answer shows what a caller is told. */
  statement(operation) {
    switch (operation.kind) {
      case 'start':
        return `select status, remaining_steps from pgflow.start_flow('${this.#flow}', '{}', ${this.#run(operation.run)})`
      case 'claim': {
        const queue = operation.routed ? this.#routed : this.#flow
        return `select step_slug, task_index, input from pgflow.start_tasks('${this.#flow}', '{${operation.ids}}', null, '${queue}')
                order by run_id, step_slug, task_index`
      }
      case 'complete':
        return `select status, attempts_count, output, error_message
                from pgflow.complete_task(${this.#task(operation.task)}, '${operation.output}')`
      case 'fail':
        return `select status, attempts_count, output, error_message from pgflow.fail_task(${this.#task(operation.task)}, 'wrong')`
      case 'completeAll': {
        const of = (value) => `array[${operation.reports.map(value)}]`
        return `select status, attempts_count, output, error_message from pgflow.complete_tasks(
                  ${of(({ task }) => this.#run(task.run))}, ${of(({ task }) => `'${task.step}'`)}::text[],
                  ${of(({ task }) => task.index)}, ${of(({ output }) => `'${output}'`)}::jsonb[])`
      }
      case 'recover':
        return `with aged as (
                  update pgflow.step_tasks
                  set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
                  where flow_slug = '${this.#flow}' and status = 'started' and permanently_stalled_at is null)
                select 1; select pgflow.requeue_stalled_tasks() is not null as done`
      case 'poke':
        return `select from pgflow.runs where run_id = ${this.#run(operation.run)}
                  and pgflow.cascade_complete_taskless_steps(run_id) >= 0
                  and pgflow.start_ready_steps(run_id)::text = '' and pgflow.maybe_complete_run(run_id)::text = ''`
      case 'delete':
        return `select pgflow.delete_flow_and_data('${this.#flow}')`
    }
  }

  /** Carries an operation out; its answer, or the SQLSTATE. */
  async carryOut(sql, operation) {
    try {
      return JSON.stringify(await sql.unsafe(this.statement(operation)).simple())
    } catch (error) {
      return error.code
    }
  }

  /** Everything that is stored, without times, and without what names the copy or tells the order of messages. */
  async state(sql) {
    const queues = [this.#flow, this.#routed]
    const [{ state }] = await sql`
      select jsonb_build_object(
        'runs', (select jsonb_agg(jsonb_build_array(r.status, r.remaining_steps, r.output) order by ${this.#number(sql, 'r')})
                 from pgflow.runs r where flow_slug = ${this.#flow}),
        'steps', (select jsonb_agg(jsonb_build_array(s.step_slug, s.status, s.remaining_deps, s.initial_tasks, s.remaining_tasks,
                                                     s.skip_reason, s.error_message, s.output)
                                   order by ${this.#number(sql, 's')}, s.step_slug)
                  from pgflow.step_states s where flow_slug = ${this.#flow}),
        'tasks', (select jsonb_agg(jsonb_build_array(t.step_slug, t.task_index, t.status, t.attempts_count, t.error_message, t.output)
                                   order by ${this.#number(sql, 't')}, t.step_slug, t.task_index)
                  from pgflow.step_tasks t where flow_slug = ${this.#flow}),
        'events', (select jsonb_agg(e order by e) from (
                     select ${this.#number(sql, 'r')} || event as e from realtime.sent
                     join pgflow.runs r on r.run_id = (payload->>'run_id')::uuid
                     where r.flow_slug = ${this.#flow}) e)
      ) as state`
    return JSON.stringify([state, await this.#messages(sql, queues)])
  }

  #number(sql, alias) {
    return sql`(${sql(alias)}.run_id = md5(${`${this.#flow} 2`})::uuid)::text`
  }

  /** Which tasks have a message that is live, hidden or archived. */
  async #messages(sql, queues) {
    const found = []
    for (const queue of queues) {
      if ((await sql`select to_regclass(${`pgmq.q_${queue}`}) is null as gone`)[0].gone) continue
      const rows = await sql`
        select ${queue === this.#flow} as own, place, (m.message->>'run_id')::uuid = md5(${`${this.#flow} 2`})::uuid as second,
               m.message->>'step_slug' as step, m.message->>'task_index' as index
        from (select message, case when vt > clock_timestamp() then 'hidden' else 'live' end as place from pgmq.${sql(`q_${queue}`)}
              union all
              select message, 'archived' from pgmq.${sql(`a_${queue}`)}) m
        order by place, second, step, index`
      found.push(...rows.map((row) => Object.values(row)))
    }
    return found
  }

  async remove(sql) {
    await this.carryOut(sql, { kind: 'delete' })
    await sql`select pgmq.drop_queue(name) from unnest(${[this.#flow, this.#routed]}::text[]) as name
              where to_regclass('pgmq.q_' || name) is not null`
  }
}
