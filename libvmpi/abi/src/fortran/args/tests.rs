use super::*;

#[test]
fn blanks() {
    assert_eq!(trimmed(b"  a b  "), b"a b");
    assert_eq!(trimmed(b"   "), b"");
    assert_eq!(trimmed(b""), b"");
    let mut to = *b"xxxxxx";
    blank_padded(b"abc\0zz", &mut to);
    assert_eq!(&to, b"abc   ");
    blank_padded(b"abcdefghij", &mut to);
    assert_eq!(&to, b"abcdef");
}
