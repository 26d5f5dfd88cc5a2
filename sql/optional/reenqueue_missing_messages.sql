-- Run by hand after a restore, with all workers stopped (see docs/upgrade.md): some versions of PGMQ leave queues out of
-- dumps. Makes the missing queues, and sends a new message for every unfinished task whose message is gone. Changes
-- no row where no message is missing.
do $$
declare
  unfinished constant text := $sql$status in ('queued', 'started') and permanently_stalled_at is null$sql$;
  queue      record;
begin
  for queue in
    select used.name, coalesce(listed.queue_name, used.name) as spelling,
      pgmq.format_table_name(used.name, 'q') as messages, pgmq.format_table_name(used.name, 'a') as archive
    from (
      select lower(flow_slug) from pgflow.flows where pgflow.is_valid_queue_name(lower(flow_slug))
      union select queue_name from pgflow.steps union select queue_name from pgflow.step_tasks
    ) as used (name)
    left join pgmq.list_queues() as listed on lower(listed.queue_name) = used.name
    order by used.name
  loop
    if to_regclass(format('pgmq.%I', queue.messages)) is null then
      perform pgmq.create(queue.spelling);
    end if;

    -- Ids go on where they ended: none may come back.
    execute format(
      $sql$
        select setval(pg_get_serial_sequence('pgmq.%1$I', 'msg_id'), greatest(
          nextval(pg_get_serial_sequence('pgmq.%1$I', 'msg_id')),
          (select max(msg_id) from pgmq.%1$I),
          (select max(msg_id) from pgmq.%2$I),
          (select max(message_id) from pgflow.step_tasks where queue_name = %3$L)))
      $sql$, queue.messages, queue.archive, queue.name);

    execute format(
      $sql$
        update pgflow.step_tasks t
        set message_id = (
          select id from pgmq.send(t.queue_name, jsonb_build_object(
            'flow_slug', t.flow_slug, 'run_id', t.run_id, 'step_slug', t.step_slug, 'task_index', t.task_index)) as id)
        where t.queue_name = %2$L and %3$s
          and not exists (select from pgmq.%1$I m where m.msg_id = t.message_id)
      $sql$, queue.messages, queue.name, unfinished);
  end loop;
end
$$;
