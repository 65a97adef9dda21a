//! The atomics of loom, with those functions of the standard library that Kirin uses.
//!
//! loom regards an access with `SeqCst` as one with `AcqRel`, and so finds orders that the memory
//! model does not allow. Here such an access comes after a full fence, which loom knows. Compilers
//! do the same for processors that have no instruction of their own for it.

pub use loom::sync::atomic::{Ordering, fence};

/// Runs an access, after a full fence if its order is `SeqCst`.
fn fenced<T>(order: Ordering, access: impl FnOnce() -> T) -> T {
    if order == Ordering::SeqCst {
        fence(Ordering::SeqCst);
    }
    access()
}

macro_rules! atomics {
    ($($name:ident: $value:ty, { $($change:ident),* };)*) => {$(
        /// The atomic of the same name of loom.
        #[derive(Debug, Default)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            /// Returns an atomic with this value.
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            /// Returns the value.
            pub fn load(&self, order: Ordering) -> $value {
                fenced(order, || self.0.load(order))
            }

            /// Sets the value.
            pub fn store(&self, value: $value, order: Ordering) {
                fenced(order, || self.0.store(value, order));
            }

            /// Sets the value, and returns the one before.
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                fenced(order, || self.0.swap(value, order))
            }

            /// Sets the value to `new` if it is `present`.
            pub fn compare_exchange(
                &self,
                present: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                fenced(success, || self.0.compare_exchange(present, new, success, failure))
            }

            /// Sets the value to what `change` returns, until it returns `None`.
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                fenced(set, || self.0.fetch_update(set, fetch, change))
            }

            $(
                /// Changes the value, and returns the one before.
                pub fn $change(&self, value: $value, order: Ordering) -> $value {
                    fenced(order, || self.0.$change(value, order))
                }
            )*
        }
    )*};
}

atomics! {
    AtomicBool: bool, { fetch_and, fetch_or };
    AtomicU32: u32, { fetch_add, fetch_sub, fetch_max, fetch_or };
    AtomicU64: u64, { fetch_add, fetch_sub, fetch_max, fetch_or };
    AtomicUsize: usize, { fetch_add, fetch_sub, fetch_max, fetch_or };
}
