//! `pgflow.calculate_retry_delay(base_delay, attempts_count)`: exponential backoff, for SQL callers.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::error::Error;

/// As many doublings take the smallest numeric (1e-16383) past the largest int; more change nothing.
const MOST_DOUBLINGS: i32 = 54_500;
/// 2^126 is the largest power of two that an i128 holds.
const DOUBLINGS_AT_ONCE: i32 = 126;

/// Seconds to wait before the next attempt: `floor(base_delay * 2^attempts_count)`, at most 2147483647. NULL when
/// an argument is. Error 22003 when base_delay is NaN.
#[pg_extern(sql = false)]
fn calculate_retry_delay(
    base_delay: Option<AnyNumeric>,
    attempts_count: Option<i32>,
) -> Result<Option<i32>, ErrorReport> {
    let (Some(base), Some(attempts)) = (base_delay, attempts_count) else {
        return Ok(None);
    };
    if base.is_nan() {
        return Err(Error::DelayNotANumber {
            base: base.to_string(),
            attempts,
        }
        .into());
    }
    let (least, most) = (AnyNumeric::from(i32::MIN), AnyNumeric::from(i32::MAX));
    let mut seconds = base;
    let mut left = attempts.clamp(-MOST_DOUBLINGS, MOST_DOUBLINGS);
    while left > 0 && seconds < most && seconds > least {
        let doublings = left.min(DOUBLINGS_AT_ONCE);
        seconds *= AnyNumeric::from(1i128 << doublings);
        left -= doublings;
    }
    while left < 0 {
        let halvings = left.abs().min(DOUBLINGS_AT_ONCE);
        seconds /= AnyNumeric::from(1i128 << halvings);
        left += halvings;
    }
    let capped = if seconds > most {
        most
    } else if seconds < least {
        least
    } else {
        seconds.floor()
    };
    let capped = capped.try_into().map_err(|_| Error::Internal {
        what: "a capped delay is no int",
    })?;
    Ok(Some(capped))
}
