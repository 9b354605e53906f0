// size_t and ptrdiff_t are built in. This offsetof is a constant expression, which libcu++'s is not; NVRTCs before
// 13.5 have no __builtin_offsetof.
#pragma once

#undef offsetof
#define offsetof(type, member) (static_cast<size_t>(__INTADDR__(&(static_cast<type*>(nullptr)->member))))
