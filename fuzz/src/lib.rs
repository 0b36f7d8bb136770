//! What the fuzz targets share, with each other and with the tests that go by seeds (`daemon/tests/hostile.rs`).

pub mod frames;
