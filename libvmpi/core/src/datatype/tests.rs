//! Property tests are added below.
