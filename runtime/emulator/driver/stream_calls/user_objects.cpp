// User objects: creation, reference counts, and references held by graphs.
//
// Semantics: CUDA driver API documentation, "Graph Management", and <cuda.h>. Releasing references that one does not own is
// undefined there; here it is refused if it can be detected.
#include <algorithm>
#include <climits>

#include "driver/captures.hpp"

namespace emulated::driver {
namespace {

bool is_count(unsigned count) noexcept { return count != 0 && count <= INT_MAX; }

/// Returns null if the handle is invalid or the object has lost its last reference.
std::shared_ptr<UserObjectHandle> find_live(CUuserObject handle) {
    auto found = find_object<UserObjectHandle>(handle);
    return found == nullptr || found->gone() ? nullptr : found;
}

/// A graph's references to an object; the end iterator if it has none.
auto held_by(GraphObject& graph, const streams::UserObject& object) {
    return std::ranges::find(graph.held, &object, &streams::HeldObject::object);
}

}  // namespace

EMULATED_DRIVER_API(cuUserObjectCreate, 11030, CUuserObject* out, void* pointer, CUhostFn destroy,
                    unsigned int references, unsigned int flags) {
    require(out != nullptr && destroy != nullptr && is_count(references) &&
            flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    *out = new_handle<CUuserObject>(std::make_shared<UserObjectHandle>(pointer, destroy, references));
}

EMULATED_API(cuUserObjectRetain, 11030, CUuserObject handle, unsigned int count) {
    const auto object = find_live(handle);
    require(object != nullptr && is_count(count));
    object->retain(count);
}

EMULATED_API(cuUserObjectRelease, 11030, CUuserObject handle, unsigned int count) {
    const streams::DueDestructors due;
    const auto object = find_live(handle);
    require(object != nullptr && is_count(count) && object->drop(count));
}

/// Also works for a graph that is being captured.
EMULATED_API(cuGraphRetainUserObject, 11030, CUgraph graph_handle, CUuserObject handle, unsigned int count,
             unsigned int flags) {
    const auto graph = find_object<GraphObject>(graph_handle);
    const auto object = find_live(handle);
    require(graph != nullptr && object != nullptr && is_count(count) &&
            (flags & ~CU_GRAPH_USER_OBJECT_MOVE) == 0);
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->retain(count);
    streams::Captures::get().paused([&] {
        const auto held = held_by(*graph, *object);
        if (held == graph->held.end())
            graph->held.emplace_back(object, count);
        else
            held->take_over(count);
    });
}

EMULATED_API(cuGraphReleaseUserObject, 11030, CUgraph graph_handle, CUuserObject handle, unsigned int count) {
    const streams::DueDestructors due;
    const auto graph = find_object<GraphObject>(graph_handle);
    const auto object = find_live(handle);
    require(graph != nullptr && object != nullptr && is_count(count));
    const bool had = streams::Captures::get().paused([&] {
        const auto held = held_by(*graph, *object);
        if (held == graph->held.end() || held->count() < count) return false;
        held->give_up(count);
        if (held->count() == 0) graph->held.erase(held);
        return true;
    });
    require(had);
    object->drop(count);
}

}  // namespace emulated::driver
