//! Each arithmetic against a reference.
