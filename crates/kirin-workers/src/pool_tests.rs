use super::*;

#[test]
fn the_worker_that_worked_last_is_taken_first() {
    let pool = Pool::new(8);
    (1..=3).for_each(|worker| pool.release(worker));
    assert!(matches!(pool.take(|_| false), Ok(Taken::Worker(3))));
    assert!(matches!(pool.take(|worker| *worker == 1), Ok(Taken::Worker(1))));
}
