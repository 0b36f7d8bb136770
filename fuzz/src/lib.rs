//! What the fuzz targets share, with each other and with the tests that go by seeds (`daemon/tests/hostile.rs`, `daemon/shared/tests/scribbled.rs`,
//! `tools/tests/texts.rs`).

pub mod frames;
pub mod scribble;
pub mod texts;
