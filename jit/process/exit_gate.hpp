// Keeps the end of the process, and forks, apart from NVRTC: a thread that still compiles at the end would find the
// library's static objects destroyed, and a child that is forked while another thread compiles finds its locks taken.
#pragma once

namespace bascule {

/// One is made on the stack around what must be done before the process ends. The end waits for those that are made, and
/// another thread that would make one after that stops there for good.
class BeforeTheEnd {
  public:
    BeforeTheEnd() noexcept;
    ~BeforeTheEnd();
    BeforeTheEnd(BeforeTheEnd&&) = delete;
};

/// The same around the calls of NVRTC. Throws: LibraryError in a child that was forked while another thread was there: it
/// would wait for ever for a lock of NVRTC's.
class InsideNvrtc {
  public:
    InsideNvrtc();
    ~InsideNvrtc();
    InsideNvrtc(InsideNvrtc&&) = delete;

  private:
    BeforeTheEnd before_the_end_;
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
