"""What the guests compute, in Python and without their code.

Numbers in single and double precision are computed operation by operation as
in the guests, as the results depend on every bit of them; check_models()
compares these models with what is known of the results.
"""

import functools
import hashlib
import json
import math
import struct
import zlib

MASK = (1 << 64) - 1
MIX_START = 0xCBF29CE484222325


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31

    def bytes(self, count):
        return b"".join(struct.pack("<Q", self.next()) for _ in range(count // 8))


def mix(values, hash=MIX_START):
    for value in values:
        hash = (hash ^ value) * 0x100000001B3 & MASK
    return hash


def sha256(seed, iterations):
    digest = hashlib.sha256(Random(seed).bytes(64 * iterations)).digest()
    return int.from_bytes(digest[:8], "big")


def sort(seed, iterations):
    random = Random(seed)
    hash = MIX_START
    for _ in range(iterations):
        hash = mix(sorted(random.next() & 0xFFFFFFFF for _ in range(1000)), hash)
    return hash


def crc32(seed, iterations):
    buffer = Random(seed).bytes(4096)
    return zlib.crc32(buffer * iterations)


def strsearch(seed, iterations):
    random = Random(seed)
    text = bytearray()
    while len(text) < 8192:
        digits = f"{random.next():016x}"
        text += bytes(ord("a") + int(d, 16) for d in reversed(digits))
    hash = MIX_START
    for _ in range(iterations):
        for index, length in enumerate((3, 4, 6, 10, 18, 32)):
            start = random.next() % (len(text) - length)
            needle = text[start:start + length]
            if index % 2:
                needle[length // 2] ^= 1
            found = [i for i in range(len(text)) if text.startswith(needle, i)]
            hash = mix(found + [len(found)], hash)
    return hash


def matmul(seed, iterations):
    random = Random(seed)
    a, b = ([[random.next() & 0xFFFFFFFF for _ in range(32)] for _ in range(32)]
            for _ in range(2))
    columns = list(zip(*b))
    for _ in range(iterations):
        c = [[sum(x * y for x, y in zip(row, column)) & MASK for column in columns]
             for row in a]
        a = [[(x >> 32 ^ x) & 0xFFFFFFFF for x in row] for row in c]
    return mix(x for row in a for x in row)


def loop(start, iterations):
    return (start + iterations) & MASK


def collatz(first, iterations):
    steps = 0
    for n in range(first, first + iterations):
        while n > 1:
            n = n // 2 if n % 2 == 0 else (3 * n + 1) & MASK
            steps += 1
    return steps


def reset(seed, _iterations):
    multiplier = 0x79B99E377F4B
    page = bytearray(72)
    hash = seed ^ multiplier
    for left in range(58, 0, -1):
        hash = hash * multiplier & MASK
        hash ^= hash >> 29
        slot = hash & 0x38
        total = (int.from_bytes(page[slot:slot + 8], "little") + hash) & MASK
        page[slot:slot + 8] = total.to_bytes(8, "little")
        hash = (hash >> 17 | hash << 47) & MASK
        bits = total >> 5 & 0xFFFF
        hash = hash + bits & MASK if total & 8 else (hash ^ total) - bits & MASK
        page[bits & 0x3F] = left
        hash = hash + (hash > total) & MASK
    first, last = (int.from_bytes(page[i:i + 8], "little") for i in (0, 56))
    hash = (hash ^ first) + last & MASK
    hash = (hash ^ hash >> 32) * multiplier & MASK
    return hash ^ hash >> 31


def mandelbrot(row, width, height, limit, re, im, scale):
    """The sum of a row's counts, and checksums of both its buffers."""
    im -= (2 * row + 1 - height) * scale >> 1
    counts, squares = [], []
    for column in range(width):
        c = re + ((1 - width) * scale >> 1) + column * scale
        x = y = n = 0
        while True:
            xx, yy, xy = x * x >> 64, y * y >> 64, x * y >> 64
            if xx + yy > 4 << 56 or n == limit:
                break
            x, y = (xx - yy) * 16 + c, xy * 32 + im
            assert abs(x) < 8 << 60 and abs(y) < 8 << 60
            n += 1
        counts.append(n)
        squares.append(xx + yy >> 48)
    unused = [0] * (4096 - width)
    return sum(counts), mix(counts + unused), mix(squares + unused)


def bits64(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def bits32(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


SINGLE = struct.Struct("<f")


def single(value):
    """Rounds to single precision.

    What one operation on numbers in single precision gives in double
    precision rounds to the same as its exact result.
    """
    return SINGLE.unpack(SINGLE.pack(value))[0]


def fused32(a, b, c):
    """a * b + c in single precision, rounded once."""
    product = a * b  # exact
    total = product + c
    virtual = total - product
    error = (product - (total - virtual)) + (c - virtual)
    if error and not bits64(total) & 1:
        # Rounding to odd keeps what is needed to round once more.
        total = math.nextafter(total, math.copysign(math.inf, error))
    return single(total)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def random_single(random, unit):
    return single(float(signed(random.next()) >> 32)) * unit


# Positions (in astronomical units), velocities (per day), mass (the Sun's is 1).
PLANETS = [
    ((4.84143144246472090e+00, -1.16032004402742839e+00, -1.03622044471123109e-01),
     (1.66007664274403694e-03, 7.69901118419740425e-03, -6.90460016972063023e-05),
     9.54791938424326609e-04),
    ((8.34336671824457987e+00, 4.12479856412430479e+00, -4.03523417114321381e-01),
     (-2.76742510726411899e-03, 4.99852801234917238e-03, 2.30417297573763929e-05),
     2.85885980666130812e-04),
    ((1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01),
     (2.96460137564761618e-03, 2.37847173959480950e-03, -2.96589568540237556e-05),
     4.36624404335156298e-05),
    ((1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01),
     (2.68067772490389322e-03, 1.62824170038242295e-03, -9.51592254519715870e-05),
     5.15138902046611451e-05),
]


def solar_system(seed, steps):
    """The energy, and (position, velocity) of the Sun and its planets."""
    solar_mass = 4 * math.pi * math.pi
    scale = 1 + signed(seed * 0x9E3779B97F4A7C15 & MASK) * 2.0**-68
    masses = [solar_mass] + [mass * solar_mass for _, _, mass in PLANETS]
    at = [[0.0] * 3] + [list(position) for position, _, _ in PLANETS]
    v = [[v * 365.24 * scale for v in velocity] for _, velocity, _ in PLANETS]
    v.insert(0, [-sum((w[axis] * m for w, m in zip(v, masses[1:])), 0.0) / solar_mass
                 for axis in range(3)])
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]

    def apart(i, j):
        d = [a - b for a, b in zip(at[i], at[j])]
        return d, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]

    for _ in range(steps):
        for i, j in pairs:
            d, square = apart(i, j)
            pull = 0.01 / (square * math.sqrt(square))
            v[i] = [v - d * (masses[j] * pull) for v, d in zip(v[i], d)]
            v[j] = [v + d * (masses[i] * pull) for v, d in zip(v[j], d)]
        at = [[a + 0.01 * b for a, b in zip(x, y)] for x, y in zip(at, v)]

    energy = 0.0
    for i in range(5):
        energy += 0.5 * masses[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2])
        for j in range(i + 1, 5):
            energy -= masses[i] * masses[j] / math.sqrt(apart(i, j)[1])
    return energy, list(zip(at, v))


def nbody(seed, iterations):
    energy, bodies = solar_system(seed, iterations)
    values = [x for at, v in bodies for pair in zip(at, v) for x in pair]
    return mix(map(bits64, [energy] + values))


@functools.cache
def roots_of_unity(half):
    """exp(-i pi j / half) for all j, in single precision."""
    c, s = [None, 0.0], [None, -1.0]
    while len(c) < 8:
        c.append(math.sqrt((1 + c[-1]) / 2))
        s.append(s[-1] / (2 * c[-1]))
    roots = []
    for j in range(half):
        x, y = 1.0, 0.0
        for bit in range(half.bit_length() - 1):
            if j >> bit & 1:
                k = half.bit_length() - 1 - bit
                x, y = x * c[k] - y * s[k], x * s[k] + y * c[k]
        assert abs(complex(x, y) - math.e ** (-1j * math.pi * j / half)) < 1e-14
        roots.append((single(x), single(y)))
    return roots


def transform(signal):
    """The Fourier transform of (re, im) pairs, by halves."""
    if len(signal) == 1:
        return signal
    even, odd = transform(signal[::2]), transform(signal[1::2])
    low, high = [], []
    for (c, s), (x0, y0), (x1, y1) in zip(roots_of_unity(len(even)), even, odd):
        u = fused32(-s, y1, single(c * x1))
        v = fused32(s, x1, single(c * y1))
        low.append((single(x0 + u), single(y0 + v)))
        high.append((single(x0 - u), single(y0 - v)))
    return low + high


def fft(seed, iterations):
    random = Random(seed)
    signal = [(random_single(random, 2.0**-31), random_single(random, 2.0**-31))
              for _ in range(256)]
    for _ in range(iterations):
        spectrum = transform(signal)
        back = transform([(im, re) for re, im in spectrum])
        signal = [(re / 256, im / 256) for im, re in back]
    return mix(bits32(part) for value in signal for part in value)


def blur(seed, iterations):
    random = Random(seed)
    size = 128
    picture = [random.bytes(size) for _ in range(size)]
    for n in range(iterations):
        picture[n % size] = random.bytes(size)
        padded = [row[:1] + row + row[-1:] for row in picture]
        across = [[a + 2 * b + c for a, b, c in zip(row, row[1:], row[2:])]
                  for row in padded]
        across = across[:1] + across + across[-1:]
        picture = [bytes(a + 2 * b + c + 8 >> 4 for a, b, c in zip(*rows))
                   for rows in zip(across, across[1:], across[2:])]
    return mix(struct.unpack("<2048Q", b"".join(picture)))


def times(a, b):
    """The product in the field of AES."""
    product = 0
    while b:
        product ^= a * (b & 1)
        a, b = a << 1 ^ (a >> 7) * 0x11B, b >> 1
    return product


def make_sbox():
    for value in range(256):
        inverse = next((i for i in range(256) if times(value, i) == 1), 0)
        inverse |= inverse << 8  # so that shifts rotate
        yield (inverse ^ inverse >> 4 ^ inverse >> 5 ^ inverse >> 6 ^ inverse >> 7
               ^ 0x63) & 0xFF


SBOX = list(make_sbox())


class Aes:
    """AES-128 of FIPS 197, by the letter."""

    PRODUCTS = {factor: [times(factor, value) for value in range(256)]
                for factor in (1, 2, 3, 9, 11, 13, 14)}
    # Where each byte of a block comes from.
    SHIFT_ROWS = [(i + 4 * (i % 4)) % 16 for i in range(16)]
    INVERSE_SHIFT_ROWS = [(i - 4 * (i % 4)) % 16 for i in range(16)]

    def __init__(self, key):
        words = [key[i:i + 4] for i in range(0, 16, 4)]
        constant = 1
        while len(words) < 44:
            word = words[-1]
            if len(words) % 4 == 0:
                word = bytes(SBOX[b] for b in word[1:] + word[:1])
                word = bytes([word[0] ^ constant]) + word[1:]
                constant = times(constant, 2)
            words.append(bytes(a ^ b for a, b in zip(words[-4], word)))
        self.keys = [b"".join(words[i:i + 4]) for i in range(0, 44, 4)]

    @classmethod
    def mix_columns(cls, block, factors):
        tables = [cls.PRODUCTS[factor] for factor in factors]
        return [tables[0][block[i]]
                ^ tables[1][block[i & ~3 | i + 1 & 3]]
                ^ tables[2][block[i & ~3 | i + 2 & 3]]
                ^ tables[3][block[i & ~3 | i + 3 & 3]] for i in range(16)]

    def encrypt(self, block):
        block = xor(block, self.keys[0])
        for key in self.keys[1:]:
            block = [SBOX[block[i]] for i in self.SHIFT_ROWS]
            if key is not self.keys[-1]:
                block = self.mix_columns(block, (2, 3, 1, 1))
            block = xor(block, key)
        return block

    def decrypt(self, block):
        for key in self.keys[:0:-1]:
            block = xor(block, key)
            if key is not self.keys[-1]:
                block = self.mix_columns(block, (14, 11, 13, 9))
            block = [SBOX.index(block[i]) for i in self.INVERSE_SHIFT_ROWS]
        return xor(block, self.keys[0])


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def aes(seed, iterations):
    random = Random(seed)
    cipher = Aes(random.bytes(16))
    nonce = random.bytes(8)
    blocks = [random.bytes(16) for _ in range(64)]
    chain, counter = bytes(16), 0
    for _ in range(iterations):
        for i in range(64):
            blocks[i] = xor(blocks[i], cipher.encrypt(nonce + counter.to_bytes(8, "big")))
            counter += 1
        for i in range(64):
            blocks[i], chain = xor(cipher.decrypt(blocks[i]), chain), blocks[i]
    return mix(struct.unpack("<128Q", b"".join(blocks)))


def random_digits(random, count):
    return (str(1 + random.next() % 9) +
            "".join(str(random.next() % 10) for _ in range(count - 1)))


def json_number(random):
    bits = random.next()
    whole, fraction, exponent = [
        (1, 0, 0), (4, 0, 0), (3, 2, 0), (1, 6, 0),
        (1, 16, 0), (1, 16, 290), (21, 4, 0), (2, 0, 30),
    ][bits & 7]
    sign = "-" if bits >> 3 & 1 else ""
    if bits >> 4 & 7 == 0:
        return sign + str(1 << 53 | random.next() >> 11 | 1)
    text = sign + random_digits(random, whole)
    if fraction:
        text += "." + random_digits(random, fraction)
    if exponent:
        text += ("e-" if bits >> 7 & 1 else "E") + str(random.next() % (exponent + 1))
    return text


def json_record(random):
    bits = random.next()
    flag = ("true", "false", "null", "{}")[bits >> 4 & 3]
    values = ", ".join(json_number(random) for _ in range(4))
    return (f'{{"id": {bits >> 48}, "name": "na\\u00efve \\"{chr(97 + (bits & 15))}\\"\\n", '
            f'"flag": {flag},\n\t"values": [{values}]}}')


def json_guest(seed, iterations):
    """With Python's own reader and printer."""
    random = Random(seed)
    hash = MIX_START
    for _ in range(iterations):
        text = "[" + ",\n".join(json_record(random) for _ in range(2)) + "]\n"
        printed = json.dumps(json.loads(text, parse_int=float), separators=(",", ":"))
        hash = mix(printed.encode(), hash)
    return hash


def fmatmul(seed, iterations):
    random = Random(seed)
    a, b = ([[random_single(random, unit) for _ in range(64)] for _ in range(64)]
            for unit in (2.0**-32, 2.0**-31))
    columns = list(zip(*b))

    def fraction(row, column):
        total = 0.0
        for x, y in zip(row, column):
            total = fused32(x, y, total)
        return total - round(total)

    for _ in range(iterations):
        a = [[fraction(row, column) for column in columns] for row in a]
    return mix(bits32(x) for row in a for x in row)


MODELS = {
    "sha256": sha256,
    "sort": sort,
    "crc32": crc32,
    "strsearch": strsearch,
    "matmul": matmul,
    "loop": loop,
    "loop_store": loop,
    "collatz": collatz,
    "reset": reset,
    "nbody": nbody,
    "fft": fft,
    "blur": blur,
    "aes": aes,
    "json": json_guest,
    "fmatmul": fmatmul,
}


def check_models():
    """Compares models that say how to compute with what is known of the results."""
    for steps, energy in ((0, "-0.169075164"), (1000, "-0.169087605")):
        assert f"{solar_system(0, steps)[0]:.9f}" == energy
    random = Random(0)
    signal = [(random_single(random, 2.0**-31), 0.0) for _ in range(64)]
    for k, (re, im) in enumerate(transform(signal)):
        exact = sum(x * math.e ** (-2j * math.pi * j * k / 64) for j, (x, _) in enumerate(signal))
        assert abs(complex(re, im) - exact) < 1e-5
    # FIPS 197, appendix C.1.
    cipher = Aes(bytes(range(16)))
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert cipher.encrypt(plain).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    assert cipher.decrypt(cipher.encrypt(plain)) == plain
