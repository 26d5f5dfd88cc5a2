//! What pgflow makes sure of before it relies on others: that a schema it calls into is not a trap, and that no row of its
//! own tables is hidden from it.
//!
//! Owns cached look-ups in PostgreSQL's catalog. Must not know what is called or read afterwards.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::error::Error;

/// Whether a function exists under exactly this schema, name and argument types. Error 42501 as [`schema`].
pub fn function_exists(
    schema_name: &CStr,
    name: &CStr,
    arguments: &[pg_sys::Oid],
) -> Result<bool, Error> {
    let Some(namespace) = schema(schema_name)? else {
        return Ok(false);
    };
    // SAFETY: a system cache look-up on valid keys; a missing function is an ordinary answer.
    Ok(unsafe {
        let types = pg_sys::buildoidvector(arguments.as_ptr(), arguments.len() as i32);
        pg_sys::SearchSysCacheExists(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            name.as_ptr().into(),
            types.into(),
            namespace.into(),
            pg_sys::Datum::null(),
        )
    })
}

/// Whether a table or view exists under exactly this schema and name. Error 42501 as [`schema`].
pub fn relation_exists(schema_name: &CStr, name: &CStr) -> Result<bool, Error> {
    Ok(schema(schema_name)?.is_some_and(|namespace| {
        // SAFETY: a system cache look-up on valid keys.
        unsafe { pg_sys::get_relname_relid(name.as_ptr(), namespace) != pg_sys::InvalidOid }
    }))
}

/// A schema that something is about to be called in, if it exists. Whoever owns it decides what that does, with the
/// rights of the current role: error 42501 unless the owner has those rights anyway.
pub fn schema(name: &CStr) -> Result<Option<pg_sys::Oid>, Error> {
    // SAFETY: system cache look-ups on valid keys; a missing schema is an ordinary answer.
    unsafe {
        let namespace = pg_sys::get_namespace_oid(name.as_ptr(), true);
        if namespace == pg_sys::InvalidOid {
            return Ok(None);
        }
        let (owner, role) = (schema_owner(namespace), pg_sys::GetUserId());
        if pg_sys::has_privs_of_role(owner, role) {
            return Ok(Some(namespace));
        }
        Err(Error::SchemaNotTrusted {
            schema: name.to_string_lossy().into_owned(),
            owner: role_name(owner),
            role: role_name(role),
        })
    }
}

/// Error 42501 when row security hides rows of one of these tables from the current role, or may do so.
pub fn all_rows_are_visible(schema_name: &CStr, tables: &[&CStr]) -> Result<(), Error> {
    // SAFETY: system cache look-ups on valid keys; a missing table has no row security.
    unsafe {
        let namespace = pg_sys::get_namespace_oid(schema_name.as_ptr(), true);
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

/// # Safety
/// The schema exists.
unsafe fn schema_owner(namespace: pg_sys::Oid) -> pg_sys::Oid {
    const CACHE: i32 = pg_sys::SysCacheIdentifier::NAMESPACEOID as i32;
    unsafe {
        let tuple = pg_sys::SearchSysCache1(CACHE, namespace.into());
        if tuple.is_null() {
            return pg_sys::InvalidOid; // dropped this moment: nobody's
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
