//! Catches panics, so that long-lived tasks go on. The task of a connection does not use it: a
//! panic ends that connection alone.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A future panicked. The panic hook has logged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mistake in Kirin")]
pub struct Panicked;

/// Does `work`. A panic ends only this work.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

/// Waits for `future`. A panic ends only this future.
pub async fn catch_in<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match catch(|| future.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_result() {
        assert_eq!(catch(|| 1), Ok(1));
        assert_eq!(catch(|| -> u8 { panic!("expected by this test") }), Err(Panicked));
        let late = async {
            tokio::task::yield_now().await;
            if true { panic!("expected by this test") } else { 3 }
        };
        assert_eq!(catch_in(late).await, Err(Panicked));
        assert_eq!(catch_in(async { 2 }).await, Ok(2));
    }
}
