//! Manual pages and shell completions. Flags come from the tools' own tables, all else from the guide (docs/guide): one source for both.

mod pages;
mod roff;

#[cfg(feature = "manual")]
pub use with_flags::write;

#[cfg(feature = "manual")]
mod with_flags {
    use super::pages::{self, OF_THE_GUIDE, SAME};
    use crate::Result;
    use crate::place::top;
    use crate::shell::create_dir;
    use clap_complete::{Shell, generate_to};
    use std::fs;
    use std::path::Path;

    /// Write below `share`: man1, man7, and completions where each shell looks for them.
    pub fn write(share: &Path) -> Result<()> {
        let shells = [
            (Shell::Bash, share.join("bash-completion/completions")),
            (Shell::Zsh, share.join("zsh/site-functions")),
            (Shell::Fish, share.join("fish/vendor_completions.d")),
        ];
        let man = |section: &str| share.join("man").join(format!("man{section}"));
        create_dir(&man("1"))?;
        create_dir(&man("7"))?;
        let put = |name: &str, text: &[u8]| {
            let file = man(&name[name.len() - 1..]).join(name);
            fs::write(&file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))
        };
        for command in [vmpi_tools::cli::vmpirun_command(), vmpi_tools::cli::vmpictl_command()] {
            let name = command.get_name().to_string();
            let cannot = |e: std::io::Error| format!("cannot write {name}'s manual: {e}");
            // With those of its subcommands; the page itself once more, with the guide in place of the help's last words.
            clap_mangen::generate_to(command.clone(), man("1")).map_err(cannot)?;
            let (mut page, made) = (Vec::new(), clap_mangen::Man::new(command.clone()));
            made.render_title(&mut page).map_err(cannot)?;
            made.render_name_section(&mut page).map_err(cannot)?;
            page.extend(pages::synopsis(&name).into_bytes());
            made.render_options_section(&mut page).map_err(cannot)?;
            if command.has_subcommands() {
                made.render_subcommands_section(&mut page).map_err(cannot)?;
            }
            page.extend(pages::sections(&top(), &name)?.into_bytes());
            put(&format!("{name}.1"), &page)?;
            for (shell, dir) in &shells {
                create_dir(dir)?;
                generate_to(*shell, &mut command.clone(), &name, dir)
                    .map_err(|e| format!("cannot write {name}'s completion for {shell}: {e}"))?;
            }
        }
        for page in OF_THE_GUIDE {
            put(page.file, pages::whole(&top(), page)?.as_bytes())?;
        }
        SAME.iter().try_for_each(|(name, as_page)| put(name, format!(".so man1/{as_page}\n").as_bytes()))
    }
}
