// thrust::complex for kernels: libcu++'s complex, since Thrust's own header needs host headers.
#pragma once

#include <complex>

namespace thrust {
using ::cuda::std::complex;
using ::cuda::std::conj;
using ::cuda::std::norm;
using ::cuda::std::polar;
using ::cuda::std::proj;
using ::std::abs;
using ::std::acos;
using ::std::acosh;
using ::std::arg;
using ::std::asin;
using ::std::asinh;
using ::std::atan;
using ::std::atanh;
using ::std::cos;
using ::std::cosh;
using ::std::exp;
using ::std::log;
using ::std::log10;
using ::std::pow;
using ::std::sin;
using ::std::sinh;
using ::std::sqrt;
using ::std::tan;
using ::std::tanh;
}  // namespace thrust
