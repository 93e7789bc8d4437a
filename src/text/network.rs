//! A network that is declared.

pub const OWN_NETWORK: &str = "Your own network";
pub const NETWORK: &str = "Your own network";
pub const NETWORK_ABOUT: &str = "Describe a model the catalogue does not have: named sizes, blocks of layers that may repeat or share weights, \
     and extra tensors. A size is a number, a name, or an expression such as 4*width.";
pub const EXAMPLES: &str = "Start from";
pub const BACK_TO_CATALOGUE: &str = "Back to the catalogue";
pub const AS_TEXT: &str = "As text";
pub const MOVE_UP: &str = "Move up";
pub const MOVE_DOWN: &str = "Move down";
pub const SIZE_NAME: &str = "name";
pub const SIZE_VALUE: &str = "value";
pub const ADD_SIZE: &str = "+ size";
pub const DECLARED: &str = "a custom network";
