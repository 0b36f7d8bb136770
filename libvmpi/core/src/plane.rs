//! Which matching context of a communicator a message travels in, and the tags that are vmpi's own.

/// Which matching context of a communicator a message travels in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Plane {
    User,
    Collective,
}

/// Set in the tags of calls that bring their own tag (create_group, intercomm_create), so that they never meet a
/// collective's; user tags are below it (`consts::TAG_UB_VALUE`).
pub(crate) const USER_TAG_BIT: i32 = 1 << 30;
