#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/host_function.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

namespace bascule {

void launch_host_function(StreamRef stream, void (*function)(void*), void* data, const Owners& owners) {
    const OwnersKept kept(stream, owners);
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.device().context());
    driver.check(driver.api().cuLaunchHostFunc(stream.native(), function, data), stream.native(),
                 "enqueuing a function of the host");
}

}  // namespace bascule
