#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#include <bascule/runtime/driver/host_memory.hpp>

namespace bascule {

bool is_readable(std::uint64_t address) noexcept {
    // rt_sigprocmask copies the 8 bytes of a signal set before it checks `how`, which is invalid on purpose. This
    // changes nothing, needs no file descriptor, and no sandbox forbids it.
    constexpr long no_such_how = -1;
    constexpr std::size_t signal_set_bytes = 8;
    if (address < signal_set_bytes) return false;  // null would mean that there is no signal set
    const int error = errno;
    const long result =
        syscall(SYS_rt_sigprocmask, no_such_how, address & ~std::uint64_t{7}, nullptr, signal_set_bytes);
    const bool readable = result == 0 || errno != EFAULT;
    errno = error;
    return readable;
}

}  // namespace bascule
