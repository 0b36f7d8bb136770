//! (Owner: comm helper.)
