//! Imports of whole configurations.
