"""A worker for one flow, with psycopg 3: reads messages from the flow's queue, claims their tasks, runs a handler for
each, and reports.

    python3 worker.py

It connects as PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD say. SIGTERM stops it when the task in hand is done.
"""
import json
import signal
import time
import uuid

import psycopg

FLOW = "greeting"
QUEUE = FLOW.lower()
WORKER = str(uuid.uuid4())


def split(task):
    """A step without dependencies: flow_input is the run's input."""
    return task["flow_input"]["names"]


def greet(task):
    """A map step: input is this task's element of the array."""
    return f"Hello, {task['input']}"


def join(task):
    """Any other step: input has the output of each dependency."""
    return ", ".join(task["input"]["greet"])


HANDLERS = {"split": split, "greet": greet, "join": join}
stopping = False


def stop(*_):
    global stopping
    stopping = True


def beat(db):
    """Registers this worker, says that it lives, and tells whether somebody wants it to stop."""
    return db.execute(
        """insert into pgflow.workers (worker_id, queue_name, function_name) values (%s, %s, 'worker.py')
           on conflict (worker_id) do update set last_heartbeat_at = now()
           returning deprecated_at is not null""",
        (WORKER, QUEUE),
    ).fetchone()[0]


def claim(db):
    """Reads at most one message, waiting up to 2 s for it, and claims its task. Two statements, two transactions."""
    messages = [row[0] for row in db.execute("select msg_id from pgmq.read_with_poll(%s, 2, 1, 2)", (QUEUE,))]
    if not messages:
        return []
    cursor = db.execute(
        """select run_id, step_slug, task_index, input, flow_input
           from pgflow.start_tasks(%s, %s::bigint[], %s, %s)""",
        (FLOW, messages, WORKER, QUEUE),
    )
    names = [column.name for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]


def work_on(db, task):
    """Runs the handler, and reports its result or its error. Only what start_tasks returned is worked on."""
    key = (task["run_id"], task["step_slug"], task["task_index"])
    try:
        output = json.dumps(HANDLERS[task["step_slug"]](task))
    except Exception as error:
        db.execute("select from pgflow.fail_task(%s, %s, %s, %s)", (*key, repr(error)))
        print("failed", *key[1:], repr(error), flush=True)
    else:
        db.execute("select from pgflow.complete_task(%s, %s, %s, %s::jsonb)", (*key, output))
        print("completed", *key[1:], flush=True)


def main():
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while not stopping:
        try:
            with psycopg.connect(autocommit=True) as db:
                while not stopping and not beat(db):
                    for task in claim(db):
                        work_on(db, task)
                db.execute("select pgflow.mark_worker_stopped(%s)", (WORKER,))
                return
        except psycopg.OperationalError as error:  # the database is away: what was in hand comes back by itself
            print("cannot work, trying again in a second:", error, flush=True)
            time.sleep(1)


main()
