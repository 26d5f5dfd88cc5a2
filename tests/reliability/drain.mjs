// Works off everything that a load has left, as patient workers would: no message is waited for.

/** Claims, completes and requeues until no message is left; returns how many rounds that took. */
export async function drain(sql) {
  for (let round = 1; round <= 100; round += 1) {
    const queues = (await sql`select distinct queue_name as name from pgflow.step_tasks order by 1`).map(({ name }) => name)
    await sql`
      update pgflow.step_tasks
      set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
      where status = 'started' and permanently_stalled_at is null`
    await sql`select pgflow.requeue_stalled_tasks()`
    let found = 0
    for (const queue of queues) {
      await sql`update pgmq.${sql(`q_${queue}`)} set vt = clock_timestamp()`
      found += await workOff(sql, queue)
    }
    if (found === 0) return round
  }
  throw new Error('messages are left after a hundred rounds')
}

async function workOff(sql, queue) {
  const messages = await sql`
    select message->>'flow_slug' as flow, array_agg(msg_id order by msg_id)::text[] as ids
    from pgmq.read(${queue}, 0, 100000) group by 1`
  for (const { flow, ids } of messages) {
    await sql`
      with task as materialized (select * from pgflow.start_tasks(${flow}, ${ids}::bigint[], null, ${queue}))
      select from pgflow.complete_tasks(
        array(select run_id from task), array(select step_slug from task), array(select task_index from task),
        array(select jsonb_build_array(msg_id) from task))`
  }
  return messages.length
}
