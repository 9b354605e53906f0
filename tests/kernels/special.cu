// Functions of the mathematical library, one column of results for each.

__global__ void special_double(const double* in, const double* other, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], y = other[i], sine, cosine;
    sincos(x, &sine, &cosine);
    double values[] = {exp(x),   log(fabs(x)),   erf(x),         erfc(x),       lgamma(x),   pow(fabs(x), y),
                       sine,     cosine,         tan(x),         atan(x),       tanh(x),     cbrt(x),
                       expm1(x), log1p(fabs(x)), sinh(x),        sqrt(fabs(x)), atan2(y, x), hypot(x, y),
                       exp2(x),  log2(fabs(x)),  tgamma(fabs(x))};
    for (int k = 0; k < 21; ++k) out[k * n + i] = values[k];
}

__global__ void special_float(const float* in, const float* other, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = other[i], sine, cosine;
    sincosf(x, &sine, &cosine);
    float values[] = {expf(x),           logf(fabsf(x)), erff(x),      erfcf(x),         lgammaf(x),
                      powf(fabsf(x), y), sine,           cosine,       tanf(x),          atanf(x),
                      tanhf(x),          cbrtf(x),       expm1f(x),    log1pf(fabsf(x)), sinhf(x),
                      sqrtf(fabsf(x)),   atan2f(y, x),   hypotf(x, y), exp2f(x),         log2f(fabsf(x)),
                      tgammaf(fabsf(x))};
    for (int k = 0; k < 21; ++k) out[k * n + i] = values[k];
}

// Results that are exact by definition: parts, roundings, remainders, neighbours.
__global__ void exact_double(const double* in, const double* other, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], y = other[i], whole;
    double part = modf(x, &whole);
    int exponent;
    double fraction = frexp(x, &exponent);
    double values[] = {floor(x),
                       ceil(x),
                       trunc(x),
                       rint(x),
                       round(x),
                       part,
                       whole,
                       fraction,
                       (double)exponent,
                       fmod(x, y),
                       remainder(x, y),
                       copysign(x, y),
                       fma(x, y, -x * y),
                       nextafter(x, y),
                       ldexp(x, 7),
                       fmin(x, y),
                       fmax(x, y),
                       fdim(x, y),
                       __dadd_rz(x, y),
                       __dadd_ru(x, y),
                       __dmul_rd(x, y),
                       __drcp_rn(x),
                       __ddiv_rn(x, y),
                       __dsqrt_rn(fabs(x))};
    for (int k = 0; k < 24; ++k) out[k * n + i] = values[k];
}

// Conversions from double to integers and float, of values out of range and NaN.
__global__ void convert_edges(const double* in, int* ints, unsigned* unsigneds, long long* longs,
                              float* floats, signed char* narrow, double* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    ints[i] = __double2int_rz(in[i]);
    unsigneds[i] = __double2uint_rn(in[i]);
    longs[i] = __double2ll_rd(in[i]);
    floats[i] = __double2float_ru(in[i]);
    narrow[i] = static_cast<signed char>(static_cast<int>(in[i]));
    back[i] = __ll2double_rz(longs[i] | 1) + __uint2double_rn(unsigneds[i]);
}
