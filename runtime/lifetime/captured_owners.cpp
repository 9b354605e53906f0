// Each capture gets one CUDA user object. The driver destroys it when the graph and everything instantiated or cloned
// from it has been destroyed and has run.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/captured_owners.hpp>

namespace bascule {
namespace {

/// Owners and code that the operations of one capture keep.
struct Held {
    std::uint64_t capture = 0;
    std::vector<Owner> owners{};
    CodeList code{};
    Held* next = nullptr;  // in the list `ended_graphs`
};

std::atomic<Held*> ended_graphs{nullptr};
std::atomic<std::size_t> count{0};

/// The graphs that keep owners of Bascule. Graphs are not thread-safe, so `mutex` is also held while one is changed.
/// The driver's callback takes no lock and so cannot wait for another thread.
struct GraphRegistry {
    std::mutex mutex;
    std::vector<Held*> held;

    Held* of(std::uint64_t capture) noexcept {
        const auto found = std::ranges::find(held, capture, &Held::capture);
        return found == held.end() ? nullptr : *found;
    }
};

/// Never destroyed, because operations at exit still pass owners in.
GraphRegistry& graph_registry() { return never_destroyed<GraphRegistry>(); }

/// Runs in a thread of the driver, so it must not call CUDA, allocate or wait.
void CUDA_CB note_end_of_graph(void* object) {
    auto* held = static_cast<Held*>(object);
    held->next = ended_graphs.load(std::memory_order_relaxed);
    while (!ended_graphs.compare_exchange_weak(held->next, held, std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
}

/// Gives `graph` the only reference to a new user object. Returns false if the driver refuses.
bool attach(const DriverFunctions& api, CUgraph graph, std::unique_ptr<Held> made) {
    graph_registry().held.reserve(graph_registry().held.size() + 1);
    CUuserObject object = nullptr;
    if (api.cuUserObjectCreate(&object, made.get(), &note_end_of_graph, 1,
                               CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS) {
        return false;
    }
    Held* held = made.release();  // owned by the user object, whose callback is note_end_of_graph
    if (api.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) != CUDA_SUCCESS) {
        held->owners.clear();  // the caller keeps them
        api.cuUserObjectRelease(object, 1);
        return false;
    }
    graph_registry().held.push_back(held);
    return true;
}

}  // namespace

bool retain_for_foreign_graph(StreamRef stream, const Owners& owners, const CodeRef* code) noexcept {
    const DriverFunctions& api = Driver::existing()->api();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (api.cuStreamIsCapturing(stream.native(), &status) != CUDA_SUCCESS) return false;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return false;
    cuuint64_t capture = 0;
    CUgraph graph = nullptr;
    if (api.cuStreamGetCaptureInfo(stream.native(), &status, &capture, &graph, nullptr, nullptr) !=
            CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE || graph == nullptr) {
        return false;
    }
    OwnersForGraph all(owners);
    try {
        const std::lock_guard lock(graph_registry().mutex);
        Held* const known = graph_registry().of(capture);
        auto made = known == nullptr ? std::make_unique<Held>(Held{capture}) : nullptr;
        Held& held = known == nullptr ? *made : *known;
        held.code.add(code);
        append(held.owners, all.get());
        if (made != nullptr && !attach(api, graph, std::move(made))) return false;
        count.fetch_add(all.get().count, std::memory_order_relaxed);
        all.transferred();
        return true;
    } catch (...) {  // out of memory: treat the stream like any other
        return false;
    }
}

void release_owners_of_ended_graphs() noexcept {
    if (ended_graphs.load(std::memory_order_relaxed) == nullptr) [[likely]]
        return;
    Held* next = ended_graphs.exchange(nullptr, std::memory_order_acquire);
    while (next != nullptr) {
        const std::unique_ptr<Held> held(next);
        next = held->next;
        {
            const std::lock_guard lock(graph_registry().mutex);
            std::erase(graph_registry().held, held.get());
        }
        release(held->owners);
        count.fetch_sub(held->owners.size(), std::memory_order_relaxed);
    }
}

std::size_t owners_in_foreign_graphs() noexcept { return count.load(); }

}  // namespace bascule
