// Integers: bits, checksums, digests, division and wide products.

__global__ void bit_tricks(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], s = c[i];
    unsigned values[] = {
        (unsigned)__popc(x),
        __brev(x),
        (unsigned)__ffs(x),
        (unsigned)__clz(x),
        __byte_perm(x, y, s),
        __funnelshift_l(x, y, s),
        __funnelshift_r(x, y, s),
        __funnelshift_lc(x, y, s),
        __funnelshift_rc(x, y, s),
        __umulhi(x, y),
        (unsigned)__mulhi((int)x, (int)y),
        __usad(x, y, s),
        (unsigned)__sad((int)x, (int)y, s),
        __uhadd(x, y),
        __urhadd(x, y),
        (unsigned)__hadd((int)x, (int)y),
        (unsigned)__rhadd((int)x, (int)y),
        __umul24(x, y),
        (unsigned)__mul24((int)x, (int)y),
        (unsigned)__dp4a((int)x, (int)y, (int)s),
        __dp4a(x, y, s),
        (x & y) ^ (~x & s),
        (x & y) ^ (x & s) ^ (y & s),
    };
    for (int k = 0; k < 23; ++k) out[k * n + i] = values[k];
}

__global__ void bit_tricks_wide(const unsigned long long* a, const unsigned long long* b,
                                unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], y = b[i];
    unsigned shift = y % 64;
    unsigned long long values[] = {
        (unsigned long long)__popcll(x),
        __brevll(x),
        (unsigned long long)__ffsll(x),
        (unsigned long long)__clzll(x),
        __umul64hi(x, y),
        (unsigned long long)__mul64hi((long long)x, (long long)y),
        x << shift,
        x >> shift,
        (unsigned long long)((long long)x >> shift),
        x << shift | x >> (64 - shift) % 64,
    };
    for (int k = 0; k < 10; ++k) out[k * n + i] = values[k];
}

// The compiler turns division by constants into products; division by variables is a longer sequence.
__global__ void divisions(const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i];
    unsigned u = x, v = y;
    int values[] = {x / 7,
                    x % 7,
                    x / -10,
                    x % 1000003,
                    x / 16,
                    x % 16,
                    (int)(u / 7),
                    (int)(u % 641),
                    (int)(u / 10u),
                    x / y,
                    x % y,
                    (int)(u / v),
                    (int)(u % v),
                    (short)x / 3,
                    (short)x % (short)(y | 1),
                    (unsigned char)x / 5};
    for (int k = 0; k < 16; ++k) out[k * n + i] = values[k];
}

__global__ void divisions_wide(const long long* a, const long long* b, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i], y = b[i];
    unsigned long long u = x, v = y;
    long long values[] = {x / 1000000007,      x % 97,  x / y, x % y, (long long)(u / v), (long long)(u % v),
                          (long long)(u / 10), x / 4096};
    for (int k = 0; k < 8; ++k) out[k * n + i] = values[k];
}

// The checksum of zip and PNG files: one table in constant memory, a message for each thread.
struct Table {
    unsigned at[256];
    __device__ constexpr Table() : at{} {
        for (unsigned i = 0; i < 256; ++i) {
            unsigned value = i;
            for (int k = 0; k < 8; ++k) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
            at[i] = value;
        }
    }
};
__constant__ Table crc_table;

__global__ void crc32(const unsigned char* bytes, const int* starts, unsigned* sums, int messages) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= messages) return;
    unsigned sum = ~0u;
    for (int i = starts[m]; i < starts[m + 1]; ++i) sum = crc_table.at[(sum ^ bytes[i]) & 255] ^ sum >> 8;
    sums[m] = ~sum;
}

__device__ constexpr unsigned round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ unsigned rotated(unsigned x, int by) { return x >> by | x << (32 - by); }

class Sha256 {
  public:
    __device__ void block(const unsigned char* bytes) {
        unsigned w[64];
        for (int t = 0; t < 16; ++t) {
            w[t] = __byte_perm(
                bytes[4 * t] | bytes[4 * t + 1] << 8 | bytes[4 * t + 2] << 16 | bytes[4 * t + 3] << 24, 0,
                0x0123);
        }
        for (int t = 16; t < 64; ++t) {
            unsigned s0 = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3;
            unsigned s1 = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10;
            w[t] = w[t - 16] + s0 + w[t - 7] + s1;
        }
        unsigned v[8];
        for (int k = 0; k < 8; ++k) v[k] = state_[k];
        for (int t = 0; t < 64; ++t) {
            unsigned s1 = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
            unsigned first = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + round_constants[t] + w[t];
            unsigned s0 = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
            unsigned second = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
            for (int k = 7; k > 0; --k) v[k] = v[k - 1];
            v[4] += first;
            v[0] = first + second;
        }
        for (int k = 0; k < 8; ++k) state_[k] += v[k];
    }
    __device__ unsigned word(int k) const { return state_[k]; }

  private:
    unsigned state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

// Digests of messages of one length, one thread for each; the padding is made in local memory.
__global__ void sha256(const unsigned char* messages, int length, unsigned* digests, int count) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count) return;
    Sha256 hash;
    unsigned char chunk[64];
    int padded = (length + 9 + 63) / 64 * 64;
    for (int at = 0; at < padded; at += 64) {
        for (int k = 0; k < 64; ++k) {
            int i = at + k;
            unsigned char byte = i < length ? messages[m * length + i] : i == length ? 0x80 : 0;
            if (i >= padded - 8) byte = static_cast<unsigned long long>(length) * 8 >> 8 * (padded - 1 - i);
            chunk[k] = byte;
        }
        hash.block(chunk);
    }
    for (int k = 0; k < 8; ++k) digests[m * 8 + k] = __byte_perm(hash.word(k), 0, 0x0123);
}
