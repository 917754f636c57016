// language: metal3.2
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
};

typedef uint Address;
struct Arguments {
    uint lanes;
    uint share;
    uint code_len;
    uint code_start_low;
    uint code_start_high;
    uint frames;
    uint begins;
    uint max_cycles_low;
    uint max_cycles_high;
    uint first_record;
    uint first_flag;
    uint directory;
    uint directory_mask;
    uint table_pages;
    uint groups;
};
struct Status {
    uint count_low;
    uint count_high;
    uint budget_low;
    uint budget_high;
    uint detail_low;
    uint detail_high;
    uint stop;
    uint unused;
};
struct Pool {
    metal::atomic_uint next;
    metal::atomic_uint stopped;
    metal::atomic_uint lock;
    metal::atomic_uint executed_low;
    metal::atomic_uint executed_high;
    metal::atomic_uint ended;
};
typedef uint type_3[1];
typedef Status type_4[1];
typedef metal::uint4 type_6[1];
struct type_7 {
    ulong inner[34];
};
typedef ulong type_10[1];
typedef metal::atomic_uint type_11[1];
struct Place {
    uint word;
    uint byte;
};
struct Pair {
    ulong low;
    ulong high;
};
struct type_12 {
    ulong inner[9];
};
typedef uint Votes;
struct type_13 {
    uint inner[4096];
};
constant uint WORKGROUP = 64u;
constant uint LOCKS = 4096u;
constant uint SAMPLES = 4096u;
constant uint GROUPED = 16u;
constant uint STATE_WORDS = 100u;
constant uint X_SLOTS = 34u;
constant uint V_SLOTS = 64u;
constant uint PC_WORD = 68u;
constant uint FLAGS_WORD = 99u;
constant uint EXCLUSIVE_LEN_WORD = 98u;
constant uint CALLER_WORD = 90u;
constant uint PAGES = 256u;
constant uint VARIES = 4u;
constant uint LEAF_PAGES = 512u;
constant uint LEAF_BITS = 21u;
constant uint RIGHTS_BITS = 3u;
constant uint BLOCK_BITS = 20u;
constant uint BLOCK_RECORDS = 263168u;
constant uint NO_PAGE_STOP = 8u;
constant uint GROUP = 32u;
constant uint GROUP_BITS = 4294967295u;
constant uint RUNNING = 0u;
constant uint MAX_CYCLES = 1u;
constant uint NO_CODE = 2u;
constant uint UNDEFINED = 15u;
constant uint BREAKPOINT = 3u;
constant uint CODE_WRITE = 4u;
constant uint NO_FRAME = 5u;
constant uint NO_HANDLER = 7u;
constant uint FIRST_EXCEPTION = 15u;
constant uint GRANULE_RECORDS = 16u;
constant uint NOBODY = 4294967295u;
constant uint DIRECTORY_FACTOR = 2654435761u;
constant uint DIRECTORY_FACTOR_2_ = 2246822507u;
constant uint DIRECTORY_SHIFT = 15u;
constant ulong SIZE = 1048576uL;
constant Address GRANULE = 64u;
constant uint UNTIL_NOTE = 251u;
constant uint IDLE = 4294967295u;
constant uint HOLD = 1u;
constant uint HASH_BITS = 5u;

ulong code_start(
    constant Arguments& arguments
) {
    uint _e2 = arguments.code_start_low;
    uint _e6 = arguments.code_start_high;
    return static_cast<ulong>(_e2) | (static_cast<ulong>(_e6) << 32u);
}

ulong address_of(
    uint record,
    constant Arguments& arguments,
    thread uint& base
) {
    ulong _e1 = code_start(arguments);
    uint _e3 = base;
    return _e1 + (static_cast<ulong>(record - _e3) << 2u);
}

ulong pc(
    constant Arguments& arguments,
    thread uint& at,
    thread uint& base
) {
    uint _e1 = at;
    ulong _e4 = address_of(_e1 - 1u, arguments, base);
    return _e4;
}

ulong completed(
    thread uint& at,
    thread uint& limit,
    thread ulong& count
) {
    ulong _e1 = count;
    uint _e3 = limit;
    uint _e5 = at;
    return (_e1 - static_cast<ulong>(_e3 - _e5)) - 1uL;
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

void stop_before(
    uint reason,
    ulong why,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail
) {
    stop_1 = reason;
    detail = why;
    uint _e5 = at;
    at = _e5 - 1u;
    return;
}

void stop_without_code(
    ulong goal,
    thread uint& stop_1,
    thread ulong& detail
) {
    stop_1 = NO_CODE;
    detail = goal;
    return;
}

void park(
    thread uint& at,
    thread uint& limit,
    thread uint& left
) {
    uint _e2 = limit;
    uint _e4 = at;
    left = _e2 - _e4;
    uint _e8 = at;
    limit = _e8;
    return;
}

void continue_at(
    uint record_1,
    thread uint& at,
    thread uint& limit
) {
    uint _e2 = limit;
    uint _e4 = at;
    limit = _e2 + (record_1 - _e4);
    at = record_1;
    return;
}

uint code_len(
    constant Arguments& arguments
) {
    uint _e2 = arguments.code_len;
    return _e2;
}

void leave(
    ulong goal_1,
    thread uint& stop_1,
    thread ulong& detail
) {
    stop_without_code(goal_1, stop_1, detail);
    return;
}

void branch_near(
    uint low,
    constant Arguments& arguments,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread uint& stop_1,
    thread ulong& detail
) {
    ulong _e1 = code_start(arguments);
    uint offset_4 = low - static_cast<uint>(_e1);
    uint _e4 = code_len(arguments);
    if (offset_4 >= _e4) {
        ulong _e6 = pc(arguments, at, base);
        int distance = as_type<int>(low - static_cast<uint>(_e6));
        ulong _e10 = pc(arguments, at, base);
        leave(_e10 + as_type<ulong>(static_cast<long>(distance)), stop_1, detail);
        return;
    } else {
        uint _e15 = base;
        continue_at(_e15 + (offset_4 >> 2u), at, limit);
        return;
    }
}

ulong branch_target(
    ulong address
) {
    return address;
}

void branch_far(
    ulong address_1,
    constant Arguments& arguments,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread uint& stop_1,
    thread ulong& detail
) {
    bool local_1 = {};
    ulong _e1 = branch_target(address_1);
    ulong _e2 = code_start(arguments);
    ulong offset_5 = _e1 - _e2;
    uint _e4 = code_len(arguments);
    if (!((offset_5 >= static_cast<ulong>(_e4)))) {
        local_1 = (offset_5 & 3uL) != 0uL;
    } else {
        local_1 = true;
    }
    bool _e15 = local_1;
    if (_e15) {
        leave(_e1, stop_1, detail);
        return;
    } else {
        uint _e17 = base;
        continue_at(_e17 + static_cast<uint>(offset_5 >> 2u), at, limit);
        return;
    }
}

void load_vectors(
) {
    return;
}

void save_vectors(
) {
    return;
}

ulong memory_word(
    uint word_2,
    coherent device type_10 const& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e5 = memory0_[word_2 & 134217727u];
    return _e5;
}

void store_locked_word(
    uint word_3,
    ulong value_1,
    coherent device type_10& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    memory0_[word_3 & 134217727u] = value_1;
    return;
}

ulong exchange_locked_word(
    uint word_4,
    ulong old,
    ulong wanted,
    coherent device type_10& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong seen_1 = memory0_[word_4 & 134217727u];
    if (seen_1 == old) {
        memory0_[word_4 & 134217727u] = wanted;
    }
    return seen_1;
}

void set_memory_word(
    uint word_5,
    ulong value_2,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool done = false;
    bool local_2 = {};
    while(true) {
        bool _e4 = done;
        bool unnamed = metal::simd_any(!(_e4));
        if (unnamed) {
        } else {
            break;
        }
        {
            bool _e7 = done;
            if (!(_e7)) {
                uint _e16 = metal::atomic_exchange_explicit(&locks[word_5 % LOCKS], 1u, metal::memory_order_relaxed);
                local_2 = _e16 == 0u;
            } else {
                local_2 = false;
            }
            bool _e20 = local_2;
            if (_e20) {
                store_locked_word(word_5, value_2, memory0_, _buffer_sizes);
                metal::atomic_store_explicit(&locks[word_5 % LOCKS], 0u, metal::memory_order_relaxed);
                done = true;
            }
        }
    }
    return;
}

ulong exchange_memory_word(
    uint word_6,
    ulong old_1,
    ulong wanted_1,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong seen = 0uL;
    bool done_1 = false;
    bool local_3 = {};
    while(true) {
        bool _e7 = done_1;
        bool unnamed_1 = metal::simd_any(!(_e7));
        if (unnamed_1) {
        } else {
            break;
        }
        {
            bool _e10 = done_1;
            if (!(_e10)) {
                uint _e19 = metal::atomic_exchange_explicit(&locks[word_6 % LOCKS], 1u, metal::memory_order_relaxed);
                local_3 = _e19 == 0u;
            } else {
                local_3 = false;
            }
            bool _e23 = local_3;
            if (_e23) {
                ulong _e24 = exchange_locked_word(word_6, old_1, wanted_1, memory0_, _buffer_sizes);
                seen = _e24;
                metal::atomic_store_explicit(&locks[word_6 % LOCKS], 0u, metal::memory_order_relaxed);
                done_1 = true;
            }
        }
    }
    ulong _e31 = seen;
    return _e31;
}

void start_code(
    constant Arguments& arguments,
    thread uint& base
) {
    uint _e3 = arguments.first_record;
    base = _e3;
    return;
}

void not_decoded(
    constant Arguments& arguments,
    thread uint& at,
    thread uint& base,
    thread uint& stop_1,
    thread ulong& detail
) {
    uint _e1 = at;
    at = _e1 - 1u;
    uint _e5 = at;
    ulong _e6 = address_of(_e5, arguments, base);
    stop_without_code(_e6, stop_1, detail);
    return;
}

uint word_of(
    ulong addr
) {
    return static_cast<uint>(static_cast<uint>(addr) >> 3u);
}

bool is_within(
    ulong addr_1,
    uint len,
    uint fault,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail
) {
    if (addr_1 > (SIZE - static_cast<ulong>(len))) {
        stop_before(fault, addr_1, at, stop_1, detail);
        return false;
    }
    return true;
}

bool is_code(
    ulong addr_2,
    constant Arguments& arguments,
    device type_3 const& code_map,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e2 = code_start(arguments);
    uint offset_6 = static_cast<uint>(addr_2) - (static_cast<uint>(_e2) - GRANULE);
    uint _e9 = arguments.code_len;
    if (offset_6 >= ((static_cast<uint>(_e9) + GRANULE) + GRANULE)) {
        return false;
    }
    uint _e22 = arguments.first_flag;
    uint granule = (static_cast<uint>(offset_6) >> 6u) + _e22;
    uint _e28 = code_map[granule >> 5u];
    return ((_e28 >> (granule & 31u)) & 1u) != 0u;
}

void start_memory(
) {
    return;
}

Place place_at(
    ulong addr_3
) {
    uint _e1 = word_of(addr_3);
    return Place {_e1, static_cast<uint>(addr_3) & 7u};
}

bool own(
    Place place
) {
    return true;
}

bool is_own(
    Place place_1
) {
    return true;
}

ulong load_word(
    Place place_2,
    uint word_7,
    coherent device type_10 const& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e2 = memory_word(word_7, memory0_, _buffer_sizes);
    return _e2;
}

void set_word(
    Place place_3,
    uint word_8,
    ulong value_3,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    set_memory_word(word_8, value_3, memory0_, locks, _buffer_sizes);
    return;
}

void change_word(
    Place place_4,
    uint word_9,
    ulong value_4,
    ulong mask,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong old_2 = {};
    ulong _e4 = memory_word(word_9, memory0_, _buffer_sizes);
    old_2 = _e4;
    while(true) {
        ulong _e6 = old_2;
        ulong _e7 = old_2;
        ulong _e11 = exchange_memory_word(word_9, _e6, (_e7 & ~(mask)) | value_4, memory0_, locks, _buffer_sizes);
        ulong _e12 = old_2;
        if (_e11 == _e12) {
            break;
        }
        old_2 = _e11;
    }
    return;
}

ulong load_word_across(
    Place place_5,
    uint word_10,
    coherent device type_10 const& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e2 = load_word(place_5, word_10, memory0_, _buffer_sizes);
    return _e2;
}

void change_word_across(
    Place place_6,
    uint word_11,
    ulong value_5,
    ulong mask_1,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    change_word(place_6, word_11, value_5, mask_1, memory0_, locks, _buffer_sizes);
    return;
}

bool wants_page(
) {
    return false;
}

void own_pages(
) {
    return;
}

ulong low_bits(
    uint bits
) {
    return 18446744073709551615uL >> (64u - bits);
}

ulong cas(
    Place place_7,
    uint bits_1,
    ulong expected,
    ulong wanted_2,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong old_3 = {};
    uint word_12 = place_7.word;
    uint shift = place_7.byte * 8u;
    ulong _e8 = low_bits(bits_1);
    ulong mask_2 = _e8 << shift;
    ulong _e10 = memory_word(word_12, memory0_, _buffer_sizes);
    old_3 = _e10;
    while(true) {
        ulong _e12 = old_3;
        if (((_e12 & mask_2) >> shift) != expected) {
            break;
        }
        ulong _e16 = old_3;
        ulong _e17 = old_3;
        ulong _e22 = exchange_memory_word(word_12, _e16, (_e17 & ~(mask_2)) | (wanted_2 << shift), memory0_, locks, _buffer_sizes);
        ulong _e23 = old_3;
        if (_e22 == _e23) {
            break;
        }
        old_3 = _e22;
    }
    ulong _e25 = old_3;
    return (_e25 & mask_2) >> shift;
}

long signed_(
    uint bits_2,
    ulong value_6
) {
    uint shift_1 = 64u - bits_2;
    return as_type<long>(value_6 << shift_1) >> shift_1;
}

ulong modified(
    uint op,
    uint bits_3,
    ulong old_4,
    ulong value_7
) {
    switch(op) {
        case 0u: {
            ulong _e5 = low_bits(bits_3);
            return (old_4 + value_7) & _e5;
        }
        case 1u: {
            return old_4 & value_7;
        }
        case 2u: {
            return old_4 | value_7;
        }
        case 3u: {
            return old_4 ^ value_7;
        }
        case 4u: {
            return value_7;
        }
        case 5u: {
            long _e10 = signed_(bits_3, old_4);
            long _e11 = signed_(bits_3, value_7);
            return (_e10 > _e11) ? old_4 : value_7;
        }
        case 6u: {
            long _e14 = signed_(bits_3, old_4);
            long _e15 = signed_(bits_3, value_7);
            return (_e14 < _e15) ? old_4 : value_7;
        }
        case 7u: {
            return (old_4 > value_7) ? old_4 : value_7;
        }
        default: {
            return (old_4 < value_7) ? old_4 : value_7;
        }
    }
}

ulong rmw(
    uint op_1,
    Place place_8,
    uint bits_4,
    ulong value_8,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong old_5 = {};
    uint word_13 = place_8.word;
    uint shift_2 = place_8.byte * 8u;
    ulong _e8 = low_bits(bits_4);
    ulong mask_3 = _e8 << shift_2;
    ulong _e10 = memory_word(word_13, memory0_, _buffer_sizes);
    old_5 = _e10;
    while(true) {
        ulong _e12 = old_5;
        ulong _e15 = modified(op_1, bits_4, (_e12 & mask_3) >> shift_2, value_8);
        ulong _e16 = old_5;
        ulong _e17 = old_5;
        ulong _e22 = exchange_memory_word(word_13, _e16, (_e17 & ~(mask_3)) | (_e15 << shift_2), memory0_, locks, _buffer_sizes);
        ulong _e23 = old_5;
        if (_e22 == _e23) {
            break;
        }
        old_5 = _e22;
    }
    ulong _e25 = old_5;
    return (_e25 & mask_3) >> shift_2;
}

Pair cas_pair(
    Place place_9,
    ulong e_low,
    ulong e_high,
    ulong n_low,
    ulong n_high,
    device Pool& pool,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    Pair old_6 = {};
    bool done_2 = false;
    bool local_4 = {};
    bool local_5 = {};
    uint word_14 = place_9.word;
    while(true) {
        bool _e9 = done_2;
        bool unnamed_2 = metal::simd_any(!(_e9));
        if (unnamed_2) {
        } else {
            break;
        }
        {
            bool _e12 = done_2;
            if (!(_e12)) {
                uint _e19 = metal::atomic_exchange_explicit(&pool.lock, 1u, metal::memory_order_relaxed);
                local_4 = _e19 == 0u;
            } else {
                local_4 = false;
            }
            bool _e23 = local_4;
            if (_e23) {
                ulong _e24 = memory_word(word_14, memory0_, _buffer_sizes);
                ulong _e27 = memory_word(word_14 + 1u, memory0_, _buffer_sizes);
                old_6 = Pair {_e24, _e27};
                ulong _e30 = old_6.low;
                if (_e30 == e_low) {
                    ulong _e35 = old_6.high;
                    local_5 = _e35 == e_high;
                } else {
                    local_5 = false;
                }
                bool _e38 = local_5;
                if (_e38) {
                    set_memory_word(word_14, n_low, memory0_, locks, _buffer_sizes);
                    set_memory_word(word_14 + 1u, n_high, memory0_, locks, _buffer_sizes);
                }
                metal::atomic_store_explicit(&pool.lock, 0u, metal::memory_order_relaxed);
                done_2 = true;
            }
        }
    }
    Pair _e45 = old_6;
    return _e45;
}

ulong load(
    Place place_10,
    uint offset,
    uint bits_5,
    coherent device type_10 const& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint at_1 = place_10.byte + offset;
    ulong _e9 = load_word(place_10, place_10.word + (at_1 >> 3u), memory0_, _buffer_sizes);
    if (bits_5 == 64u) {
        return _e9;
    }
    ulong _e17 = low_bits(bits_5);
    return (_e9 >> ((at_1 & 7u) * 8u)) & _e17;
}

uint words_of(
    Place place_11,
    uint len_1
) {
    return ((place_11.byte + len_1) + 7u) >> 3u;
}

void gather(
    Place place_12,
    uint len_2,
    coherent device type_10 const& memory0_,
    thread type_12& window,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i = 0u;
    uint _e2 = words_of(place_12, len_2);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e15 = i;
            i = _e15 + 1u;
        }
        loop_init = false;
        uint _e5 = i;
        if (_e5 < _e2) {
        } else {
            break;
        }
        {
            uint _e8 = i;
            uint _e11 = i;
            ulong _e13 = load_word_across(place_12, place_12.word + _e11, memory0_, _buffer_sizes);
            window.inner[_e8] = _e13;
        }
    }
    return;
}

ulong load_unaligned(
    Place place_13,
    uint offset_1,
    uint bits_6,
    thread type_12& window
) {
    ulong value_9 = {};
    uint at_2 = place_13.byte + offset_1;
    uint index = at_2 >> 3u;
    uint shift_3 = (at_2 & 7u) * 8u;
    ulong _e13 = window.inner[index];
    value_9 = _e13 >> shift_3;
    if ((shift_3 + bits_6) > 64u) {
        ulong _e19 = value_9;
        ulong _e24 = window.inner[index + 1u];
        value_9 = _e19 | (_e24 << (64u - shift_3));
    }
    ulong _e29 = value_9;
    ulong _e30 = low_bits(bits_6);
    return _e29 & _e30;
}

bool is_usual(
    ulong addr_4,
    uint size_1,
    uint len_3,
    thread uint& at,
    thread bool& unaligned
) {
    bool local_6 = {};
    bool local_7 = {};
    if ((static_cast<uint>(addr_4) & (size_1 - 1u)) == 0u) {
        if (!((len_3 == size_1))) {
            local_7 = (static_cast<uint>(addr_4) & 4095u) <= (4096u - len_3);
        } else {
            local_7 = true;
        }
        bool _e22 = local_7;
        local_6 = _e22;
    } else {
        local_6 = false;
    }
    bool _e24 = local_6;
    if (_e24) {
        return true;
    }
    unaligned = true;
    uint _e29 = at;
    at = _e29 - 1u;
    return false;
}

void store(
    Place place_14,
    uint offset_2,
    uint bits_7,
    ulong value_10,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint at_3 = place_14.byte + offset_2;
    uint word_15 = place_14.word + (at_3 >> 3u);
    if (bits_7 == 64u) {
        set_word(place_14, word_15, value_10, memory0_, locks, _buffer_sizes);
        return;
    } else {
        uint shift_4 = (at_3 & 7u) * 8u;
        ulong _e17 = low_bits(bits_7);
        change_word(place_14, word_15, value_10 << shift_4, _e17 << shift_4, memory0_, locks, _buffer_sizes);
        return;
    }
}

void collect(
    Place place_15,
    uint len_4,
    thread type_12& window,
    thread type_12& masks
) {
    uint i_1 = 0u;
    uint _e2 = words_of(place_15, len_4);
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e16 = i_1;
            i_1 = _e16 + 1u;
        }
        loop_init_1 = false;
        uint _e5 = i_1;
        if (_e5 < _e2) {
        } else {
            break;
        }
        {
            uint _e8 = i_1;
            window.inner[_e8] = 0uL;
            uint _e12 = i_1;
            masks.inner[_e12] = 0uL;
        }
    }
    return;
}

void store_unaligned(
    Place place_16,
    uint offset_3,
    uint bits_8,
    ulong value_11,
    thread type_12& window,
    thread type_12& masks
) {
    uint at_4 = place_16.byte + offset_3;
    uint index_1 = at_4 >> 3u;
    uint shift_5 = (at_4 & 7u) * 8u;
    ulong _e14 = window.inner[index_1];
    window.inner[index_1] = _e14 | (value_11 << shift_5);
    ulong _e19 = masks.inner[index_1];
    ulong _e20 = low_bits(bits_8);
    masks.inner[index_1] = _e19 | (_e20 << shift_5);
    if ((shift_5 + bits_8) > 64u) {
        uint rest_2 = 64u - shift_5;
        ulong _e32 = window.inner[index_1 + 1u];
        window.inner[index_1 + 1u] = _e32 | (value_11 >> rest_2);
        ulong _e39 = masks.inner[index_1 + 1u];
        ulong _e40 = low_bits(bits_8);
        masks.inner[index_1 + 1u] = _e39 | (_e40 >> rest_2);
        return;
    } else {
        return;
    }
}

void scatter(
    Place place_17,
    uint len_5,
    coherent device type_10& memory0_,
    device type_11& locks,
    thread type_12& window,
    thread type_12& masks,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_2 = 0u;
    uint _e2 = words_of(place_17, len_5);
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e19 = i_2;
            i_2 = _e19 + 1u;
        }
        loop_init_2 = false;
        uint _e5 = i_2;
        if (_e5 < _e2) {
        } else {
            break;
        }
        {
            uint _e8 = i_2;
            uint _e11 = i_2;
            ulong _e13 = window.inner[_e11];
            uint _e15 = i_2;
            ulong _e17 = masks.inner[_e15];
            change_word_across(place_17, place_17.word + _e8, _e13, _e17, memory0_, locks, _buffer_sizes);
        }
    }
    return;
}

bool may_write_within(
    ulong addr_5,
    uint len_6,
    uint fault_1,
    constant Arguments& arguments,
    device type_3 const& code_map,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool _e3 = is_within(addr_5, len_6, fault_1, at, stop_1, detail);
    if (!(_e3)) {
        return false;
    }
    bool _e6 = is_code(addr_5, arguments, code_map, _buffer_sizes);
    if (_e6) {
        stop_before(CODE_WRITE, addr_5, at, stop_1, detail);
        return false;
    }
    return true;
}

bool may_write(
    ulong addr_6,
    uint len_7,
    uint fault_2,
    constant Arguments& arguments,
    device type_3 const& code_map,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool _e3 = may_write_within(addr_6, len_7, fault_2, arguments, code_map, at, stop_1, detail, _buffer_sizes);
    if (!(_e3)) {
        return false;
    }
    bool _e10 = is_code(addr_6 + static_cast<ulong>(len_7 - 1u), arguments, code_map, _buffer_sizes);
    if (_e10) {
        stop_before(CODE_WRITE, addr_6, at, stop_1, detail);
        return false;
    }
    return true;
}

void h6_(
    metal::uint4 w,
    thread type_7& x
) {
    uint v0_ = (w.x >> 16u) & 255u;
    uint v1_ = (w.x >> 24u) & 255u;
    ulong v2_ = static_cast<ulong>(w.z) | (static_cast<ulong>(w.w) << 32u);
    ulong v3_ = x.inner[v0_];
    ulong v4_ = v3_ + v2_;
    x.inner[v1_] = v4_;
    return;
}

void h7_(
    metal::uint4 w_1,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v
) {
    uint v0_1 = (w_1.x >> 16u) & 255u;
    uint v1_1 = (w_1.x >> 24u) & 255u;
    ulong v2_1 = static_cast<ulong>(w_1.z) | (static_cast<ulong>(w_1.w) << 32u);
    ulong v3_1 = x.inner[v0_1];
    ulong v4_1 = v3_1 - v2_1;
    bool v6_ = as_type<long>(v4_1) < as_type<long>(0uL);
    bool v7_ = v4_1 == 0uL;
    bool v8_ = v2_1 <= v3_1;
    ulong v9_ = v3_1 ^ v2_1;
    ulong v10_ = v3_1 ^ v4_1;
    ulong v11_ = v9_ & v10_;
    bool v12_ = as_type<long>(v11_) < as_type<long>(0uL);
    flag_n = v6_;
    flag_z = v7_;
    flag_c = v8_;
    flag_v = v12_;
    x.inner[v1_1] = v4_1;
    return;
}

void h8_(
    metal::uint4 w_2,
    constant Arguments& arguments,
    thread bool& flag_z,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread uint& stop_1,
    thread ulong& detail
) {
    ulong v0_2 = static_cast<ulong>(w_2.z) | (static_cast<ulong>(w_2.w) << 32u);
    bool v2_2 = flag_z;
    bool v5_ = !(v2_2);
    if (v5_) {
        branch_near(w_2.z, arguments, at, base, limit, stop_1, detail);
        return;
    } else {
        return;
    }
}

bool h9_(
    metal::uint4 w_3,
    thread type_7& x,
    thread uint& at,
    thread bool& unaligned,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10 const& memory0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v0_3 = (w_3.x >> 16u) & 255u;
    uint v1_2 = (w_3.x >> 24u) & 255u;
    ulong v2_3 = static_cast<ulong>(w_3.z) | (static_cast<ulong>(w_3.w) << 32u);
    ulong v3_2 = x.inner[v0_3];
    ulong v4_2 = v3_2 + v2_3;
    bool _e24 = is_usual(v4_2, 4u, 4u, at, unaligned);
    if (!(_e24)) {
        return false;
    }
    bool _e29 = is_within(v4_2, 4u, 32u, at, stop_1, detail);
    if (!(_e29)) {
        return false;
    }
    Place _e32 = place_at(v4_2);
    ulong _e35 = load(_e32, 0u, 32u, memory0_, _buffer_sizes);
    uint v5_1 = static_cast<uint>(_e35);
    ulong v6_1 = static_cast<ulong>(v5_1);
    x.inner[v1_2] = v6_1;
    return true;
}

bool unaligned_9_(
    metal::uint4 w_4,
    thread type_7& x,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10 const& memory0_,
    thread type_12& window,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v0_4 = (w_4.x >> 16u) & 255u;
    uint v1_3 = (w_4.x >> 24u) & 255u;
    ulong v2_4 = static_cast<ulong>(w_4.z) | (static_cast<ulong>(w_4.w) << 32u);
    ulong v3_3 = x.inner[v0_4];
    ulong v4_3 = v3_3 + v2_4;
    bool _e24 = is_within(v4_3, 4u, 32u, at, stop_1, detail);
    if (!(_e24)) {
        return false;
    }
    Place _e27 = place_at(v4_3);
    gather(_e27, 4u, memory0_, window, _buffer_sizes);
    ulong _e31 = load_unaligned(_e27, 0u, 32u, window);
    uint v5_2 = static_cast<uint>(_e31);
    ulong v6_2 = static_cast<ulong>(v5_2);
    x.inner[v1_3] = v6_2;
    return true;
}

bool h10_(
    metal::uint4 w_5,
    constant Arguments& arguments,
    device type_3 const& code_map,
    thread type_7& x,
    thread uint& at,
    thread bool& unaligned,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v0_5 = (w_5.x >> 16u) & 255u;
    uint v1_4 = (w_5.x >> 24u) & 255u;
    ulong v2_5 = static_cast<ulong>(w_5.z) | (static_cast<ulong>(w_5.w) << 32u);
    ulong v3_4 = x.inner[v0_5];
    ulong v4_4 = v3_4 + v2_5;
    ulong v5_3 = x.inner[v1_4];
    bool _e27 = is_usual(v4_4, 8u, 8u, at, unaligned);
    if (!(_e27)) {
        return false;
    }
    bool _e32 = may_write_within(v4_4, 8u, 33u, arguments, code_map, at, stop_1, detail, _buffer_sizes);
    if (!(_e32)) {
        return false;
    }
    Place _e35 = place_at(v4_4);
    bool _e36 = own(_e35);
    if (!(_e36)) {
        return false;
    }
    store(_e35, 0u, 64u, static_cast<ulong>(v5_3), memory0_, locks, _buffer_sizes);
    return true;
}

bool unaligned_10_(
    metal::uint4 w_6,
    constant Arguments& arguments,
    device type_3 const& code_map,
    thread type_7& x,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10& memory0_,
    device type_11& locks,
    thread type_12& window,
    thread type_12& masks,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v0_6 = (w_6.x >> 16u) & 255u;
    uint v1_5 = (w_6.x >> 24u) & 255u;
    ulong v2_6 = static_cast<ulong>(w_6.z) | (static_cast<ulong>(w_6.w) << 32u);
    ulong v3_5 = x.inner[v0_6];
    ulong v4_5 = v3_5 + v2_6;
    ulong v5_4 = x.inner[v1_5];
    bool _e27 = may_write(v4_5, 8u, 33u, arguments, code_map, at, stop_1, detail, _buffer_sizes);
    if (!(_e27)) {
        return false;
    }
    Place _e30 = place_at(v4_5);
    bool _e31 = own(_e30);
    if (!(_e31)) {
        return false;
    }
    Place _e36 = place_at(v4_5 + 7uL);
    bool _e37 = own(_e36);
    if (!(_e37)) {
        return false;
    }
    collect(_e30, 8u, window, masks);
    store_unaligned(_e30, 0u, 64u, static_cast<ulong>(v5_4), window, masks);
    scatter(_e30, 8u, memory0_, locks, window, masks, _buffer_sizes);
    return true;
}

bool h11_(
    metal::uint4 w_7,
    constant Arguments& arguments,
    device type_3 const& code_map,
    thread type_7& x,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10& memory0_,
    device type_11& locks,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint v0_7 = (w_7.x >> 16u) & 255u;
    uint v1_6 = (w_7.x >> 24u) & 255u;
    uint v2_7 = (w_7.y >> 0u) & 255u;
    ulong v3_6 = x.inner[v0_7];
    ulong v4_6 = x.inner[v1_6];
    ulong v6_3 = v4_6 & 7uL;
    bool v8_1 = v6_3 != 0uL;
    if (v8_1) {
        stop_before(20u, v4_6, at, stop_1, detail);
        return false;
    }
    bool _e30 = may_write_within(v4_6, 8u, 34u, arguments, code_map, at, stop_1, detail, _buffer_sizes);
    if (!(_e30)) {
        return false;
    }
    Place _e33 = place_at(v4_6);
    bool _e34 = own(_e33);
    if (!(_e34)) {
        return false;
    }
    ulong _e40 = rmw(0u, _e33, 64u, static_cast<ulong>(v3_6), memory0_, locks, _buffer_sizes);
    x.inner[v2_7] = _e40;
    return true;
}

void h12_(
    metal::uint4 w_8,
    thread type_7& x
) {
    uint v0_8 = (w_8.x >> 16u) & 255u;
    uint v1_7 = (w_8.x >> 24u) & 255u;
    ulong v2_8 = x.inner[v0_8];
    ulong v5_5 = v2_8 >> 32u;
    uint v6_4 = static_cast<uint>(v2_8);
    uint v7_1 = static_cast<uint>(v5_5);
    bool v9_1 = v7_1 == 0u;
    uint v10_1 = metal::clz(v6_4);
    uint v11_1 = v10_1 + 32u;
    uint v12_1 = metal::clz(v7_1);
    uint v13_ = v9_1 ? v11_1 : v12_1;
    ulong v14_ = static_cast<ulong>(v13_);
    x.inner[v1_7] = v14_;
    return;
}

bool run_unaligned(
    metal::uint4 w_9,
    constant Arguments& arguments,
    device type_3 const& code_map,
    thread type_7& x,
    thread uint& at,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10& memory0_,
    device type_11& locks,
    thread type_12& window,
    thread type_12& masks,
    constant _mslBufferSizes& _buffer_sizes
) {
    switch(w_9.x & 65535u) {
        case 9u: {
            bool _e4 = unaligned_9_(w_9, x, at, stop_1, detail, memory0_, window, _buffer_sizes);
            return _e4;
        }
        case 10u: {
            bool _e5 = unaligned_10_(w_9, arguments, code_map, x, at, stop_1, detail, memory0_, locks, window, masks, _buffer_sizes);
            return _e5;
        }
        default: {
            return false;
        }
    }
}

void run_straight(
    constant Arguments& arguments,
    device type_6 const& records,
    device type_3 const& code_map,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread bool& unaligned,
    thread uint& stop_1,
    thread ulong& detail,
    coherent device type_10& memory0_,
    device type_11& locks,
    thread type_12& window,
    thread type_12& masks,
    constant _mslBufferSizes& _buffer_sizes
) {
    while(true) {
        uint _e1 = at;
        uint _e3 = limit;
        if (_e1 == _e3) {
            break;
        }
        uint _e7 = at;
        metal::uint4 w_10 = records[_e7];
        uint _e11 = at;
        at = _e11 + 1u;
        switch(w_10.x & 65535u) {
            case 0u: {
                not_decoded(arguments, at, base, stop_1, detail);
                break;
            }
            case 1u: {
                stop_before(UNDEFINED, static_cast<ulong>(w_10.z) | (static_cast<ulong>(w_10.w) << 32u), at, stop_1, detail);
                break;
            }
            case 2u: {
                stop_before(BREAKPOINT, 0uL, at, stop_1, detail);
                break;
            }
            case 4u: {
                stop_before(NO_HANDLER, 0uL, at, stop_1, detail);
                break;
            }
            case 6u: {
                h6_(w_10, x);
                continue;
            }
            case 7u: {
                h7_(w_10, x, flag_n, flag_z, flag_c, flag_v);
                continue;
            }
            case 8u: {
                h8_(w_10, arguments, flag_z, at, base, limit, stop_1, detail);
                break;
            }
            case 9u: {
                bool _e29 = h9_(w_10, x, at, unaligned, stop_1, detail, memory0_, _buffer_sizes);
                if (_e29) {
                    continue;
                }
                break;
            }
            case 10u: {
                bool _e30 = h10_(w_10, arguments, code_map, x, at, unaligned, stop_1, detail, memory0_, locks, _buffer_sizes);
                if (_e30) {
                    continue;
                }
                break;
            }
            case 11u: {
                bool _e31 = h11_(w_10, arguments, code_map, x, at, stop_1, detail, memory0_, locks, _buffer_sizes);
                if (_e31) {
                    continue;
                }
                break;
            }
            case 12u: {
                h12_(w_10, x);
                continue;
            }
            default: {
                not_decoded(arguments, at, base, stop_1, detail);
                break;
            }
        }
        bool _e33 = unaligned;
        if (!(_e33)) {
            break;
        }
        unaligned = false;
        uint _e38 = at;
        at = _e38 + 1u;
        bool _e41 = run_unaligned(w_10, arguments, code_map, x, at, stop_1, detail, memory0_, locks, window, masks, _buffer_sizes);
        if (!(_e41)) {
            break;
        }
    }
    return;
}

Votes votes(
    bool yes
) {
    metal::uint4 unnamed_3 = metal::uint4((uint64_t)metal::simd_ballot(yes), 0, 0, 0);
    return unnamed_3.x;
}

uint count_votes(
    Votes votes_1
) {
    uint counts = metal::popcount(votes_1);
    return counts;
}

bool are_equal(
    Votes a,
    Votes b
) {
    return a == b;
}

void note_place(
    constant Arguments& arguments,
    thread uint& lane,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread ulong& count,
    device type_13& samples
) {
    ulong _e1 = count;
    uint _e4 = limit;
    uint _e6 = at;
    uint _e12 = lane;
    uint index_2 = ((static_cast<uint>(_e1) - (_e4 - _e6)) * 2654435761u) + _e12;
    uint _e19 = at;
    ulong _e20 = address_of(_e19, arguments, base);
    samples.inner[index_2 % SAMPLES] = static_cast<uint>(_e20) | 1u;
    return;
}

void note_turn(
    uint turn,
    constant Arguments& arguments,
    thread uint& lane,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread ulong& count,
    device type_13& samples,
    thread uint& until_note
) {
    uint _e2 = until_note;
    if (_e2 == 0u) {
        until_note = UNTIL_NOTE;
        if (turn != IDLE) {
            note_place(arguments, lane, at, base, limit, count, samples);
        }
    }
    uint _e10 = until_note;
    until_note = _e10 - 1u;
    return;
}

uint next_turn(
    thread uint& at,
    thread uint& limit
) {
    uint _e1 = at;
    uint _e4 = at;
    uint _e6 = limit;
    return (_e4 == _e6) ? IDLE : _e1;
}

uint lanes_at(
    uint turn_1
) {
    Votes same = {};
    uint bit = 0u;
    uint hash = (turn_1 * 2654435761u) >> 27u;
    Votes _e7 = votes(turn_1 != IDLE);
    same = _e7;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e26 = bit;
            bit = _e26 + 1u;
        }
        loop_init_3 = false;
        uint _e11 = bit;
        if (_e11 < HASH_BITS) {
        } else {
            break;
        }
        {
            uint _e14 = bit;
            bool mine = ((hash >> _e14) & 1u) != 0u;
            Votes _e20 = votes(mine);
            Votes _e21 = same;
            same = _e21 & (mine ? _e20 : ~(_e20));
        }
    }
    Votes _e28 = same;
    uint _e29 = count_votes(_e28);
    return _e29;
}

uint choose(
    uint turn_2,
    thread uint& place_18,
    thread uint& waited
) {
    uint _e1 = lanes_at(turn_2);
    uint _e3 = waited;
    uint _e10 = place_18;
    uint score = (turn_2 == IDLE) ? 0u : (((_e1 + (_e3 >> 1u)) << 7u) | _e10);
    uint unnamed_4 = metal::simd_max(score);
    uint unnamed_5 = metal::simd_shuffle(turn_2, unnamed_4 & 127u);
    return unnamed_5;
}

void run_subgroup(
    constant Arguments& arguments,
    device type_6 const& records,
    device type_3 const& code_map,
    thread uint& lane,
    thread uint& place_18,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread ulong& count,
    thread bool& unaligned,
    thread uint& stop_1,
    thread ulong& detail,
    thread uint& left,
    coherent device type_10& memory0_,
    device type_11& locks,
    thread type_12& window,
    thread type_12& masks,
    device type_13& samples,
    thread uint& until_note,
    thread uint& waited,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool goes = false;
    uint held = 0u;
    bool local_8 = {};
    uint chosen = {};
    bool local_9 = {};
    bool local_10 = {};
    bool local_11 = {};
    while(true) {
        bool _e4 = wants_page();
        bool unnamed_6 = metal::simd_any(_e4);
        if (unnamed_6) {
            own_pages();
        }
        uint _e6 = next_turn(at, limit);
        note_turn(_e6, arguments, lane, at, base, limit, count, samples, until_note);
        bool _e8 = goes;
        if (_e8) {
            local_8 = _e6 != IDLE;
        } else {
            local_8 = false;
        }
        bool _e14 = local_8;
        uint unnamed_7 = metal::simd_max(_e14 ? _e6 : 0u);
        chosen = unnamed_7;
        uint _e18 = held;
        if (_e18 > 0u) {
            uint _e23 = chosen;
            local_9 = _e23 != 0u;
        } else {
            local_9 = false;
        }
        bool _e27 = local_9;
        if (_e27) {
            uint _e28 = held;
            held = _e28 - 1u;
        } else {
            bool unnamed_8 = metal::simd_any(_e6 != IDLE);
            if (!(unnamed_8)) {
                break;
            }
            uint _e35 = chosen;
            if (_e6 != _e35) {
                local_10 = _e6 != IDLE;
            } else {
                local_10 = false;
            }
            bool _e42 = local_10;
            bool unnamed_9 = metal::simd_any(_e42);
            if (unnamed_9) {
                uint _e44 = choose(_e6, place_18, waited);
                chosen = _e44;
            }
            held = HOLD;
        }
        uint _e46 = chosen;
        if (_e6 == _e46) {
            local_11 = _e6 != IDLE;
        } else {
            local_11 = false;
        }
        bool _e53 = local_11;
        goes = _e53;
        uint _e56 = waited;
        bool _e60 = goes;
        waited = _e60 ? 0u : (_e56 + 1u);
        bool _e62 = goes;
        if (_e62) {
            run_straight(arguments, records, code_map, x, flag_n, flag_z, flag_c, flag_v, at, base, limit, unaligned, stop_1, detail, memory0_, locks, window, masks, _buffer_sizes);
            uint _e64 = stop_1;
            if (_e64 != RUNNING) {
                park(at, limit, left);
            }
        }
    }
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
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_3 = 0u;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e13 = i_3;
            i_3 = _e13 + 1u;
        }
        loop_init_4 = false;
        uint _e2 = i_3;
        if (_e2 < X_SLOTS) {
        } else {
            break;
        }
        {
            uint _e6 = i_3;
            uint _e9 = i_3;
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
    load_vectors();
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
    thread uint& stop_1,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_4 = 0u;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e14 = i_4;
            i_4 = _e14 + 1u;
        }
        loop_init_5 = false;
        uint _e3 = i_4;
        if (_e3 < X_SLOTS) {
        } else {
            break;
        }
        {
            uint _e7 = i_4;
            uint _e10 = i_4;
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
    save_vectors();
    uint _e47 = stop_1;
    if (_e47 >= FIRST_EXCEPTION) {
        uint _e52 = state;
        states[_e52 + EXCLUSIVE_LEN_WORD] = 0u;
        return;
    } else {
        return;
    }
}

ulong start(
    Status status,
    constant Arguments& arguments,
    device type_3 const& states,
    thread uint& lane,
    thread uint& state,
    thread type_7& x,
    thread bool& flag_n,
    thread bool& flag_z,
    thread bool& flag_c,
    thread bool& flag_v,
    thread uint& at,
    thread uint& base,
    thread uint& limit,
    thread ulong& count,
    thread uint& stop_1,
    thread ulong& detail,
    thread uint& left,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong budget = {};
    uint _e3 = lane;
    state = _e3 * STATE_WORDS;
    load_state(states, state, x, flag_n, flag_z, flag_c, flag_v, _buffer_sizes);
    budget = static_cast<ulong>(status.budget_low) | (static_cast<ulong>(status.budget_high) << 32u);
    uint _e16 = arguments.begins;
    if (_e16 != 0u) {
        uint _e21 = arguments.max_cycles_low;
        uint _e25 = arguments.max_cycles_high;
        budget = static_cast<ulong>(_e21) | (static_cast<ulong>(_e25) << 32u);
    }
    ulong _e30 = budget;
    uint _e33 = arguments.share;
    uint fuel = static_cast<uint>(metal::min(_e30, static_cast<ulong>(_e33)));
    count = (static_cast<ulong>(status.count_low) | (static_cast<ulong>(status.count_high) << 32u)) + static_cast<ulong>(fuel);
    stop_1 = RUNNING;
    start_code(arguments, base);
    uint _e51 = base;
    at = _e51;
    uint _e54 = at;
    limit = _e54 + fuel;
    ulong _e57 = get_wide(PC_WORD, states, state, _buffer_sizes);
    branch_far(_e57, arguments, at, base, limit, stop_1, detail);
    uint _e59 = stop_1;
    if (_e59 != RUNNING) {
        park(at, limit, left);
    }
    ulong _e62 = budget;
    return _e62 - static_cast<ulong>(fuel);
}

void finish(
    ulong rest_1,
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
    thread uint& base,
    thread uint& limit,
    thread ulong& count,
    thread uint& stop_1,
    thread ulong& detail,
    thread uint& left,
    device type_13& samples,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_12 = {};
    bool local_13 = {};
    uint _e2 = at;
    ulong _e3 = address_of(_e2, arguments, base);
    ulong _e5 = detail;
    uint _e7 = stop_1;
    ulong counter_1 = (_e7 == NO_CODE) ? _e5 : _e3;
    uint _e12 = left;
    ulong budget_1 = rest_1 + static_cast<ulong>(_e12);
    if (budget_1 == 0uL) {
        uint _e20 = stop_1;
        if (!((_e20 == RUNNING))) {
            uint _e27 = stop_1;
            local_13 = _e27 == NO_CODE;
        } else {
            local_13 = true;
        }
        bool _e31 = local_13;
        local_12 = _e31;
    } else {
        local_12 = false;
    }
    bool _e33 = local_12;
    if (_e33) {
        stop_1 = MAX_CYCLES;
    }
    save_state(counter_1, states, state, x, flag_n, flag_z, flag_c, flag_v, stop_1, _buffer_sizes);
    ulong _e37 = count;
    uint _e39 = left;
    ulong total = _e37 - static_cast<ulong>(_e39);
    uint _e44 = lane;
    uint _e47 = statuses[_e44].count_low;
    uint _e51 = lane;
    uint _e54 = statuses[_e51].count_high;
    ulong before = static_cast<ulong>(_e47) | (static_cast<ulong>(_e54) << 32u);
    uint _e61 = lane;
    statuses[_e61].count_low = static_cast<uint>(total);
    uint _e67 = lane;
    statuses[_e67].count_high = static_cast<uint>(total >> 32u);
    uint _e75 = lane;
    statuses[_e75].budget_low = static_cast<uint>(budget_1);
    uint _e81 = lane;
    statuses[_e81].budget_high = static_cast<uint>(budget_1 >> 32u);
    uint _e89 = lane;
    ulong _e93 = detail;
    statuses[_e89].detail_low = static_cast<uint>(_e93);
    uint _e97 = lane;
    ulong _e101 = detail;
    statuses[_e97].detail_high = static_cast<uint>(_e101 >> 32u);
    uint _e107 = lane;
    uint _e111 = stop_1;
    statuses[_e107].stop = _e111;
    uint done_3 = static_cast<uint>(total - before);
    uint _e116 = metal::atomic_fetch_add_explicit(&pool.executed_low, done_3, metal::memory_order_relaxed);
    if ((_e116 + done_3) < _e116) {
        uint _e122 = metal::atomic_fetch_add_explicit(&pool.executed_high, 1u, metal::memory_order_relaxed);
    }
    uint _e124 = stop_1;
    if (_e124 != RUNNING) {
        uint _e131 = metal::atomic_fetch_add_explicit(&pool.stopped, 1u, metal::memory_order_relaxed);
        uint _e134 = lane;
        stopped[_e131] = _e134;
        return;
    } else {
        note_place(arguments, lane, at, base, limit, count, samples);
        return;
    }
}

bool can_run(
    uint stop
) {
    bool local_14 = {};
    bool local_15 = {};
    bool local_16 = {};
    bool local_17 = {};
    bool local_18 = {};
    bool local_19 = {};
    if (!((stop == RUNNING))) {
        local_14 = stop == NO_CODE;
    } else {
        local_14 = true;
    }
    bool _e9 = local_14;
    if (!(_e9)) {
        local_15 = stop == NO_FRAME;
    } else {
        local_15 = true;
    }
    bool _e16 = local_15;
    if (!(_e16)) {
        local_16 = stop == CODE_WRITE;
    } else {
        local_16 = true;
    }
    bool _e23 = local_16;
    if (!(_e23)) {
        local_17 = stop == NO_HANDLER;
    } else {
        local_17 = true;
    }
    bool _e30 = local_17;
    if (!(_e30)) {
        if (stop > NO_PAGE_STOP) {
            local_19 = stop <= 11u;
        } else {
            local_19 = false;
        }
        bool _e41 = local_19;
        local_18 = _e41;
    } else {
        local_18 = true;
    }
    bool _e43 = local_18;
    return _e43;
}

struct runInput {
};
[[max_total_threads_per_threadgroup(64)]] kernel void run(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint size [[threads_per_simdgroup]]
, uint invocation [[thread_index_in_simdgroup]]
, constant Arguments& arguments [[user(fake0)]]
, device type_3& states [[user(fake0)]]
, device type_4& statuses [[user(fake0)]]
, device type_3& stopped [[user(fake0)]]
, device Pool& pool [[user(fake0)]]
, device type_6 const& records [[user(fake0)]]
, device type_3 const& code_map [[user(fake0)]]
, coherent device type_10& memory0_ [[user(fake0)]]
, device type_11& locks [[user(fake0)]]
, device type_13& samples [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint lane = {};
    uint place_18 = {};
    uint state = {};
    type_7 x = {};
    bool flag_n = {};
    bool flag_z = {};
    bool flag_c = {};
    bool flag_v = {};
    uint at = {};
    uint base = {};
    uint limit = {};
    ulong count = {};
    bool unaligned = {};
    uint stop_1 = {};
    ulong detail = {};
    uint left = {};
    type_12 window = {};
    type_12 masks = {};
    uint until_note = {};
    uint waited = {};
    bool runs = false;
    ulong rest = 0uL;
    bool local = {};
    place_18 = invocation;
    uint _e17 = place_18;
    lane = (((group.x + (group.y * groups.x)) * WORKGROUP) + (subgroup * size)) + _e17;
    at = 0u;
    limit = 0u;
    waited = 0u;
    left = 0u;
    start_memory();
    uint _e32 = lane;
    uint _e35 = arguments.lanes;
    if (_e32 < _e35) {
        uint _e39 = lane;
        Status status_1 = statuses[_e39];
        uint _e44 = arguments.begins;
        if (!((_e44 != 0u))) {
            bool _e51 = can_run(status_1.stop);
            local = _e51;
        } else {
            local = true;
        }
        bool _e53 = local;
        runs = _e53;
        bool _e54 = runs;
        if (_e54) {
            ulong _e55 = start(status_1, arguments, states, lane, state, x, flag_n, flag_z, flag_c, flag_v, at, base, limit, count, stop_1, detail, left, _buffer_sizes);
            rest = _e55;
        }
    }
    run_subgroup(arguments, records, code_map, lane, place_18, x, flag_n, flag_z, flag_c, flag_v, at, base, limit, count, unaligned, stop_1, detail, left, memory0_, locks, window, masks, samples, until_note, waited, _buffer_sizes);
    bool _e56 = runs;
    if (_e56) {
        ulong _e57 = rest;
        finish(_e57, arguments, states, statuses, stopped, pool, lane, state, x, flag_n, flag_z, flag_c, flag_v, at, base, limit, count, stop_1, detail, left, samples, _buffer_sizes);
    }
    uint _e59 = lane;
    uint _e62 = arguments.lanes;
    if (_e59 < _e62) {
        uint _e67 = metal::atomic_fetch_add_explicit(&pool.ended, 1u, metal::memory_order_relaxed);
        return;
    } else {
        return;
    }
}
