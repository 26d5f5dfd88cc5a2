//! `pgflow.is_local()`: whether this is a developer's own Supabase.

use std::ffi::CStr;

use pgrx::{pg_extern, pg_sys};

/// The JWT secret that every Supabase CLI project starts with: public, so it marks a local one.
const LOCAL_JWT_SECRET: &CStr = c"super-secret-jwt-token-with-at-least-32-characters-long";

/// True when the setting `app.settings.jwt_secret` has the Supabase CLI's public default.
#[pg_extern(sql = false)]
fn is_local() -> bool {
    supabase_is_local()
}

pub fn supabase_is_local() -> bool {
    // SAFETY: the name is a NUL-terminated string; an unknown setting gives a null pointer.
    unsafe {
        let value = pg_sys::GetConfigOption(c"app.settings.jwt_secret".as_ptr(), true, false);
        !value.is_null() && CStr::from_ptr(value) == LOCAL_JWT_SECRET
    }
}
