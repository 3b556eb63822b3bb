//! Reads a CTranslate2 model file: named tensors, one after another.
//!
//! Layout, little-endian: version u32, spec name, revision u32, count u32, then per variable name, rank u8, dims
//! u32 each, type u8, bytes u32 and the bytes; then a count of aliases and pairs of names. A name is a u16 length that
//! counts a closing zero, and the bytes.

use std::collections::BTreeMap;

const HALF: u8 = 4;

/// A tensor of 16-bit floats, row after row, little-endian, as they lie in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves<'a, 'd> {
    pub(super) dims: &'d [u32],
    pub(super) bytes: &'a [u8],
}

/// The tensors of a file by name.
#[derive(Debug)]
pub(super) struct Variables<'a> {
    found: BTreeMap<String, Variable<'a>>,
}

#[derive(Clone, Debug)]
struct Variable<'a> {
    dims: Vec<u32>,
    kind: u8,
    bytes: &'a [u8],
}

impl<'a> Variables<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let mut reader = Reader { rest: bytes };
        let version = reader.u32()?;
        if version < 6 {
            return Err(format!("version {version} of the CTranslate2 form is too old"));
        }
        let _spec = reader.name()?;
        let _revision = reader.u32()?;
        let mut found = BTreeMap::new();
        for _ in 0..reader.u32()? {
            let name = reader.name()?;
            let rank = reader.take(1)?[0];
            let dims = (0..rank).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
            let kind = reader.take(1)?[0];
            let length = reader.u32()?;
            let bytes = reader.take(usize::try_from(length).map_err(|_| "too long")?)?;
            found.insert(name, Variable { dims, kind, bytes });
        }
        for _ in 0..reader.u32()? {
            let (alias, of) = (reader.name()?, reader.name()?);
            let variable = found
                .get(&of)
                .cloned()
                .ok_or_else(|| format!("{alias} stands for {of}, which is missing"))?;
            found.entry(alias).or_insert(variable);
        }
        Ok(Self { found })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.found.keys().map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }

    /// A tensor of 16-bit floats whose bytes are as many as its dims say.
    pub(super) fn halves(&self, name: &str) -> Result<Halves<'a, '_>, String> {
        let variable = self.found.get(name).ok_or_else(|| format!("{name} is missing"))?;
        if variable.kind != HALF {
            return Err(format!("{name} is not stored in 16-bit floats"));
        }
        let count =
            variable.dims.iter().try_fold(2_usize, |all, &dim| all.checked_mul(usize::try_from(dim).ok()?));
        if count != Some(variable.bytes.len()) {
            return Err(format!("{name} has {} bytes for {:?}", variable.bytes.len(), variable.dims));
        }
        Ok(Halves { dims: &variable.dims, bytes: variable.bytes })
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("the file ends too early")?;
        self.rest = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn name(&mut self) -> Result<String, String> {
        let length = self.take(2)?;
        let bytes = self.take(usize::from(u16::from_le_bytes([length[0], length[1]])))?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        String::from_utf8(text.to_vec()).map_err(|_| "a name is not UTF-8".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_or_hostile_file_is_an_error_at_every_length() {
        let mut whole = 6_u32.to_le_bytes().to_vec();
        let name = |out: &mut Vec<u8>, text: &str| {
            out.extend(u16::try_from(text.len() + 1).unwrap().to_le_bytes());
            out.extend(text.bytes());
            out.push(0);
        };
        name(&mut whole, "spec");
        whole.extend([1, 0, 0, 0, 1, 0, 0, 0]);
        name(&mut whole, "a");
        whole.extend([1, 2, 0, 0, 0, HALF, 4, 0, 0, 0, 0, 60, 0, 64]);
        whole.extend([0; 4]);
        let read = Variables::read(&whole).unwrap();
        assert_eq!(
            (read.halves("a").unwrap().dims, read.halves("a").unwrap().bytes),
            (&[2][..], &[0, 60, 0, 64][..])
        );
        for length in 0..whole.len() {
            assert!(Variables::read(&whole[..length]).is_err(), "cut at {length}");
        }
    }
}
