// language: metal2.4
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
    uint size2;
    uint size3;
    uint size5;
    uint size6;
    uint size23;
    uint size24;
    uint size25;
};

struct Arguments {
    uint lanes;
    uint share;
    uint code_len;
    uint code_start_low;
    uint code_start_high;
    uint frames;
};
struct Status {
    uint count_low;
    uint count_high;
    uint budget_low;
    uint budget_high;
    uint detail_low;
    uint detail_high;
    uint stop;
    uint records;
};
struct Pool {
    metal::atomic_uint next;
    metal::atomic_uint stopped;
    metal::atomic_uint lock;
    metal::atomic_uint executed_low;
    metal::atomic_uint executed_high;
};
typedef uint type_3[1];
typedef Status type_4[1];
typedef metal::uint4 type_6[1];
struct type_7 {
    ulong inner[34];
};
typedef ulong type_9[1];
typedef metal::atomic_uint type_10[1];
struct _atomic_compare_exchange_result_Uint_4_ {
    uint old_value;
    bool exchanged;
    char _pad2[3];
};
struct Pair {
    ulong low;
    ulong high;
};

template <typename A>
_atomic_compare_exchange_result_Uint_4_ naga_atomic_compare_exchange_weak_explicit(
    device A *atomic_ptr,
    uint cmp,
    uint v
) {
    bool swapped = metal::atomic_compare_exchange_weak_explicit(
        atomic_ptr, &cmp, v,
        metal::memory_order_relaxed, metal::memory_order_relaxed
    );
    return _atomic_compare_exchange_result_Uint_4_{cmp, swapped};
}
template <typename A>
_atomic_compare_exchange_result_Uint_4_ naga_atomic_compare_exchange_weak_explicit(
    threadgroup A *atomic_ptr,
    uint cmp,
    uint v
) {
    bool swapped = metal::atomic_compare_exchange_weak_explicit(
        atomic_ptr, &cmp, v,
        metal::memory_order_relaxed, metal::memory_order_relaxed
    );
    return _atomic_compare_exchange_result_Uint_4_{cmp, swapped};
}
constant uint WORKGROUP = 64u;
constant uint STATE_WORDS = 86u;
constant uint X_SLOTS = 34u;
constant uint PC_WORD = 68u;
constant uint FLAGS_WORD = 85u;
constant uint EXCLUSIVE_LEN_WORD = 84u;
constant uint PAGES = 256u;
constant uint GROUP = 32u;
constant uint RUNNING = 0u;
constant uint MAX_CYCLES = 1u;
constant uint NO_CODE = 2u;
constant uint UNDEFINED = 3u;
constant uint BREAKPOINT = 4u;
constant uint CODE_WRITE = 5u;
constant uint NO_FRAME = 6u;
constant uint EXIT = 16u;
constant ulong SIZE = 1048576uL;
constant uint BUSY = 4294967295u;

ulong code_start(
    constant Arguments& arguments
) {
    uint _e2 = arguments.code_start_low;
    uint _e6 = arguments.code_start_high;
    return static_cast<ulong>(_e2) | (static_cast<ulong>(_e6) << 32u);
}

ulong pc(
    constant Arguments& arguments,
    thread uint& at
) {
    ulong _e0 = code_start(arguments);
    uint _e2 = at;
    return _e0 + (static_cast<ulong>(_e2) << 2u);
}

ulong get_wide(
    uint word,
    device type_3 const& states,
    thread uint& state,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = state;
    uint _e6 = states[_e3 + word];
    uint _e10 = state;
    uint _e15 = states[(_e10 + word) + 1u];
    return static_cast<ulong>(_e6) | (static_cast<ulong>(_e15) << 32u);
}

void set_wide(
    uint word_1,
    ulong value,
    device type_3& states,
    thread uint& state,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e4 = state;
    states[_e4 + word_1] = static_cast<uint>(value);
    uint _e10 = state;
    states[(_e10 + word_1) + 1u] = static_cast<uint>(value >> 32u);
    return;
}

uint entry(
    uint page,
    thread uint& lane
) {
    uint _e2 = lane;
    return (((_e2 / GROUP) * PAGES) + page) * 2u;
}

uint lane_bit(
    thread uint& lane
) {
    uint _e2 = lane;
    return 1u << (_e2 % GROUP);
}

uint in_frame(
    uint frame,
    uint word_2,
    thread uint& lane
) {
    uint _e10 = lane;
    return (((frame * 512u) + (word_2 & 511u)) * GROUP) + (_e10 % GROUP);
}

ulong load_word(
    uint word_3,
    thread uint& lane,
    device type_9 const& image,
    device type_9 const& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = entry(word_3 >> 9u, lane);
    uint _e8 = metal::atomic_load_explicit(&tables[_e3 + 1u], metal::memory_order_relaxed);
    uint _e9 = lane_bit(lane);
    if ((_e8 & _e9) != 0u) {
        uint _e16 = metal::atomic_load_explicit(&tables[_e3], metal::memory_order_relaxed);
        uint _e17 = in_frame(_e16, word_3, lane);
        ulong _e19 = frames[_e17];
        return _e19;
    }
    ulong _e22 = image[word_3];
    return _e22;
}

void store_word(
    uint word_4,
    ulong value_1,
    ulong mask,
    thread uint& lane,
    device type_9& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = entry(word_4 >> 9u, lane);
    uint _e8 = metal::atomic_load_explicit(&tables[_e6], metal::memory_order_relaxed);
    uint _e9 = in_frame(_e8, word_4, lane);
    ulong _e14 = frames[_e9];
    frames[_e9] = (_e14 & ~(mask)) | value_1;
    return;
}

bool own_page(
    uint page_1,
    constant Arguments& arguments,
    device Pool& pool,
    thread uint& lane,
    thread uint& stop,
    thread ulong& detail,
    thread bool& again,
    device type_9 const& image,
    device type_9& frames,
    device type_10& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint frame_1 = {};
    uint i = 0u;
    uint _e1 = entry(page_1, lane);
    uint _e6 = metal::atomic_load_explicit(&tables[_e1 + 1u], metal::memory_order_relaxed);
    uint _e7 = lane_bit(lane);
    if ((_e6 & _e7) != 0u) {
        return true;
    }
    uint _e14 = metal::atomic_load_explicit(&tables[_e1], metal::memory_order_relaxed);
    frame_1 = _e14;
    uint _e16 = frame_1;
    if (_e16 == 0u) {
        _atomic_compare_exchange_result_Uint_4_ _e23 = naga_atomic_compare_exchange_weak_explicit(&tables[_e1], 0u, BUSY);
        if (!(_e23.exchanged)) {
            again = true;
            return false;
        }
        uint _e32 = metal::atomic_fetch_add_explicit(&pool.next, 1u, metal::memory_order_relaxed);
        frame_1 = _e32;
        uint _e33 = frame_1;
        uint _e36 = arguments.frames;
        if (_e33 >= _e36) {
            metal::atomic_store_explicit(&tables[_e1], 0u, metal::memory_order_relaxed);
            stop = NO_FRAME;
            detail = 0uL;
            return false;
        }
        uint _e48 = frame_1;
        metal::atomic_store_explicit(&tables[_e1], _e48, metal::memory_order_relaxed);
    }
    uint _e49 = frame_1;
    if (_e49 == BUSY) {
        again = true;
        return false;
    }
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e73 = i;
            i = _e73 + 1u;
        }
        loop_init = false;
        uint _e57 = i;
        if (_e57 < 512u) {
        } else {
            break;
        }
        {
            uint _e61 = frame_1;
            uint _e62 = i;
            uint _e63 = in_frame(_e61, _e62, lane);
            uint _e68 = i;
            ulong _e71 = image[(page_1 * 512u) + _e68];
            frames[_e63] = _e71;
        }
    }
    uint _e79 = lane_bit(lane);
    uint _e80 = metal::atomic_fetch_or_explicit(&tables[_e1 + 1u], _e79, metal::memory_order_relaxed);
    return true;
}

bool own(
    ulong addr,
    uint len,
    constant Arguments& arguments,
    device Pool& pool,
    thread uint& lane,
    thread uint& stop,
    thread ulong& detail,
    thread bool& again,
    device type_9 const& image,
    device type_9& frames,
    device type_10& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_5 = {};
    bool local_6 = {};
    uint first = static_cast<uint>(addr >> 12u);
    uint last = static_cast<uint>((addr + static_cast<ulong>(len - 1u)) >> 12u);
    bool _e12 = own_page(first, arguments, pool, lane, stop, detail, again, image, frames, tables, _buffer_sizes);
    if (_e12) {
        if (!((first == last))) {
            bool _e19 = own_page(last, arguments, pool, lane, stop, detail, again, image, frames, tables, _buffer_sizes);
            local_6 = _e19;
        } else {
            local_6 = true;
        }
        bool _e21 = local_6;
        local_5 = _e21;
    } else {
        local_5 = false;
    }
    bool _e23 = local_5;
    return _e23;
}

ulong low_bits(
    uint bits
) {
    return 18446744073709551615uL >> (64u - bits);
}

ulong load(
    ulong addr_1,
    uint bits_1,
    thread uint& lane,
    device type_9 const& image,
    device type_9 const& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong value_2 = {};
    uint word_5 = static_cast<uint>(addr_1 >> 3u);
    uint shift = (static_cast<uint>(addr_1) & 7u) * 8u;
    ulong _e10 = load_word(word_5, lane, image, frames, tables, _buffer_sizes);
    value_2 = _e10 >> shift;
    if ((shift + bits_1) > 64u) {
        ulong _e16 = value_2;
        ulong _e19 = load_word(word_5 + 1u, lane, image, frames, tables, _buffer_sizes);
        value_2 = _e16 | (_e19 << (64u - shift));
    }
    ulong _e24 = value_2;
    ulong _e25 = low_bits(bits_1);
    return _e24 & _e25;
}

void store(
    ulong addr_2,
    uint bits_2,
    ulong value_3,
    thread uint& lane,
    device type_9& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint word_6 = static_cast<uint>(addr_2 >> 3u);
    uint shift_1 = (static_cast<uint>(addr_2) & 7u) * 8u;
    ulong _e12 = low_bits(bits_2);
    store_word(word_6, value_3 << shift_1, _e12 << shift_1, lane, frames, tables, _buffer_sizes);
    if ((shift_1 + bits_2) > 64u) {
        uint rest = 64u - shift_1;
        ulong _e22 = low_bits(bits_2);
        store_word(word_6 + 1u, value_3 >> rest, _e22 >> rest, lane, frames, tables, _buffer_sizes);
        return;
    } else {
        return;
    }
}

ulong cas(
    ulong addr_3,
    uint bits_3,
    ulong expected,
    ulong wanted,
    thread uint& lane,
    device type_9 const& image,
    device type_9& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e4 = load(addr_3, bits_3, lane, image, frames, tables, _buffer_sizes);
    if (_e4 == expected) {
        store(addr_3, bits_3, wanted, lane, frames, tables, _buffer_sizes);
    }
    return _e4;
}

long signed_(
    uint bits_4,
    ulong value_4
) {
    uint shift_2 = 64u - bits_4;
    return as_type<long>(value_4 << shift_2) >> shift_2;
}

ulong modified(
    uint op,
    uint bits_5,
    ulong old,
    ulong value_5
) {
    switch(op) {
        case 0u: {
            ulong _e5 = low_bits(bits_5);
            return (old + value_5) & _e5;
        }
        case 1u: {
            return old & value_5;
        }
        case 2u: {
            return old | value_5;
        }
        case 3u: {
            return old ^ value_5;
        }
        case 4u: {
            return value_5;
        }
        case 5u: {
            long _e10 = signed_(bits_5, old);
            long _e11 = signed_(bits_5, value_5);
            return (_e10 > _e11) ? old : value_5;
        }
        case 6u: {
            long _e14 = signed_(bits_5, old);
            long _e15 = signed_(bits_5, value_5);
            return (_e14 < _e15) ? old : value_5;
        }
        case 7u: {
            return (old > value_5) ? old : value_5;
        }
        default: {
            return (old < value_5) ? old : value_5;
        }
    }
}

ulong rmw(
    uint op_1,
    ulong addr_4,
    uint bits_6,
    ulong value_6,
    thread uint& lane,
    device type_9 const& image,
    device type_9& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e4 = load(addr_4, bits_6, lane, image, frames, tables, _buffer_sizes);
    ulong _e5 = modified(op_1, bits_6, _e4, value_6);
    store(addr_4, bits_6, _e5, lane, frames, tables, _buffer_sizes);
    return _e4;
}

Pair cas_pair(
    ulong addr_5,
    ulong e_low,
    ulong e_high,
    ulong n_low,
    ulong n_high,
    thread uint& lane,
    device type_9 const& image,
    device type_9& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_7 = {};
    ulong _e6 = load(addr_5, 64u, lane, image, frames, tables, _buffer_sizes);
    ulong _e10 = load(addr_5 + 8uL, 64u, lane, image, frames, tables, _buffer_sizes);
    Pair old_1 = Pair {_e6, _e10};
    if (old_1.low == e_low) {
        local_7 = old_1.high == e_high;
    } else {
        local_7 = false;
    }
    bool _e19 = local_7;
    if (_e19) {
        store(addr_5, 64u, n_low, lane, frames, tables, _buffer_sizes);
        store(addr_5 + 8uL, 64u, n_high, lane, frames, tables, _buffer_sizes);
    }
    return old_1;
}

bool may_read(
    ulong addr_6,
    uint len_1,
    uint fault,
    thread uint& stop,
    thread ulong& detail
) {
    if (addr_6 > (SIZE - static_cast<ulong>(len_1))) {
        stop = fault;
        detail = (addr_6 > SIZE) ? addr_6 : SIZE;
        return false;
    }
    return true;
}

bool is_code(
    ulong addr_7,
    uint len_2,
    constant Arguments& arguments,
    device type_3 const& code_map,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e2 = code_start(arguments);
    ulong offset = addr_7 - (_e2 - 64uL);
    uint _e8 = arguments.code_len;
    if (offset >= (static_cast<ulong>(_e8) + 128uL)) {
        return false;
    }
    uint first_1 = static_cast<uint>(offset) >> 6u;
    uint last_1 = ((static_cast<uint>(offset) + len_2) - 1u) >> 6u;
    uint _e27 = code_map[first_1 >> 5u];
    uint _e35 = code_map[last_1 >> 5u];
    uint bits_7 = (_e27 >> (first_1 & 31u)) | (_e35 >> (last_1 & 31u));
    return (bits_7 & 1u) != 0u;
}

bool may_write(
    ulong addr_8,
    uint len_3,
    uint fault_1,
    constant Arguments& arguments,
    device Pool& pool,
    device type_3 const& code_map,
    thread uint& lane,
    thread uint& stop,
    thread ulong& detail,
    thread bool& again,
    device type_9 const& image,
    device type_9& frames,
    device type_10& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool _e3 = may_read(addr_8, len_3, fault_1, stop, detail);
    if (!(_e3)) {
        return false;
    }
    bool _e6 = is_code(addr_8, len_3, arguments, code_map, _buffer_sizes);
    if (_e6) {
        stop = CODE_WRITE;
        detail = addr_8;
        return false;
    }
    bool _e11 = own(addr_8, len_3, arguments, pool, lane, stop, detail, again, image, frames, tables, _buffer_sizes);
    return _e11;
}

void h3_(
    metal::uint4 w,
    thread type_7& x
) {
    uint v16_ = (w.x >> 16u) & 255u;
    uint v26_ = (w.x >> 24u) & 255u;
    ulong v5_ = static_cast<ulong>(w.z) | (static_cast<ulong>(w.w) << 32u);
    ulong v17_ = x.inner[v16_];
    ulong v18_ = v17_ + v5_;
    x.inner[v26_] = v18_;
    return;
}

void h4_(
    metal::uint4 w_1,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v
) {
    uint v16_1 = (w_1.x >> 16u) & 255u;
    uint v27_ = (w_1.x >> 24u) & 255u;
    ulong v5_1 = static_cast<ulong>(w_1.z) | (static_cast<ulong>(w_1.w) << 32u);
    ulong v17_1 = x.inner[v16_1];
    ulong v18_1 = v17_1 - v5_1;
    bool v20_ = as_type<long>(v18_1) < as_type<long>(0uL);
    bool v21_ = v18_1 == 0uL;
    bool v22_ = v5_1 <= v17_1;
    ulong v28_ = v17_1 - v5_1;
    ulong v29_ = v17_1 ^ v28_;
    ulong v30_ = v5_1 ^ v17_1;
    ulong v31_ = v29_ & v30_;
    bool v23_ = as_type<long>(v31_) < as_type<long>(0uL);
    flag_n = v20_;
    flag_z = v21_;
    flag_c = v22_;
    flag_v = v23_;
    x.inner[v27_] = v18_1;
    return;
}

void h5_(
    metal::uint4 w_2,
    constant Arguments& arguments,
    thread bool& flag_z,
    thread uint& at,
    thread ulong& goal,
    thread bool& jumped
) {
    ulong v12_ = static_cast<ulong>(w_2.z) | (static_cast<ulong>(w_2.w) << 32u);
    ulong _e8 = code_start(arguments);
    uint _e10 = at;
    ulong v0_ = _e8 + (static_cast<ulong>(_e10) << 2u);
    ulong v33_ = v0_ + 4uL;
    bool v15_ = flag_z;
    bool v30_1 = !(v15_);
    ulong v34_ = v30_1 ? v12_ : v33_;
    goal = v34_;
    jumped = true;
    return;
}

void h6_(
    metal::uint4 w_3,
    thread uint& lane,
    thread type_7& x,
    thread uint& stop,
    thread ulong& detail,
    device type_9 const& image,
    device type_9 const& frames,
    device type_10 const& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v7_ = (w_3.x >> 16u) & 255u;
    uint v24_ = (w_3.x >> 24u) & 255u;
    ulong v15_1 = static_cast<ulong>(w_3.z) | (static_cast<ulong>(w_3.w) << 32u);
    ulong v8_ = x.inner[v7_];
    ulong v16_2 = v8_ + v15_1;
    bool _e24 = may_read(v16_2, 4u, 32u, stop, detail);
    if (!(_e24)) {
        return;
    }
    ulong _e27 = load(v16_2, 32u, lane, image, frames, tables, _buffer_sizes);
    uint v18_2 = static_cast<uint>(_e27);
    ulong v19_ = static_cast<ulong>(v18_2);
    x.inner[v24_] = v19_;
    return;
}

void h7_(
    metal::uint4 w_4,
    constant Arguments& arguments,
    device Pool& pool,
    device type_3 const& code_map,
    thread uint& lane,
    thread type_7& x,
    thread uint& stop,
    thread ulong& detail,
    thread bool& again,
    device type_9 const& image,
    device type_9& frames,
    device type_10& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v7_1 = (w_4.x >> 16u) & 255u;
    uint v18_3 = (w_4.x >> 24u) & 255u;
    ulong v15_2 = static_cast<ulong>(w_4.z) | (static_cast<ulong>(w_4.w) << 32u);
    ulong v8_1 = x.inner[v7_1];
    ulong v16_3 = v8_1 + v15_2;
    ulong v19_1 = x.inner[v18_3];
    bool _e27 = may_write(v16_3, 8u, 33u, arguments, pool, code_map, lane, stop, detail, again, image, frames, tables, _buffer_sizes);
    if (!(_e27)) {
        return;
    }
    store(v16_3, 64u, static_cast<ulong>(v19_1), lane, frames, tables, _buffer_sizes);
    return;
}

void h8_(
    metal::uint4 w_5,
    constant Arguments& arguments,
    device Pool& pool,
    device type_3 const& code_map,
    thread uint& lane,
    thread type_7& x,
    thread uint& stop,
    thread ulong& detail,
    thread bool& completed,
    thread bool& again,
    device type_9 const& image,
    device type_9& frames,
    device type_10& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v4_ = (w_5.x >> 16u) & 255u;
    uint v11_ = (w_5.x >> 24u) & 255u;
    uint v22_1 = (w_5.y >> 0u) & 255u;
    ulong v5_2 = x.inner[v4_];
    ulong v12_1 = x.inner[v11_];
    ulong v14_ = v12_1 & 7uL;
    bool v16_4 = v14_ != 0uL;
    if (v16_4) {
        stop = 20u;
        detail = v12_1;
        completed = false;
        return;
    }
    bool _e33 = may_write(v12_1, 8u, 34u, arguments, pool, code_map, lane, stop, detail, again, image, frames, tables, _buffer_sizes);
    if (!(_e33)) {
        return;
    }
    ulong _e38 = rmw(0u, v12_1, 64u, static_cast<ulong>(v5_2), lane, image, frames, tables, _buffer_sizes);
    x.inner[v22_1] = _e38;
    return;
}

void h9_(
    metal::uint4 w_6,
    thread type_7& x
) {
    uint v4_1 = (w_6.x >> 16u) & 255u;
    uint v11_1 = (w_6.x >> 24u) & 255u;
    ulong v5_3 = x.inner[v4_1];
    ulong v13_ = v5_3 >> 32u;
    uint v14_1 = static_cast<uint>(v5_3);
    uint v15_3 = static_cast<uint>(v13_);
    uint v16_5 = metal::clz(v14_1);
    uint v17_2 = metal::clz(v15_3);
    uint v19_2 = v16_5 + 32u;
    bool v21_1 = v15_3 == 0u;
    uint v22_2 = v21_1 ? v19_2 : v17_2;
    ulong v6_ = static_cast<ulong>(v22_2);
    x.inner[v11_1] = v6_;
    return;
}

void dispatch(
    metal::uint4 w_7,
    constant Arguments& arguments,
    device Pool& pool,
    device type_3 const& code_map,
    thread uint& lane,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread uint& at,
    thread ulong& goal,
    thread bool& jumped,
    thread uint& stop,
    thread ulong& detail,
    thread bool& completed,
    thread bool& again,
    device type_9 const& image,
    device type_9& frames,
    device type_10& tables,
    constant _mslBufferSizes& _buffer_sizes
) {
    switch(w_7.x & 65535u) {
        case 0u: {
            stop = NO_CODE;
            ulong _e7 = pc(arguments, at);
            detail = _e7;
            return;
        }
        case 1u: {
            stop = UNDEFINED;
            detail = static_cast<ulong>(w_7.z) | (static_cast<ulong>(w_7.w) << 32u);
            return;
        }
        case 2u: {
            stop = BREAKPOINT;
            detail = 0uL;
            return;
        }
        case 3u: {
            h3_(w_7, x);
            return;
        }
        case 4u: {
            h4_(w_7, x, flag_n, flag_z, flag_c, flag_v);
            return;
        }
        case 5u: {
            h5_(w_7, arguments, flag_z, at, goal, jumped);
            return;
        }
        case 6u: {
            h6_(w_7, lane, x, stop, detail, image, frames, tables, _buffer_sizes);
            return;
        }
        case 7u: {
            h7_(w_7, arguments, pool, code_map, lane, x, stop, detail, again, image, frames, tables, _buffer_sizes);
            return;
        }
        case 8u: {
            h8_(w_7, arguments, pool, code_map, lane, x, stop, detail, completed, again, image, frames, tables, _buffer_sizes);
            return;
        }
        case 9u: {
            h9_(w_7, x);
            return;
        }
        default: {
            stop = NO_CODE;
            ulong _e25 = pc(arguments, at);
            detail = _e25;
            return;
        }
    }
}

void jump(
    constant Arguments& arguments,
    thread uint& at,
    thread ulong& goal,
    thread bool& jumped,
    thread uint& stop,
    thread ulong& detail
) {
    bool local_8 = {};
    jumped = false;
    ulong _e3 = goal;
    ulong _e4 = code_start(arguments);
    ulong offset_1 = _e3 - _e4;
    uint _e8 = arguments.code_len;
    if (!((offset_1 >= static_cast<ulong>(_e8)))) {
        local_8 = (offset_1 & 3uL) != 0uL;
    } else {
        local_8 = true;
    }
    bool _e19 = local_8;
    if (_e19) {
        stop = NO_CODE;
        ulong _e24 = goal;
        detail = _e24;
        return;
    }
    at = static_cast<uint>(offset_1 >> 2u);
    return;
}

void load_state(
    device type_3 const& states,
    thread uint& state,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread ulong& goal,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_1 = 0u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e13 = i_1;
            i_1 = _e13 + 1u;
        }
        loop_init_1 = false;
        uint _e2 = i_1;
        if (_e2 < X_SLOTS) {
        } else {
            break;
        }
        {
            uint _e6 = i_1;
            uint _e9 = i_1;
            ulong _e11 = get_wide(2u * _e9, states, state, _buffer_sizes);
            x.inner[_e6] = _e11;
        }
    }
    uint _e17 = state;
    uint flags = states[_e17 + FLAGS_WORD];
    flag_n = (flags & 1u) != 0u;
    flag_z = (flags & 256u) != 0u;
    flag_c = (flags & 65536u) != 0u;
    flag_v = (flags & 16777216u) != 0u;
    ulong _e44 = get_wide(PC_WORD, states, state, _buffer_sizes);
    goal = _e44;
    return;
}

void save_state(
    ulong counter,
    device type_3& states,
    thread uint& state,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread uint& stop,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_2 = 0u;
    bool local_9 = {};
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e14 = i_2;
            i_2 = _e14 + 1u;
        }
        loop_init_2 = false;
        uint _e3 = i_2;
        if (_e3 < X_SLOTS) {
        } else {
            break;
        }
        {
            uint _e7 = i_2;
            uint _e10 = i_2;
            ulong _e12 = x.inner[_e10];
            set_wide(2u * _e7, _e12, states, state, _buffer_sizes);
        }
    }
    bool _e19 = flag_n;
    bool _e24 = flag_z;
    bool _e30 = flag_c;
    bool _e36 = flag_v;
    uint flags_1 = (((_e19 ? 1u : 0u) | (_e24 ? 256u : 0u)) | (_e30 ? 65536u : 0u)) | (_e36 ? 16777216u : 0u);
    uint _e41 = state;
    states[_e41 + FLAGS_WORD] = flags_1;
    set_wide(PC_WORD, counter, states, state, _buffer_sizes);
    uint _e47 = stop;
    if (!((_e47 == UNDEFINED))) {
        uint _e54 = stop;
        local_9 = _e54 >= EXIT;
    } else {
        local_9 = true;
    }
    bool _e58 = local_9;
    if (_e58) {
        uint _e61 = state;
        states[_e61 + EXCLUSIVE_LEN_WORD] = 0u;
        return;
    } else {
        return;
    }
}

void finish(
    ulong budget,
    constant Arguments& arguments,
    device type_3& states,
    device type_4& statuses,
    device type_3& stopped,
    device Pool& pool,
    thread uint& lane,
    thread uint& state,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread uint& at,
    thread ulong& count,
    thread uint& done,
    thread uint& stop,
    thread ulong& detail,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_10 = {};
    bool local_11 = {};
    ulong _e1 = pc(arguments, at);
    ulong _e3 = detail;
    uint _e5 = stop;
    ulong counter_1 = (_e5 == NO_CODE) ? _e3 : _e1;
    if (budget == 0uL) {
        uint _e14 = stop;
        if (!((_e14 == RUNNING))) {
            uint _e21 = stop;
            local_11 = _e21 == NO_CODE;
        } else {
            local_11 = true;
        }
        bool _e25 = local_11;
        local_10 = _e25;
    } else {
        local_10 = false;
    }
    bool _e27 = local_10;
    if (_e27) {
        stop = MAX_CYCLES;
    }
    save_state(counter_1, states, state, x, flag_n, flag_z, flag_c, flag_v, stop, _buffer_sizes);
    ulong _e31 = count;
    uint _e33 = done;
    ulong total = _e31 + static_cast<ulong>(_e33);
    uint _e38 = lane;
    statuses[_e38].count_low = static_cast<uint>(total);
    uint _e44 = lane;
    statuses[_e44].count_high = static_cast<uint>(total >> 32u);
    uint _e52 = lane;
    statuses[_e52].budget_low = static_cast<uint>(budget);
    uint _e58 = lane;
    statuses[_e58].budget_high = static_cast<uint>(budget >> 32u);
    uint _e66 = lane;
    ulong _e70 = detail;
    statuses[_e66].detail_low = static_cast<uint>(_e70);
    uint _e74 = lane;
    ulong _e78 = detail;
    statuses[_e74].detail_high = static_cast<uint>(_e78 >> 32u);
    uint _e84 = lane;
    uint _e88 = stop;
    statuses[_e84].stop = _e88;
    uint _e92 = done;
    uint _e93 = metal::atomic_fetch_add_explicit(&pool.executed_low, _e92, metal::memory_order_relaxed);
    uint _e95 = done;
    if ((_e93 + _e95) < _e93) {
        uint _e101 = metal::atomic_fetch_add_explicit(&pool.executed_high, 1u, metal::memory_order_relaxed);
    }
    uint _e103 = stop;
    if (_e103 != RUNNING) {
        uint _e110 = metal::atomic_fetch_add_explicit(&pool.stopped, 1u, metal::memory_order_relaxed);
        uint _e113 = lane;
        stopped[_e110] = _e113;
        return;
    } else {
        return;
    }
}

struct runInput {
};
[[max_total_threads_per_threadgroup(64)]] kernel void run(
  metal::uint3 id [[thread_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, constant Arguments& arguments [[user(fake0)]]
, device type_3& states [[user(fake0)]]
, device type_4& statuses [[user(fake0)]]
, device type_3& stopped [[user(fake0)]]
, device Pool& pool [[user(fake0)]]
, device type_6 const& records [[user(fake0)]]
, device type_3 const& code_map [[user(fake0)]]
, device type_9 const& image [[user(fake0)]]
, device type_9& frames [[user(fake0)]]
, device type_10& tables [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint lane = {};
    uint state = {};
    type_7 x = {};
    bool flag_n = {};
    bool flag_z = {};
    bool flag_c = {};
    bool flag_v = {};
    uint at = {};
    ulong goal = {};
    bool jumped = {};
    ulong count = {};
    uint done = {};
    uint stop = {};
    ulong detail = {};
    bool completed = {};
    bool again = {};
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    lane = id.x + ((id.y * groups.x) * WORKGROUP);
    uint _e11 = lane;
    uint _e14 = arguments.lanes;
    if (_e11 >= _e14) {
        return;
    }
    uint _e18 = lane;
    Status status = statuses[_e18];
    if (!((status.stop == NO_CODE))) {
        local = status.stop == NO_FRAME;
    } else {
        local = true;
    }
    bool _e31 = local;
    if (!(_e31)) {
        local_1 = status.stop == CODE_WRITE;
    } else {
        local_1 = true;
    }
    bool for_host = local_1;
    if (status.stop != RUNNING) {
        local_2 = !(for_host);
    } else {
        local_2 = false;
    }
    bool _e47 = local_2;
    if (_e47) {
        return;
    }
    uint _e50 = lane;
    state = _e50 * STATE_WORDS;
    load_state(states, state, x, flag_n, flag_z, flag_c, flag_v, goal, _buffer_sizes);
    count = static_cast<ulong>(status.count_low) | (static_cast<ulong>(status.count_high) << 32u);
    ulong budget_1 = static_cast<ulong>(status.budget_low) | (static_cast<ulong>(status.budget_high) << 32u);
    uint _e70 = arguments.share;
    uint fuel = static_cast<uint>(metal::min(budget_1, static_cast<ulong>(_e70)));
    stop = RUNNING;
    done = 0u;
    jump(arguments, at, goal, jumped, stop, detail);
    while(true) {
        uint _e79 = stop;
        if (_e79 == RUNNING) {
            uint _e85 = done;
            local_3 = _e85 < fuel;
        } else {
            local_3 = false;
        }
        bool _e88 = local_3;
        if (_e88) {
        } else {
            break;
        }
        {
            uint _e90 = at;
            uint _e95 = arguments.code_len;
            if ((_e90 * 4u) >= _e95) {
                stop = NO_CODE;
                ulong _e100 = pc(arguments, at);
                detail = _e100;
                break;
            }
            completed = false;
            again = false;
            uint _e108 = at;
            metal::uint4 _e111 = records[status.records + _e108];
            dispatch(_e111, arguments, pool, code_map, lane, x, flag_n, flag_z, flag_c, flag_v, at, goal, jumped, stop, detail, completed, again, image, frames, tables, _buffer_sizes);
            bool _e113 = again;
            if (_e113) {
                continue;
            }
            uint _e115 = stop;
            if (_e115 != RUNNING) {
                bool _e121 = completed;
                local_4 = !(_e121);
            } else {
                local_4 = false;
            }
            bool _e124 = local_4;
            if (_e124) {
                break;
            }
            uint _e127 = done;
            done = _e127 + 1u;
            bool _e130 = jumped;
            if (_e130) {
                jump(arguments, at, goal, jumped, stop, detail);
            } else {
                uint _e133 = at;
                at = _e133 + 1u;
            }
        }
    }
    uint _e136 = done;
    finish(budget_1 - static_cast<ulong>(_e136), arguments, states, statuses, stopped, pool, lane, state, x, flag_n, flag_z, flag_c, flag_v, at, count, done, stop, detail, _buffer_sizes);
    return;
}
