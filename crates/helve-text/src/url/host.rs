//! The host of a URL: a name in ASCII, or an address in any of the notations that browsers accept.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;

use super::UrlError;

/// Maximum length of a host name.
const MAX_NAME: usize = 253;
/// Maximum length of a label, the part of a host name between two dots.
const MAX_LABEL: usize = 63;

/// A host in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WebHost {
    /// A name in lower case and ASCII, without a dot at the end.
    Name(String),
    Address(IpAddr),
}

impl WebHost {
    pub(super) fn parse(text: &str) -> Result<Self, UrlError> {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            if inner.contains('%') {
                return Err(UrlError::Zone);
            }
            let address: Ipv6Addr = inner.parse().map_err(|_| UrlError::BadHost)?;
            return Ok(WebHost::Address(IpAddr::V6(address)));
        }
        // Browsers decode percent-encoded characters in a host, but no host needs them.
        if text.contains('%') {
            return Err(UrlError::BadHost);
        }
        let ascii = idna::domain_to_ascii_cow(text.as_bytes(), AsciiDenyList::URL)
            .map_err(|_| UrlError::BadHost)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        let is_label = |label: &str| (1..=MAX_LABEL).contains(&label.len());
        if name.len() > MAX_NAME || !name.split('.').all(is_label) {
            return Err(UrlError::BadHost);
        }
        let last_label = name.rsplit('.').next().unwrap_or_default();
        if is_number(last_label) {
            let address = parse_ipv4(name).ok_or(UrlError::BadHost)?;
            return Ok(WebHost::Address(IpAddr::V4(address)));
        }
        Ok(WebHost::Name(name.into()))
    }

    pub fn address(&self) -> Option<IpAddr> {
        match self {
            WebHost::Name(_) => None,
            WebHost::Address(address) => Some(*address),
        }
    }
}

impl fmt::Display for WebHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebHost::Name(name) => out.write_str(name),
            WebHost::Address(IpAddr::V4(address)) => write!(out, "{address}"),
            WebHost::Address(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
                // The standard library would write the last part with dots.
                Some(_) => {
                    let [.., high, low] = address.segments();
                    write!(out, "[::ffff:{high:x}:{low:x}]")
                }
                None => write!(out, "[{address}]"),
            },
        }
    }
}

/// Whether the last label of a name makes it an address, as in `1.2.3.4`, `0x7f.1` and `127.1`.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Parses an IPv4 address of one to four numbers, each decimal, octal (`0177`) or hexadecimal (`0x7f`). The last number
/// fills the remaining bytes.
fn parse_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut numbers = Vec::new();
    for part in text.split('.') {
        if !is_number(part) || numbers.len() == 4 {
            return None;
        }
        numbers.push(parse_number(part)?);
    }
    let (last, firsts) = numbers.split_last()?;
    let mut address: u64 = 0;
    for number in firsts {
        address = address << 8 | u64::from(u8::try_from(*number).ok()?);
    }
    let bits = 8 * (4 - firsts.len() as u32);
    if last >> bits != 0 {
        return None;
    }
    let address = u32::try_from(address << bits | last).ok()?;
    Some(Ipv4Addr::from_bits(address))
}

fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    match digits.trim_start_matches('0') {
        "" => Some(0),
        digits if digits.len() > 16 => None,
        digits => u64::from_str_radix(digits, radix).ok(),
    }
}
