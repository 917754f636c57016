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
    uint next;
    uint stopped;
    uint lock;
    uint executed_low;
    uint executed_high;
};

struct _atomic_compare_exchange_result_Uint_8_ {
    uint64_t old_value;
    bool exchanged;
    int _end_pad_0;
};

struct Pair {
    uint64_t low;
    uint64_t high;
};

static const uint WORKGROUP = 64u;
static const uint STATE_WORDS = 86u;
static const uint X_SLOTS = 34u;
static const uint PC_WORD = 68u;
static const uint FLAGS_WORD = 85u;
static const uint EXCLUSIVE_LEN_WORD = 84u;
static const uint PAGES = 256u;
static const uint GROUP = 32u;
static const uint RUNNING = 0u;
static const uint MAX_CYCLES = 1u;
static const uint NO_CODE = 2u;
static const uint UNDEFINED = 3u;
static const uint BREAKPOINT = 4u;
static const uint CODE_WRITE = 5u;
static const uint NO_FRAME = 6u;
static const uint EXIT = 16u;
static const uint64_t SIZE = 1048576uL;

cbuffer arguments : register(b0) { Arguments arguments; }
RWByteAddressBuffer states : register(u1);
RWByteAddressBuffer statuses : register(u2);
RWByteAddressBuffer stopped : register(u3);
RWByteAddressBuffer pool : register(u4);
ByteAddressBuffer records : register(t5);
ByteAddressBuffer code_map : register(t6);
static uint lane = (uint)0;
static uint state = (uint)0;
static uint64_t x[34] = (uint64_t[34])0;
static bool flag_n = (bool)0;
static bool flag_z = (bool)0;
static bool flag_c = (bool)0;
static bool flag_v = (bool)0;
static uint at = (uint)0;
static uint64_t goal = (uint64_t)0;
static bool jumped = (bool)0;
static uint64_t count = (uint64_t)0;
static uint done = (uint)0;
static uint stop = (uint)0;
static uint64_t detail = (uint64_t)0;
static bool completed = (bool)0;
static bool again = (bool)0;
RWByteAddressBuffer memory : register(u7);

uint64_t code_start()
{
    uint _e2 = arguments.code_start_low;
    uint _e6 = arguments.code_start_high;
    return (uint64_t(_e2) | (uint64_t(_e6) << 32u));
}

uint64_t pc()
{
    const uint64_t _e0 = code_start();
    uint _e2 = at;
    return (_e0 + (uint64_t(_e2) << 2u));
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

uint64_t load_word(uint word_2)
{
    uint64_t _e3; memory.InterlockedOr(word_2*8, 0, _e3);
    return _e3;
}

void store_word(uint word_3, uint64_t value_1, uint64_t mask)
{
    uint64_t old = (uint64_t)0;

    if ((mask == 18446744073709551615uL)) {
        { uint64_t dummy = 0; memory.InterlockedExchange(word_3*8, value_1, dummy); }
        return;
    }
    uint64_t _e9; memory.InterlockedOr(word_3*8, 0, _e9);
    old = _e9;
    while(true) {
        uint64_t _e13 = old;
        uint64_t _e14 = old;
        _atomic_compare_exchange_result_Uint_8_ _e18; memory.InterlockedCompareExchange64(word_3*8, _e13, ((_e14 & ~(mask)) | value_1), _e18.old_value);
        _e18.exchanged = (_e18.old_value == _e13);
        if (_e18.exchanged) {
            break;
        }
        old = _e18.old_value;
    }
    return;
}

bool own(uint64_t addr, uint len)
{
    return true;
}

uint64_t low_bits(uint bits)
{
    return (18446744073709551615uL >> (64u - bits));
}

uint64_t cas(uint64_t addr_1, uint bits_1, uint64_t expected, uint64_t wanted)
{
    uint64_t old_1 = (uint64_t)0;

    uint word_4 = uint((addr_1 >> 3u));
    uint shift = ((uint(addr_1) & 7u) * 8u);
    const uint64_t _e12 = low_bits(bits_1);
    uint64_t mask_1 = (_e12 << shift);
    uint64_t _e16; memory.InterlockedOr(word_4*8, 0, _e16);
    old_1 = _e16;
    while(true) {
        uint64_t _e18 = old_1;
        if ((((_e18 & mask_1) >> shift) != expected)) {
            break;
        }
        uint64_t _e24 = old_1;
        uint64_t _e25 = old_1;
        _atomic_compare_exchange_result_Uint_8_ _e30; memory.InterlockedCompareExchange64(word_4*8, _e24, ((_e25 & ~(mask_1)) | (wanted << shift)), _e30.old_value);
        _e30.exchanged = (_e30.old_value == _e24);
        if (_e30.exchanged) {
            break;
        }
        old_1 = _e30.old_value;
    }
    uint64_t _e33 = old_1;
    return ((_e33 & mask_1) >> shift);
}

int64_t signed_(uint bits_2, uint64_t value_2)
{
    uint shift_1 = (64u - bits_2);
    return ((value_2 << shift_1) >> shift_1);
}

uint64_t modified(uint op, uint bits_3, uint64_t old_2, uint64_t value_3)
{
    switch(op) {
        case 0u: {
            const uint64_t _e5 = low_bits(bits_3);
            return ((old_2 + value_3) & _e5);
        }
        case 1u: {
            return (old_2 & value_3);
        }
        case 2u: {
            return (old_2 | value_3);
        }
        case 3u: {
            return (old_2 ^ value_3);
        }
        case 4u: {
            return value_3;
        }
        case 5u: {
            const int64_t _e10 = signed_(bits_3, old_2);
            const int64_t _e11 = signed_(bits_3, value_3);
            return ((_e10 > _e11) ? old_2 : value_3);
        }
        case 6u: {
            const int64_t _e14 = signed_(bits_3, old_2);
            const int64_t _e15 = signed_(bits_3, value_3);
            return ((_e14 < _e15) ? old_2 : value_3);
        }
        case 7u: {
            return ((old_2 > value_3) ? old_2 : value_3);
        }
        default: {
            return ((old_2 < value_3) ? old_2 : value_3);
        }
    }
}

uint64_t rmw(uint op_1, uint64_t addr_2, uint bits_4, uint64_t value_4)
{
    uint64_t old_3 = (uint64_t)0;

    uint word_5 = uint((addr_2 >> 3u));
    uint shift_2 = ((uint(addr_2) & 7u) * 8u);
    const uint64_t _e12 = low_bits(bits_4);
    uint64_t mask_2 = (_e12 << shift_2);
    uint64_t _e16; memory.InterlockedOr(word_5*8, 0, _e16);
    old_3 = _e16;
    while(true) {
        uint64_t _e18 = old_3;
        const uint64_t _e21 = modified(op_1, bits_4, ((_e18 & mask_2) >> shift_2), value_4);
        uint64_t _e24 = old_3;
        uint64_t _e25 = old_3;
        _atomic_compare_exchange_result_Uint_8_ _e30; memory.InterlockedCompareExchange64(word_5*8, _e24, ((_e25 & ~(mask_2)) | (_e21 << shift_2)), _e30.old_value);
        _e30.exchanged = (_e30.old_value == _e24);
        if (_e30.exchanged) {
            break;
        }
        old_3 = _e30.old_value;
    }
    uint64_t _e33 = old_3;
    return ((_e33 & mask_2) >> shift_2);
}

Pair ConstructPair(uint64_t arg0, uint64_t arg1) {
    Pair ret = (Pair)0;
    ret.low = arg0;
    ret.high = arg1;
    return ret;
}

Pair cas_pair(uint64_t addr_3, uint64_t e_low, uint64_t e_high, uint64_t n_low, uint64_t n_high)
{
    Pair old_4 = (Pair)0;
    bool local_5 = (bool)0;

    uint word_6 = uint((addr_3 >> 3u));
    while(true) {
        uint _e12; pool.InterlockedExchange(8, 1u, _e12);
        if ((_e12 == 0u)) {
            uint64_t _e17; memory.InterlockedOr(word_6*8, 0, _e17);
            uint64_t _e22; memory.InterlockedOr((word_6 + 1u)*8, 0, _e22);
            old_4 = ConstructPair(_e17, _e22);
            uint64_t _e25 = old_4.low;
            if ((_e25 == e_low)) {
                uint64_t _e30 = old_4.high;
                local_5 = (_e30 == e_high);
            } else {
                local_5 = false;
            }
            bool _e33 = local_5;
            if (_e33) {
                { uint64_t dummy_1 = 0; memory.InterlockedExchange(word_6*8, n_low, dummy_1); }
                { uint64_t dummy_2 = 0; memory.InterlockedExchange((word_6 + 1u)*8, n_high, dummy_2); }
            }
            { uint dummy_3 = 0; pool.InterlockedExchange(8, 0u, dummy_3); }
            break;
        }
    }
    Pair _e43 = old_4;
    const Pair pair = _e43;
    return pair;
}

uint64_t load(uint64_t addr_4, uint bits_5)
{
    uint64_t value_5 = (uint64_t)0;

    uint word_7 = uint((addr_4 >> 3u));
    uint shift_3 = ((uint(addr_4) & 7u) * 8u);
    const uint64_t _e10 = load_word(word_7);
    value_5 = (_e10 >> shift_3);
    if (((shift_3 + bits_5) > 64u)) {
        uint64_t _e16 = value_5;
        const uint64_t _e19 = load_word((word_7 + 1u));
        value_5 = (_e16 | (_e19 << (64u - shift_3)));
    }
    uint64_t _e24 = value_5;
    const uint64_t _e25 = low_bits(bits_5);
    return (_e24 & _e25);
}

void store(uint64_t addr_5, uint bits_6, uint64_t value_6)
{
    uint word_8 = uint((addr_5 >> 3u));
    uint shift_4 = ((uint(addr_5) & 7u) * 8u);
    const uint64_t _e12 = low_bits(bits_6);
    store_word(word_8, (value_6 << shift_4), (_e12 << shift_4));
    if (((shift_4 + bits_6) > 64u)) {
        uint rest = (64u - shift_4);
        const uint64_t _e22 = low_bits(bits_6);
        store_word((word_8 + 1u), (value_6 >> rest), (_e22 >> rest));
        return;
    } else {
        return;
    }
}

bool may_read(uint64_t addr_6, uint len_1, uint fault)
{
    if ((addr_6 > (SIZE - uint64_t(len_1)))) {
        stop = fault;
        detail = ((addr_6 > SIZE) ? addr_6 : SIZE);
        return false;
    }
    return true;
}

bool is_code(uint64_t addr_7, uint len_2)
{
    const uint64_t _e2 = code_start();
    uint64_t offset = (addr_7 - (_e2 - 64uL));
    uint _e8 = arguments.code_len;
    if ((offset >= (uint64_t(_e8) + 128uL))) {
        return false;
    }
    uint first = (uint(offset) >> 6u);
    uint last = (((uint(offset) + len_2) - 1u) >> 6u);
    uint _e27 = asuint(code_map.Load((first >> 5u)*4));
    uint _e35 = asuint(code_map.Load((last >> 5u)*4));
    uint bits_7 = ((_e27 >> (first & 31u)) | (_e35 >> (last & 31u)));
    return ((bits_7 & 1u) != 0u);
}

bool may_write(uint64_t addr_8, uint len_3, uint fault_1)
{
    const bool _e3 = may_read(addr_8, len_3, fault_1);
    if (!(_e3)) {
        return false;
    }
    const bool _e6 = is_code(addr_8, len_3);
    if (_e6) {
        stop = CODE_WRITE;
        detail = addr_8;
        return false;
    }
    const bool _e11 = own(addr_8, len_3);
    return _e11;
}

void h3_(uint4 w)
{
    uint v16_ = ((w.x >> 16u) & 255u);
    uint v26_ = ((w.x >> 24u) & 255u);
    uint64_t v5_ = (uint64_t(w.z) | (uint64_t(w.w) << 32u));
    uint64_t v17_ = x[v16_];
    uint64_t v18_ = (v17_ + v5_);
    x[v26_] = v18_;
    return;
}

void h4_(uint4 w_1)
{
    uint v16_1 = ((w_1.x >> 16u) & 255u);
    uint v27_ = ((w_1.x >> 24u) & 255u);
    uint64_t v5_1 = (uint64_t(w_1.z) | (uint64_t(w_1.w) << 32u));
    uint64_t v17_1 = x[v16_1];
    uint64_t v18_1 = (v17_1 - v5_1);
    bool v20_ = (v18_1 < 0uL);
    bool v21_ = (v18_1 == 0uL);
    bool v22_ = (v5_1 <= v17_1);
    uint64_t v28_ = (v17_1 - v5_1);
    uint64_t v29_ = (v17_1 ^ v28_);
    uint64_t v30_ = (v5_1 ^ v17_1);
    uint64_t v31_ = (v29_ & v30_);
    bool v23_ = (v31_ < 0uL);
    flag_n = v20_;
    flag_z = v21_;
    flag_c = v22_;
    flag_v = v23_;
    x[v27_] = v18_1;
    return;
}

void h5_(uint4 w_2)
{
    uint64_t v12_ = (uint64_t(w_2.z) | (uint64_t(w_2.w) << 32u));
    const uint64_t _e8 = code_start();
    uint _e10 = at;
    uint64_t v0_ = (_e8 + (uint64_t(_e10) << 2u));
    uint64_t v33_ = (v0_ + 4uL);
    bool v15_ = flag_z;
    bool v30_1 = !(v15_);
    uint64_t v34_ = (v30_1 ? v12_ : v33_);
    goal = v34_;
    jumped = true;
    return;
}

void h6_(uint4 w_3)
{
    uint v7_ = ((w_3.x >> 16u) & 255u);
    uint v24_ = ((w_3.x >> 24u) & 255u);
    uint64_t v15_1 = (uint64_t(w_3.z) | (uint64_t(w_3.w) << 32u));
    uint64_t v8_ = x[v7_];
    uint64_t v16_2 = (v8_ + v15_1);
    const bool _e24 = may_read(v16_2, 4u, 32u);
    if (!(_e24)) {
        return;
    }
    const uint64_t _e27 = load(v16_2, 32u);
    uint v18_2 = uint(_e27);
    uint64_t v19_ = uint64_t(v18_2);
    x[v24_] = v19_;
    return;
}

void h7_(uint4 w_4)
{
    uint v7_1 = ((w_4.x >> 16u) & 255u);
    uint v18_3 = ((w_4.x >> 24u) & 255u);
    uint64_t v15_2 = (uint64_t(w_4.z) | (uint64_t(w_4.w) << 32u));
    uint64_t v8_1 = x[v7_1];
    uint64_t v16_3 = (v8_1 + v15_2);
    uint64_t v19_1 = x[v18_3];
    const bool _e27 = may_write(v16_3, 8u, 33u);
    if (!(_e27)) {
        return;
    }
    store(v16_3, 64u, uint64_t(v19_1));
    return;
}

void h8_(uint4 w_5)
{
    uint v4_ = ((w_5.x >> 16u) & 255u);
    uint v11_ = ((w_5.x >> 24u) & 255u);
    uint v22_1 = ((w_5.y >> 0u) & 255u);
    uint64_t v5_2 = x[v4_];
    uint64_t v12_1 = x[v11_];
    uint64_t v14_ = (v12_1 & 7uL);
    bool v16_4 = (v14_ != 0uL);
    if (v16_4) {
        stop = 20u;
        detail = v12_1;
        completed = false;
        return;
    }
    const bool _e33 = may_write(v12_1, 8u, 34u);
    if (!(_e33)) {
        return;
    }
    const uint64_t _e38 = rmw(0u, v12_1, 64u, uint64_t(v5_2));
    x[v22_1] = _e38;
    return;
}

void h9_(uint4 w_6)
{
    uint v4_1 = ((w_6.x >> 16u) & 255u);
    uint v11_1 = ((w_6.x >> 24u) & 255u);
    uint64_t v5_3 = x[v4_1];
    uint64_t v13_ = (v5_3 >> 32u);
    uint v14_1 = uint(v5_3);
    uint v15_3 = uint(v13_);
    uint v16_5 = (31u - firstbithigh(v14_1));
    uint v17_2 = (31u - firstbithigh(v15_3));
    uint v19_2 = (v16_5 + 32u);
    bool v21_1 = (v15_3 == 0u);
    uint v22_2 = (v21_1 ? v19_2 : v17_2);
    uint64_t v6_ = uint64_t(v22_2);
    x[v11_1] = v6_;
    return;
}

void dispatch(uint4 w_7)
{
    switch((w_7.x & 65535u)) {
        case 0u: {
            stop = NO_CODE;
            const uint64_t _e7 = pc();
            detail = _e7;
            return;
        }
        case 1u: {
            stop = UNDEFINED;
            detail = (uint64_t(w_7.z) | (uint64_t(w_7.w) << 32u));
            return;
        }
        case 2u: {
            stop = BREAKPOINT;
            detail = 0uL;
            return;
        }
        case 3u: {
            h3_(w_7);
            return;
        }
        case 4u: {
            h4_(w_7);
            return;
        }
        case 5u: {
            h5_(w_7);
            return;
        }
        case 6u: {
            h6_(w_7);
            return;
        }
        case 7u: {
            h7_(w_7);
            return;
        }
        case 8u: {
            h8_(w_7);
            return;
        }
        case 9u: {
            h9_(w_7);
            return;
        }
        default: {
            stop = NO_CODE;
            const uint64_t _e25 = pc();
            detail = _e25;
            return;
        }
    }
}

void jump()
{
    bool local_6 = (bool)0;

    jumped = false;
    uint64_t _e3 = goal;
    const uint64_t _e4 = code_start();
    uint64_t offset_1 = (_e3 - _e4);
    uint _e8 = arguments.code_len;
    if (!((offset_1 >= uint64_t(_e8)))) {
        local_6 = ((offset_1 & 3uL) != 0uL);
    } else {
        local_6 = true;
    }
    bool _e19 = local_6;
    if (_e19) {
        stop = NO_CODE;
        uint64_t _e24 = goal;
        detail = _e24;
        return;
    }
    at = uint((offset_1 >> 2u));
    return;
}

void load_state()
{
    uint i = 0u;

    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e13 = i;
            i = (_e13 + 1u);
        }
        loop_init = false;
        uint _e2 = i;
        if ((_e2 < X_SLOTS)) {
        } else {
            break;
        }
        {
            uint _e6 = i;
            uint _e9 = i;
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
    const uint64_t _e44 = get_wide(PC_WORD);
    goal = _e44;
    return;
}

void save_state(uint64_t counter)
{
    uint i_1 = 0u;
    bool local_7 = (bool)0;

    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e14 = i_1;
            i_1 = (_e14 + 1u);
        }
        loop_init_1 = false;
        uint _e3 = i_1;
        if ((_e3 < X_SLOTS)) {
        } else {
            break;
        }
        {
            uint _e7 = i_1;
            uint _e10 = i_1;
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
    uint _e47 = stop;
    if (!((_e47 == UNDEFINED))) {
        uint _e54 = stop;
        local_7 = (_e54 >= EXIT);
    } else {
        local_7 = true;
    }
    bool _e58 = local_7;
    if (_e58) {
        uint _e61 = state;
        states.Store((_e61 + EXCLUSIVE_LEN_WORD)*4, asuint(0u));
        return;
    } else {
        return;
    }
}

void finish(uint64_t budget)
{
    bool local_8 = (bool)0;
    bool local_9 = (bool)0;

    const uint64_t _e1 = pc();
    uint64_t _e3 = detail;
    uint _e5 = stop;
    uint64_t counter_1 = ((_e5 == NO_CODE) ? _e3 : _e1);
    if ((budget == 0uL)) {
        uint _e14 = stop;
        if (!((_e14 == RUNNING))) {
            uint _e21 = stop;
            local_9 = (_e21 == NO_CODE);
        } else {
            local_9 = true;
        }
        bool _e25 = local_9;
        local_8 = _e25;
    } else {
        local_8 = false;
    }
    bool _e27 = local_8;
    if (_e27) {
        stop = MAX_CYCLES;
    }
    save_state(counter_1);
    uint64_t _e31 = count;
    uint _e33 = done;
    uint64_t total = (_e31 + uint64_t(_e33));
    uint _e38 = lane;
    statuses.Store(0+_e38*32, asuint(uint(total)));
    uint _e44 = lane;
    statuses.Store(4+_e44*32, asuint(uint((total >> 32u))));
    uint _e52 = lane;
    statuses.Store(8+_e52*32, asuint(uint(budget)));
    uint _e58 = lane;
    statuses.Store(12+_e58*32, asuint(uint((budget >> 32u))));
    uint _e66 = lane;
    uint64_t _e70 = detail;
    statuses.Store(16+_e66*32, asuint(uint(_e70)));
    uint _e74 = lane;
    uint64_t _e78 = detail;
    statuses.Store(20+_e74*32, asuint(uint((_e78 >> 32u))));
    uint _e84 = lane;
    uint _e88 = stop;
    statuses.Store(24+_e84*32, asuint(_e88));
    uint _e92 = done;
    uint _e93; pool.InterlockedAdd(12, _e92, _e93);
    uint _e95 = done;
    if (((_e93 + _e95) < _e93)) {
        uint _e101; pool.InterlockedAdd(16, 1u, _e101);
    }
    uint _e103 = stop;
    if ((_e103 != RUNNING)) {
        uint _e110; pool.InterlockedAdd(4, 1u, _e110);
        uint _e113 = lane;
        stopped.Store(_e110*4, asuint(_e113));
        return;
    } else {
        return;
    }
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
    ret.records = arg7;
    return ret;
}

[numthreads(64, 1, 1)]
void run(uint3 id : SV_DispatchThreadID, uint3 groups : SV_GroupID)
{
    bool local = (bool)0;
    bool local_1 = (bool)0;
    bool local_2 = (bool)0;
    bool local_3 = (bool)0;
    bool local_4 = (bool)0;

    lane = (id.x + ((id.y * groups.x) * WORKGROUP));
    uint _e11 = lane;
    uint _e14 = arguments.lanes;
    if ((_e11 >= _e14)) {
        return;
    }
    uint _e18 = lane;
    Status status = ConstructStatus(asuint(statuses.Load(_e18*32+0)), asuint(statuses.Load(_e18*32+4)), asuint(statuses.Load(_e18*32+8)), asuint(statuses.Load(_e18*32+12)), asuint(statuses.Load(_e18*32+16)), asuint(statuses.Load(_e18*32+20)), asuint(statuses.Load(_e18*32+24)), asuint(statuses.Load(_e18*32+28)));
    if (!((status.stop == NO_CODE))) {
        local = (status.stop == NO_FRAME);
    } else {
        local = true;
    }
    bool _e31 = local;
    if (!(_e31)) {
        local_1 = (status.stop == CODE_WRITE);
    } else {
        local_1 = true;
    }
    bool for_host = local_1;
    if ((status.stop != RUNNING)) {
        local_2 = !(for_host);
    } else {
        local_2 = false;
    }
    bool _e47 = local_2;
    if (_e47) {
        return;
    }
    uint _e50 = lane;
    state = (_e50 * STATE_WORDS);
    load_state();
    count = (uint64_t(status.count_low) | (uint64_t(status.count_high) << 32u));
    uint64_t budget_1 = (uint64_t(status.budget_low) | (uint64_t(status.budget_high) << 32u));
    uint _e70 = arguments.share;
    uint fuel = uint(min(budget_1, uint64_t(_e70)));
    stop = RUNNING;
    done = 0u;
    jump();
    while(true) {
        uint _e79 = stop;
        if ((_e79 == RUNNING)) {
            uint _e85 = done;
            local_3 = (_e85 < fuel);
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
            if (((_e90 * 4u) >= _e95)) {
                stop = NO_CODE;
                const uint64_t _e100 = pc();
                detail = _e100;
                break;
            }
            completed = false;
            again = false;
            uint _e108 = at;
            uint4 _e111 = asuint(records.Load4((status.records + _e108)*16));
            dispatch(_e111);
            bool _e113 = again;
            if (_e113) {
                continue;
            }
            uint _e115 = stop;
            if ((_e115 != RUNNING)) {
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
            done = (_e127 + 1u);
            bool _e130 = jumped;
            if (_e130) {
                jump();
            } else {
                uint _e133 = at;
                at = (_e133 + 1u);
            }
        }
    }
    uint _e136 = done;
    finish((budget_1 - uint64_t(_e136)));
    return;
}
