//! What pgflow makes sure of before it relies on others: that a schema it calls into is not a trap, and that no row of its
//! own tables is hidden from it.
//!
//! Owns cached look-ups in PostgreSQL's catalog. Must not know what is called or read afterwards.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::error::Error;

/// Whether a function exists under exactly this schema, name and argument types. Error 42501 as [`owner_of`].
pub fn function_exists(
    schema: &CStr,
    name: &CStr,
    arguments: &[pg_sys::Oid],
) -> Result<bool, Error> {
    // SAFETY: a system cache look-up on valid keys; a missing schema or function is an ordinary answer.
    let exists = unsafe {
        let namespace = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        let types = pg_sys::buildoidvector(arguments.as_ptr(), arguments.len() as i32);
        pg_sys::SearchSysCacheExists(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            name.as_ptr().into(),
            types.into(),
            namespace.into(),
            pg_sys::Datum::null(),
        )
    };
    if exists {
        owner_of(schema)?;
    }
    Ok(exists)
}

/// Whether a table or view exists under exactly this schema and name. Error 42501 as [`owner_of`].
pub fn relation_exists(schema: &CStr, name: &CStr) -> Result<bool, Error> {
    // SAFETY: system cache look-ups on valid keys; a missing schema or relation is an ordinary answer.
    let exists = unsafe {
        let namespace = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), namespace) != pg_sys::InvalidOid
    };
    if exists {
        owner_of(schema)?;
    }
    Ok(exists)
}

/// Checks the owner of a schema that something is about to be called in: whoever that is decides what happens there with
/// the rights of the current role. Error 42501 unless the owner has those rights anyway.
pub fn owner_of(schema: &CStr) -> Result<(), Error> {
    // SAFETY: system cache look-ups on valid keys; a missing schema has nothing to call.
    unsafe {
        let namespace = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        let (owner, role) = (schema_owner(namespace), pg_sys::GetUserId());
        if pg_sys::has_privs_of_role(owner, role) {
            return Ok(());
        }
        Err(Error::SchemaNotTrusted {
            schema: schema.to_string_lossy().into_owned(),
            owner: role_name(owner),
            role: role_name(role),
        })
    }
}

/// Error 42501 when row security hides rows of one of these tables from the current role, or may do so.
pub fn all_rows_are_visible(schema: &CStr, tables: &[&CStr]) -> Result<(), Error> {
    // SAFETY: system cache look-ups on valid keys; a missing table has no row security.
    unsafe {
        let namespace = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        for table in tables {
            let oid = pg_sys::get_relname_relid(table.as_ptr(), namespace);
            let verdict = pg_sys::check_enable_rls(oid, pg_sys::InvalidOid, true);
            if verdict == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32 {
                return Err(Error::RowsHidden {
                    table: table.to_string_lossy().into_owned(),
                    role: role_name(pg_sys::GetUserId()),
                });
            }
        }
    }
    Ok(())
}

fn schema_owner(namespace: pg_sys::Oid) -> pg_sys::Oid {
    const CACHE: i32 = pg_sys::SysCacheIdentifier::NAMESPACEOID as i32;
    // SAFETY: a cached row is read before it is released; nspowner is an oid and never NULL.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(CACHE, namespace.into());
        if tuple.is_null() {
            return pg_sys::InvalidOid;
        }
        let mut is_null = false;
        let column = pg_sys::Anum_pg_namespace_nspowner as pg_sys::AttrNumber;
        let owner = pg_sys::SysCacheGetAttr(CACHE, tuple, column, &mut is_null);
        pg_sys::ReleaseSysCache(tuple);
        pg_sys::Oid::from_u32(owner.value() as u32)
    }
}

fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: gives a NUL-terminated copy of the name, or NULL for a role that is gone.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        if name.is_null() {
            return role.to_u32().to_string();
        }
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}
