//! Waiting for several things at once, a bounded number of them at a time, on one task.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Something that is waited for.
enum Slot<'a, T> {
    Open(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
    Done(T),
}

impl<T> Slot<'_, T> {
    /// Whether it is still open.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if let Self::Open(future) = self
            && let Poll::Ready(value) = future.as_mut().poll(context)
        {
            *self = Self::Done(value);
        }
        matches!(self, Self::Open(_))
    }
}

/// Waits for all of them, at most so many at a time; those that come first begin first. Gives what came of each, in
/// order.
pub(in crate::engine) async fn all<'a, T: Send>(
    futures: impl IntoIterator<Item = Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    at_once: usize,
) -> Vec<T> {
    let mut slots: Vec<Slot<'a, T>> = futures.into_iter().map(Slot::Open).collect();
    poll_fn(|context| {
        let mut open = 0;
        for slot in &mut slots {
            if open == at_once {
                break;
            }
            open += usize::from(slot.poll(context));
        }
        if open == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let done = |slot| match slot {
        Slot::Done(value) => Some(value),
        Slot::Open(_) => None,
    };
    slots.into_iter().filter_map(done).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Barrier;

    use super::*;

    fn boxed<'a, T>(
        future: impl Future<Output = T> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
        Box::pin(future)
    }

    #[tokio::test]
    async fn as_many_wait_for_each_other_as_may_run_at_once() {
        let barrier = Barrier::new(3);
        let waits = (0..3).map(|number| {
            let barrier = &barrier;
            boxed(async move {
                barrier.wait().await;
                number
            })
        });
        assert_eq!(all(waits, 3).await, [0, 1, 2]);
    }

    #[tokio::test]
    async fn no_more_than_that_run_at_once() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let works = (0..20).map(|number| {
            let (running, most) = (&running, &most);
            boxed(async move {
                most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::Relaxed);
                number
            })
        });
        assert_eq!(all(works, 4).await, (0..20).collect::<Vec<_>>());
        assert_eq!(most.into_inner(), 4);
        assert_eq!(all(Vec::<Pin<Box<dyn Future<Output = ()> + Send>>>::new(), 4).await, []);
    }
}
