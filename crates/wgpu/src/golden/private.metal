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
    uint size25;
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
struct Place {
    uint word;
    uint byte;
    uint frame;
};
typedef metal::uint2 type_12[1];
struct Pair {
    ulong low;
    ulong high;
};
struct type_13 {
    ulong inner[9];
};
typedef uint Votes;
struct type_14 {
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
constant uint NO_PAGE = 4294967295u;
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

ulong image_word(
    uint word_2,
    device type_10 const& image0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e5 = image0_[word_2 & 134217727u];
    return _e5;
}

ulong frame_word(
    uint frame,
    uint index,
    device type_10 const& frames0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e7 = frames0_[(frame * 16384u) + index];
    return _e7;
}

void set_frame_word(
    uint frame_1,
    uint index_1,
    ulong value_1,
    device type_10& frames0_,
    constant _mslBufferSizes& _buffer_sizes
) {
    frames0_[(frame_1 * 16384u) + index_1] = value_1;
    return;
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

uint table_at(
    thread uint& lane
) {
    uint _e1 = lane;
    return (_e1 / GROUP) * PAGES;
}

bool has(
    metal::uint2 entry,
    thread uint& seat
) {
    uint _e3 = seat;
    return ((entry.y >> _e3) & 1u) != 0u;
}

uint frame_of(
    uint word_3,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e3 = table;
    metal::uint2 entry_1 = tables[_e3 + (word_3 >> 9u)];
    bool _e11 = has(entry_1, seat);
    return _e11 ? entry_1.x : 0u;
}

Place place_at(
    ulong addr_3,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e1 = word_of(addr_3);
    uint _e5 = frame_of(_e1, tables, table, seat, _buffer_sizes);
    return Place {_e1, static_cast<uint>(addr_3) & 7u, _e5};
}

Place around(
    Place place,
    uint word_4,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    if ((word_4 >> 9u) == (place.word >> 9u)) {
        return place;
    }
    uint _e9 = frame_of(word_4, tables, table, seat, _buffer_sizes);
    return Place {word_4, 0u, _e9};
}

void start_memory(
    thread uint& lane,
    thread uint& table,
    thread uint& seat,
    thread uint& want
) {
    uint _e1 = table_at(lane);
    table = _e1;
    uint _e4 = lane;
    seat = _e4 % GROUP;
    want = NO_PAGE;
    return;
}

uint in_frame(
    uint word_5,
    thread uint& seat
) {
    uint _e6 = seat;
    return ((word_5 & 511u) * GROUP) + _e6;
}

bool is_own(
    Place place_1
) {
    return place_1.frame != 0u;
}

bool own(
    Place place_2,
    thread uint& at,
    thread uint& want
) {
    bool _e1 = is_own(place_2);
    if (_e1) {
        return true;
    }
    want = place_2.word >> 9u;
    uint _e8 = at;
    at = _e8 - 1u;
    return false;
}

ulong load_word(
    Place place_3,
    uint word_6,
    device type_10 const& image0_,
    device type_10 const& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (place_3.frame != 0u) {
        uint _e6 = in_frame(word_6, seat);
        ulong _e7 = frame_word(place_3.frame, _e6, frames0_, _buffer_sizes);
        return _e7;
    }
    ulong _e8 = image_word(word_6, image0_, _buffer_sizes);
    return _e8;
}

void set_word(
    Place place_4,
    uint word_7,
    ulong value_2,
    device type_10& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e4 = in_frame(word_7, seat);
    set_frame_word(place_4.frame, _e4, value_2, frames0_, _buffer_sizes);
    return;
}

void change_word(
    Place place_5,
    uint word_8,
    ulong value_3,
    ulong mask,
    device type_10& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e4 = in_frame(word_8, seat);
    ulong _e7 = frame_word(place_5.frame, _e4, frames0_, _buffer_sizes);
    set_frame_word(place_5.frame, _e4, (_e7 & ~(mask)) | value_3, frames0_, _buffer_sizes);
    return;
}

ulong load_word_across(
    Place place_6,
    uint word_9,
    device type_10 const& image0_,
    device type_10 const& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    Place _e2 = around(place_6, word_9, tables, table, seat, _buffer_sizes);
    ulong _e3 = load_word(_e2, word_9, image0_, frames0_, seat, _buffer_sizes);
    return _e3;
}

void change_word_across(
    Place place_7,
    uint word_10,
    ulong value_4,
    ulong mask_1,
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    Place _e4 = around(place_7, word_10, tables, table, seat, _buffer_sizes);
    change_word(_e4, word_10, value_4, mask_1, frames0_, seat, _buffer_sizes);
    return;
}

bool wants_page(
    thread uint& want
) {
    uint _e1 = want;
    return _e1 != NO_PAGE;
}

void own_pages(
    constant Arguments& arguments,
    device Pool& pool,
    thread uint& place_19,
    thread uint& at,
    thread uint& limit,
    thread uint& stop_1,
    thread ulong& detail,
    thread uint& left,
    device type_10 const& image0_,
    device type_10& frames0_,
    device type_12& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint frame_2 = {};
    bool local_2 = {};
    uint i = {};
    while(true) {
        uint _e1 = want;
        uint unnamed = metal::simd_min(_e1);
        if (unnamed == NO_PAGE) {
            break;
        }
        uint _e6 = want;
        bool mine = _e6 == unnamed;
        metal::uint4 unnamed_1 = metal::uint4((uint64_t)metal::simd_ballot(mine), 0, 0, 0);
        uint _e10 = place_19;
        uint _e12 = seat;
        uint first_of_group = _e10 - _e12;
        uint lanes = (unnamed_1[first_of_group >> 5u] >> (first_of_group & 31u)) & GROUP_BITS;
        uint leader = first_of_group + metal::ctz(lanes | 2147483648u);
        frame_2 = 0u;
        if (mine) {
            uint _e31 = place_19;
            local_2 = _e31 == leader;
        } else {
            local_2 = false;
        }
        bool _e34 = local_2;
        if (_e34) {
            uint _e37 = table;
            metal::uint2 entry_2 = tables[_e37 + unnamed];
            frame_2 = entry_2.x;
            uint _e42 = frame_2;
            if (_e42 == 0u) {
                uint _e48 = metal::atomic_fetch_add_explicit(&pool.next, 1u, metal::memory_order_relaxed);
                frame_2 = _e48;
                uint _e50 = frame_2;
                uint _e51 = frame_2;
                uint _e54 = arguments.frames;
                frame_2 = (_e51 < _e54) ? _e50 : 0u;
            }
            uint _e57 = frame_2;
            if (_e57 != 0u) {
                uint _e62 = table;
                uint _e65 = frame_2;
                tables[_e62 + unnamed] = metal::uint2(_e65, entry_2.y | lanes);
            }
        }
        uint _e69 = frame_2;
        uint unnamed_2 = metal::simd_shuffle(_e69, leader);
        frame_2 = unnamed_2;
        if (mine) {
            want = NO_PAGE;
            uint _e73 = frame_2;
            if (_e73 == 0u) {
                stop_1 = NO_FRAME;
                detail = 0uL;
                park(at, limit, left);
            } else {
                i = 0u;
                bool loop_init = true;
                while(true) {
                    if (!loop_init) {
                        uint _e94 = i;
                        i = _e94 + 1u;
                    }
                    loop_init = false;
                    uint _e82 = i;
                    if (_e82 < 512u) {
                    } else {
                        break;
                    }
                    {
                        uint _e85 = frame_2;
                        uint _e86 = i;
                        uint _e87 = in_frame(_e86, seat);
                        uint _e90 = i;
                        ulong _e92 = image_word((unnamed * 512u) + _e90, image0_, _buffer_sizes);
                        set_frame_word(_e85, _e87, _e92, frames0_, _buffer_sizes);
                    }
                }
            }
        }
    }
    return;
}

ulong low_bits(
    uint bits
) {
    return 18446744073709551615uL >> (64u - bits);
}

ulong load(
    Place place_8,
    uint offset,
    uint bits_1,
    device type_10 const& image0_,
    device type_10 const& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint at_1 = place_8.byte + offset;
    ulong _e9 = load_word(place_8, place_8.word + (at_1 >> 3u), image0_, frames0_, seat, _buffer_sizes);
    if (bits_1 == 64u) {
        return _e9;
    }
    ulong _e17 = low_bits(bits_1);
    return (_e9 >> ((at_1 & 7u) * 8u)) & _e17;
}

void store(
    Place place_9,
    uint offset_1,
    uint bits_2,
    ulong value_5,
    device type_10& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint at_2 = place_9.byte + offset_1;
    uint word_11 = place_9.word + (at_2 >> 3u);
    if (bits_2 == 64u) {
        set_word(place_9, word_11, value_5, frames0_, seat, _buffer_sizes);
        return;
    } else {
        uint shift = (at_2 & 7u) * 8u;
        ulong _e17 = low_bits(bits_2);
        change_word(place_9, word_11, value_5 << shift, _e17 << shift, frames0_, seat, _buffer_sizes);
        return;
    }
}

ulong cas(
    Place place_10,
    uint bits_3,
    ulong expected,
    ulong wanted,
    device type_10 const& image0_,
    device type_10& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e5 = load(place_10, 0u, bits_3, image0_, frames0_, seat, _buffer_sizes);
    if (_e5 == expected) {
        store(place_10, 0u, bits_3, wanted, frames0_, seat, _buffer_sizes);
    }
    return _e5;
}

long signed_(
    uint bits_4,
    ulong value_6
) {
    uint shift_1 = 64u - bits_4;
    return as_type<long>(value_6 << shift_1) >> shift_1;
}

ulong modified(
    uint op,
    uint bits_5,
    ulong old,
    ulong value_7
) {
    switch(op) {
        case 0u: {
            ulong _e5 = low_bits(bits_5);
            return (old + value_7) & _e5;
        }
        case 1u: {
            return old & value_7;
        }
        case 2u: {
            return old | value_7;
        }
        case 3u: {
            return old ^ value_7;
        }
        case 4u: {
            return value_7;
        }
        case 5u: {
            long _e10 = signed_(bits_5, old);
            long _e11 = signed_(bits_5, value_7);
            return (_e10 > _e11) ? old : value_7;
        }
        case 6u: {
            long _e14 = signed_(bits_5, old);
            long _e15 = signed_(bits_5, value_7);
            return (_e14 < _e15) ? old : value_7;
        }
        case 7u: {
            return (old > value_7) ? old : value_7;
        }
        default: {
            return (old < value_7) ? old : value_7;
        }
    }
}

ulong rmw(
    uint op_1,
    Place place_11,
    uint bits_6,
    ulong value_8,
    device type_10 const& image0_,
    device type_10& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    ulong _e5 = load(place_11, 0u, bits_6, image0_, frames0_, seat, _buffer_sizes);
    ulong _e7 = modified(op_1, bits_6, _e5, value_8);
    store(place_11, 0u, bits_6, _e7, frames0_, seat, _buffer_sizes);
    return _e5;
}

Pair cas_pair(
    Place place_12,
    ulong e_low,
    ulong e_high,
    ulong n_low,
    ulong n_high,
    device type_10 const& image0_,
    device type_10& frames0_,
    thread uint& seat,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_3 = {};
    ulong _e7 = load(place_12, 0u, 64u, image0_, frames0_, seat, _buffer_sizes);
    ulong _e10 = load(place_12, 8u, 64u, image0_, frames0_, seat, _buffer_sizes);
    Pair old_1 = Pair {_e7, _e10};
    if (old_1.low == e_low) {
        local_3 = old_1.high == e_high;
    } else {
        local_3 = false;
    }
    bool _e19 = local_3;
    if (_e19) {
        store(place_12, 0u, 64u, n_low, frames0_, seat, _buffer_sizes);
        store(place_12, 8u, 64u, n_high, frames0_, seat, _buffer_sizes);
    }
    return old_1;
}

uint words_of(
    Place place_13,
    uint len_1
) {
    return ((place_13.byte + len_1) + 7u) >> 3u;
}

void gather(
    Place place_14,
    uint len_2,
    device type_10 const& image0_,
    device type_10 const& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread type_13& window,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_1 = 0u;
    uint _e2 = words_of(place_14, len_2);
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e15 = i_1;
            i_1 = _e15 + 1u;
        }
        loop_init_1 = false;
        uint _e5 = i_1;
        if (_e5 < _e2) {
        } else {
            break;
        }
        {
            uint _e8 = i_1;
            uint _e11 = i_1;
            ulong _e13 = load_word_across(place_14, place_14.word + _e11, image0_, frames0_, tables, table, seat, _buffer_sizes);
            window.inner[_e8] = _e13;
        }
    }
    return;
}

ulong load_unaligned(
    Place place_15,
    uint offset_2,
    uint bits_7,
    thread type_13& window
) {
    ulong value_9 = {};
    uint at_3 = place_15.byte + offset_2;
    uint index_2 = at_3 >> 3u;
    uint shift_2 = (at_3 & 7u) * 8u;
    ulong _e13 = window.inner[index_2];
    value_9 = _e13 >> shift_2;
    if ((shift_2 + bits_7) > 64u) {
        ulong _e19 = value_9;
        ulong _e24 = window.inner[index_2 + 1u];
        value_9 = _e19 | (_e24 << (64u - shift_2));
    }
    ulong _e29 = value_9;
    ulong _e30 = low_bits(bits_7);
    return _e29 & _e30;
}

bool is_usual(
    ulong addr_4,
    uint size_1,
    uint len_3,
    thread uint& at,
    thread bool& unaligned
) {
    bool local_4 = {};
    bool local_5 = {};
    if ((static_cast<uint>(addr_4) & (size_1 - 1u)) == 0u) {
        if (!((len_3 == size_1))) {
            local_5 = (static_cast<uint>(addr_4) & 4095u) <= (4096u - len_3);
        } else {
            local_5 = true;
        }
        bool _e22 = local_5;
        local_4 = _e22;
    } else {
        local_4 = false;
    }
    bool _e24 = local_4;
    if (_e24) {
        return true;
    }
    unaligned = true;
    uint _e29 = at;
    at = _e29 - 1u;
    return false;
}

void collect(
    Place place_16,
    uint len_4,
    thread type_13& window,
    thread type_13& masks
) {
    uint i_2 = 0u;
    uint _e2 = words_of(place_16, len_4);
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e16 = i_2;
            i_2 = _e16 + 1u;
        }
        loop_init_2 = false;
        uint _e5 = i_2;
        if (_e5 < _e2) {
        } else {
            break;
        }
        {
            uint _e8 = i_2;
            window.inner[_e8] = 0uL;
            uint _e12 = i_2;
            masks.inner[_e12] = 0uL;
        }
    }
    return;
}

void store_unaligned(
    Place place_17,
    uint offset_3,
    uint bits_8,
    ulong value_10,
    thread type_13& window,
    thread type_13& masks
) {
    uint at_4 = place_17.byte + offset_3;
    uint index_3 = at_4 >> 3u;
    uint shift_3 = (at_4 & 7u) * 8u;
    ulong _e14 = window.inner[index_3];
    window.inner[index_3] = _e14 | (value_10 << shift_3);
    ulong _e19 = masks.inner[index_3];
    ulong _e20 = low_bits(bits_8);
    masks.inner[index_3] = _e19 | (_e20 << shift_3);
    if ((shift_3 + bits_8) > 64u) {
        uint rest_2 = 64u - shift_3;
        ulong _e32 = window.inner[index_3 + 1u];
        window.inner[index_3 + 1u] = _e32 | (value_10 >> rest_2);
        ulong _e39 = masks.inner[index_3 + 1u];
        ulong _e40 = low_bits(bits_8);
        masks.inner[index_3 + 1u] = _e39 | (_e40 >> rest_2);
        return;
    } else {
        return;
    }
}

void scatter(
    Place place_18,
    uint len_5,
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread type_13& window,
    thread type_13& masks,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint i_3 = 0u;
    uint _e2 = words_of(place_18, len_5);
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e19 = i_3;
            i_3 = _e19 + 1u;
        }
        loop_init_3 = false;
        uint _e5 = i_3;
        if (_e5 < _e2) {
        } else {
            break;
        }
        {
            uint _e8 = i_3;
            uint _e11 = i_3;
            ulong _e13 = window.inner[_e11];
            uint _e15 = i_3;
            ulong _e17 = masks.inner[_e15];
            change_word_across(place_18, place_18.word + _e8, _e13, _e17, frames0_, tables, table, seat, _buffer_sizes);
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
    device type_10 const& image0_,
    device type_10 const& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
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
    Place _e32 = place_at(v4_2, tables, table, seat, _buffer_sizes);
    ulong _e35 = load(_e32, 0u, 32u, image0_, frames0_, seat, _buffer_sizes);
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
    device type_10 const& image0_,
    device type_10 const& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread type_13& window,
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
    Place _e27 = place_at(v4_3, tables, table, seat, _buffer_sizes);
    gather(_e27, 4u, image0_, frames0_, tables, table, seat, window, _buffer_sizes);
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
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
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
    Place _e35 = place_at(v4_4, tables, table, seat, _buffer_sizes);
    bool _e36 = own(_e35, at, want);
    if (!(_e36)) {
        return false;
    }
    store(_e35, 0u, 64u, static_cast<ulong>(v5_3), frames0_, seat, _buffer_sizes);
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
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
    thread type_13& window,
    thread type_13& masks,
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
    Place _e30 = place_at(v4_5, tables, table, seat, _buffer_sizes);
    bool _e31 = own(_e30, at, want);
    if (!(_e31)) {
        return false;
    }
    Place _e36 = place_at(v4_5 + 7uL, tables, table, seat, _buffer_sizes);
    bool _e37 = own(_e36, at, want);
    if (!(_e37)) {
        return false;
    }
    collect(_e30, 8u, window, masks);
    store_unaligned(_e30, 0u, 64u, static_cast<ulong>(v5_4), window, masks);
    scatter(_e30, 8u, frames0_, tables, table, seat, window, masks, _buffer_sizes);
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
    device type_10 const& image0_,
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
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
    Place _e33 = place_at(v4_6, tables, table, seat, _buffer_sizes);
    bool _e34 = own(_e33, at, want);
    if (!(_e34)) {
        return false;
    }
    ulong _e40 = rmw(0u, _e33, 64u, static_cast<ulong>(v3_6), image0_, frames0_, seat, _buffer_sizes);
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
    device type_10 const& image0_,
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
    thread type_13& window,
    thread type_13& masks,
    constant _mslBufferSizes& _buffer_sizes
) {
    switch(w_9.x & 65535u) {
        case 9u: {
            bool _e4 = unaligned_9_(w_9, x, at, stop_1, detail, image0_, frames0_, tables, table, seat, window, _buffer_sizes);
            return _e4;
        }
        case 10u: {
            bool _e5 = unaligned_10_(w_9, arguments, code_map, x, at, stop_1, detail, frames0_, tables, table, seat, want, window, masks, _buffer_sizes);
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
    device type_10 const& image0_,
    device type_10& frames0_,
    device type_12 const& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
    thread type_13& window,
    thread type_13& masks,
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
                bool _e29 = h9_(w_10, x, at, unaligned, stop_1, detail, image0_, frames0_, tables, table, seat, _buffer_sizes);
                if (_e29) {
                    continue;
                }
                break;
            }
            case 10u: {
                bool _e30 = h10_(w_10, arguments, code_map, x, at, unaligned, stop_1, detail, frames0_, tables, table, seat, want, _buffer_sizes);
                if (_e30) {
                    continue;
                }
                break;
            }
            case 11u: {
                bool _e31 = h11_(w_10, arguments, code_map, x, at, stop_1, detail, image0_, frames0_, tables, table, seat, want, _buffer_sizes);
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
        bool _e41 = run_unaligned(w_10, arguments, code_map, x, at, stop_1, detail, image0_, frames0_, tables, table, seat, want, window, masks, _buffer_sizes);
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
    device type_14& samples
) {
    ulong _e1 = count;
    uint _e4 = limit;
    uint _e6 = at;
    uint _e12 = lane;
    uint index_4 = ((static_cast<uint>(_e1) - (_e4 - _e6)) * 2654435761u) + _e12;
    uint _e19 = at;
    ulong _e20 = address_of(_e19, arguments, base);
    samples.inner[index_4 % SAMPLES] = static_cast<uint>(_e20) | 1u;
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
    device type_14& samples,
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
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e26 = bit;
            bit = _e26 + 1u;
        }
        loop_init_4 = false;
        uint _e11 = bit;
        if (_e11 < HASH_BITS) {
        } else {
            break;
        }
        {
            uint _e14 = bit;
            bool mine_1 = ((hash >> _e14) & 1u) != 0u;
            Votes _e20 = votes(mine_1);
            Votes _e21 = same;
            same = _e21 & (mine_1 ? _e20 : ~(_e20));
        }
    }
    Votes _e28 = same;
    uint _e29 = count_votes(_e28);
    return _e29;
}

uint choose(
    uint turn_2,
    thread uint& place_19,
    thread uint& waited
) {
    uint _e1 = lanes_at(turn_2);
    uint _e3 = waited;
    uint _e10 = place_19;
    uint score = (turn_2 == IDLE) ? 0u : (((_e1 + (_e3 >> 1u)) << 7u) | _e10);
    uint unnamed_4 = metal::simd_max(score);
    uint unnamed_5 = metal::simd_shuffle(turn_2, unnamed_4 & 127u);
    return unnamed_5;
}

void run_subgroup(
    constant Arguments& arguments,
    device Pool& pool,
    device type_6 const& records,
    device type_3 const& code_map,
    thread uint& lane,
    thread uint& place_19,
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
    device type_10 const& image0_,
    device type_10& frames0_,
    device type_12& tables,
    thread uint& table,
    thread uint& seat,
    thread uint& want,
    thread type_13& window,
    thread type_13& masks,
    device type_14& samples,
    thread uint& until_note,
    thread uint& waited,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool goes = false;
    uint held = 0u;
    bool local_6 = {};
    uint chosen = {};
    bool local_7 = {};
    bool local_8 = {};
    bool local_9 = {};
    while(true) {
        bool _e4 = wants_page(want);
        bool unnamed_6 = metal::simd_any(_e4);
        if (unnamed_6) {
            own_pages(arguments, pool, place_19, at, limit, stop_1, detail, left, image0_, frames0_, tables, table, seat, want, _buffer_sizes);
        }
        uint _e6 = next_turn(at, limit);
        note_turn(_e6, arguments, lane, at, base, limit, count, samples, until_note);
        bool _e8 = goes;
        if (_e8) {
            local_6 = _e6 != IDLE;
        } else {
            local_6 = false;
        }
        bool _e14 = local_6;
        uint unnamed_7 = metal::simd_max(_e14 ? _e6 : 0u);
        chosen = unnamed_7;
        uint _e18 = held;
        if (_e18 > 0u) {
            uint _e23 = chosen;
            local_7 = _e23 != 0u;
        } else {
            local_7 = false;
        }
        bool _e27 = local_7;
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
                local_8 = _e6 != IDLE;
            } else {
                local_8 = false;
            }
            bool _e42 = local_8;
            bool unnamed_9 = metal::simd_any(_e42);
            if (unnamed_9) {
                uint _e44 = choose(_e6, place_19, waited);
                chosen = _e44;
            }
            held = HOLD;
        }
        uint _e46 = chosen;
        if (_e6 == _e46) {
            local_9 = _e6 != IDLE;
        } else {
            local_9 = false;
        }
        bool _e53 = local_9;
        goes = _e53;
        uint _e56 = waited;
        bool _e60 = goes;
        waited = _e60 ? 0u : (_e56 + 1u);
        bool _e62 = goes;
        if (_e62) {
            run_straight(arguments, records, code_map, x, flag_n, flag_z, flag_c, flag_v, at, base, limit, unaligned, stop_1, detail, image0_, frames0_, tables, table, seat, want, window, masks, _buffer_sizes);
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
    uint i_4 = 0u;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e13 = i_4;
            i_4 = _e13 + 1u;
        }
        loop_init_5 = false;
        uint _e2 = i_4;
        if (_e2 < X_SLOTS) {
        } else {
            break;
        }
        {
            uint _e6 = i_4;
            uint _e9 = i_4;
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
    uint i_5 = 0u;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e14 = i_5;
            i_5 = _e14 + 1u;
        }
        loop_init_6 = false;
        uint _e3 = i_5;
        if (_e3 < X_SLOTS) {
        } else {
            break;
        }
        {
            uint _e7 = i_5;
            uint _e10 = i_5;
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
    device type_14& samples,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_10 = {};
    bool local_11 = {};
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
            local_11 = _e27 == NO_CODE;
        } else {
            local_11 = true;
        }
        bool _e31 = local_11;
        local_10 = _e31;
    } else {
        local_10 = false;
    }
    bool _e33 = local_10;
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
    uint done = static_cast<uint>(total - before);
    uint _e116 = metal::atomic_fetch_add_explicit(&pool.executed_low, done, metal::memory_order_relaxed);
    if ((_e116 + done) < _e116) {
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
    bool local_12 = {};
    bool local_13 = {};
    bool local_14 = {};
    bool local_15 = {};
    bool local_16 = {};
    bool local_17 = {};
    if (!((stop == RUNNING))) {
        local_12 = stop == NO_CODE;
    } else {
        local_12 = true;
    }
    bool _e9 = local_12;
    if (!(_e9)) {
        local_13 = stop == NO_FRAME;
    } else {
        local_13 = true;
    }
    bool _e16 = local_13;
    if (!(_e16)) {
        local_14 = stop == CODE_WRITE;
    } else {
        local_14 = true;
    }
    bool _e23 = local_14;
    if (!(_e23)) {
        local_15 = stop == NO_HANDLER;
    } else {
        local_15 = true;
    }
    bool _e30 = local_15;
    if (!(_e30)) {
        if (stop > NO_PAGE_STOP) {
            local_17 = stop <= 11u;
        } else {
            local_17 = false;
        }
        bool _e41 = local_17;
        local_16 = _e41;
    } else {
        local_16 = true;
    }
    bool _e43 = local_16;
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
, device type_10 const& image0_ [[user(fake0)]]
, device type_10& frames0_ [[user(fake0)]]
, device type_12& tables [[user(fake0)]]
, device type_14& samples [[user(fake0)]]
, constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]
) {
    uint lane = {};
    uint place_19 = {};
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
    uint table = {};
    uint seat = {};
    uint want = {};
    type_13 window = {};
    type_13 masks = {};
    uint until_note = {};
    uint waited = {};
    bool runs = false;
    ulong rest = 0uL;
    bool local = {};
    place_19 = invocation;
    uint _e17 = place_19;
    lane = (((group.x + (group.y * groups.x)) * WORKGROUP) + (subgroup * size)) + _e17;
    at = 0u;
    limit = 0u;
    waited = 0u;
    left = 0u;
    start_memory(lane, table, seat, want);
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
    run_subgroup(arguments, pool, records, code_map, lane, place_19, x, flag_n, flag_z, flag_c, flag_v, at, base, limit, count, unaligned, stop_1, detail, left, image0_, frames0_, tables, table, seat, want, window, masks, samples, until_note, waited, _buffer_sizes);
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
