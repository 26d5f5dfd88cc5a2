//! `pgflow.is_valid_slug(slug)`: whether a flow or step may have this slug.

use pgrx::prelude::*;

const SLUG_LIMIT: usize = 128;

/// True for `[A-Za-z_][A-Za-z0-9_]*` of at most 128 characters that is not the reserved word `run`; false for
/// anything else, NULL too. Immutable: CHECK constraints call it.
#[pg_extern(sql = false)]
fn is_valid_slug(slug: Option<&str>) -> bool {
    slug.is_some_and(is_slug)
}

fn is_slug(slug: &str) -> bool {
    let starts_well = slug.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well
        && slug.len() <= SLUG_LIMIT
        && slug != "run"
        && slug.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod unit {
    use super::is_slug;

    #[test]
    fn a_slug_is_a_word_of_letters_digits_and_underscores_that_starts_with_no_digit() {
        for good in [
            "a",
            "_",
            "A1",
            "camelCase",
            "snake_case",
            "run_",
            "Run",
            "x".repeat(128).as_str(),
        ] {
            assert!(is_slug(good), "{good}");
        }
        for bad in [
            "",
            "run",
            "1a",
            "a-b",
            "a b",
            "a\n",
            "é",
            "a.b",
            "x".repeat(129).as_str(),
        ] {
            assert!(!is_slug(bad), "{bad}");
        }
    }
}
