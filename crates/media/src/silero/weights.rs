//! The weights of the Silero model, out of its ONNX file.
//!
//! The file is a protocol buffer. Of it only the constants are read, by their names: those of the branch for
//! 16,000 Hz, which is known by the width of its first filter. Anything that is not as expected gives nothing.

use std::collections::BTreeMap;

use super::network::{Conv, Lstm, Network, Spectrum};

/// Floats that the tables of this model may have at most; a file that claims more is not read on.
const MOST: usize = 4_000_000;
/// Graphs within graphs; the model has four.
const DEEPEST: usize = 12;

/// A constant: its shape and its values.
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// The constants of one graph, by name.
type Tensors = BTreeMap<String, Tensor>;

/// The network in a model file; `None` if it is another model.
pub(super) fn read(file: &[u8]) -> Option<Network> {
    let mut graphs = Vec::new();
    for (field, value) in Fields(file) {
        if let (7, Value::Bytes(graph)) = (field, value) {
            collect(graph, 0, &mut graphs);
        }
    }
    graphs.into_iter().find_map(network)
}

fn network(mut tensors: Tensors) -> Option<Network> {
    let mut take = |name: &str, shape: &[usize]| {
        let key = tensors.keys().find(|key| key.ends_with(name))?.clone();
        let tensor = tensors.remove(&key)?;
        (tensor.shape == shape && tensor.values.len() == shape.iter().product::<usize>())
            .then_some(tensor.values)
    };
    let spectrum = Spectrum::new(&take("stft.forward_basis_buffer", &[258, 1, 256])?)?;
    let mut conv = |number: usize, from: usize, to: usize, stride: usize| {
        let weight = take(&format!("encoder.{number}.reparam_conv.weight"), &[to, from, 3])?;
        let bias = take(&format!("encoder.{number}.reparam_conv.bias"), &[to])?;
        Some(Conv::new(&weight, bias, from, stride))
    };
    let encoder = [conv(0, 129, 128, 1)?, conv(1, 128, 64, 2)?, conv(2, 64, 64, 2)?, conv(3, 64, 128, 1)?];
    let input = take("decoder.rnn.weight_ih", &[512, 128])?;
    let hidden = take("decoder.rnn.weight_hh", &[512, 128])?;
    let biases = [take("decoder.rnn.bias_ih", &[512])?, take("decoder.rnn.bias_hh", &[512])?];
    let lstm = Lstm::new(&input, &hidden, biases.each_ref().map(Vec::as_slice));
    let last = take("decoder.decoder.2.weight", &[1, 128, 1])?;
    let bias = take("decoder.decoder.2.bias", &[1])?.first().copied()?;
    Some(Network::new(spectrum, encoder, lstm, (last, bias)))
}

/// The constants of a graph, and those of the graphs in it, each for itself.
fn collect(graph: &[u8], depth: usize, graphs: &mut Vec<Tensors>) {
    if depth > DEEPEST {
        return;
    }
    let mut tensors = Tensors::new();
    for (field, value) in Fields(graph) {
        match (field, value) {
            (1, Value::Bytes(node)) => read_node(node, depth, &mut tensors, graphs),
            (5, Value::Bytes(tensor)) => keep(tensor, &mut tensors),
            _ => {}
        }
    }
    graphs.push(tensors);
}

fn read_node(node: &[u8], depth: usize, tensors: &mut Tensors, graphs: &mut Vec<Tensors>) {
    let attributes = Fields(node).filter_map(|(field, value)| match (field, value) {
        (5, Value::Bytes(attribute)) => Some(attribute),
        _ => None,
    });
    for attribute in attributes {
        for (field, value) in Fields(attribute) {
            match (field, value) {
                (5, Value::Bytes(tensor)) => keep(tensor, tensors),
                (6, Value::Bytes(graph)) => collect(graph, depth + 1, graphs),
                _ => {}
            }
        }
    }
}

/// Keeps a tensor of 32-bit floats that has a name.
fn keep(bytes: &[u8], tensors: &mut Tensors) {
    let (mut shape, mut name, mut raw, mut kind) = (Vec::new(), String::new(), &[][..], 0);
    for (field, value) in Fields(bytes) {
        match (field, value) {
            (1, Value::Number(side)) => shape.extend(usize::try_from(side).ok()),
            (1, Value::Bytes(mut packed)) => {
                while let Some(side) = varint(&mut packed) {
                    shape.extend(usize::try_from(side).ok());
                }
            }
            (2, Value::Number(number)) => kind = number,
            (8, Value::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (9, Value::Bytes(values)) => raw = values,
            _ => {}
        }
    }
    if kind == 1 && !name.is_empty() && raw.len() / 4 <= MOST {
        let values = raw.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
        tensors.insert(name, Tensor { shape, values });
    }
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a fixed width; none of these is wanted.
    Other,
}

/// The fields of a message; ends where they make no sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => self.skip(8)?,
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => self.skip(4)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn skip(&mut self, width: usize) -> Option<Value<'a>> {
        self.0 = self.0.get(width..)?;
        Some(Value::Other)
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_model_gives_nothing_and_does_no_harm() {
        assert!(read(b"").is_none() && read(b"not a model").is_none());
        let mut bytes: Vec<u8> = Vec::new();
        for n in 0..5_000_u32 {
            bytes.push((n.wrapping_mul(2_654_435_761) >> 24) as u8);
            assert!(read(&bytes[bytes.len().saturating_sub(300)..]).is_none());
        }
        // A graph in a graph in a graph.
        let mut nested = vec![0x0a, 0];
        for _ in 0..40 {
            let mut outer = vec![0x32, nested.len() as u8];
            outer.extend(&nested);
            let mut node = vec![0x2a, outer.len() as u8];
            node.extend(outer);
            nested = vec![0x0a, node.len() as u8];
            nested.extend(node);
            nested.truncate(120);
        }
        let mut file = vec![0x3a, nested.len() as u8];
        file.extend(nested);
        assert!(read(&file).is_none());
    }
}
