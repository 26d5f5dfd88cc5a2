//! The pg_net and Vault ports: the only file that names `net` and `vault`. Both are looked up when a function here
//! is called.

use crate::db::{self, param, Rows, Statement};
use crate::error::Error;
use crate::trust;

/// One POST to a worker function.
pub struct Post {
    pub function_name: String,
    pub request_id: Option<i64>,
}

fn pg_net_required() -> Result<(), Error> {
    match db::function_named("net", "http_post")? {
        true => trust::owner_of(c"net"),
        false => Err(Error::ExtensionMissing {
            extension: "pg_net",
            needed: "function net.http_post",
        }),
    }
}

/// Calls every enabled worker function of a local Supabase.
pub fn post_to_local() -> Result<Vec<Post>, Error> {
    static POST: Statement = Statement::new(
        "with due as (
           update pgflow.worker_functions f set last_invoked_at = clock_timestamp()
           where f.enabled and f.start_mode = 'http'
           returning f.function_name
         )
         select d.function_name,
                net.http_post(url => concat('http://kong:8000/functions/v1/', d.function_name),
                              headers => '{}'::jsonb, body => '{}'::jsonb)
         from due d",
    );
    pg_net_required()?;
    posts(POST.rows(&[])?)
}

/// Calls the enabled worker functions of a hosted project that are past their debounce and have no live worker.
pub fn post_to_project() -> Result<Vec<Post>, Error> {
    static POST: Statement = Statement::new(
        "with due as (
           update pgflow.worker_functions f set last_invoked_at = clock_timestamp()
           where f.enabled and f.start_mode = 'http'
             and (f.last_invoked_at is null or f.last_invoked_at < now() - f.debounce)
             and not exists (
               select from pgflow.workers w
               where w.function_name = f.function_name and w.stopped_at is null and w.deprecated_at is null
                 and w.last_heartbeat_at > now() - f.debounce)
           returning f.function_name
         )
         select d.function_name,
                net.http_post(url => format('https://%s.supabase.co/functions/v1/%s', $1, d.function_name),
                              headers => jsonb_build_object('Content-Type', 'application/json',
                                                            'Authorization', concat('Bearer ', $2)),
                              body => '{}'::jsonb)
         from due d",
    );
    pg_net_required()?;
    let Some((project, key)) = credentials()? else {
        return Ok(Vec::new());
    };
    posts(POST.rows(&[param(project), param(key)])?)
}

/// The project's id and the key to call it with, when Vault holds both; an empty secret counts as none.
fn credentials() -> Result<Option<(String, String)>, Error> {
    static SELECT: Statement = Statement::new(
        "select max(s.decrypted_secret) filter (where s.name = 'supabase_project_id'),
                coalesce(max(s.decrypted_secret) filter (where s.name = 'pgflow_auth_secret'),
                         max(s.decrypted_secret) filter (where s.name = 'supabase_service_role_key'))
         from vault.decrypted_secrets s
         where s.decrypted_secret <> ''
           and s.name in ('supabase_project_id', 'pgflow_auth_secret', 'supabase_service_role_key')",
    );
    if !trust::relation_exists(c"vault", c"decrypted_secrets")? {
        return Err(Error::ExtensionMissing {
            extension: "supabase_vault",
            needed: "view vault.decrypted_secrets",
        });
    }
    let Some(secrets) = SELECT.row(&[])? else {
        return Ok(None);
    };
    Ok(secrets.nullable(1).zip(secrets.nullable(2)))
}

fn posts(rows: Rows) -> Result<Vec<Post>, Error> {
    rows.collect(|record| {
        Ok(Post {
            function_name: record.get(1)?,
            request_id: record.nullable(2),
        })
    })
}
