//! Machines by name: files like those of users, with their sources, compiled in.

use crate::machine::Machine;
use crate::problem::Problem;

#[derive(Copy, Clone, Debug)]
pub struct BuiltIn {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! machines {
    ($($name:literal)*) => {
        &[$(BuiltIn { name: $name, text: include_str!(concat!("builtin/", $name, ".toml")) }),*]
    };
}

pub const BUILT_IN: &[BuiltIn] = machines! { "laptop" "ethernet" "fat-tree" "torus" "dragonfly" };

impl Machine {
    /// The built-in machine of this name, or what the file of this name describes: our TOML, or SimGrid's XML.
    ///
    /// # Errors
    /// There is neither, or the file is wrong; with the line.
    pub fn load(name_or_file: &str) -> Result<Machine, Problem> {
        if let Some(known) = BUILT_IN.iter().find(|known| known.name == name_or_file) {
            return Machine::from_toml(known.text, known.name);
        }
        match std::fs::read_to_string(name_or_file) {
            Ok(text) => Machine::from_text(&text, name_or_file),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
                let names: Vec<&str> = BUILT_IN.iter().map(|known| known.name).collect();
                Err(Problem::Unknown { name: name_or_file.into(), known: names.join(", ") })
            }
            Err(why) => Err(Problem::Unreadable { file: name_or_file.into(), why: why.to_string() }),
        }
    }

    /// Either kind, told by how it begins.
    ///
    /// # Errors
    /// With the line.
    pub fn from_text(text: &str, file: &str) -> Result<Machine, Problem> {
        match text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
            true => Machine::from_platform(text, file),
            false => Machine::from_toml(text, file),
        }
    }
}

/// What `vmpirun --simulate=list` prints.
pub fn list() -> String {
    let width = BUILT_IN.iter().map(|known| known.name.len()).max().unwrap_or(0);
    let line = |known: &BuiltIn| match Machine::from_toml(known.text, known.name) {
        Ok(machine) => format!("{:width$}  {}\n", known.name, machine.about),
        Err(why) => format!("{:width$}  {why}\n", known.name),
    };
    BUILT_IN.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;

    #[test]
    fn all_of_them_are_right_and_say_where_they_are_from() {
        for known in BUILT_IN {
            let machine = Machine::load(known.name).unwrap_or_else(|why| panic!("{why}"));
            assert!(!machine.about.is_empty() && machine.source.len() > 40, "{}", known.name);
            let bytes = crate::image::tests::aligned(&machine.image());
            let image = Image::new(bytes.as_bytes()).unwrap();
            assert_eq!(image.place_count(), machine.place_count());
        }
        assert_eq!(list().lines().count(), BUILT_IN.len());
        assert!(list().starts_with("laptop     "), "{}", list());
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let why = Machine::load("no such machine").unwrap_err().to_string();
        assert!(why.contains("no such machine") && why.contains("laptop, ethernet, fat-tree"), "{why}");
    }
}
