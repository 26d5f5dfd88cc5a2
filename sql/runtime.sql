-- Runs: one execution of a flow, with a state for each step and a task for each piece of work.
-- Only pgflow's functions write here. src/engine/mod.rs has the states, their transitions and the lock order.

create table pgflow.runs (
  run_id           uuid         not null  default gen_random_uuid(),
  flow_slug        text         not null,
  status           text         not null  default 'started',
  input            jsonb        not null,
  output           jsonb,
  remaining_steps  integer      not null  default 0,
  started_at       timestamptz  not null  default now(),
  completed_at     timestamptz,
  failed_at        timestamptz,

  constraint runs_pkey                         primary key (run_id),
  constraint runs_flow_slug_fkey               foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint status_is_valid                   check (status in ('started', 'failed', 'completed')),
  constraint runs_remaining_steps_check        check (remaining_steps >= 0),
  constraint completed_at_or_failed_at         check (not (completed_at is not null and failed_at is not null)),
  constraint completed_at_is_after_started_at  check (completed_at is null or completed_at >= started_at),
  constraint failed_at_is_after_started_at     check (failed_at is null or failed_at >= started_at)
);

create index idx_runs_flow_slug on pgflow.runs (flow_slug);
create index idx_runs_started   on pgflow.runs (started_at) where status = 'started';

comment on table  pgflow.runs                 is 'Runs of flows. A completed or failed run never changes again.';
comment on index  pgflow.idx_runs_started     is 'Runs under way, which the views on progress and on what is stalled start from.';
comment on column pgflow.runs.output          is 'Once completed: object of the outputs of completed steps that nothing depends on; NULL when there is no such step.';
comment on column pgflow.runs.remaining_steps is 'Steps that have not ended; at 0 the run completes. Stays as it is when the run fails.';

create table pgflow.step_states (
  flow_slug        text         not null,
  run_id           uuid         not null,
  step_slug        text         not null,
  status           text         not null  default 'created',
  remaining_tasks  integer,
  remaining_deps   integer      not null  default 0,
  created_at       timestamptz  not null  default now(),
  started_at       timestamptz,
  completed_at     timestamptz,
  failed_at        timestamptz,
  error_message    text,
  initial_tasks    integer,
  output           jsonb,
  skip_reason      text,
  skipped_at       timestamptz,

  constraint step_states_pkey                          primary key (run_id, step_slug),
  constraint step_states_flow_slug_fkey                foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint step_states_run_id_fkey                   foreign key (run_id) references pgflow.runs (run_id),
  constraint step_states_flow_slug_step_slug_fkey      foreign key (flow_slug, step_slug)
                                                         references pgflow.steps (flow_slug, step_slug),
  constraint status_is_valid                           check (
    status in ('created', 'started', 'completed', 'failed', 'skipped')
  ),
  constraint step_states_initial_tasks_check           check (initial_tasks is null or initial_tasks >= 0),
  constraint step_states_remaining_deps_check          check (remaining_deps >= 0),
  constraint initial_tasks_known_when_started          check (status <> 'started' or initial_tasks is not null),
  constraint remaining_tasks_state_consistency         check (
    remaining_tasks is null or status not in ('created', 'skipped')
  ),
  constraint status_and_remaining_tasks_match          check (status <> 'completed' or remaining_tasks = 0),
  constraint output_only_for_completed_or_null         check (output is null or status = 'completed'),
  constraint skip_reason_matches_status                check (
    (status = 'skipped' and skip_reason is not null) or (status <> 'skipped' and skip_reason is null)
  ),
  constraint completed_at_or_failed_at_or_skipped_at   check (
    case when completed_at is not null then 1 else 0 end
    + case when failed_at is not null then 1 else 0 end
    + case when skipped_at is not null then 1 else 0 end
    <= 1
  ),
  constraint started_at_is_after_created_at            check (started_at is null or started_at >= created_at),
  constraint completed_at_is_after_started_at          check (completed_at is null or completed_at >= started_at),
  constraint failed_at_is_after_started_at             check (failed_at is null or failed_at >= started_at),
  constraint skipped_at_is_after_created_at            check (skipped_at is null or skipped_at >= created_at)
);

create index idx_step_states_flow_slug on pgflow.step_states (flow_slug);

comment on table  pgflow.step_states                 is 'State of each step of a run, created with the run.';
comment on column pgflow.step_states.remaining_tasks is 'Tasks that have not completed. NULL before the step starts and once it is skipped.';
comment on column pgflow.step_states.remaining_deps  is 'Dependencies that have neither completed nor been skipped; at 0 the step may start.';
comment on column pgflow.step_states.initial_tasks   is 'Number of tasks: 1 for a single step, the array''s length for a map. NULL while a map''s array is not known yet.';
comment on column pgflow.step_states.started_at      is 'NULL when it never started. A step without tasks starts and completes at the same time.';
comment on column pgflow.step_states.error_message   is 'Why the step failed, or was skipped after a failed handler.';
comment on column pgflow.step_states.output          is 'Once completed: the task''s output for a single step, the array of its tasks'' outputs by task_index for a map. NULL otherwise.';
comment on column pgflow.step_states.skip_reason     is 'condition_unmet, handler_failed or dependency_skipped. NULL unless skipped.';

create table pgflow.step_tasks (
  flow_slug               text         not null,
  run_id                  uuid         not null,
  step_slug               text         not null,
  message_id              bigint,
  task_index              integer      not null  default 0,
  status                  text         not null  default 'queued',
  attempts_count          integer      not null  default 0,
  error_message           text,
  output                  jsonb,
  queued_at               timestamptz  not null  default now(),
  completed_at            timestamptz,
  failed_at               timestamptz,
  started_at              timestamptz,
  last_worker_id          uuid,
  requeued_count          integer      not null  default 0,
  last_requeued_at        timestamptz,
  permanently_stalled_at  timestamptz,
  queue_name              text         not null,

  constraint step_tasks_pkey                   primary key (run_id, step_slug, task_index),
  constraint step_tasks_flow_slug_fkey         foreign key (flow_slug) references pgflow.flows (flow_slug),
  constraint step_tasks_run_id_fkey            foreign key (run_id) references pgflow.runs (run_id),
  constraint step_tasks_run_id_step_slug_fkey  foreign key (run_id, step_slug)
                                                 references pgflow.step_states (run_id, step_slug),
  constraint step_tasks_last_worker_id_fkey    foreign key (last_worker_id)
                                                 references pgflow.workers (worker_id) on delete set null,
  constraint valid_status                      check (
    status in ('queued', 'started', 'completed', 'failed', 'skipped', 'cancelled')
  ),
  constraint attempts_count_nonnegative        check (attempts_count >= 0),
  constraint output_valid_only_for_completed   check (output is null or status in ('completed', 'failed')),
  constraint completed_at_or_failed_at         check (not (completed_at is not null and failed_at is not null)),
  constraint started_at_is_after_queued_at     check (started_at is null or started_at >= queued_at),
  constraint completed_at_is_after_queued_at   check (completed_at is null or completed_at >= queued_at),
  constraint failed_at_is_after_queued_at      check (failed_at is null or failed_at >= queued_at),
  constraint completed_at_is_after_started_at  check (
    completed_at is null or started_at is null or completed_at >= started_at
  ),
  constraint failed_at_is_after_started_at     check (
    failed_at is null or started_at is null or failed_at >= started_at
  ),
  constraint queue_name_is_valid               check (pgflow.is_valid_queue_name(queue_name))
);

create unique index idx_step_tasks_queue_message on pgflow.step_tasks (queue_name, message_id)
                                                 where message_id is not null;
create index idx_step_tasks_started       on pgflow.step_tasks (started_at) where status = 'started';
create index idx_step_tasks_flow_run_step on pgflow.step_tasks (flow_slug, run_id, step_slug);

comment on table  pgflow.step_tasks                        is 'Tasks of started steps. Each is delivered to workers as one PGMQ message.';
comment on column pgflow.step_tasks.message_id             is 'The task''s message in queue_name; PGMQ counts messages per queue. NULL: no message.';
comment on column pgflow.step_tasks.task_index             is '0 for a single step, the position in the array for a map.';
comment on column pgflow.step_tasks.attempts_count         is 'How often start_tasks has claimed the task.';
comment on column pgflow.step_tasks.error_message          is 'What the latest failed attempt reported.';
comment on column pgflow.step_tasks.output                 is 'What the handler returned; kept on a task that failed because its output has the wrong type.';
comment on column pgflow.step_tasks.queued_at              is 'When the task was created; retries and requeues leave it.';
comment on column pgflow.step_tasks.started_at             is 'When the latest attempt was claimed; NULL while the task is queued.';
comment on column pgflow.step_tasks.last_worker_id         is 'Worker of the latest claim. NULL: claimed by nobody yet, requeued since, claimed without an id, or the worker''s row is gone.';
comment on column pgflow.step_tasks.requeued_count         is 'How often requeue_stalled_tasks gave the task back, at most 3.';
comment on column pgflow.step_tasks.permanently_stalled_at is 'When requeue_stalled_tasks gave the task up after 3 requeues; its status stays "started". NULL: not given up.';
comment on column pgflow.step_tasks.queue_name             is 'PGMQ queue that the task''s message was sent to: the step''s queue_name at that time. Never changes.';
comment on index  pgflow.idx_step_tasks_queue_message      is 'A message belongs to at most one task. Claims look tasks up by it.';

create type pgflow.step_task_record as (
  flow_slug   text,
  run_id      uuid,
  step_slug   text,
  input       jsonb,
  msg_id      bigint,
  task_index  integer,
  flow_input  jsonb
);

comment on type   pgflow.step_task_record            is 'A claimed task, as start_tasks hands it to a worker.';
comment on column pgflow.step_task_record.input      is 'What the handler gets. Map: its element of the array. Single without dependencies: {}. Else an object of the outputs of completed dependencies.';
comment on column pgflow.step_task_record.msg_id     is 'The task''s message id in the queue that was polled.';
comment on column pgflow.step_task_record.flow_input is 'The run''s input for a single step without dependencies, else NULL.';
