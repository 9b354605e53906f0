// Keeps the end of the process and NVRTC apart: a thread that still compiles then would find the library's
// static objects destroyed.
#pragma once

namespace bascule {

/// One is made around the calls of NVRTC, on the stack. The end of the process waits for those that are made,
/// and whoever would make one after that, on another thread, stops there for good.
class InsideNvrtc {
  public:
    InsideNvrtc() noexcept;
    ~InsideNvrtc();
    InsideNvrtc(const InsideNvrtc&) = delete;
    InsideNvrtc& operator=(const InsideNvrtc&) = delete;
};

/// Says that libraries were loaded: what the process does at its end goes backwards, so that a gate that was
/// asked for after they were is closed before they are destroyed.
void close_gate_at_exit() noexcept;

/// Closes it now, where it is known that the process is about to end: what a compile makes later than the last
/// close_gate_at_exit would be destroyed before that gate is closed. Compiles of the calling thread go on.
void close_gate() noexcept;

/// Whether compiles of other threads than the one that closed it stop from now on.
bool gate_is_closed() noexcept;

}  // namespace bascule
