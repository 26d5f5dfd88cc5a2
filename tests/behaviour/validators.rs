//! is_valid_slug and is_valid_queue_name: what a name may look like.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    fn valid_slug(slug: &str) -> bool {
        Spi::get_one_with_args("select pgflow.is_valid_slug($1)", &[slug.into()])
            .unwrap()
            .unwrap()
    }

    fn valid_queue_name(name: &str) -> bool {
        Spi::get_one_with_args("select pgflow.is_valid_queue_name($1)", &[name.into()])
            .unwrap()
            .unwrap()
    }

    #[pg_test]
    fn a_slug_is_made_of_letters_digits_and_underscores() {
        for good in ["a", "Z", "_", "a1", "camelCase", "snake_case", "__9"] {
            assert!(valid_slug(good), "{good}");
        }
        for bad in [
            "", "a-b", "a.b", "a b", " a", "a ", "a\n", "a$", "a'b", "a;b",
        ] {
            assert!(!valid_slug(bad), "{bad:?}");
        }
    }

    #[pg_test]
    fn a_slug_starts_with_no_digit() {
        assert!(!valid_slug("1a"));
        assert!(!valid_slug("9"));
    }

    #[pg_test]
    fn a_slug_holds_no_letter_beyond_ascii() {
        for bad in ["é", "aé", "ß", "ａ", "a\u{301}", "٣a", "a٣"] {
            assert!(!valid_slug(bad), "{bad}");
        }
    }

    #[pg_test]
    fn a_slug_has_at_most_128_characters() {
        assert!(valid_slug(&"x".repeat(128)));
        assert!(!valid_slug(&"x".repeat(129)));
    }

    #[pg_test]
    fn run_is_the_only_reserved_slug() {
        assert!(!valid_slug("run"));
        for good in ["Run", "RUN", "run_", "_run", "runs"] {
            assert!(valid_slug(good), "{good}");
        }
    }

    #[pg_test]
    fn a_null_slug_is_not_valid() {
        assert_eq!(text("select pgflow.is_valid_slug(null)"), "false");
    }

    #[pg_test]
    fn a_queue_name_has_1_to_47_characters() {
        assert!(valid_queue_name("q"));
        assert!(valid_queue_name(&"q".repeat(47)));
        assert!(!valid_queue_name(&"q".repeat(48)));
        assert!(!valid_queue_name(""));
    }

    #[pg_test]
    fn the_limit_of_a_queue_name_counts_characters_not_bytes() {
        assert!(valid_queue_name(&"é".repeat(47)));
        assert!(!valid_queue_name(&"é".repeat(48)));
    }

    #[pg_test]
    fn a_queue_name_is_in_lower_case() {
        assert!(valid_queue_name("orders_2"));
        assert!(!valid_queue_name("Orders"));
        assert!(!valid_queue_name("ordersX"));
    }

    #[pg_test]
    fn a_queue_name_holds_nothing_that_pgmq_refuses() {
        for bad in ["a$b", "a;b", "a--b", "a'b"] {
            let quoted = bad.replace('\'', "''");
            failure(&format!("select pgmq.format_table_name('{quoted}', 'q')"));
            assert!(!valid_queue_name(bad), "{bad}");
        }
        for good in ["a-b", "a b", "a.b", "a\"b", "1"] {
            assert!(valid_queue_name(good), "{good}");
        }
    }

    #[pg_test]
    fn a_null_queue_name_is_not_valid() {
        assert_eq!(text("select pgflow.is_valid_queue_name(null)"), "false");
    }

    #[pg_test]
    fn the_validators_take_their_argument_by_name() {
        assert_eq!(text("select pgflow.is_valid_slug(slug => 'a')"), "true");
        assert_eq!(
            text("select pgflow.calculate_retry_delay(base_delay => 1, attempts_count => 2)"),
            "4"
        );
    }
}
