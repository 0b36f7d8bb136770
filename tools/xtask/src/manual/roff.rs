//! The guide's Markdown as roff: headings, paragraphs, lists, tables (as tagged paragraphs) and blocks.

/// The text below a heading, up to the next one (of any level).
pub fn below(text: &str, heading: &str) -> Option<String> {
    let mut part: Option<String> = None;
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.strip_prefix('#').filter(|_| !fenced).map(|rest| rest.trim_start_matches('#').trim());
        match (&mut part, title) {
            (None, Some(title)) if title == heading => part = Some(String::new()),
            (Some(_), Some(_)) => break,
            (Some(part), None) => {
                part.push_str(line);
                part.push('\n');
            }
            _ => {}
        }
    }
    part
}

/// A section with this title.
pub fn section(title: &str, markdown: &str) -> String {
    let mut out = format!(".SH \"{title}\"\n");
    let mut fenced = false;
    // A new paragraph begins with the next line.
    let mut apart = true;
    let mut rows = 0;
    for line in markdown.lines() {
        let bare = line.trim();
        if bare.starts_with("```") {
            fenced = !fenced;
            out.push_str(if fenced { ".PP\n.RS 4\n.nf\n" } else { ".fi\n.RE\n" });
            apart = true;
        } else if fenced {
            out.push_str(&guarded(&escaped(line)));
        } else if bare.is_empty() {
            (apart, rows) = (true, 0);
        } else if let Some(row) = bare.strip_prefix('|') {
            rows += 1;
            // The first row names the columns, the second one is a line.
            if rows > 2 {
                out.push_str(&tagged(row));
            }
        } else if bare.starts_with("![") {
            // A picture.
        } else if let Some((mark, item)) = item(bare) {
            out.push_str(&format!(".IP {mark} 4\n{}", guarded(&inline(item))));
            apart = false;
        } else {
            if apart {
                out.push_str(".PP\n");
                apart = false;
            }
            out.push_str(&guarded(&inline(bare)));
        }
    }
    out
}

/// `- item` or `1. item`.
fn item(line: &str) -> Option<(&str, &str)> {
    if let Some(item) = line.strip_prefix("- ") {
        return Some(("\\(bu", item));
    }
    let (number, item) = line.split_once(". ")?;
    (!number.is_empty() && number.len() < 3 && number.bytes().all(|b| b.is_ascii_digit()))
        .then(|| (&line[..=number.len()], item))
}

/// A row: its first cell is the tag, the others its text; without a first cell it goes on with the row before.
fn tagged(row: &str) -> String {
    let row = row.trim_end().trim_end_matches('|').replace("\\|", "\u{1}");
    let mut cells = row.split('|').map(|cell| cell.trim().replace('\u{1}', "|"));
    let tag = cells.next().unwrap_or_default();
    let rest: Vec<String> = cells.filter(|cell| !cell.is_empty()).map(|cell| inline(&cell)).collect();
    let text = guarded(&rest.join("; "));
    if tag.is_empty() { text } else { format!(".TP\n\\fB{}\\fR\n{text}", inline(&tag.replace('`', ""))) }
}

/// Code and bold words stand out, links are their words.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 1 {
            out.push_str(&format!("\\fB{}\\fR", escaped(part)));
            continue;
        }
        let mut bold = false;
        for (j, word) in escaped(part).split("**").enumerate() {
            if j > 0 {
                bold = !bold;
                out.push_str(if bold { "\\fB" } else { "\\fR" });
            }
            out.push_str(word);
        }
    }
    without_targets(&out)
}

/// `[words](target)` as `words`.
fn without_targets(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, behind)) = after.split_once(')') else { break };
        let (lead, words) = before.rsplit_once('[').unwrap_or((before, ""));
        out.push_str(lead);
        out.push_str(words);
        rest = behind;
    }
    out + rest
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A line of text, which roff must not take for a request.
fn guarded(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}\n") } else { format!("{line}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_roff() {
        let text = "# A\n\nSee [this](b.md#c) of `-V`.\nMore.\n\n| flag | does |\n| --- | --- |\n| `-a\\|b` | x **y** |\n| | z |\n\n- one\n- two\n\n```console\n$ a -b\n.c\n```\n\n## B\n\nb\n";
        let made = section("NAME", &below(text, "A").unwrap());
        let want = ".SH \"NAME\"\n.PP\nSee this of \\fB\\-V\\fR.\nMore.\n.TP\n\\fB\\-a|b\\fR\nx \\fBy\\fR\nz\n.IP \\(bu 4\none\n.IP \\(bu 4\ntwo\n.PP\n.RS 4\n.nf\n$ a \\-b\n\\&.c\n.fi\n.RE\n";
        assert_eq!(made, want);
        assert_eq!(below(text, "B").unwrap().trim(), "b");
        assert_eq!(below(text, "C"), None);
    }
}
