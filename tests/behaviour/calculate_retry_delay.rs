//! calculate_retry_delay: floor(base_delay * 2^attempts_count) seconds.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;

    fn delay(arguments: &str) -> String {
        text(&format!("select pgflow.calculate_retry_delay({arguments})"))
    }

    #[pg_test]
    fn the_retry_delay_doubles_with_each_attempt() {
        let delays = ["5, 0", "5, 1", "5, 2", "5, 3"].map(delay);
        assert_eq!(delays, ["5", "10", "20", "40"]);
    }

    #[pg_test]
    fn a_retry_delay_without_base_is_0() {
        assert_eq!(delay("0, 0"), "0");
        assert_eq!(delay("0, 2147483647"), "0");
    }

    #[pg_test]
    fn a_fraction_of_the_retry_delay_is_cut_off() {
        assert_eq!(delay("0.1, 5"), "3");
        assert_eq!(delay("2.9999, 0"), "2");
        assert_eq!(delay("0.5, 0"), "0");
    }

    #[pg_test]
    fn a_fraction_of_the_base_is_doubled_before_it_is_cut_off() {
        assert_eq!(delay("0.5, 1"), "1");
        assert_eq!(delay("2.75, 2"), "11");
    }

    #[pg_test]
    fn the_retry_delay_is_exact_up_to_the_largest_int() {
        assert_eq!(delay("1, 30"), "1073741824");
        assert_eq!(delay("2147483647, 0"), "2147483647");
        assert_eq!(delay("1073741823.9, 1"), "2147483647");
    }

    #[pg_test]
    fn a_larger_retry_delay_is_capped_at_the_largest_int() {
        for arguments in [
            "1, 31",
            "2000000000, 30",
            "2147483648, 0",
            "1, 2147483647",
            "1e300, 1",
            "'Infinity', 0",
        ] {
            assert_eq!(delay(arguments), "2147483647", "{arguments}");
        }
    }

    #[pg_test]
    fn a_tiny_base_is_doubled_as_often_as_any_other() {
        assert_eq!(delay("1e-40, 140"), "139");
        assert_eq!(delay("1e-40, 200"), "2147483647");
    }

    #[pg_test]
    fn a_null_argument_gives_a_null_retry_delay() {
        assert_eq!(delay("null, 1"), "NULL");
        assert_eq!(delay("1, null"), "NULL");
    }

    #[pg_test]
    fn a_base_that_is_no_number_is_refused() {
        assert_eq!(
            failure("select pgflow.calculate_retry_delay('NaN', 1)").code,
            "22003"
        );
    }
}
