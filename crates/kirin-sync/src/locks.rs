//! The locks of loom, with the functions of `parking_lot` that Kirin uses.

use std::sync::PoisonError;

pub use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A lock for one thread at a time.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Returns a lock with this value.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits until no other thread has the lock, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value of a lock that no other thread can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock for one writer, or for several readers.
#[derive(Debug, Default)]
pub struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Returns a lock with this value.
    pub fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    /// Waits until there is no writer, and takes the lock for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread has the lock, and takes it for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock for writing, if no other thread has it.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().ok()
    }

    /// Returns the value of a lock that no other thread can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
