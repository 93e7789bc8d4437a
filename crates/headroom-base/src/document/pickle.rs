//! Reading Python's pickles of plain values: dicts, lists, tuples, texts and numbers. A pickle is a program; this runs none of
//! it: what would import, call or build an object is refused.

/// A pickle's values, each once however often it is referred to.
#[derive(Debug)]
pub struct Pickle {
    nodes: Vec<Node>,
    root: u32,
}

#[derive(Debug)]
enum Node {
    Nothing,
    Bool(bool),
    Int(i64),
    Number(f64),
    Text(String),
    List(Vec<u32>),
    Map(Vec<(u32, u32)>),
}

/// One value of a pickle.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    pickle: &'a Pickle,
    at: u32,
}

impl Pickle {
    /// The values of a pickle of protocol 2 to 5, or why it is not read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader {
            bytes,
            at: 0,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        while let Some(code) = reader.byte() {
            if code == b'.' {
                let root = reader.pop()?;
                return Ok(Self {
                    nodes: reader.nodes,
                    root,
                });
            }
            reader.step(code)?;
        }
        Err("the pickle ends too soon".into())
    }

    pub fn root(&self) -> Value<'_> {
        Value {
            pickle: self,
            at: self.root,
        }
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&self, at: u32) -> &Node {
        self.nodes.get(at as usize).unwrap_or(&Node::Nothing)
    }
}

impl<'a> Value<'a> {
    fn node(self) -> &'a Node {
        self.pickle.node(self.at)
    }

    /// Its place among the pickle's values: what is referred to twice has one.
    pub fn place(self) -> usize {
        self.at as usize
    }

    /// The value of a key, where this is a dict that has it among its first.
    pub fn get(self, key: &str) -> Option<Self> {
        const KEYS: usize = 64;
        let Node::Map(entries) = self.node() else {
            return None;
        };
        let same = |at: u32| matches!(self.pickle.node(at), Node::Text(text) if text == key);
        let (_, value) = entries.iter().take(KEYS).find(|(name, _)| same(*name))?;
        Some(Self { at: *value, ..self })
    }

    /// The items of a list or a tuple; none of anything else.
    pub fn items(self) -> impl Iterator<Item = Self> + 'a {
        let items: &[u32] = match self.node() {
            Node::List(items) => items,
            _ => &[],
        };
        items.iter().map(move |at| Self { at: *at, ..self })
    }

    pub fn int(self) -> Option<i64> {
        match self.node() {
            Node::Int(number) => Some(*number),
            Node::Bool(on) => Some(i64::from(*on)),
            Node::Number(number) => Some(*number as i64),
            _ => None,
        }
    }

    pub fn text(self) -> Option<&'a str> {
        match self.node() {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<u32>,
    marks: Vec<usize>,
    memo: Vec<u32>,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn take(&mut self, count: u64) -> Result<&[u8], String> {
        let end = usize::try_from(count)
            .ok()
            .and_then(|count| self.at.checked_add(count));
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or("the pickle ends too soon")?;
        self.at = end.unwrap_or(self.at);
        Ok(taken)
    }

    /// An unsigned number of so many bytes, the lowest first.
    fn number(&mut self, count: u64) -> Result<u64, String> {
        let bytes = self.take(count)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    fn push(&mut self, node: Node) -> Result<(), String> {
        let at = u32::try_from(self.nodes.len()).map_err(|_| "the pickle is too large")?;
        self.nodes.push(node);
        self.stack.push(at);
        Ok(())
    }

    fn pop(&mut self) -> Result<u32, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err("the pickle takes what it has not put".into());
        }
        self.stack.pop().ok_or_else(|| "an empty stack".into())
    }

    /// What lies above the last mark.
    fn above_mark(&mut self) -> Result<Vec<u32>, String> {
        let mark = self.marks.pop().ok_or("no mark")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn text(&mut self, length: u64) -> Result<(), String> {
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.push(Node::Text(text))
    }

    fn tuple(&mut self, count: usize) -> Result<(), String> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Node::List(items))
    }

    fn append(&mut self, items: Vec<u32>) -> Result<(), String> {
        let list = self.stack.last().copied().ok_or("no list")?;
        match self.nodes.get_mut(list as usize) {
            Some(Node::List(all)) => all.extend(items),
            _ => return Err("items for what is no list".into()),
        }
        Ok(())
    }

    fn set(&mut self, items: &[u32]) -> Result<(), String> {
        let map = self.stack.last().copied().ok_or("no dict")?;
        match self.nodes.get_mut(map as usize) {
            Some(Node::Map(all)) => {
                all.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            _ => return Err("keys for what is no dict".into()),
        }
        Ok(())
    }

    fn remember(&mut self, place: u64) -> Result<(), String> {
        let value = self.stack.last().copied().ok_or("nothing to remember")?;
        let place = usize::try_from(place).map_err(|_| "a memo out of range")?;
        if place >= self.memo.len() {
            if place > self.memo.len() + 1 {
                return Err("a memo out of range".into());
            }
            self.memo.resize(place + 1, value);
        }
        if let Some(known) = self.memo.get_mut(place) {
            *known = value;
        }
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Result<(), String> {
        let place = usize::try_from(place).map_err(|_| "a memo out of range")?;
        let value = self.memo.get(place).copied().ok_or("a memo out of range")?;
        self.stack.push(value);
        Ok(())
    }

    /// An integer of so many bytes in two's complement.
    fn long(&mut self, count: u64) -> Result<(), String> {
        if count > 8 {
            return Err("a number beyond 64 bits".into());
        }
        let shift = 64 - 8 * count;
        let raw = self.number(count)?;
        let number = if count == 0 {
            0
        } else {
            (raw << shift) as i64 >> shift
        };
        self.push(Node::Int(number))
    }

    /// One instruction (Lib/pickle.py, the opcodes of plain values).
    fn step(&mut self, code: u8) -> Result<(), String> {
        match code {
            0x80 => self.take(1).map(drop),
            0x95 => self.take(8).map(drop),
            b'}' => self.push(Node::Map(Vec::new())),
            b']' | b')' => self.push(Node::List(Vec::new())),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            0x8c => self.number(1).and_then(|length| self.text(length)),
            b'X' => self.number(4).and_then(|length| self.text(length)),
            0x8d => self.number(8).and_then(|length| self.text(length)),
            b'C' => self.number(1).and_then(|length| self.text(length)),
            b'B' => self.number(4).and_then(|length| self.text(length)),
            0x94 => self.remember(self.memo.len() as u64),
            b'q' => self.number(1).and_then(|place| self.remember(place)),
            b'r' => self.number(4).and_then(|place| self.remember(place)),
            b'h' => self.number(1).and_then(|place| self.recall(place)),
            b'j' => self.number(4).and_then(|place| self.recall(place)),
            b'K' => self
                .number(1)
                .and_then(|number| self.push(Node::Int(number as i64))),
            b'M' => self
                .number(2)
                .and_then(|number| self.push(Node::Int(number as i64))),
            b'J' => self.long(4),
            0x8a => self.number(1).and_then(|count| self.long(count)),
            0x8b => self.number(4).and_then(|count| self.long(count)),
            0x88 => self.push(Node::Bool(true)),
            0x89 => self.push(Node::Bool(false)),
            b'N' => self.push(Node::Nothing),
            b'G' => {
                let bits = self
                    .take(8)?
                    .iter()
                    .fold(0, |all: u64, byte| all << 8 | u64::from(*byte));
                self.push(Node::Number(f64::from_bits(bits)))
            }
            0x85..=0x87 => self.tuple(usize::from(code - 0x84)),
            b't' | b'l' => {
                let items = self.above_mark()?;
                self.push(Node::List(items))
            }
            b'e' => {
                let items = self.above_mark()?;
                self.append(items)
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'u' => {
                let items = self.above_mark()?;
                self.set(&items)
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(&[key, value])
            }
            b'0' => self.pop().map(drop),
            other => Err(format!(
                "the pickle holds more than plain values (instruction 0x{other:02x} at byte {}), and none of it is run",
                self.at - 1
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_read() {
        // pickle.dumps({"a": [1, -2, 300, 2**40], "b": ("x", None, True, 0.5), "c": {}}, protocol=4), with shared texts.
        let bytes = b"\x80\x04\x95\x3d\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffM\x2c\x01\
                      \x8a\x06\x00\x00\x00\x00\x00\x01e\x8c\x01b\x94(\x8c\x01x\x94N\x88G\x3f\xe0\x00\x00\x00\x00\x00\x00t\x94\
                      \x8c\x01c\x94}\x94u.";
        let pickle = Pickle::read(bytes).unwrap();
        let root = pickle.root();
        let numbers: Vec<_> = root
            .get("a")
            .unwrap()
            .items()
            .filter_map(Value::int)
            .collect();
        assert_eq!(numbers, [1, -2, 300, 1 << 40]);
        let mut items = root.get("b").unwrap().items();
        assert_eq!(items.next().and_then(Value::text), Some("x"));
        assert_eq!(items.count(), 3);
        assert!(root.get("d").is_none());
    }

    #[test]
    fn nothing_is_run_and_nothing_panics() {
        // os.system("touch canary")
        let call = b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x94\x85\x94R\x94.";
        let refusal = Pickle::read(call).unwrap_err();
        assert!(refusal.contains("more than plain values"), "{refusal}");
        let whole = b"\x80\x04}(\x8c\x01a]\x94(K\x01h\x00eu.";
        for end in 0..whole.len() {
            let _ = Pickle::read(&whole[..end]);
            for byte in [0, b'(', b'u', b'e', b't', b'h', b's', b'j', 0x8b, 0xff] {
                let mut changed = whole.to_vec();
                changed[end] = byte;
                let _ = Pickle::read(&changed);
            }
        }
    }
}
