//! `pgflow.calculate_retry_delay(base_delay, attempts_count)`: exponential backoff, for SQL callers.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::error::Error;

/// 2^126 is the largest power of two that is exact here; far beyond it every positive delay is capped anyway.
const MOST_DOUBLINGS: u32 = 126;

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
    let factor = AnyNumeric::from(1i128 << attempts.unsigned_abs().min(MOST_DOUBLINGS));
    let seconds = if attempts < 0 {
        base / factor
    } else {
        base * factor
    };
    let (least, most) = (AnyNumeric::from(i32::MIN), AnyNumeric::from(i32::MAX));
    let capped = if seconds > most {
        most
    } else if seconds < least {
        least
    } else {
        seconds.floor()
    };
    Ok(Some(capped.try_into().map_err(|_| Error::Internal {
        what: "a capped delay is no int",
    })?))
}
