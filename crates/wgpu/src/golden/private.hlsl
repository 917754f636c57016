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
    uint next;
    uint stopped;
    uint lock;
    uint executed_low;
    uint executed_high;
    uint ended;
};

struct Place {
    uint word;
    uint byte;
    uint frame;
};

struct Pair {
    uint64_t low;
    uint64_t high;
};

static const uint WORKGROUP = 64u;
static const uint LOCKS = 4096u;
static const uint SAMPLES = 4096u;
static const uint GROUPED = 16u;
static const uint STATE_WORDS = 100u;
static const uint X_SLOTS = 34u;
static const uint V_SLOTS = 64u;
static const uint PC_WORD = 68u;
static const uint FLAGS_WORD = 99u;
static const uint EXCLUSIVE_LEN_WORD = 98u;
static const uint CALLER_WORD = 90u;
static const uint PAGES = 256u;
static const uint VARIES = 4u;
static const uint LEAF_PAGES = 512u;
static const uint LEAF_BITS = 21u;
static const uint RIGHTS_BITS = 3u;
static const uint BLOCK_BITS = 20u;
static const uint BLOCK_RECORDS = 263168u;
static const uint NO_PAGE_STOP = 8u;
static const uint GROUP = 32u;
static const uint GROUP_BITS = 4294967295u;
static const uint RUNNING = 0u;
static const uint MAX_CYCLES = 1u;
static const uint NO_CODE = 2u;
static const uint UNDEFINED = 15u;
static const uint BREAKPOINT = 3u;
static const uint CODE_WRITE = 4u;
static const uint NO_FRAME = 5u;
static const uint NO_HANDLER = 7u;
static const uint FIRST_EXCEPTION = 15u;
static const uint GRANULE_RECORDS = 16u;
static const uint NOBODY = 4294967295u;
static const uint DIRECTORY_FACTOR = 2654435761u;
static const uint DIRECTORY_FACTOR_2_ = 2246822507u;
static const uint DIRECTORY_SHIFT = 15u;
static const uint64_t SIZE = 1048576uL;
static const uint GRANULE = 64u;
static const uint NO_PAGE = 4294967295u;
static const uint UNTIL_NOTE = 251u;
static const uint IDLE = 4294967295u;
static const uint HOLD = 1u;
static const uint HASH_BITS = 5u;

cbuffer arguments : register(b0) { Arguments arguments; }
RWByteAddressBuffer states : register(u1);
RWByteAddressBuffer statuses : register(u2);
RWByteAddressBuffer stopped : register(u3);
RWByteAddressBuffer pool : register(u4);
ByteAddressBuffer records : register(t5);
ByteAddressBuffer code_map : register(t6);
static uint lane = (uint)0;
static uint place_19 = (uint)0;
static uint state = (uint)0;
static uint64_t x[34] = (uint64_t[34])0;
static bool flag_n = (bool)0;
static bool flag_z = (bool)0;
static bool flag_c = (bool)0;
static bool flag_v = (bool)0;
static uint at = (uint)0;
static uint base = (uint)0;
static uint limit = (uint)0;
static uint64_t count = (uint64_t)0;
static bool unaligned = (bool)0;
static uint stop_1 = (uint)0;
static uint64_t detail = (uint64_t)0;
static uint left = (uint)0;
ByteAddressBuffer image0_ : register(t0, space1);
RWByteAddressBuffer frames0_ : register(u0, space2);
RWByteAddressBuffer tables : register(u7);
static uint table = (uint)0;
static uint seat = (uint)0;
static uint want = (uint)0;
static uint64_t window[9] = (uint64_t[9])0;
static uint64_t masks[9] = (uint64_t[9])0;
RWByteAddressBuffer samples : register(u9);
static uint until_note = (uint)0;
static uint waited = (uint)0;

struct ComputeInput_run {
    uint3 group_1 : SV_GroupID;
    uint3 groups_1 : SV_GroupID;
    uint local_invocation_index : SV_GroupIndex;
};

uint64_t code_start()
{
    uint _e2 = arguments.code_start_low;
    uint _e6 = arguments.code_start_high;
    return (uint64_t(_e2) | (uint64_t(_e6) << 32u));
}

uint64_t address_of(uint record)
{
    const uint64_t _e1 = code_start();
    uint _e3 = base;
    return (_e1 + (uint64_t((record - _e3)) << 2u));
}

uint64_t pc()
{
    uint _e1 = at;
    const uint64_t _e4 = address_of((_e1 - 1u));
    return _e4;
}

uint64_t completed()
{
    uint64_t _e1 = count;
    uint _e3 = limit;
    uint _e5 = at;
    return ((_e1 - uint64_t((_e3 - _e5))) - 1uL);
}

uint64_t get_wide(uint word)
{
    uint _e3 = state;
    uint _e6 = asuint(states.Load((_e3 + word)*4));
    uint _e10 = state;
    uint _e15 = asuint(states.Load(((_e10 + word) + 1u)*4));
    return (uint64_t(_e6) | (uint64_t(_e15) << 32u));
}

void set_wide(uint word_1, uint64_t value)
{
    uint _e4 = state;
    states.Store((_e4 + word_1)*4, asuint(uint(value)));
    uint _e10 = state;
    states.Store(((_e10 + word_1) + 1u)*4, asuint(uint((value >> 32u))));
    return;
}

void stop_before(uint reason, uint64_t why)
{
    stop_1 = reason;
    detail = why;
    uint _e5 = at;
    at = (_e5 - 1u);
    return;
}

void stop_without_code(uint64_t goal)
{
    stop_1 = NO_CODE;
    detail = goal;
    return;
}

void park()
{
    uint _e2 = limit;
    uint _e4 = at;
    left = (_e2 - _e4);
    uint _e8 = at;
    limit = _e8;
    return;
}

void continue_at(uint record_1)
{
    uint _e2 = limit;
    uint _e4 = at;
    limit = (_e2 + (record_1 - _e4));
    at = record_1;
    return;
}

uint code_len()
{
    uint _e2 = arguments.code_len;
    return _e2;
}

void leave(uint64_t goal_1)
{
    stop_without_code(goal_1);
    return;
}

void branch_near(uint low)
{
    const uint64_t _e1 = code_start();
    uint offset_4 = (low - uint(_e1));
    const uint _e4 = code_len();
    if ((offset_4 >= _e4)) {
        const uint64_t _e6 = pc();
        int distance_ = asint((low - uint(_e6)));
        const uint64_t _e10 = pc();
        leave((_e10 + int64_t(distance_)));
        return;
    } else {
        uint _e15 = base;
        continue_at((_e15 + (offset_4 >> 2u)));
        return;
    }
}

uint64_t branch_target(uint64_t address)
{
    return address;
}

void branch_far(uint64_t address_1)
{
    bool local_1 = (bool)0;

    const uint64_t _e1 = branch_target(address_1);
    const uint64_t _e2 = code_start();
    uint64_t offset_5 = (_e1 - _e2);
    const uint _e4 = code_len();
    if (!((offset_5 >= uint64_t(_e4)))) {
        local_1 = ((offset_5 & 3uL) != 0uL);
    } else {
        local_1 = true;
    }
    bool _e15 = local_1;
    if (_e15) {
        leave(_e1);
        return;
    } else {
        uint _e17 = base;
        continue_at((_e17 + uint((offset_5 >> 2u))));
        return;
    }
}

void load_vectors()
{
    return;
}

void save_vectors()
{
    return;
}

uint64_t image_word(uint word_2)
{
    uint64_t _e5 = image0_.Load<uint64_t>((word_2 & 134217727u)*8);
    return _e5;
}

uint64_t frame_word(uint frame, uint index)
{
    uint64_t _e7 = frames0_.Load<uint64_t>(((frame * 16384u) + index)*8);
    return _e7;
}

void set_frame_word(uint frame_1, uint index_1, uint64_t value_1)
{
    frames0_.Store(((frame_1 * 16384u) + index_1)*8, value_1);
    return;
}

void start_code()
{
    uint _e3 = arguments.first_record;
    base = _e3;
    return;
}

void not_decoded()
{
    uint _e1 = at;
    at = (_e1 - 1u);
    uint _e5 = at;
    const uint64_t _e6 = address_of(_e5);
    stop_without_code(_e6);
    return;
}

uint word_of(uint64_t addr)
{
    return uint((uint(addr) >> 3u));
}

bool is_within(uint64_t addr_1, uint len, uint fault)
{
    if ((addr_1 > (SIZE - uint64_t(len)))) {
        stop_before(fault, addr_1);
        return false;
    }
    return true;
}

bool is_code(uint64_t addr_2)
{
    const uint64_t _e2 = code_start();
    uint offset_6 = (uint(addr_2) - (uint(_e2) - GRANULE));
    uint _e9 = arguments.code_len;
    if ((offset_6 >= ((uint(_e9) + GRANULE) + GRANULE))) {
        return false;
    }
    uint _e22 = arguments.first_flag;
    uint granule = ((uint(offset_6) >> 6u) + _e22);
    uint _e28 = asuint(code_map.Load((granule >> 5u)*4));
    return (((_e28 >> (granule & 31u)) & 1u) != 0u);
}

uint naga_div(uint lhs, uint rhs) {
    return lhs / (rhs == 0u ? 1u : rhs);
}

uint table_at()
{
    uint _e1 = lane;
    return (naga_div(_e1, GROUP) * PAGES);
}

bool has(uint2 entry)
{
    uint _e3 = seat;
    return (((entry.y >> _e3) & 1u) != 0u);
}

uint frame_of(uint word_3)
{
    uint _e3 = table;
    uint2 entry_1 = asuint(tables.Load2((_e3 + (word_3 >> 9u))*8));
    const bool _e11 = has(entry_1);
    return (_e11 ? entry_1.x : 0u);
}

Place ConstructPlace(uint arg0, uint arg1, uint arg2) {
    Place ret = (Place)0;
    ret.word = arg0;
    ret.byte = arg1;
    ret.frame = arg2;
    return ret;
}

Place place_at(uint64_t addr_3)
{
    const uint _e1 = word_of(addr_3);
    const uint _e5 = frame_of(_e1);
    const Place place_20 = ConstructPlace(_e1, (uint(addr_3) & 7u), _e5);
    return place_20;
}

Place around(Place place, uint word_4)
{
    if (((word_4 >> 9u) == (place.word >> 9u))) {
        const Place place_21 = place;
        return place_21;
    }
    const uint _e9 = frame_of(word_4);
    const Place place_22 = ConstructPlace(word_4, 0u, _e9);
    return place_22;
}

uint naga_mod(uint lhs, uint rhs) {
    return lhs % (rhs == 0u ? 1u : rhs);
}

void start_memory()
{
    const uint _e1 = table_at();
    table = _e1;
    uint _e4 = lane;
    seat = naga_mod(_e4, GROUP);
    want = NO_PAGE;
    return;
}

uint in_frame(uint word_5)
{
    uint _e6 = seat;
    return (((word_5 & 511u) * GROUP) + _e6);
}

bool is_own(Place place_1)
{
    return (place_1.frame != 0u);
}

bool own(Place place_2)
{
    const bool _e1 = is_own(place_2);
    if (_e1) {
        return true;
    }
    want = (place_2.word >> 9u);
    uint _e8 = at;
    at = (_e8 - 1u);
    return false;
}

uint64_t load_word(Place place_3, uint word_6)
{
    if ((place_3.frame != 0u)) {
        const uint _e6 = in_frame(word_6);
        const uint64_t _e7 = frame_word(place_3.frame, _e6);
        return _e7;
    }
    const uint64_t _e8 = image_word(word_6);
    return _e8;
}

void set_word(Place place_4, uint word_7, uint64_t value_2)
{
    const uint _e4 = in_frame(word_7);
    set_frame_word(place_4.frame, _e4, value_2);
    return;
}

void change_word(Place place_5, uint word_8, uint64_t value_3, uint64_t mask)
{
    const uint _e4 = in_frame(word_8);
    const uint64_t _e7 = frame_word(place_5.frame, _e4);
    set_frame_word(place_5.frame, _e4, ((_e7 & ~(mask)) | value_3));
    return;
}

uint64_t load_word_across(Place place_6, uint word_9)
{
    const Place _e2 = around(place_6, word_9);
    const uint64_t _e3 = load_word(_e2, word_9);
    return _e3;
}

void change_word_across(Place place_7, uint word_10, uint64_t value_4, uint64_t mask_1)
{
    const Place _e4 = around(place_7, word_10);
    change_word(_e4, word_10, value_4, mask_1);
    return;
}

bool wants_page()
{
    uint _e1 = want;
    return (_e1 != NO_PAGE);
}

void own_pages()
{
    uint frame_2 = (uint)0;
    bool local_2 = (bool)0;
    uint i = (uint)0;

    while(true) {
        uint _e1 = want;
        const uint _e2 = WaveActiveMin(_e1);
        if ((_e2 == NO_PAGE)) {
            break;
        }
        uint _e6 = want;
        bool mine = (_e6 == _e2);
        const uint4 _e8 = WaveActiveBallot(mine);
        uint _e10 = place_19;
        uint _e12 = seat;
        uint first_of_group = (_e10 - _e12);
        uint lanes = ((_e8[(first_of_group >> 5u)] >> (first_of_group & 31u)) & GROUP_BITS);
        uint leader = (first_of_group + min(32u, firstbitlow((lanes | 2147483648u))));
        frame_2 = 0u;
        if (mine) {
            uint _e31 = place_19;
            local_2 = (_e31 == leader);
        } else {
            local_2 = false;
        }
        bool _e34 = local_2;
        if (_e34) {
            uint _e37 = table;
            uint2 entry_2 = asuint(tables.Load2((_e37 + _e2)*8));
            frame_2 = entry_2.x;
            uint _e42 = frame_2;
            if ((_e42 == 0u)) {
                uint _e48; pool.InterlockedAdd(0, 1u, _e48);
                frame_2 = _e48;
                uint _e50 = frame_2;
                uint _e51 = frame_2;
                uint _e54 = arguments.frames;
                frame_2 = ((_e51 < _e54) ? _e50 : 0u);
            }
            uint _e57 = frame_2;
            if ((_e57 != 0u)) {
                uint _e62 = table;
                uint _e65 = frame_2;
                tables.Store2((_e62 + _e2)*8, asuint(uint2(_e65, (entry_2.y | lanes))));
            }
        }
        uint _e69 = frame_2;
        const uint _e70 = WaveReadLaneAt(_e69, leader);
        frame_2 = _e70;
        if (mine) {
            want = NO_PAGE;
            uint _e73 = frame_2;
            if ((_e73 == 0u)) {
                stop_1 = NO_FRAME;
                detail = 0uL;
                park();
            } else {
                i = 0u;
                bool loop_init = true;
                while(true) {
                    if (!loop_init) {
                        uint _e94 = i;
                        i = (_e94 + 1u);
                    }
                    loop_init = false;
                    uint _e82 = i;
                    if ((_e82 < 512u)) {
                    } else {
                        break;
                    }
                    {
                        uint _e85 = frame_2;
                        uint _e86 = i;
                        const uint _e87 = in_frame(_e86);
                        uint _e90 = i;
                        const uint64_t _e92 = image_word(((_e2 * 512u) + _e90));
                        set_frame_word(_e85, _e87, _e92);
                    }
                }
            }
        }
    }
    return;
}

uint64_t low_bits(uint bits)
{
    return (18446744073709551615uL >> (64u - bits));
}

uint64_t load(Place place_8, uint offset, uint bits_1)
{
    uint at_1 = (place_8.byte + offset);
    const uint64_t _e9 = load_word(place_8, (place_8.word + (at_1 >> 3u)));
    if ((bits_1 == 64u)) {
        return _e9;
    }
    const uint64_t _e17 = low_bits(bits_1);
    return ((_e9 >> ((at_1 & 7u) * 8u)) & _e17);
}

void store(Place place_9, uint offset_1, uint bits_2, uint64_t value_5)
{
    uint at_2 = (place_9.byte + offset_1);
    uint word_11 = (place_9.word + (at_2 >> 3u));
    if ((bits_2 == 64u)) {
        set_word(place_9, word_11, value_5);
        return;
    } else {
        uint shift = ((at_2 & 7u) * 8u);
        const uint64_t _e17 = low_bits(bits_2);
        change_word(place_9, word_11, (value_5 << shift), (_e17 << shift));
        return;
    }
}

uint64_t cas(Place place_10, uint bits_3, uint64_t expected, uint64_t wanted)
{
    const uint64_t _e5 = load(place_10, 0u, bits_3);
    if ((_e5 == expected)) {
        store(place_10, 0u, bits_3, wanted);
    }
    return _e5;
}

int64_t signed_(uint bits_4, uint64_t value_6)
{
    uint shift_1 = (64u - bits_4);
    return ((value_6 << shift_1) >> shift_1);
}

uint64_t modified(uint op, uint bits_5, uint64_t old, uint64_t value_7)
{
    switch(op) {
        case 0u: {
            const uint64_t _e5 = low_bits(bits_5);
            return ((old + value_7) & _e5);
        }
        case 1u: {
            return (old & value_7);
        }
        case 2u: {
            return (old | value_7);
        }
        case 3u: {
            return (old ^ value_7);
        }
        case 4u: {
            return value_7;
        }
        case 5u: {
            const int64_t _e10 = signed_(bits_5, old);
            const int64_t _e11 = signed_(bits_5, value_7);
            return ((_e10 > _e11) ? old : value_7);
        }
        case 6u: {
            const int64_t _e14 = signed_(bits_5, old);
            const int64_t _e15 = signed_(bits_5, value_7);
            return ((_e14 < _e15) ? old : value_7);
        }
        case 7u: {
            return ((old > value_7) ? old : value_7);
        }
        default: {
            return ((old < value_7) ? old : value_7);
        }
    }
}

uint64_t rmw(uint op_1, Place place_11, uint bits_6, uint64_t value_8)
{
    const uint64_t _e5 = load(place_11, 0u, bits_6);
    const uint64_t _e7 = modified(op_1, bits_6, _e5, value_8);
    store(place_11, 0u, bits_6, _e7);
    return _e5;
}

Pair ConstructPair(uint64_t arg0, uint64_t arg1) {
    Pair ret = (Pair)0;
    ret.low = arg0;
    ret.high = arg1;
    return ret;
}

Pair cas_pair(Place place_12, uint64_t e_low, uint64_t e_high, uint64_t n_low, uint64_t n_high)
{
    bool local_3 = (bool)0;

    const uint64_t _e7 = load(place_12, 0u, 64u);
    const uint64_t _e10 = load(place_12, 8u, 64u);
    Pair old_1 = ConstructPair(_e7, _e10);
    if ((old_1.low == e_low)) {
        local_3 = (old_1.high == e_high);
    } else {
        local_3 = false;
    }
    bool _e19 = local_3;
    if (_e19) {
        store(place_12, 0u, 64u, n_low);
        store(place_12, 8u, 64u, n_high);
    }
    const Pair pair = old_1;
    return pair;
}

uint words_of(Place place_13, uint len_1)
{
    return (((place_13.byte + len_1) + 7u) >> 3u);
}

void gather(Place place_14, uint len_2)
{
    uint i_1 = 0u;

    const uint _e2 = words_of(place_14, len_2);
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e15 = i_1;
            i_1 = (_e15 + 1u);
        }
        loop_init_1 = false;
        uint _e5 = i_1;
        if ((_e5 < _e2)) {
        } else {
            break;
        }
        {
            uint _e8 = i_1;
            uint _e11 = i_1;
            const uint64_t _e13 = load_word_across(place_14, (place_14.word + _e11));
            window[_e8] = _e13;
        }
    }
    return;
}

uint64_t load_unaligned(Place place_15, uint offset_2, uint bits_7)
{
    uint64_t value_9 = (uint64_t)0;

    uint at_3 = (place_15.byte + offset_2);
    uint index_2 = (at_3 >> 3u);
    uint shift_2 = ((at_3 & 7u) * 8u);
    uint64_t _e13 = window[index_2];
    value_9 = (_e13 >> shift_2);
    if (((shift_2 + bits_7) > 64u)) {
        uint64_t _e19 = value_9;
        uint64_t _e24 = window[(index_2 + 1u)];
        value_9 = (_e19 | (_e24 << (64u - shift_2)));
    }
    uint64_t _e29 = value_9;
    const uint64_t _e30 = low_bits(bits_7);
    return (_e29 & _e30);
}

bool is_usual(uint64_t addr_4, uint size_1, uint len_3)
{
    bool local_4 = (bool)0;
    bool local_5 = (bool)0;

    if (((uint(addr_4) & (size_1 - 1u)) == 0u)) {
        if (!((len_3 == size_1))) {
            local_5 = ((uint(addr_4) & 4095u) <= (4096u - len_3));
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
    at = (_e29 - 1u);
    return false;
}

void collect(Place place_16, uint len_4)
{
    uint i_2 = 0u;

    const uint _e2 = words_of(place_16, len_4);
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e16 = i_2;
            i_2 = (_e16 + 1u);
        }
        loop_init_2 = false;
        uint _e5 = i_2;
        if ((_e5 < _e2)) {
        } else {
            break;
        }
        {
            uint _e8 = i_2;
            window[_e8] = 0uL;
            uint _e12 = i_2;
            masks[_e12] = 0uL;
        }
    }
    return;
}

void store_unaligned(Place place_17, uint offset_3, uint bits_8, uint64_t value_10)
{
    uint at_4 = (place_17.byte + offset_3);
    uint index_3 = (at_4 >> 3u);
    uint shift_3 = ((at_4 & 7u) * 8u);
    uint64_t _e14 = window[index_3];
    window[index_3] = (_e14 | (value_10 << shift_3));
    uint64_t _e19 = masks[index_3];
    const uint64_t _e20 = low_bits(bits_8);
    masks[index_3] = (_e19 | (_e20 << shift_3));
    if (((shift_3 + bits_8) > 64u)) {
        uint rest_2 = (64u - shift_3);
        uint64_t _e32 = window[(index_3 + 1u)];
        window[(index_3 + 1u)] = (_e32 | (value_10 >> rest_2));
        uint64_t _e39 = masks[(index_3 + 1u)];
        const uint64_t _e40 = low_bits(bits_8);
        masks[(index_3 + 1u)] = (_e39 | (_e40 >> rest_2));
        return;
    } else {
        return;
    }
}

void scatter(Place place_18, uint len_5)
{
    uint i_3 = 0u;

    const uint _e2 = words_of(place_18, len_5);
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e19 = i_3;
            i_3 = (_e19 + 1u);
        }
        loop_init_3 = false;
        uint _e5 = i_3;
        if ((_e5 < _e2)) {
        } else {
            break;
        }
        {
            uint _e8 = i_3;
            uint _e11 = i_3;
            uint64_t _e13 = window[_e11];
            uint _e15 = i_3;
            uint64_t _e17 = masks[_e15];
            change_word_across(place_18, (place_18.word + _e8), _e13, _e17);
        }
    }
    return;
}

bool may_write_within(uint64_t addr_5, uint len_6, uint fault_1)
{
    const bool _e3 = is_within(addr_5, len_6, fault_1);
    if (!(_e3)) {
        return false;
    }
    const bool _e6 = is_code(addr_5);
    if (_e6) {
        stop_before(CODE_WRITE, addr_5);
        return false;
    }
    return true;
}

bool may_write(uint64_t addr_6, uint len_7, uint fault_2)
{
    const bool _e3 = may_write_within(addr_6, len_7, fault_2);
    if (!(_e3)) {
        return false;
    }
    const bool _e10 = is_code((addr_6 + uint64_t((len_7 - 1u))));
    if (_e10) {
        stop_before(CODE_WRITE, addr_6);
        return false;
    }
    return true;
}

void h6_(uint4 w)
{
    uint v0_ = ((w.x >> 16u) & 255u);
    uint v1_ = ((w.x >> 24u) & 255u);
    uint64_t v2_ = (uint64_t(w.z) | (uint64_t(w.w) << 32u));
    uint64_t v3_ = x[v0_];
    uint64_t v4_ = (v3_ + v2_);
    x[v1_] = v4_;
    return;
}

void h7_(uint4 w_1)
{
    uint v0_1 = ((w_1.x >> 16u) & 255u);
    uint v1_1 = ((w_1.x >> 24u) & 255u);
    uint64_t v2_1 = (uint64_t(w_1.z) | (uint64_t(w_1.w) << 32u));
    uint64_t v3_1 = x[v0_1];
    uint64_t v4_1 = (v3_1 - v2_1);
    bool v6_ = (v4_1 < 0uL);
    bool v7_ = (v4_1 == 0uL);
    bool v8_ = (v2_1 <= v3_1);
    uint64_t v9_ = (v3_1 ^ v2_1);
    uint64_t v10_ = (v3_1 ^ v4_1);
    uint64_t v11_ = (v9_ & v10_);
    bool v12_ = (v11_ < 0uL);
    flag_n = v6_;
    flag_z = v7_;
    flag_c = v8_;
    flag_v = v12_;
    x[v1_1] = v4_1;
    return;
}

void h8_(uint4 w_2)
{
    uint64_t v0_2 = (uint64_t(w_2.z) | (uint64_t(w_2.w) << 32u));
    bool v2_2 = flag_z;
    bool v5_ = !(v2_2);
    if (v5_) {
        branch_near(w_2.z);
        return;
    } else {
        return;
    }
}

bool h9_(uint4 w_3)
{
    uint v0_3 = ((w_3.x >> 16u) & 255u);
    uint v1_2 = ((w_3.x >> 24u) & 255u);
    uint64_t v2_3 = (uint64_t(w_3.z) | (uint64_t(w_3.w) << 32u));
    uint64_t v3_2 = x[v0_3];
    uint64_t v4_2 = (v3_2 + v2_3);
    const bool _e24 = is_usual(v4_2, 4u, 4u);
    if (!(_e24)) {
        return false;
    }
    const bool _e29 = is_within(v4_2, 4u, 32u);
    if (!(_e29)) {
        return false;
    }
    const Place _e32 = place_at(v4_2);
    const uint64_t _e35 = load(_e32, 0u, 32u);
    uint v5_1 = uint(_e35);
    uint64_t v6_1 = uint64_t(v5_1);
    x[v1_2] = v6_1;
    return true;
}

bool unaligned_9_(uint4 w_4)
{
    uint v0_4 = ((w_4.x >> 16u) & 255u);
    uint v1_3 = ((w_4.x >> 24u) & 255u);
    uint64_t v2_4 = (uint64_t(w_4.z) | (uint64_t(w_4.w) << 32u));
    uint64_t v3_3 = x[v0_4];
    uint64_t v4_3 = (v3_3 + v2_4);
    const bool _e24 = is_within(v4_3, 4u, 32u);
    if (!(_e24)) {
        return false;
    }
    const Place _e27 = place_at(v4_3);
    gather(_e27, 4u);
    const uint64_t _e31 = load_unaligned(_e27, 0u, 32u);
    uint v5_2 = uint(_e31);
    uint64_t v6_2 = uint64_t(v5_2);
    x[v1_3] = v6_2;
    return true;
}

bool h10_(uint4 w_5)
{
    uint v0_5 = ((w_5.x >> 16u) & 255u);
    uint v1_4 = ((w_5.x >> 24u) & 255u);
    uint64_t v2_5 = (uint64_t(w_5.z) | (uint64_t(w_5.w) << 32u));
    uint64_t v3_4 = x[v0_5];
    uint64_t v4_4 = (v3_4 + v2_5);
    uint64_t v5_3 = x[v1_4];
    const bool _e27 = is_usual(v4_4, 8u, 8u);
    if (!(_e27)) {
        return false;
    }
    const bool _e32 = may_write_within(v4_4, 8u, 33u);
    if (!(_e32)) {
        return false;
    }
    const Place _e35 = place_at(v4_4);
    const bool _e36 = own(_e35);
    if (!(_e36)) {
        return false;
    }
    store(_e35, 0u, 64u, uint64_t(v5_3));
    return true;
}

bool unaligned_10_(uint4 w_6)
{
    uint v0_6 = ((w_6.x >> 16u) & 255u);
    uint v1_5 = ((w_6.x >> 24u) & 255u);
    uint64_t v2_6 = (uint64_t(w_6.z) | (uint64_t(w_6.w) << 32u));
    uint64_t v3_5 = x[v0_6];
    uint64_t v4_5 = (v3_5 + v2_6);
    uint64_t v5_4 = x[v1_5];
    const bool _e27 = may_write(v4_5, 8u, 33u);
    if (!(_e27)) {
        return false;
    }
    const Place _e30 = place_at(v4_5);
    const bool _e31 = own(_e30);
    if (!(_e31)) {
        return false;
    }
    const Place _e36 = place_at((v4_5 + 7uL));
    const bool _e37 = own(_e36);
    if (!(_e37)) {
        return false;
    }
    collect(_e30, 8u);
    store_unaligned(_e30, 0u, 64u, uint64_t(v5_4));
    scatter(_e30, 8u);
    return true;
}

bool h11_(uint4 w_7)
{
    uint v0_7 = ((w_7.x >> 16u) & 255u);
    uint v1_6 = ((w_7.x >> 24u) & 255u);
    uint v2_7 = ((w_7.y >> 0u) & 255u);
    uint64_t v3_6 = x[v0_7];
    uint64_t v4_6 = x[v1_6];
    uint64_t v6_3 = (v4_6 & 7uL);
    bool v8_1 = (v6_3 != 0uL);
    if (v8_1) {
        stop_before(20u, v4_6);
        return false;
    }
    const bool _e30 = may_write_within(v4_6, 8u, 34u);
    if (!(_e30)) {
        return false;
    }
    const Place _e33 = place_at(v4_6);
    const bool _e34 = own(_e33);
    if (!(_e34)) {
        return false;
    }
    const uint64_t _e40 = rmw(0u, _e33, 64u, uint64_t(v3_6));
    x[v2_7] = _e40;
    return true;
}

void h12_(uint4 w_8)
{
    uint v0_8 = ((w_8.x >> 16u) & 255u);
    uint v1_7 = ((w_8.x >> 24u) & 255u);
    uint64_t v2_8 = x[v0_8];
    uint64_t v5_5 = (v2_8 >> 32u);
    uint v6_4 = uint(v2_8);
    uint v7_1 = uint(v5_5);
    bool v9_1 = (v7_1 == 0u);
    uint v10_1 = (31u - firstbithigh(v6_4));
    uint v11_1 = (v10_1 + 32u);
    uint v12_1 = (31u - firstbithigh(v7_1));
    uint v13_ = (v9_1 ? v11_1 : v12_1);
    uint64_t v14_ = uint64_t(v13_);
    x[v1_7] = v14_;
    return;
}

bool run_unaligned(uint4 w_9)
{
    switch((w_9.x & 65535u)) {
        case 9u: {
            const bool _e4 = unaligned_9_(w_9);
            return _e4;
        }
        case 10u: {
            const bool _e5 = unaligned_10_(w_9);
            return _e5;
        }
        default: {
            return false;
        }
    }
}

void run_straight()
{
    while(true) {
        uint _e1 = at;
        uint _e3 = limit;
        if ((_e1 == _e3)) {
            break;
        }
        uint _e7 = at;
        uint4 w_10 = asuint(records.Load4(_e7*16));
        uint _e11 = at;
        at = (_e11 + 1u);
        bool should_continue = false;
        switch((w_10.x & 65535u)) {
            case 0u: {
                not_decoded();
                break;
            }
            case 1u: {
                stop_before(UNDEFINED, (uint64_t(w_10.z) | (uint64_t(w_10.w) << 32u)));
                break;
            }
            case 2u: {
                stop_before(BREAKPOINT, 0uL);
                break;
            }
            case 4u: {
                stop_before(NO_HANDLER, 0uL);
                break;
            }
            case 6u: {
                h6_(w_10);
                should_continue = true;
                break;
            }
            case 7u: {
                h7_(w_10);
                should_continue = true;
                break;
            }
            case 8u: {
                h8_(w_10);
                break;
            }
            case 9u: {
                const bool _e29 = h9_(w_10);
                if (_e29) {
                    should_continue = true;
                    break;
                }
                break;
            }
            case 10u: {
                const bool _e30 = h10_(w_10);
                if (_e30) {
                    should_continue = true;
                    break;
                }
                break;
            }
            case 11u: {
                const bool _e31 = h11_(w_10);
                if (_e31) {
                    should_continue = true;
                    break;
                }
                break;
            }
            case 12u: {
                h12_(w_10);
                should_continue = true;
                break;
            }
            default: {
                not_decoded();
                break;
            }
        }
        if (should_continue) {
            continue;
        }
        bool _e33 = unaligned;
        if (!(_e33)) {
            break;
        }
        unaligned = false;
        uint _e38 = at;
        at = (_e38 + 1u);
        const bool _e41 = run_unaligned(w_10);
        if (!(_e41)) {
            break;
        }
    }
    return;
}

uint votes(bool yes)
{
    const uint4 _e1 = WaveActiveBallot(yes);
    return _e1.x;
}

uint count_votes(uint votes_1)
{
    uint counts = countbits(votes_1);
    return counts;
}

bool are_equal(uint a, uint b)
{
    return (a == b);
}

void note_place()
{
    uint64_t _e1 = count;
    uint _e4 = limit;
    uint _e6 = at;
    uint _e12 = lane;
    uint index_4 = (((uint(_e1) - (_e4 - _e6)) * 2654435761u) + _e12);
    uint _e19 = at;
    const uint64_t _e20 = address_of(_e19);
    samples.Store(naga_mod(index_4, SAMPLES)*4, asuint((uint(_e20) | 1u)));
    return;
}

void note_turn(uint turn)
{
    uint _e2 = until_note;
    if ((_e2 == 0u)) {
        until_note = UNTIL_NOTE;
        if ((turn != IDLE)) {
            note_place();
        }
    }
    uint _e10 = until_note;
    until_note = (_e10 - 1u);
    return;
}

uint next_turn()
{
    uint _e1 = at;
    uint _e4 = at;
    uint _e6 = limit;
    return ((_e4 == _e6) ? IDLE : _e1);
}

uint lanes_at(uint turn_1)
{
    uint same = (uint)0;
    uint bit = 0u;

    uint hash = ((turn_1 * 2654435761u) >> 27u);
    const uint _e7 = votes((turn_1 != IDLE));
    same = _e7;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e26 = bit;
            bit = (_e26 + 1u);
        }
        loop_init_4 = false;
        uint _e11 = bit;
        if ((_e11 < HASH_BITS)) {
        } else {
            break;
        }
        {
            uint _e14 = bit;
            bool mine_1 = (((hash >> _e14) & 1u) != 0u);
            const uint _e20 = votes(mine_1);
            uint _e21 = same;
            same = (_e21 & (mine_1 ? _e20 : ~(_e20)));
        }
    }
    uint _e28 = same;
    const uint _e29 = count_votes(_e28);
    return _e29;
}

uint choose(uint turn_2)
{
    const uint _e1 = lanes_at(turn_2);
    uint _e3 = waited;
    uint _e10 = place_19;
    uint score = ((turn_2 == IDLE) ? 0u : (((_e1 + (_e3 >> 1u)) << 7u) | _e10));
    const uint _e16 = WaveActiveMax(score);
    const uint _e19 = WaveReadLaneAt(turn_2, (_e16 & 127u));
    return _e19;
}

void run_subgroup()
{
    bool goes = false;
    uint held = 0u;
    bool local_6 = (bool)0;
    uint chosen = (uint)0;
    bool local_7 = (bool)0;
    bool local_8 = (bool)0;
    bool local_9 = (bool)0;

    while(true) {
        const bool _e4 = wants_page();
        const bool _e5 = WaveActiveAnyTrue(_e4);
        if (_e5) {
            own_pages();
        }
        const uint _e6 = next_turn();
        note_turn(_e6);
        bool _e8 = goes;
        if (_e8) {
            local_6 = (_e6 != IDLE);
        } else {
            local_6 = false;
        }
        bool _e14 = local_6;
        const uint _e16 = WaveActiveMax((_e14 ? _e6 : 0u));
        chosen = _e16;
        uint _e18 = held;
        if ((_e18 > 0u)) {
            uint _e23 = chosen;
            local_7 = (_e23 != 0u);
        } else {
            local_7 = false;
        }
        bool _e27 = local_7;
        if (_e27) {
            uint _e28 = held;
            held = (_e28 - 1u);
        } else {
            const bool _e33 = WaveActiveAnyTrue((_e6 != IDLE));
            if (!(_e33)) {
                break;
            }
            uint _e35 = chosen;
            if ((_e6 != _e35)) {
                local_8 = (_e6 != IDLE);
            } else {
                local_8 = false;
            }
            bool _e42 = local_8;
            const bool _e43 = WaveActiveAnyTrue(_e42);
            if (_e43) {
                const uint _e44 = choose(_e6);
                chosen = _e44;
            }
            held = HOLD;
        }
        uint _e46 = chosen;
        if ((_e6 == _e46)) {
            local_9 = (_e6 != IDLE);
        } else {
            local_9 = false;
        }
        bool _e53 = local_9;
        goes = _e53;
        uint _e56 = waited;
        bool _e60 = goes;
        waited = (_e60 ? 0u : (_e56 + 1u));
        bool _e62 = goes;
        if (_e62) {
            run_straight();
            uint _e64 = stop_1;
            if ((_e64 != RUNNING)) {
                park();
            }
        }
    }
    return;
}

void load_state()
{
    uint i_4 = 0u;

    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e13 = i_4;
            i_4 = (_e13 + 1u);
        }
        loop_init_5 = false;
        uint _e2 = i_4;
        if ((_e2 < X_SLOTS)) {
        } else {
            break;
        }
        {
            uint _e6 = i_4;
            uint _e9 = i_4;
            const uint64_t _e11 = get_wide((2u * _e9));
            x[_e6] = _e11;
        }
    }
    uint _e17 = state;
    uint flags = asuint(states.Load((_e17 + FLAGS_WORD)*4));
    flag_n = ((flags & 1u) != 0u);
    flag_z = ((flags & 256u) != 0u);
    flag_c = ((flags & 65536u) != 0u);
    flag_v = ((flags & 16777216u) != 0u);
    load_vectors();
    return;
}

void save_state(uint64_t counter)
{
    uint i_5 = 0u;

    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e14 = i_5;
            i_5 = (_e14 + 1u);
        }
        loop_init_6 = false;
        uint _e3 = i_5;
        if ((_e3 < X_SLOTS)) {
        } else {
            break;
        }
        {
            uint _e7 = i_5;
            uint _e10 = i_5;
            uint64_t _e12 = x[_e10];
            set_wide((2u * _e7), _e12);
        }
    }
    bool _e19 = flag_n;
    bool _e24 = flag_z;
    bool _e30 = flag_c;
    bool _e36 = flag_v;
    uint flags_1 = ((((_e19 ? 1u : 0u) | (_e24 ? 256u : 0u)) | (_e30 ? 65536u : 0u)) | (_e36 ? 16777216u : 0u));
    uint _e41 = state;
    states.Store((_e41 + FLAGS_WORD)*4, asuint(flags_1));
    set_wide(PC_WORD, counter);
    save_vectors();
    uint _e47 = stop_1;
    if ((_e47 >= FIRST_EXCEPTION)) {
        uint _e52 = state;
        states.Store((_e52 + EXCLUSIVE_LEN_WORD)*4, asuint(0u));
        return;
    } else {
        return;
    }
}

uint64_t start(Status status)
{
    uint64_t budget = (uint64_t)0;

    uint _e3 = lane;
    state = (_e3 * STATE_WORDS);
    load_state();
    budget = (uint64_t(status.budget_low) | (uint64_t(status.budget_high) << 32u));
    uint _e16 = arguments.begins;
    if ((_e16 != 0u)) {
        uint _e21 = arguments.max_cycles_low;
        uint _e25 = arguments.max_cycles_high;
        budget = (uint64_t(_e21) | (uint64_t(_e25) << 32u));
    }
    uint64_t _e30 = budget;
    uint _e33 = arguments.share;
    uint fuel = uint(min(_e30, uint64_t(_e33)));
    count = ((uint64_t(status.count_low) | (uint64_t(status.count_high) << 32u)) + uint64_t(fuel));
    stop_1 = RUNNING;
    start_code();
    uint _e51 = base;
    at = _e51;
    uint _e54 = at;
    limit = (_e54 + fuel);
    const uint64_t _e57 = get_wide(PC_WORD);
    branch_far(_e57);
    uint _e59 = stop_1;
    if ((_e59 != RUNNING)) {
        park();
    }
    uint64_t _e62 = budget;
    return (_e62 - uint64_t(fuel));
}

void finish(uint64_t rest_1)
{
    bool local_10 = (bool)0;
    bool local_11 = (bool)0;

    uint _e2 = at;
    const uint64_t _e3 = address_of(_e2);
    uint64_t _e5 = detail;
    uint _e7 = stop_1;
    uint64_t counter_1 = ((_e7 == NO_CODE) ? _e5 : _e3);
    uint _e12 = left;
    uint64_t budget_1 = (rest_1 + uint64_t(_e12));
    if ((budget_1 == 0uL)) {
        uint _e20 = stop_1;
        if (!((_e20 == RUNNING))) {
            uint _e27 = stop_1;
            local_11 = (_e27 == NO_CODE);
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
    save_state(counter_1);
    uint64_t _e37 = count;
    uint _e39 = left;
    uint64_t total = (_e37 - uint64_t(_e39));
    uint _e44 = lane;
    uint _e47 = asuint(statuses.Load(0+_e44*32));
    uint _e51 = lane;
    uint _e54 = asuint(statuses.Load(4+_e51*32));
    uint64_t before = (uint64_t(_e47) | (uint64_t(_e54) << 32u));
    uint _e61 = lane;
    statuses.Store(0+_e61*32, asuint(uint(total)));
    uint _e67 = lane;
    statuses.Store(4+_e67*32, asuint(uint((total >> 32u))));
    uint _e75 = lane;
    statuses.Store(8+_e75*32, asuint(uint(budget_1)));
    uint _e81 = lane;
    statuses.Store(12+_e81*32, asuint(uint((budget_1 >> 32u))));
    uint _e89 = lane;
    uint64_t _e93 = detail;
    statuses.Store(16+_e89*32, asuint(uint(_e93)));
    uint _e97 = lane;
    uint64_t _e101 = detail;
    statuses.Store(20+_e97*32, asuint(uint((_e101 >> 32u))));
    uint _e107 = lane;
    uint _e111 = stop_1;
    statuses.Store(24+_e107*32, asuint(_e111));
    uint done = uint((total - before));
    uint _e116; pool.InterlockedAdd(12, done, _e116);
    if (((_e116 + done) < _e116)) {
        uint _e122; pool.InterlockedAdd(16, 1u, _e122);
    }
    uint _e124 = stop_1;
    if ((_e124 != RUNNING)) {
        uint _e131; pool.InterlockedAdd(4, 1u, _e131);
        uint _e134 = lane;
        stopped.Store(_e131*4, asuint(_e134));
        return;
    } else {
        note_place();
        return;
    }
}

bool can_run(uint stop)
{
    bool local_12 = (bool)0;
    bool local_13 = (bool)0;
    bool local_14 = (bool)0;
    bool local_15 = (bool)0;
    bool local_16 = (bool)0;
    bool local_17 = (bool)0;

    if (!((stop == RUNNING))) {
        local_12 = (stop == NO_CODE);
    } else {
        local_12 = true;
    }
    bool _e9 = local_12;
    if (!(_e9)) {
        local_13 = (stop == NO_FRAME);
    } else {
        local_13 = true;
    }
    bool _e16 = local_13;
    if (!(_e16)) {
        local_14 = (stop == CODE_WRITE);
    } else {
        local_14 = true;
    }
    bool _e23 = local_14;
    if (!(_e23)) {
        local_15 = (stop == NO_HANDLER);
    } else {
        local_15 = true;
    }
    bool _e30 = local_15;
    if (!(_e30)) {
        if ((stop > NO_PAGE_STOP)) {
            local_17 = (stop <= 11u);
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

Status ConstructStatus(uint arg0, uint arg1, uint arg2, uint arg3, uint arg4, uint arg5, uint arg6, uint arg7) {
    Status ret = (Status)0;
    ret.count_low = arg0;
    ret.count_high = arg1;
    ret.budget_low = arg2;
    ret.budget_high = arg3;
    ret.detail_low = arg4;
    ret.detail_high = arg5;
    ret.stop = arg6;
    ret.unused = arg7;
    return ret;
}

[numthreads(64, 1, 1)]
void run(ComputeInput_run computeinput_run)
{
    uint3 group = computeinput_run.group_1;
    uint3 groups = computeinput_run.groups_1;
    uint subgroup = computeinput_run.local_invocation_index / WaveGetLaneCount();
    uint size = WaveGetLaneCount();
    uint invocation = WaveGetLaneIndex();
    bool runs = false;
    uint64_t rest = 0uL;
    bool local = (bool)0;

    place_19 = invocation;
    uint _e17 = place_19;
    lane = ((((group.x + (group.y * groups.x)) * WORKGROUP) + (subgroup * size)) + _e17);
    at = 0u;
    limit = 0u;
    waited = 0u;
    left = 0u;
    start_memory();
    uint _e32 = lane;
    uint _e35 = arguments.lanes;
    if ((_e32 < _e35)) {
        uint _e39 = lane;
        Status status_1 = ConstructStatus(asuint(statuses.Load(_e39*32+0)), asuint(statuses.Load(_e39*32+4)), asuint(statuses.Load(_e39*32+8)), asuint(statuses.Load(_e39*32+12)), asuint(statuses.Load(_e39*32+16)), asuint(statuses.Load(_e39*32+20)), asuint(statuses.Load(_e39*32+24)), asuint(statuses.Load(_e39*32+28)));
        uint _e44 = arguments.begins;
        if (!((_e44 != 0u))) {
            const bool _e51 = can_run(status_1.stop);
            local = _e51;
        } else {
            local = true;
        }
        bool _e53 = local;
        runs = _e53;
        bool _e54 = runs;
        if (_e54) {
            const uint64_t _e55 = start(status_1);
            rest = _e55;
        }
    }
    run_subgroup();
    bool _e56 = runs;
    if (_e56) {
        uint64_t _e57 = rest;
        finish(_e57);
    }
    uint _e59 = lane;
    uint _e62 = arguments.lanes;
    if ((_e59 < _e62)) {
        uint _e67; pool.InterlockedAdd(20, 1u, _e67);
        return;
    } else {
        return;
    }
}
