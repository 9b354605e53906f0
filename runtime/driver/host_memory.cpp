#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#include <bascule/runtime/driver/host_memory.hpp>

namespace bascule {

bool is_readable(std::uint64_t address) noexcept {
    // The kernel copies the 8 bytes of a signal set before it looks at `how`, which is wrong on purpose: nothing
    // is changed, no descriptor is needed, and no sandbox forbids it.
    constexpr long no_such_how = -1;
    constexpr std::size_t signal_set_bytes = 8;
    if (address < signal_set_bytes) return false;  // to the kernel no signal set, and no page either
    const int error = errno;
    const long result =
        syscall(SYS_rt_sigprocmask, no_such_how, address & ~std::uint64_t{7}, nullptr, signal_set_bytes);
    const bool readable = result == 0 || errno != EFAULT;
    errno = error;
    return readable;
}

}  // namespace bascule
