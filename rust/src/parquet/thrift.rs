//! A check of Thrift bytes, the footer and the headers of pages, before the decoder sees them.
//!
//! The decoder builds the schema by recursion, reserves memory by the counts it reads, and loops over lists
//! past the end of its bytes. That would abort the process instead of the read. This walk decodes only the shape of
//! the schema, the paths of column chunks and the lengths of pages. It checks that every list is complete, that nesting is
//! bounded, that every group has its children, and that column chunks have the paths of the schema. The decoder skips those
//! paths, although they are all that shows a damaged name: a column that a file lacks is read as nulls.
//!
//! The decoder reads a field that it knows by its id, whatever type its header has. So a known field has the type of the
//! format: otherwise the decoder reads other structures than this walk, which it has not checked.

use std::ops::Range;

use parquet::file::page_index::offset_index::PageLocation;

use super::{MAX_SCHEMA_DEPTH, decode};
use crate::error::{Error, Result};

const OTHER_TYPE: &str = "has a field of another type than the format defines";

/// Nesting of Thrift structures; a Parquet footer needs fewer than ten.
const MAX_THRIFT_DEPTH: usize = 32;

const STOP: u8 = 0;
const BOOLEAN_TRUE: u8 = 1;
const BOOLEAN_FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Field ids of `FileMetaData`, and of `SchemaElement`.
const FILE_SCHEMA: i64 = 2;
const FILE_ROW_GROUPS: i64 = 4;
const ELEMENT_NAME: i64 = 4;
const ELEMENT_NUM_CHILDREN: i64 = 5;
/// Field ids of `RowGroup`, `ColumnChunk` and `ColumnMetaData`.
const COLUMNS: i64 = 1;
const META_DATA: i64 = 3;
const PATH_IN_SCHEMA: i64 = 3;
/// Field ids of `PageHeader`, and of its `DataPageHeaderV2`.
const UNCOMPRESSED_PAGE_SIZE: i64 = 2;
const COMPRESSED_PAGE_SIZE: i64 = 3;
const PAGE_CHECKSUM: i64 = 4;
const DATA_PAGE_HEADER: i64 = 5;
const DATA_PAGE_HEADER_V2: i64 = 8;
/// Field id of `DataPageHeader` and `DataPageHeaderV2`, and further ones of the former.
const NUM_VALUES: i64 = 1;
const ENCODING: i64 = 2;
const DEFINITION_LEVEL_ENCODING: i64 = 3;
/// Further field ids of `DataPageHeaderV2`.
const ENCODING_V2: i64 = 4;
const DEFINITION_LEVELS_LENGTH: i64 = 5;
const REPETITION_LEVELS_LENGTH: i64 = 6;
const IS_COMPRESSED: i64 = 7;

/// A type of the format.
#[derive(Clone, Copy)]
enum Known {
    Boolean,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Known),
    Struct(Fields),
}

/// The fields of a structure of the format, by their ids.
type Fields = &'static [(i64, Known)];

const EMPTY: Known = Known::Struct(&[]);
const FILE: Fields = &[
    (1, Known::I32),
    (FILE_SCHEMA, Known::List(&Known::Struct(ELEMENT))),
    (3, Known::I64),
    (FILE_ROW_GROUPS, Known::List(&Known::Struct(ROW_GROUP))),
    (5, Known::List(&KEY_VALUE)),
    (6, Known::Binary),
    (7, Known::List(&Known::Struct(&[(1, EMPTY), (2, EMPTY)]))),
    (8, Known::Struct(ENCRYPTION)),
    (9, Known::Binary),
];
const KEY_VALUE: Known = Known::Struct(&[(1, Known::Binary), (2, Known::Binary)]);
const ENCRYPTION: Fields = &[(1, AES), (2, AES)];
const AES: Known = Known::Struct(&[(1, Known::Binary), (2, Known::Binary), (3, Known::Boolean)]);
const ELEMENT: Fields = &[
    (1, Known::I32),
    (2, Known::I32),
    (3, Known::I32),
    (ELEMENT_NAME, Known::Binary),
    (ELEMENT_NUM_CHILDREN, Known::I32),
    (6, Known::I32),
    (7, Known::I32),
    (8, Known::I32),
    (9, Known::I32),
    (10, Known::Struct(LOGICAL_TYPE)),
];
const LOGICAL_TYPE: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Known::Struct(&[(1, Known::I32), (2, Known::I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Known::Struct(&[(1, Known::Byte), (2, Known::Boolean)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Known::Struct(&[(1, Known::Byte)])),
    (17, Known::Struct(&[(1, Known::Binary)])),
    (18, Known::Struct(&[(1, Known::Binary), (2, Known::I32)])),
];
const TIME: Known =
    Known::Struct(&[(1, Known::Boolean), (2, Known::Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);
const ROW_GROUP: Fields = &[
    (COLUMNS, Known::List(&Known::Struct(COLUMN_CHUNK))),
    (2, Known::I64),
    (3, Known::I64),
    (4, Known::List(&Known::Struct(&[(1, Known::I32), (2, Known::Boolean), (3, Known::Boolean)]))),
    (5, Known::I64),
    (6, Known::I64),
    (7, Known::I16),
];
const COLUMN_CHUNK: Fields = &[
    (1, Known::Binary),
    (2, Known::I64),
    (META_DATA, Known::Struct(COLUMN_METADATA)),
    (4, Known::I64),
    (5, Known::I32),
    (6, Known::I64),
    (7, Known::I32),
    (8, Known::Struct(&[(1, EMPTY), (2, Known::Struct(COLUMN_KEY))])),
    (9, Known::Binary),
];
const COLUMN_KEY: Fields = &[(1, Known::List(&Known::Binary)), (2, Known::Binary)];
const COLUMN_METADATA: Fields = &[
    (1, Known::I32),
    (2, Known::List(&Known::I32)),
    (PATH_IN_SCHEMA, Known::List(&Known::Binary)),
    (4, Known::I32),
    (5, Known::I64),
    (6, Known::I64),
    (7, Known::I64),
    (8, Known::List(&KEY_VALUE)),
    (9, Known::I64),
    (10, Known::I64),
    (11, Known::I64),
    (12, STATISTICS),
    (13, Known::List(&Known::Struct(&[(1, Known::I32), (2, Known::I32), (3, Known::I32)]))),
    (14, Known::I64),
    (15, Known::I32),
    (16, Known::Struct(&[(1, Known::I64), (2, Known::List(&Known::I64)), (3, Known::List(&Known::I64))])),
    (17, Known::Struct(&[(1, Known::Struct(BOX)), (2, Known::List(&Known::I32))])),
];
const BOX: Fields = &[
    (1, Known::Double),
    (2, Known::Double),
    (3, Known::Double),
    (4, Known::Double),
    (5, Known::Double),
    (6, Known::Double),
    (7, Known::Double),
    (8, Known::Double),
];
const STATISTICS: Known = Known::Struct(&[
    (1, Known::Binary),
    (2, Known::Binary),
    (3, Known::I64),
    (4, Known::I64),
    (5, Known::Binary),
    (6, Known::Binary),
    (7, Known::Boolean),
    (8, Known::Boolean),
    (9, Known::I64),
]);
const PAGE_HEADER: Fields = &[
    (1, Known::I32),
    (UNCOMPRESSED_PAGE_SIZE, Known::I32),
    (COMPRESSED_PAGE_SIZE, Known::I32),
    (PAGE_CHECKSUM, Known::I32),
    (DATA_PAGE_HEADER, Known::Struct(PAGE_HEADER_V1)),
    (6, EMPTY),
    (7, Known::Struct(&[(1, Known::I32), (2, Known::I32), (3, Known::Boolean)])),
    (DATA_PAGE_HEADER_V2, Known::Struct(PAGE_HEADER_V2)),
];
const PAGE_HEADER_V1: Fields = &[
    (NUM_VALUES, Known::I32),
    (ENCODING, Known::I32),
    (DEFINITION_LEVEL_ENCODING, Known::I32),
    (4, Known::I32),
    (5, STATISTICS),
];
const PAGE_HEADER_V2: Fields = &[
    (NUM_VALUES, Known::I32),
    (2, Known::I32),
    (3, Known::I32),
    (ENCODING_V2, Known::I32),
    (DEFINITION_LEVELS_LENGTH, Known::I32),
    (REPETITION_LEVELS_LENGTH, Known::I32),
    (IS_COMPRESSED, Known::Boolean),
    (8, STATISTICS),
];

/// Check that `bytes` are a footer which can be decoded within bounds.
pub(super) fn check_footer(bytes: &[u8]) -> Result<()> {
    let mut leaves = Vec::new();
    Walk { rest: bytes }.fields(|walk, id, kind| match (id, kind) {
        (FILE_SCHEMA, LIST) => walk.schema().map(|paths| leaves = paths),
        (FILE_ROW_GROUPS, LIST) => walk.each_struct(|walk, _| walk.row_group(&leaves)),
        _ => walk.member(FILE, id, kind, MAX_THRIFT_DEPTH),
    })
}

/// A hash of the path of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PathHash(u64);

impl PathHash {
    /// FNV-1a.
    const ROOT: Self = Self(0xcbf2_9ce4_8422_2325);

    fn child(self, name: &[u8]) -> Self {
        let append = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        // No name in UTF-8 has the byte that ends it.
        Self(append(name.iter().fold(self.0, append), &0xff))
    }
}

/// The sizes in the header of a page, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageSizes {
    /// Length of the page as it is stored, without its header.
    pub(super) stored: u64,
    /// Length of the page once it is decompressed.
    pub(super) unpacked: u64,
    /// Length of the levels at the start of a version 2 page, which are never compressed.
    pub(super) levels: u64,
    /// Whether what follows the levels is compressed by the codec of the column chunk.
    pub(super) is_compressed: bool,
    /// The CRC-32 of the page as it is stored.
    pub(super) checksum: Option<u32>,
    /// The encodings of a data page.
    pub(super) encodings: Option<PageEncodings>,
}

/// The encodings of a data page, as the format numbers them, and its values; -1 for what is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageEncodings {
    pub(super) values: i64,
    pub(super) levels: i64,
    /// The number of values, nulls included.
    pub(super) count: i64,
}

/// The encoding of the levels in a version 2 page.
pub(super) const RLE: i64 = 3;

/// The pages of `chunk`, which must hold nothing else: the sizes of each, and its stored bytes.
pub(super) fn pages(chunk: &[u8]) -> Result<Vec<(PageSizes, &[u8])>> {
    let mut walk = Walk { rest: chunk };
    let mut pages = Vec::new();
    while !walk.rest.is_empty() {
        let sizes = walk.page_header()?;
        let start = chunk.len() - walk.rest.len();
        walk.skip(sizes.stored)?;
        pages.push((sizes, &chunk[start..chunk.len() - walk.rest.len()]));
    }
    Ok(pages)
}

/// Return the header of a page with the checksum of its stored bytes, which it lacks.
pub(super) fn with_checksum(header: &[u8], checksum: u32) -> Result<Vec<u8>> {
    let mut walk = Walk { rest: header };
    let mut id = 0;
    // The sizes come first.
    while id < COMPRESSED_PAGE_SIZE {
        let (kind, next) = walk.field(id)?.ok_or_else(|| bad("has a page without a size"))?;
        walk.value(kind, MAX_THRIFT_DEPTH)?;
        id = next;
    }
    let (sizes, rest) = header.split_at(header.len() - walk.rest.len());
    let (next, rest) = rest.split_first().ok_or_else(|| bad("ends early"))?;
    let mut with = [sizes, &[0x10 | I32]].concat();
    let signed = checksum as i32;
    let mut zigzag = (signed << 1 ^ signed >> 31) as u32;
    while zigzag >= 0x80 {
        with.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    // The next field states its distance from this one.
    with.extend([zigzag as u8, next - 0x10]);
    with.extend_from_slice(rest);
    Ok(with)
}

/// A decoder of the page index.
pub(super) struct PageIndexWalk;

/// The range of a binary value within the bytes it was read from.
pub(super) type Binary = Range<usize>;

/// The fields of a ColumnIndex that matter here.
#[derive(Debug, Default)]
pub(super) struct ColumnIndex {
    pub(super) null_pages: Vec<bool>,
    pub(super) min_values: Vec<Binary>,
    pub(super) max_values: Vec<Binary>,
    pub(super) null_counts: Vec<u64>,
    /// As the format numbers it.
    pub(super) boundary_order: i64,
}

impl PageIndexWalk {
    /// The locations in an OffsetIndex.
    pub(super) fn locations(bytes: &[u8]) -> Result<Vec<PageLocation>> {
        let mut locations = Vec::new();
        Walk { rest: bytes }.fields(|walk, id, kind| {
            match (id, kind) {
                (1, LIST) => locations = walk.each(|walk| walk.page_location())?,
                _ => walk.value(kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        Ok(locations)
    }

    /// The lists in a ColumnIndex.
    pub(super) fn statistics(bytes: &[u8]) -> Result<ColumnIndex> {
        let mut index = ColumnIndex::default();
        Walk { rest: bytes }.fields(|walk, id, kind| {
            match (id, kind) {
                (1, LIST) => index.null_pages = walk.each(|walk| Ok(walk.byte()? == BOOLEAN_TRUE))?,
                (2, LIST) => index.min_values = walk.each(|walk| walk.binary(bytes.len()))?,
                (3, LIST) => index.max_values = walk.each(|walk| walk.binary(bytes.len()))?,
                (4, I32) => index.boundary_order = walk.zigzag()?,
                (5, LIST) => {
                    index.null_counts = walk.each(|walk| {
                        u64::try_from(walk.zigzag()?).map_err(|_| bad("has a negative count of nulls"))
                    })?;
                }
                _ => walk.value(kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        Ok(index)
    }
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or_else(|| bad("ends early"))?;
        self.rest = rest;
        Ok(*byte)
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        let length = usize::try_from(length).map_err(|_| bad("ends early"))?;
        self.rest = self.rest.get(length..).ok_or_else(|| bad("ends early"))?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        decode::varint(|| self.byte(), bad)
    }

    fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Type and id of the next field of a structure, or none at its end.
    fn field(&mut self, last_id: i64) -> Result<Option<(u8, i64)>> {
        let header = self.byte()?;
        let (kind, id) = match (header & 0x0f, header >> 4) {
            (STOP, _) => return Ok(None),
            (kind, 0) => (kind, self.zigzag()?),
            (kind, delta) => (kind, last_id + i64::from(delta)),
        };
        // The decoder has ids of 16 bits.
        match i16::try_from(id) {
            Ok(_) => Ok(Some((kind, id))),
            Err(_) => Err(bad("has a field of an impossible id")),
        }
    }

    /// Apply `read` to the id and the type of each field of a structure.
    fn fields(&mut self, mut read: impl FnMut(&mut Self, i64, u8) -> Result<()>) -> Result<()> {
        let mut id = 0;
        while let Some((kind, next)) = self.field(id)? {
            id = next;
            read(self, id, kind)?;
        }
        Ok(())
    }

    /// Element type and count of a list; each element takes a byte or more.
    fn list(&mut self) -> Result<(u8, u64)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        match count <= self.rest.len() as u64 {
            true => Ok((header & 0x0f, count)),
            false => Err(bad("has a list that is longer than the bytes it is in")),
        }
    }

    /// Apply `read` to each element of a list.
    fn each<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let (_, count) = self.list()?;
        (0..count).map(|_| read(self)).collect()
    }

    /// Apply `read` to each element of a list of structures, and to its index.
    fn each_struct(&mut self, mut read: impl FnMut(&mut Self, usize) -> Result<()>) -> Result<()> {
        let (element, count) = self.list()?;
        (0..count).try_for_each(|index| match element {
            STRUCT => read(self, index as usize),
            _ => Err(bad(OTHER_TYPE)),
        })
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        let start = self.rest;
        self.skip(length)?;
        Ok(&start[..start.len() - self.rest.len()])
    }

    fn row_group(&mut self, leaves: &[PathHash]) -> Result<()> {
        self.fields(|walk, id, kind| match (id, kind) {
            (COLUMNS, LIST) => walk.each_struct(|walk, index| walk.column_chunk(leaves.get(index))),
            _ => walk.member(ROW_GROUP, id, kind, MAX_THRIFT_DEPTH),
        })
    }

    fn column_chunk(&mut self, leaf: Option<&PathHash>) -> Result<()> {
        self.fields(|walk, id, kind| match (id, kind) {
            (META_DATA, STRUCT) => walk.column_metadata(leaf),
            _ => walk.member(COLUMN_CHUNK, id, kind, MAX_THRIFT_DEPTH),
        })
    }

    fn column_metadata(&mut self, leaf: Option<&PathHash>) -> Result<()> {
        self.fields(|walk, id, kind| match (id, kind) {
            (PATH_IN_SCHEMA, LIST) => walk.path_in_schema(leaf),
            _ => walk.member(COLUMN_METADATA, id, kind, MAX_THRIFT_DEPTH),
        })
    }

    /// Check the path of a column chunk against the schema. Some writers omit it.
    fn path_in_schema(&mut self, leaf: Option<&PathHash>) -> Result<()> {
        let start = self.rest;
        let (element, count) = self.list()?;
        match (element, count) {
            (_, 0) => return Ok(()),
            (BINARY, _) => {}
            _ => return Err(bad(OTHER_TYPE)),
        }
        let mut path = PathHash::ROOT;
        for _ in 0..count {
            path = path.child(self.bytes()?);
        }
        if leaf.is_none_or(|leaf| *leaf == path) {
            return Ok(());
        }
        let names = Walk { rest: start }.each(|walk| Ok(String::from_utf8_lossy(walk.bytes()?)))?;
        Err(bad(&format!(
            "has data of the column {:?} where its schema has another one: it is damaged",
            names.join(".")
        )))
    }

    /// Return the range of a binary value within `total` bytes, of which `rest` is the end.
    fn binary(&mut self, total: usize) -> Result<Binary> {
        let length = self.varint()?;
        let start = total - self.rest.len();
        self.skip(length)?;
        Ok(start..total - self.rest.len())
    }

    fn page_location(&mut self) -> Result<PageLocation> {
        let mut page = PageLocation { offset: -1, compressed_page_size: -1, first_row_index: -1 };
        self.fields(|walk, id, kind| {
            match (id, kind) {
                (1, I64) => page.offset = walk.zigzag()?,
                (2, I32) => page.compressed_page_size = i32::try_from(walk.zigzag()?).unwrap_or(-1),
                (3, I64) => page.first_row_index = walk.zigzag()?,
                _ => walk.value(kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        Ok(page)
    }

    /// The value of a field of a structure.
    fn member(&mut self, fields: Fields, id: i64, kind: u8, depth: usize) -> Result<()> {
        match fields.iter().find(|(known, _)| *known == id) {
            Some((_, known)) => self.known(*known, kind, depth),
            None => self.value(kind, depth),
        }
    }

    /// A value of a type of the format.
    fn known(&mut self, known: Known, kind: u8, depth: usize) -> Result<()> {
        match (known, kind) {
            (Known::Boolean, BOOLEAN_TRUE | BOOLEAN_FALSE)
            | (Known::Byte, BYTE)
            | (Known::I16, I16)
            | (Known::I32, I32)
            | (Known::I64, I64)
            | (Known::Double, DOUBLE)
            | (Known::Binary, BINARY) => self.value(kind, depth),
            (Known::List(known), LIST) => {
                let (element, count) = self.list()?;
                (0..count).try_for_each(|_| self.known(*known, element, depth - 1))
            }
            (Known::Struct(fields), STRUCT) => {
                self.fields(|walk, id, kind| walk.member(fields, id, kind, depth - 1))
            }
            _ => Err(bad(OTHER_TYPE)),
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<()> {
        if depth == 0 {
            return Err(bad("nests too deeply"));
        }
        match kind {
            BOOLEAN_TRUE | BOOLEAN_FALSE => Ok(()),
            BYTE => self.skip(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.skip(8),
            UUID => self.skip(16),
            BINARY => {
                let length = self.varint()?;
                self.skip(length)
            }
            LIST | SET => {
                let (element, count) = self.list()?;
                (0..count).try_for_each(|_| self.element(element, depth - 1))
            }
            MAP => self.map(depth - 1),
            STRUCT => self.fields(|walk, _, kind| walk.value(kind, depth - 1)),
            _ => Err(bad("has a field of no known type")),
        }
    }

    fn map(&mut self, depth: usize) -> Result<()> {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        for _ in 0..count {
            self.element(kinds >> 4, depth)?;
            self.element(kinds & 0x0f, depth)?;
        }
        Ok(())
    }

    /// Reject lists of booleans: readers disagree on their size, and no footer or page header has one.
    fn element(&mut self, kind: u8, depth: usize) -> Result<()> {
        match kind {
            BOOLEAN_TRUE | BOOLEAN_FALSE => Err(bad("has a list of booleans")),
            _ => self.value(kind, depth),
        }
    }

    fn page_header(&mut self) -> Result<PageSizes> {
        let (mut unpacked, mut stored) = (None, None);
        let (mut levels, mut is_compressed, mut encodings, mut checksum) = (0, true, None, None);
        self.fields(|walk, id, kind| {
            match (id, kind) {
                (UNCOMPRESSED_PAGE_SIZE, I32) => unpacked = Some(walk.size()?),
                (COMPRESSED_PAGE_SIZE, I32) => stored = Some(walk.size()?),
                (PAGE_CHECKSUM, I32) => checksum = Some(walk.zigzag()? as u32),
                (DATA_PAGE_HEADER, STRUCT) => encodings = Some(walk.page_header_v1()?),
                (DATA_PAGE_HEADER_V2, STRUCT) => {
                    let header = walk.page_header_v2()?;
                    (levels, is_compressed, encodings) = (header.0, header.1, Some(header.2));
                }
                _ => walk.member(PAGE_HEADER, id, kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        match (unpacked, stored) {
            (Some(unpacked), Some(stored)) => {
                Ok(PageSizes { stored, unpacked, levels, is_compressed, checksum, encodings })
            }
            _ => Err(bad("has a page without a size")),
        }
    }

    fn page_header_v1(&mut self) -> Result<PageEncodings> {
        let mut encodings = PageEncodings { values: -1, levels: -1, count: -1 };
        self.fields(|walk, id, kind| {
            match (id, kind) {
                (NUM_VALUES, I32) => encodings.count = walk.zigzag()?,
                (ENCODING, I32) => encodings.values = walk.zigzag()?,
                (DEFINITION_LEVEL_ENCODING, I32) => encodings.levels = walk.zigzag()?,
                _ => walk.member(PAGE_HEADER_V1, id, kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        Ok(encodings)
    }

    /// The length of the levels of a version 2 page, whether the rest of it is compressed, and its encodings.
    fn page_header_v2(&mut self) -> Result<(u64, bool, PageEncodings)> {
        let (mut levels, mut is_compressed) = (0, true);
        let mut encodings = PageEncodings { values: -1, levels: RLE, count: -1 };
        self.fields(|walk, id, kind| {
            match (id, kind) {
                (DEFINITION_LEVELS_LENGTH | REPETITION_LEVELS_LENGTH, I32) => levels += walk.size()?,
                (NUM_VALUES, I32) => encodings.count = walk.zigzag()?,
                (ENCODING_V2, I32) => encodings.values = walk.zigzag()?,
                (IS_COMPRESSED, BOOLEAN_TRUE | BOOLEAN_FALSE) => is_compressed = kind == BOOLEAN_TRUE,
                _ => walk.member(PAGE_HEADER_V2, id, kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        Ok((levels, is_compressed, encodings))
    }

    /// A length in bytes, which the format holds in 32 bits.
    fn size(&mut self) -> Result<u64> {
        let size = i32::try_from(self.zigzag()?).ok().and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| bad("has a page of an impossible size"))
    }

    /// The schema: elements in depth-first order, each with the count of its children. Returns the paths of the leaves.
    fn schema(&mut self) -> Result<Vec<PathHash>> {
        let (element, count) = self.list()?;
        if element != STRUCT || count == 0 {
            return Err(bad("has no schema"));
        }
        let mut open: Vec<(u64, PathHash)> = Vec::new();
        let mut leaves = Vec::new();
        for index in 0..count {
            let (name, children) = self.schema_element()?;
            if children > count - index {
                return Err(bad("has a group with more children than the schema has elements"));
            }
            while open.last().is_some_and(|(waiting, _)| *waiting == 0) {
                open.pop();
            }
            let path = match open.last_mut() {
                Some((waiting, path)) => {
                    *waiting -= 1;
                    path.child(name)
                }
                None if index > 0 => return Err(bad("has a schema of more than one tree")),
                // The name of the root is not in the path of a column.
                None => PathHash::ROOT,
            };
            open.push((children, path));
            if children == 0 {
                leaves.push(path);
            }
            if open.len() > MAX_SCHEMA_DEPTH + 1 {
                return Err(bad(&format!("has a schema of more than {MAX_SCHEMA_DEPTH} levels")));
            }
        }
        match open.iter().map(|(waiting, _)| waiting).sum::<u64>() {
            0 => Ok(leaves),
            _ => Err(bad("has a group with fewer children than it says")),
        }
    }

    /// The name of an element, and the count of its children.
    fn schema_element(&mut self) -> Result<(&'a [u8], u64)> {
        let (mut name, mut children) = ([].as_slice(), 0);
        self.fields(|walk, id, kind| {
            match (id, kind) {
                (ELEMENT_NAME, BINARY) => name = walk.bytes()?,
                (ELEMENT_NUM_CHILDREN, I32) => {
                    children =
                        u64::try_from(walk.zigzag()?).map_err(|_| bad("has a negative count of children"))?;
                }
                _ => walk.member(ELEMENT, id, kind, MAX_THRIFT_DEPTH)?,
            }
            Ok(())
        })?;
        Ok((name, children))
    }
}

fn bad(what: &str) -> Error {
    Error::data_file(format!("the Parquet file's metadata {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_their_stored_sizes() {
        // Type 0, uncompressed 9, compressed 2, then two bytes of data.
        let page = [0x15, 0, 0x15, 18, 0x15, 4, 0, 0xaa, 0xbb];
        let (is_compressed, checksum, encodings) = (true, None, None);
        let sizes = PageSizes { stored: 2, unpacked: 9, levels: 0, is_compressed, checksum, encodings };
        let chunk = [page, page].concat();
        assert_eq!(pages(&chunk).unwrap(), [(sizes, &page[7..]), (sizes, &page[7..])]);
        assert!(pages(&page[..8]).is_err());
    }

    #[test]
    fn a_checksum_is_added_after_the_sizes() {
        // Type 0, uncompressed 9, compressed 2, and the header of a data page with 7 values.
        let header = [0x15, 0, 0x15, 18, 0x15, 4, 0x2c, 0x15, 14, 0, 0];
        for checksum in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let page = [with_checksum(&header, checksum).unwrap().as_slice(), &[1, 2]].concat();
            let (found, bytes) = pages(&page).unwrap()[0];
            assert_eq!((found.checksum, found.stored, bytes), (Some(checksum), 2, [1, 2].as_slice()));
            assert!(found.encodings.is_some());
        }
        assert!(with_checksum(&header[..4], 0).is_err());
    }

    #[test]
    fn the_level_sizes_of_a_version_2_page_are_read() {
        // Type 3, uncompressed 9, compressed 5; levels of 1 and 2 bytes, not compressed; then five bytes.
        let page = [0x15, 6, 0x15, 18, 0x15, 10, 0x5c, 0x55, 2, 0x15, 4, 0x12, 0, 0, 1, 2, 3, 4, 5];
        let encodings = Some(PageEncodings { values: -1, levels: RLE, count: -1 });
        let (is_compressed, checksum) = (false, None);
        let sizes = PageSizes { stored: 5, unpacked: 9, levels: 3, is_compressed, checksum, encodings };
        assert_eq!(pages(&page).unwrap(), [(sizes, &page[14..])]);
    }

    #[test]
    fn a_page_of_more_bytes_than_the_format_can_count_is_rejected() {
        // Uncompressed 2^31.
        let page = [0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x10, 0x15, 0, 0];
        let expected = "the Parquet file's metadata has a page of an impossible size";
        assert_eq!(pages(&page).unwrap_err(), Error::data_file(expected));
    }

    #[test]
    fn a_known_field_of_another_type_is_rejected() {
        // A schema of one element with a logical type: a union, and an integer.
        let footer = |logical_type: &[u8]| [&[0x29, 0x1c, 0x48, 1, b's'], logical_type, &[0, 0]].concat();
        assert_eq!(check_footer(&footer(&[0x6c, 0x1c, 0, 0])), Ok(()));
        for other in [[0x64, 0x1c].as_slice(), &[0x6c, 0x15, 2, 0]] {
            assert_eq!(check_footer(&footer(other)), Err(bad(OTHER_TYPE)));
        }
    }

    #[test]
    fn an_id_of_more_than_16_bits_is_rejected() {
        let footer = [0x29, 0x1c, 0x48, 1, b's', 0, 0x05, 0x80, 0x80, 0x08, 0, 0];
        assert_eq!(check_footer(&footer), Err(bad("has a field of an impossible id")));
    }

    #[test]
    fn a_list_longer_than_its_bytes_is_rejected() {
        // Field 9, which the format does not define: a list of 2^28 integers without any element.
        let page = [0x99, 0xf5, 0x80, 0x80, 0x80, 0x80, 0x01, 0];
        let error = pages(&page).unwrap_err();
        let expected = "the Parquet file's metadata has a list that is longer than the bytes it is in";
        assert_eq!(error, Error::data_file(expected));
    }
}
