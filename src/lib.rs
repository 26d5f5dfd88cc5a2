use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

#[pg_extern(immutable, sql = false)]
fn is_valid_slug(slug: Option<&str>) -> bool {
    slug.is_some()
}

pgrx::extension_sql!(
    "CREATE FUNCTION pgflow.is_valid_slug(slug text) RETURNS boolean IMMUTABLE LANGUAGE c AS 'MODULE_PATHNAME', 'is_valid_slug_wrapper';",
    name = "functions"
);

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
mod tests {
    use pgrx::prelude::*;

    #[pg_test]
    fn skeleton() {
        assert!(Spi::get_one::<bool>("select pgflow.is_valid_slug('a')").unwrap().unwrap());
    }
}

#[cfg(test)]
pub mod pg_test {
    pub fn setup(_options: Vec<&str>) {}

    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![]
    }
}
