//! Wakes whoever waits for work when some is ready in one of their queues, and nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Those who wait, by the queues that they wait for.
#[derive(Debug, Default)]
pub struct Bell {
    waiting: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
}

impl Bell {
    /// Waits for work in these queues from now on. What is ready before the first wait wakes it too.
    #[must_use]
    pub fn listen(self: &Arc<Bell>, queues: &[String]) -> Waiter {
        let own = Arc::new(Notify::new());
        let mut waiting = self.waiting();
        for queue in queues {
            waiting.entry(queue.clone()).or_default().push(Arc::clone(&own));
        }
        drop(waiting);
        Waiter { bell: Arc::clone(self), queues: queues.to_vec(), own }
    }

    /// There is work in a queue.
    pub fn ring(&self, queue: &str) {
        self.waiting().get(queue).into_iter().flatten().for_each(|waiter| waiter.notify_one());
    }

    /// There may be work for everybody.
    pub fn ring_all(&self) {
        self.waiting().values().flatten().for_each(|waiter| waiter.notify_one());
    }

    /// The queues that somebody waits for.
    #[must_use]
    pub fn queues(&self) -> Vec<String> {
        self.waiting().keys().cloned().collect()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<Notify>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits, until it is dropped.
#[derive(Debug)]
pub struct Waiter {
    bell: Arc<Bell>,
    queues: Vec<String>,
    own: Arc<Notify>,
}

impl Waiter {
    /// Waits until there has been work since the last time.
    pub async fn wait(&self) {
        self.own.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.bell.waiting();
        for queue in &self.queues {
            let Some(others) = waiting.get_mut(queue) else { continue };
            others.retain(|other| !Arc::ptr_eq(other, &self.own));
            if others.is_empty() {
                waiting.remove(queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_woken(waiter: &Waiter) -> bool {
        let wait = std::pin::pin!(waiter.wait());
        matches!(wait.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    #[test]
    fn only_those_of_a_queue_are_woken_and_whoever_leaves_is_forgotten() {
        let bell = Arc::new(Bell::default());
        let listen = |queues: &[&str]| bell.listen(&queues.iter().map(|&it| it.into()).collect::<Vec<_>>());
        let (one, both) = (listen(&["a"]), listen(&["a", "b", "a"]));
        bell.ring("b");
        assert!(!is_woken(&one) && is_woken(&both));
        bell.ring("a");
        bell.ring("c");
        assert!(is_woken(&one) && is_woken(&both), "what came before the wait counts");
        assert!(!is_woken(&one), "and counts once");
        bell.ring_all();
        assert!(is_woken(&one) && is_woken(&both));
        drop(both);
        assert_eq!(bell.waiting().len(), 1);
        drop(one);
        assert!(bell.is_idle());
    }
}
