// What can be called on a standby and what cannot: every function of pgflow is in one of these lists.

/** A run that is there. No load touches a run of this kind. */
export const RUN = '00000000-0000-0000-0000-000000000001'
const TASK = `'${RUN}', 'a', 0`

export const readingCalls = [
  `get_run_with_states('${RUN}')`,
  `run_graph('${RUN}')`,
  `flow_graph('load_chain')`,
  `queue_depth('load_chain')`, // of a flow that stays: the load deletes others
  `_get_flow_shape('load_chain')`,
  `_compare_flow_shapes('{"steps": []}', '{"steps": []}')`,
  `is_valid_slug('a')`,
  `is_valid_queue_name('a')`,
  `calculate_retry_delay(1, 1)`,
  `is_local()`,
  `poll_for_tasks('load_chain', 1, 1)`,
]

export const writingCalls = [
  `create_flow('new')`,
  `add_step('load_chain', 'new')`,
  `_create_flow_from_shape('new', '{"steps": []}')`,
  `ensure_flow_compiled('new', '{"steps": []}')`,
  `delete_flow_and_data('load_chain')`,
  `start_flow('load_chain', '{}')`,
  `start_flow_with_states('load_chain', '{}')`,
  `start_tasks('load_chain', '{1}', null)`,
  `complete_task(${TASK}, '1')`,
  `complete_tasks(array['${RUN}'::uuid], '{a}', '{0}', '{1}')`,
  `fail_task(${TASK}, 'failed')`,
  `set_vt_batch('load_chain', '{1}', '{1}')`,
  `requeue_stalled_tasks()`,
  `start_ready_steps('${RUN}')`,
  `maybe_complete_run('${RUN}')`,
  `cascade_resolve_conditions('${RUN}')`,
  `cascade_complete_taskless_steps('${RUN}')`,
  `_cascade_force_skip_steps('${RUN}', 'a', 'condition_unmet')`,
  `_archive_task_message(${TASK})`,
  `track_worker_function('new')`,
  `mark_worker_stopped('${RUN}')`,
]

/** These need pg_cron, pg_net and Vault. */
const UNTRIED = ['ensure_workers', 'setup_ensure_workers_cron', 'setup_requeue_stalled_tasks_cron', 'cleanup_ensure_workers_logs']

/** The calls that do not end with this SQLSTATE ('none': without an error) within a second. */
export async function failing(sql, calls, code) {
  await sql`set statement_timeout = '1s'`
  const wrong = []
  for (const call of calls) {
    const found = await sql.unsafe(`select from pgflow.${call}`).then(() => 'none', (error) => error.code)
    if (found !== code) wrong.push(`${call}: ${found}`)
  }
  return wrong
}

/** The functions that neither list names. */
export async function untried(sql) {
  const named = [...readingCalls, ...writingCalls].map((call) => call.slice(0, call.indexOf('(')))
  const functions = await sql`
    select p.proname as name from pg_proc p
    join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
    where p.pronamespace = 'pgflow'::regnamespace order by 1`
  return functions.map(({ name }) => name).filter((name) => !named.includes(name) && !UNTRIED.includes(name))
}
