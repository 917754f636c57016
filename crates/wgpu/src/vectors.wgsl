
@group(0) @binding(8) var<storage, read_write> vectors: array<u32>;

// The vector registers, by halves.
var<private> v: array<u64, V_SLOTS>;

fn load_vectors() {
  let first = lane * 2u * V_SLOTS;
  for (var i = 0u; i < V_SLOTS; i++) {
    v[i] = u64(vectors[first + 2u * i]) | (u64(vectors[first + 2u * i + 1u]) << 32u);
  }
}

fn save_vectors() {
  let first = lane * 2u * V_SLOTS;
  for (var i = 0u; i < V_SLOTS; i++) {
    vectors[first + 2u * i] = u32(v[i]);
    vectors[first + 2u * i + 1u] = u32(v[i] >> 32u);
  }
}
