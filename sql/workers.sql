-- Workers: processes that claim and run tasks, and the HTTP functions that such processes can be started from.

create table pgflow.workers (
  worker_id          uuid         not null,
  queue_name         text         not null,
  function_name      text         not null,
  started_at         timestamptz  not null  default now(),
  deprecated_at      timestamptz,
  last_heartbeat_at  timestamptz  not null  default now(),
  stopped_at         timestamptz,

  constraint workers_pkey primary key (worker_id)
);

create index idx_workers_queue_name on pgflow.workers (queue_name);
create index idx_workers_heartbeat  on pgflow.workers (last_heartbeat_at);

comment on table  pgflow.workers                   is 'Workers that registered. Each inserts its own row and keeps its heartbeat; to claim tasks, a worker needs one.';
comment on column pgflow.workers.worker_id         is 'Chosen by the worker, new for each process.';
comment on column pgflow.workers.queue_name        is 'Queue that the worker polls, in the worker''s own spelling.';
comment on column pgflow.workers.function_name     is 'What the worker runs in; matches worker_functions where that function is tracked.';
comment on column pgflow.workers.deprecated_at     is 'When the worker was asked to stop: it reads this with its heartbeat. NULL: it may go on.';
comment on column pgflow.workers.last_heartbeat_at is 'When the worker last said that it is alive.';
comment on column pgflow.workers.stopped_at        is 'When the worker reported its end with mark_worker_stopped. NULL: it runs, or it ended without a word.';

create table pgflow.worker_functions (
  function_name    text         not null,
  enabled          boolean      not null  default true,
  debounce         interval     not null  default interval '6 seconds',
  last_invoked_at  timestamptz,
  created_at       timestamptz  not null  default now(),
  updated_at       timestamptz  not null  default now(),
  start_mode       text         not null  default 'http',

  constraint worker_functions_pkey              primary key (function_name),
  constraint worker_functions_debounce_check    check (debounce >= interval '1 second'),
  constraint worker_functions_start_mode_check  check (start_mode in ('http', 'process'))
);

comment on table  pgflow.worker_functions                 is 'Functions that must have a live worker. track_worker_function registers them, ensure_workers starts them.';
comment on column pgflow.worker_functions.function_name   is 'Last part of the function''s URL.';
comment on column pgflow.worker_functions.enabled         is 'False: ensure_workers leaves it alone. Set by users only.';
comment on column pgflow.worker_functions.debounce        is 'Least time between two calls by ensure_workers; a worker silent for longer counts as gone.';
comment on column pgflow.worker_functions.last_invoked_at is 'When ensure_workers last called it; NULL: never.';
comment on column pgflow.worker_functions.updated_at      is 'When track_worker_function last registered it.';
comment on column pgflow.worker_functions.start_mode      is '"http": started by an HTTP call of ensure_workers. "process": runs by itself, never called.';
