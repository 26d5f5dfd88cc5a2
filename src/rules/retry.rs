//! Exponential backoff between attempts.

/// Seconds until a task's next attempt: `base_delay` doubled once for each attempt made, at most the largest int.
pub fn delay(base_delay: i32, attempts_count: i32) -> i32 {
    let doublings = attempts_count.clamp(0, 31);
    let seconds = i64::from(base_delay) << doublings;
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::delay;

    #[test]
    fn the_delay_doubles_with_each_attempt() {
        assert_eq!(
            [delay(5, 0), delay(5, 1), delay(5, 2), delay(5, 3)],
            [5, 10, 20, 40]
        );
        assert_eq!(delay(0, 30), 0);
    }

    #[test]
    fn the_delay_is_capped_at_the_largest_int() {
        assert_eq!(delay(2_000_000_000, 30), i32::MAX);
        assert_eq!(delay(1, 31), i32::MAX);
        assert_eq!(delay(1, i32::MAX), i32::MAX);
        assert_eq!(delay(1, 30), 1 << 30);
    }
}
