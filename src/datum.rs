//! PostgreSQL values that pass through the engine without being parsed: jsonb and whole rows.
//!
//! Owns the representation at the boundary (argument, result, statement parameter). Must not know what a
//! value means, nor which table it comes from.

use std::ffi::{CStr, CString};

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::nullable::Nullable;
use pgrx::{
    direct_function_call, direct_function_call_as_datum, impl_sql_translatable, pg_sys, FromDatum,
    IntoDatum,
};

/// A jsonb value by reference, possibly still compressed or out of line. Numbers, key order and depth are
/// whatever PostgreSQL stored: nothing here reads the value as Rust data.
#[derive(Clone, Copy)]
pub struct Jsonb(pg_sys::Datum);

impl Jsonb {
    /// The value's JSON type name (`object`, `array`, `string`, ...), as `jsonb_typeof` says it.
    pub fn type_name(self) -> String {
        // SAFETY: the datum is a jsonb; jsonb_typeof is strict, immutable and needs no fcinfo extras.
        unsafe { direct_function_call::<String>(pg_sys::jsonb_typeof, &[Some(self.0)]) }
            .unwrap_or_default()
    }

    pub fn is_array(self) -> bool {
        self.type_name() == "array"
    }

    /// How many elements an array has; 0 for any other value.
    pub fn array_length(self) -> i32 {
        if !self.is_array() {
            return 0;
        }
        // SAFETY: the datum is a jsonb array; the function reads it and nothing else.
        unsafe { direct_function_call::<i32>(pg_sys::jsonb_array_length, &[Some(self.0)]) }
            .unwrap_or_default()
    }

    /// The value's text, as PostgreSQL writes it.
    pub fn to_text(self) -> String {
        // SAFETY: the datum is a jsonb; its output function gives a NUL-terminated string.
        unsafe { direct_function_call::<&CStr>(pg_sys::jsonb_out, &[Some(self.0)]) }
            .map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The value of a text; PostgreSQL raises its own error when it is no JSON.
    pub fn parse(text: &str) -> Self {
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: jsonb_in takes a NUL-terminated string and gives a jsonb or raises.
        Self(
            unsafe {
                direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(text.as_ptr().into())])
            }
            .unwrap_or(pg_sys::Datum::null()),
        )
    }

    /// Whether two values are equal, as PostgreSQL compares jsonb.
    pub fn equals(self, other: Self) -> bool {
        // SAFETY: both datums are jsonb; the comparison reads its two arguments and nothing else.
        unsafe { direct_function_call::<bool>(pg_sys::jsonb_eq, &[Some(self.0), Some(other.0)]) }
            .unwrap_or(false)
    }

    /// The same value in memory and uncompressed, so that many reads of it detoast once.
    pub fn detoasted(self) -> Self {
        // SAFETY: the datum points to a varlena.
        Self(unsafe { pg_sys::pg_detoast_datum(self.0.cast_mut_ptr()) }.into())
    }

    /// The element at a zero-based position of an array; none past its end.
    pub fn element(self, index: i32) -> Option<Self> {
        // SAFETY: the datum is a jsonb; the function reads its two arguments and nothing else.
        unsafe {
            direct_function_call_as_datum(
                pg_sys::jsonb_array_element,
                &[Some(self.0), index.into_datum()],
            )
        }
        .map(Self)
    }
}

/// One row of a table as a composite value, flat in memory, exactly as PostgreSQL built it.
#[derive(Clone, Copy)]
pub struct Row(pg_sys::Datum);

macro_rules! pass_through {
    ($ty:ty, $sql:literal) => {
        impl_sql_translatable!($ty, $sql);

        impl FromDatum for $ty {
            unsafe fn from_polymorphic_datum(
                datum: pg_sys::Datum,
                is_null: bool,
                _: pg_sys::Oid,
            ) -> Option<Self> {
                (!is_null).then_some(Self(datum))
            }
        }

        // SAFETY: the datum came from a value of this very type.
        unsafe impl BoxRet for $ty {
            unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
                unsafe { fcinfo.return_raw_datum(self.0) }
            }
        }
    };
}

pass_through!(Jsonb, "jsonb");
pass_through!(Row, "record");

impl IntoDatum for Jsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(self.0)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: a jsonb argument is passed as it came; NULL is told apart before.
unsafe impl<'fcx> ArgAbi<'fcx> for Jsonb {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // A NULL reaches this only through a STRICT-less function that takes a bare Jsonb, and none does.
        unsafe { arg.unbox_arg_using_from_datum::<Self>() }.unwrap_or(Self(pg_sys::Datum::null()))
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        unsafe { arg.unbox_arg_using_from_datum::<Self>() }.into()
    }
}

// SAFETY: an element of a jsonb array is a pointer into the array, which lives as long as the argument.
unsafe impl UnboxDatum for Jsonb {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Self::As<'src>
    where
        Self: 'src,
    {
        Self(datum.sans_lifetime())
    }
}

/// A by-reference value that must outlive the statement that produced it: copied into the caller's memory.
pub trait Keep: Sized {
    fn datum(self) -> pg_sys::Datum;
    fn of(datum: pg_sys::Datum) -> Self;
}

impl Keep for Jsonb {
    fn datum(self) -> pg_sys::Datum {
        self.0
    }
    fn of(datum: pg_sys::Datum) -> Self {
        Self(datum)
    }
}

impl Keep for Row {
    fn datum(self) -> pg_sys::Datum {
        self.0
    }
    fn of(datum: pg_sys::Datum) -> Self {
        Self(datum)
    }
}
