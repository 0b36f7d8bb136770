//! Manual pages and shell completions, from the tables of flags of the tools themselves.

use crate::Result;
use crate::shell::create_dir;
use clap_complete::{Shell, generate_to};
use std::path::Path;

/// Write below `share`: man1, and completions where each shell looks for them.
pub fn write(share: &Path) -> Result<()> {
    let pages = share.join("man/man1");
    let shells = [
        (Shell::Bash, share.join("bash-completion/completions")),
        (Shell::Zsh, share.join("zsh/site-functions")),
        (Shell::Fish, share.join("fish/vendor_completions.d")),
    ];
    create_dir(&pages)?;
    for command in [vmpi_tools::cli::vmpirun_command(), vmpi_tools::cli::vmpictl_command()] {
        let name = command.get_name().to_string();
        clap_mangen::generate_to(command.clone(), &pages).map_err(|e| format!("cannot write {name}'s manual: {e}"))?;
        for (shell, dir) in &shells {
            create_dir(dir)?;
            generate_to(*shell, &mut command.clone(), &name, dir)
                .map_err(|e| format!("cannot write {name}'s completion for {shell}: {e}"))?;
        }
    }
    Ok(())
}
