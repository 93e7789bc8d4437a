//! A zip archive: stored entries with fixed dates, so that the same files give the same bytes.

use super::File;

/// The archive of these files, each in its folder.
pub fn zip<'a>(files: impl IntoIterator<Item = (&'a str, &'a File)>) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    let mut count: u16 = 0;
    for (folder, file) in files {
        let name = format!("{folder}/{}", file.name);
        let (Ok(size), Ok(at), Ok(length), Some(next)) = (
            u32::try_from(file.contents.len()),
            u32::try_from(archive.len()),
            u16::try_from(name.len()),
            count.checked_add(1),
        ) else {
            // Beyond what the format's plain form can hold; exports are some kilobytes.
            continue;
        };
        count = next;
        let described = described(file.contents.as_bytes(), size, length);
        archive.extend(LOCAL.to_le_bytes());
        archive.extend(&described);
        archive.extend(name.as_bytes());
        archive.extend(file.contents.as_bytes());
        let mode: u32 = if file.executable {
            0o100_755
        } else {
            0o100_644
        };
        directory.extend(CENTRAL.to_le_bytes());
        // Made on Unix, whose modes the attributes hold.
        directory.extend([20, 3]);
        directory.extend(&described);
        directory.extend([0; 6]);
        directory.extend((mode << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = u32::try_from(archive.len()).unwrap_or(u32::MAX);
    let size = u32::try_from(directory.len()).unwrap_or(u32::MAX);
    archive.extend(&directory);
    archive.extend(END.to_le_bytes());
    archive.extend([0; 4]);
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(size.to_le_bytes());
    archive.extend(at.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;

/// What both headers of an entry say: version, flags, method, date, checksum, sizes, the name's length.
fn described(contents: &[u8], size: u32, name: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Version 2.0; bit 11: names are UTF-8; stored; midnight of the first day that the format knows.
    for field in [20_u16, 1 << 11, 0, 0, (1 << 5) | 1] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(crc32(contents).to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(name.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let low = crc & 1;
            crc = (crc >> 1) ^ (0xedb8_8320 * low);
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_ones_everyone_computes() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn an_archive_holds_its_files_and_is_the_same_each_time() {
        let file = |name, contents: &str| File {
            name,
            contents: contents.into(),
            executable: false,
        };
        let files = [file("a.yaml", "one\n"), file("b.sh", "")];
        let entries = || files.iter().map(|file| ("x", file));
        let bytes = zip(entries());
        assert_eq!(bytes, zip(entries()));
        // Two local headers of 30 bytes, two central ones of 46, the end of 22, names twice, contents once.
        let names = "x/a.yaml".len() + "x/b.sh".len();
        assert_eq!(bytes.len(), 2 * 30 + 2 * 46 + 22 + 2 * names + 4);
        assert_eq!(&bytes[..4], b"PK\x03\x04");
        assert_eq!(zip([]).len(), 22);
    }
}
