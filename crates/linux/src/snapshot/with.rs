//! How things are written that serde does not know, and bytes, which take less when they are compressed.

/// Bytes as a whole, not one by one.
pub(crate) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        <&[u8]>::deserialize(from).map(<[u8]>::to_vec)
    }
}

/// Bytes that something else consists of.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Bytes(#[serde(with = "bytes")] pub(crate) Vec<u8>);

/// Structures of numbers as their bytes. The hosts that kvrm runs on have the same order of bytes.
pub(crate) mod plain {
    use bytemuck::{AnyBitPattern, NoUninit};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<T: NoUninit, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytemuck::bytes_of(value))
    }

    pub(crate) fn deserialize<'de, T: AnyBitPattern, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        let bytes = <&[u8]>::deserialize(from)?;
        bytemuck::try_pod_read_unaligned(bytes).map_err(|_| D::Error::custom("wrong length"))
    }
}

/// What guests may do with pages.
pub(crate) mod permissions {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::memory::Permissions;

    pub(crate) fn serialize<S: Serializer>(
        permissions: &Permissions,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u8(permissions.bits())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Permissions, D::Error> {
        let bits = u8::deserialize(from)?;
        let all = [Permissions::READ, Permissions::WRITE, Permissions::EXECUTE];
        let has = |one: &Permissions| bits & one.bits() != 0;
        Ok(all.into_iter().filter(has).fold(Permissions::NONE, Permissions::union))
    }
}

/// Bytes, compressed. Whoever reads them says how many they may be before they take memory.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Packed {
    len: u32,
    #[serde(with = "bytes")]
    packed: Vec<u8>,
}

impl Packed {
    /// Compresses bytes: less than 4 GiB.
    pub(crate) fn new(bytes: &[u8]) -> Packed {
        let len = u32::try_from(bytes.len()).expect("they are few");
        Packed { len, packed: lz4_flex::block::compress(bytes) }
    }

    /// The bytes, if they are no more than so many and nothing is wrong with them.
    pub(crate) fn unpack(&self, most: usize) -> Option<Vec<u8>> {
        let len = usize::try_from(self.len).ok().filter(|len| *len <= most)?;
        let mut bytes = vec![0; len];
        let written = lz4_flex::block::decompress_into(&self.packed, &mut bytes).ok()?;
        (written == len).then_some(bytes)
    }
}
