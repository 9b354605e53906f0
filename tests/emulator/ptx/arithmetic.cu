// Every integer and float type in plain C++ arithmetic, and every conversion between them.
// Compiled by NVRTC 13.0 with -arch=compute_80 -lineinfo into the .ptx file of the same name.
#define ARITHMETIC(T, NAME)                                                                     \
    extern "C" __global__ void arithmetic_##NAME(const T* a, const T* b, T* out, int n) {       \
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { \
            T x = a[i], y = b[i];                                                               \
            T* o = out + 6 * i;                                                                 \
            o[0] = x + y, o[1] = x - y, o[2] = x * y, o[3] = x / y, o[4] = x < y ? x : y, o[5] = -x; \
        }                                                                                       \
    }
#define BITS(T, NAME)                                                                           \
    extern "C" __global__ void bits_##NAME(const T* a, const T* b, T* out, int n) {             \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i >= n) return;                                                                     \
        T x = a[i], y = b[i];                                                                   \
        T* o = out + 8 * i;                                                                     \
        o[0] = x % y, o[1] = x & y, o[2] = x | y, o[3] = x ^ y, o[4] = ~x;                      \
        o[5] = x << (y & 7), o[6] = x >> (y & 7), o[7] = x > y;                                 \
    }
#define CONVERT(A, B, NAME)                                                                     \
    extern "C" __global__ void convert_##NAME(const A* a, B* out, int n) {                      \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                          \
        if (i < n) out[i] = (B)a[i];                                                            \
    }
#define CONVERT_FROM(A, NAME)                                                                   \
    CONVERT(A, signed char, NAME##_s8) CONVERT(A, unsigned char, NAME##_u8) CONVERT(A, short, NAME##_s16) \
    CONVERT(A, unsigned short, NAME##_u16) CONVERT(A, int, NAME##_s32) CONVERT(A, unsigned, NAME##_u32)   \
    CONVERT(A, long long, NAME##_s64) CONVERT(A, unsigned long long, NAME##_u64)                \
    CONVERT(A, float, NAME##_f32) CONVERT(A, double, NAME##_f64)
#define INTEGER(T, NAME) ARITHMETIC(T, NAME) BITS(T, NAME) CONVERT_FROM(T, NAME)

INTEGER(signed char, s8)
INTEGER(unsigned char, u8)
INTEGER(short, s16)
INTEGER(unsigned short, u16)
INTEGER(int, s32)
INTEGER(unsigned, u32)
INTEGER(long long, s64)
INTEGER(unsigned long long, u64)
ARITHMETIC(float, f32)
CONVERT_FROM(float, f32)
ARITHMETIC(double, f64)
CONVERT_FROM(double, f64)
