// The waits around a launch. Nothing is remembered by a stream's handle, and nothing is guessed about its
// flags: handles are used again, and only a producer that is the launch's own stream needs no wait.
#include <algorithm>

#include <fmt/format.h>

#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/event.hpp>
#include <bascule/runtime/ordering.hpp>

namespace bascule {
namespace {

/// As StreamRef spells it: 0 and 1 are both the legacy default stream.
std::uint64_t normalised(std::uint64_t handle) noexcept { return handle == 0 ? 1 : handle; }

CUstream native(std::uint64_t handle) noexcept { return reinterpret_cast<CUstream>(normalised(handle)); }

bool is_foreign(const Producer& producer, StreamRef stream) noexcept {
    return normalised(producer.stream) != stream.handle();
}

std::string naming(const char* doing, const Producer& producer) {
    return fmt::format("{} stream {:#x}, which argument {} names (is that stream still alive?),", doing,
                       producer.stream, producer.argument + 1);
}

}  // namespace

StreamRef choose_stream(std::optional<StreamRef> given, std::optional<StreamRef> current,
                        std::optional<std::uint64_t> common_producer, Device device) noexcept {
    if (given) return *given;
    if (current) return *current;
    if (common_producer) return {*common_producer, device};
    return StreamRef::legacy_default(device);
}

void wait_for_producers(StreamRef stream, std::span<const Producer> producers) {
    for (const Producer& producer : producers) {
        if (!is_foreign(producer, stream)) continue;
        const Driver& driver = Driver::get();
        const PooledEvent event(stream.device());
        const CUresult recorded = driver.api().cuEventRecord(event.ref().native(), native(producer.stream));
        if (recorded != CUDA_SUCCESS) driver.check(recorded, "cuEventRecord", naming("marking", producer));
        const CUresult waits =
            driver.api().cuStreamWaitEvent(stream.native(), event.ref().native(), CU_EVENT_WAIT_DEFAULT);
        if (waits != CUDA_SUCCESS) driver.check(waits, "cuStreamWaitEvent", naming("waiting for", producer));
    }
}

void order_producers_after(StreamRef stream, std::span<const Producer> producers) {
    const auto foreign = [&](const Producer& producer) { return is_foreign(producer, stream); };
    auto next = std::find_if(producers.begin(), producers.end(), foreign);
    if (next == producers.end()) return;
    const Driver& driver = Driver::get();
    try {
        const PooledEvent event(stream.device());
        driver.check(driver.api().cuEventRecord(event.ref().native(), stream.native()), "cuEventRecord",
                     "marking the end of the launch");
        for (; next != producers.end(); next = std::find_if(next + 1, producers.end(), foreign)) {
            const CUresult waits = driver.api().cuStreamWaitEvent(native(next->stream), event.ref().native(),
                                                                  CU_EVENT_WAIT_DEFAULT);
            if (waits != CUDA_SUCCESS)
                driver.check(waits, "cuStreamWaitEvent", naming("holding back", *next));
        }
    } catch (...) {
        // The producers may overwrite what the kernel reads: control does not return before it is done. When
        // this fails too the context is lost and nothing runs any more.
        driver.api().cuStreamSynchronize(stream.native());
        throw;
    }
}

}  // namespace bascule
