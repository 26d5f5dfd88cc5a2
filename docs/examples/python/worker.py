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


def outcome(task):
    """Runs the handler of the task's step; returns the task with its output as JSON, or with what went wrong."""
    try:
        return task, json.dumps(HANDLERS[task["step_slug"]](task), allow_nan=False), None
    except Exception as error:
        return task, None, repr(error)


def report(db, task, output, error):
    key = (task["run_id"], task["step_slug"], task["task_index"])
    if error is None:
        try:
            db.execute("select from pgflow.complete_task(%s, %s, %s, %s::jsonb)", (*key, output))
            print("completed", *key[1:], flush=True)
            return
        except psycopg.DataError as refused:  # an output that PostgreSQL cannot store, such as one with \u0000
            error = str(refused)
    db.execute("select from pgflow.fail_task(%s, %s, %s, %s)", (*key, error.replace("\0", "")))
    print("failed", *key[1:], error, flush=True)


def work(db, outcomes):
    """Works until it is told to stop. An outcome stays in the list until its report got an answer."""
    while True:
        while outcomes:
            report(db, *outcomes[0])
            outcomes.pop(0)
        if stopping or beat(db):
            break
        outcomes.extend(outcome(task) for task in claim(db))  # only what start_tasks returned is worked on
    db.execute("select pgflow.mark_worker_stopped(%s)", (WORKER,))


def main():
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    outcomes = []
    while True:
        try:
            with psycopg.connect(autocommit=True) as db:
                return work(db, outcomes)
        except psycopg.OperationalError as error:  # the database is away; a report that went through changes nothing
            print("cannot work, trying again in a second:", error, flush=True)
            time.sleep(1)


if __name__ == "__main__":
    main()
