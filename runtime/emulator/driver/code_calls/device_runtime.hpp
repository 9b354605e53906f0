// The library that is linked in place of libcudadevrt. It has the functions of CUDA's device runtime that compilers call
// for a cooperative grid without the headers of cooperative_groups. The others launch kernels, which the emulated device
// does not support.
#pragma once

#include <string_view>

namespace emulated::driver {

/// The handle of a grid (scope 1) is its workspace, which a cooperative launch passes in %envreg1 and %envreg2; 0 without
/// one. A grid is synchronised as in cooperative_groups: each block adds to the word at byte 4, the first block a number
/// with which the last arrival flips the highest bit, all others 1. Each block waits for that flip.
inline constexpr std::string_view device_runtime = R"(.version 7.0
.target sm_75
.address_size 64
.weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle (.param .b32 scope) {
  .reg .pred %is_grid;
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u32 %r0, [scope];
  mov.b32 %r1, %envreg1;
  mov.b32 %r2, %envreg2;
  mov.b64 %rd0, {%r2, %r1};
  setp.eq.u32 %is_grid, %r0, 1;
  selp.b64 %rd1, %rd0, 0, %is_grid;
  st.param.b64 [handle], %rd1;
  ret;
}
.weak .func (.param .b32 error) cudaCGSynchronize (.param .b64 handle, .param .b32 flags) {
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<1>;
  ld.param.u64 %rd0, [handle];
  setp.eq.u64 %p0, %rd0, 0;
  @%p0 trap;
  barrier.sync 0;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %tid.z;
  or.b32 %r0, %r0, %r1;
  or.b32 %r0, %r0, %r2;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra together;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %nctaid.y;
  mov.u32 %r5, %nctaid.z;
  mul.lo.u32 %r3, %r3, %r4;
  mul.lo.u32 %r3, %r3, %r5;
  sub.u32 %r3, 0x80000001, %r3;
  mov.u32 %r6, %ctaid.x;
  mov.u32 %r7, %ctaid.y;
  mov.u32 %r8, %ctaid.z;
  or.b32 %r6, %r6, %r7;
  or.b32 %r6, %r6, %r8;
  setp.eq.u32 %p2, %r6, 0;
  selp.u32 %r3, %r3, 1, %p2;
  membar.gl;
  atom.global.add.u32 %r4, [%rd0+4], %r3;
wait:
  ld.volatile.global.u32 %r5, [%rd0+4];
  xor.b32 %r9, %r4, %r5;
  setp.ge.s32 %p3, %r9, 0;
  @%p3 bra wait;
  membar.gl;
together:
  barrier.sync 0;
  st.param.b32 [error], 0;
  ret;
}
)";

}  // namespace emulated::driver
