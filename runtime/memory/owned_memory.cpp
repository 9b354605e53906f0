#include <algorithm>
#include <utility>

#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/memory/owned_memory.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {

void OwnedMemory::share(StreamRef stream, std::shared_ptr<void> keeper) {
    share();
    if (stream.handle() <= 2) return;  // a default stream: end_use waits for those
    const std::lock_guard lock(mutex_);
    const bool known = std::ranges::any_of(users_, [&](const User& user) { return user.stream == stream; });
    if (!known) users_.push_back({stream, std::move(keeper)});
}

namespace {

/// Whether work may be pending on the stream. The device's context must be current.
bool may_be_busy(StreamRef stream, const Driver& driver) noexcept {
    const Bookkeeping bookkeeping(driver);
    return is_capturing(stream) || driver.api().cuStreamQuery(stream.native()) != CUDA_SUCCESS;
}

}  // namespace

/// Needs no allocation to succeed, so that it works when memory has run out.
void OwnedMemory::end_use(OwnedMemory* memory) noexcept {
    if (Driver::lost_by_fork()) return;  // the parent process uses the memory
    end_in_context(memory->device_, [&](const Driver& driver) {
        const StreamRef* const order = memory->order();
        const StreamRef legacy = StreamRef::legacy_default(memory->device_);
        // A graph that is being captured on `order` keeps the memory, and nothing else can be enqueued before the
        // capture ends.
        const bool captured = order != nullptr && is_capturing(*order);
        const bool is_elsewhere = order == nullptr || *order != legacy;
        const bool blocking_streams =
            memory->shared_.exchange(false) && is_elsewhere && may_be_busy(legacy, driver);
        std::erase_if(memory->users_, [&](const User& user) { return !may_be_busy(user.stream, driver); });
        if (!captured && !blocking_streams && memory->users_.empty()) return delete memory;
        memory->uses_ = 1;
        for (const User& user : memory->users_) memory->keep_for(user.stream);
        if (blocking_streams) memory->keep_for(legacy);
        if (captured) memory->keep_for(*order);
        // The last use may end in another thread, which cannot name this thread's default stream.
        memory->shared_ = captured && order->handle() == 2;
        void* const this_use = memory;
        end_uses(&this_use, 1);
    });
}

void OwnedMemory::keep_for(StreamRef stream) noexcept {
    uses_.fetch_add(1);
    // Foreign graphs must not take the owner.
    keep_until_done(stream, Owners(Owner{this, &end_uses, bytes_}), thread_memory, nullptr,
                    StreamFacts::not_captured);
}

void OwnedMemory::end_uses(void* const* all, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        auto* const memory = static_cast<OwnedMemory*>(all[i]);
        if (memory->uses_.fetch_sub(1) != 1) continue;
        memory->users_.clear();
        end_use(memory);  // again, because its stream may be capturing by now
    }
}

}  // namespace bascule
