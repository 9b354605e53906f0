// Integers of 256 bits, eight words each, by carry chains; powers modulo 64-bit numbers.

struct Wide {
    unsigned word[8];
};

__device__ Wide loaded(const unsigned* from, int i) {
    Wide value;
    for (int k = 0; k < 8; ++k) value.word[k] = from[i * 8 + k];
    return value;
}

__global__ void wide_add_subtract(const unsigned* a, const unsigned* b, unsigned* sums, unsigned* differences,
                                  unsigned* carries, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Wide x = loaded(a, i), y = loaded(b, i), s, d;
    unsigned carry, borrow;
    asm("add.cc.u32 %0, %9, %17;\n\t"
        "addc.cc.u32 %1, %10, %18;\n\t"
        "addc.cc.u32 %2, %11, %19;\n\t"
        "addc.cc.u32 %3, %12, %20;\n\t"
        "addc.cc.u32 %4, %13, %21;\n\t"
        "addc.cc.u32 %5, %14, %22;\n\t"
        "addc.cc.u32 %6, %15, %23;\n\t"
        "addc.cc.u32 %7, %16, %24;\n\t"
        "addc.u32 %8, 0, 0;"
        : "=r"(s.word[0]), "=r"(s.word[1]), "=r"(s.word[2]), "=r"(s.word[3]), "=r"(s.word[4]),
          "=r"(s.word[5]), "=r"(s.word[6]), "=r"(s.word[7]), "=r"(carry)
        : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(x.word[4]), "r"(x.word[5]),
          "r"(x.word[6]), "r"(x.word[7]), "r"(y.word[0]), "r"(y.word[1]), "r"(y.word[2]), "r"(y.word[3]),
          "r"(y.word[4]), "r"(y.word[5]), "r"(y.word[6]), "r"(y.word[7]));
    asm("sub.cc.u32 %0, %9, %17;\n\t"
        "subc.cc.u32 %1, %10, %18;\n\t"
        "subc.cc.u32 %2, %11, %19;\n\t"
        "subc.cc.u32 %3, %12, %20;\n\t"
        "subc.cc.u32 %4, %13, %21;\n\t"
        "subc.cc.u32 %5, %14, %22;\n\t"
        "subc.cc.u32 %6, %15, %23;\n\t"
        "subc.cc.u32 %7, %16, %24;\n\t"
        "subc.u32 %8, 0, 0;"
        : "=r"(d.word[0]), "=r"(d.word[1]), "=r"(d.word[2]), "=r"(d.word[3]), "=r"(d.word[4]),
          "=r"(d.word[5]), "=r"(d.word[6]), "=r"(d.word[7]), "=r"(borrow)
        : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(x.word[4]), "r"(x.word[5]),
          "r"(x.word[6]), "r"(x.word[7]), "r"(y.word[0]), "r"(y.word[1]), "r"(y.word[2]), "r"(y.word[3]),
          "r"(y.word[4]), "r"(y.word[5]), "r"(y.word[6]), "r"(y.word[7]));
    for (int k = 0; k < 8; ++k) {
        sums[i * 8 + k] = s.word[k];
        differences[i * 8 + k] = d.word[k];
    }
    carries[i] = carry << 1 | (borrow & 1);
}

// The schoolbook product of 512 bits, a row at a time: low halves in one chain, high halves in the next.
__global__ void wide_multiply(const unsigned* a, const unsigned* b, unsigned* products, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Wide x = loaded(a, i), y = loaded(b, i);
    unsigned r[17] = {};
#pragma unroll
    for (int row = 0; row < 8; ++row) {
        asm("mad.lo.cc.u32 %0, %9, %17, %0;\n\t"
            "madc.lo.cc.u32 %1, %10, %17, %1;\n\t"
            "madc.lo.cc.u32 %2, %11, %17, %2;\n\t"
            "madc.lo.cc.u32 %3, %12, %17, %3;\n\t"
            "madc.lo.cc.u32 %4, %13, %17, %4;\n\t"
            "madc.lo.cc.u32 %5, %14, %17, %5;\n\t"
            "madc.lo.cc.u32 %6, %15, %17, %6;\n\t"
            "madc.lo.cc.u32 %7, %16, %17, %7;\n\t"
            "addc.u32 %8, %8, 0;"
            : "+r"(r[row]), "+r"(r[row + 1]), "+r"(r[row + 2]), "+r"(r[row + 3]), "+r"(r[row + 4]),
              "+r"(r[row + 5]), "+r"(r[row + 6]), "+r"(r[row + 7]), "+r"(r[row + 8])
            : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(x.word[4]), "r"(x.word[5]),
              "r"(x.word[6]), "r"(x.word[7]), "r"(y.word[row]));
        asm("mad.hi.cc.u32 %0, %9, %17, %0;\n\t"
            "madc.hi.cc.u32 %1, %10, %17, %1;\n\t"
            "madc.hi.cc.u32 %2, %11, %17, %2;\n\t"
            "madc.hi.cc.u32 %3, %12, %17, %3;\n\t"
            "madc.hi.cc.u32 %4, %13, %17, %4;\n\t"
            "madc.hi.cc.u32 %5, %14, %17, %5;\n\t"
            "madc.hi.cc.u32 %6, %15, %17, %6;\n\t"
            "madc.hi.cc.u32 %7, %16, %17, %7;\n\t"
            "addc.u32 %8, %8, 0;"
            : "+r"(r[row + 1]), "+r"(r[row + 2]), "+r"(r[row + 3]), "+r"(r[row + 4]), "+r"(r[row + 5]),
              "+r"(r[row + 6]), "+r"(r[row + 7]), "+r"(r[row + 8]), "+r"(r[row + 9 > 16 ? 16 : row + 9])
            : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(x.word[4]), "r"(x.word[5]),
              "r"(x.word[6]), "r"(x.word[7]), "r"(y.word[row]));
    }
    for (int k = 0; k < 16; ++k) products[i * 16 + k] = r[k];
}

// A product modulo a number of 64 bits, reduced bit by bit from the product's two halves.
__device__ unsigned long long multiply_modulo(unsigned long long a, unsigned long long b,
                                              unsigned long long m) {
    unsigned long long high = __umul64hi(a, b), low = a * b, rest = high % m;
    for (int bit = 63; bit >= 0; --bit) {
        bool over = rest >> 63;
        rest = rest << 1 | (low >> bit & 1);
        if (over || rest >= m) rest -= m;
    }
    return rest;
}

__global__ void power_modulo(const unsigned long long* bases, const unsigned long long* exponents,
                             const unsigned long long* moduli, unsigned long long* out, int n) {
    for (auto i : bascule::grid_stride(n)) {
        unsigned long long m = moduli[i], base = bases[i] % m, power = 1 % m;
        for (unsigned long long e = exponents[i]; e; e >>= 1) {
            if (e & 1) power = multiply_modulo(power, base, m);
            base = multiply_modulo(base, base, m);
        }
        out[i] = power;
    }
}
